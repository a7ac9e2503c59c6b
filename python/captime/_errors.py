"""What can go wrong. Every message says what to do."""


class CaptimeError(Exception):
    """The base of all errors of this package."""


class ProgramNotFound(CaptimeError):
    """The program ``captime`` is not installed where this package looks for it."""


class ScenarioError(CaptimeError):
    """captime refused the scenario. The message is captime's own, with line and column."""


class RequestError(CaptimeError):
    """captime refused one request, such as a second ``tell`` for the same pull. Nothing has changed."""


class LaunchError(CaptimeError):
    """``run_limited`` could not start the command: it does not exist or may not be executed."""
