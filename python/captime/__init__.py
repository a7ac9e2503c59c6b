"""Tune an algorithm and its time limit together.

Three ways to use captime from Python::

    from captime import Tuner, run_limited, read_run

    with Tuner("scenario.yaml") as tuner:          # captime chooses, your code runs
        pull = tuner.ask()
        tuner.tell(pull, reward=0.9, consumption=1.7)
        print(tuner.best())

    run = run_limited(["./solver", "a.cnf"], wall=10, memory="2GiB")   # one command under limits
    print(run.cause, run.wall_seconds, run.stdout)

    rounds = read_run("runs/mine").rounds          # what `captime run` wrote

The package has no dependencies. It talks to the program `captime`, which the wheel installs beside it.
"""

from ._errors import CaptimeError, LaunchError, ProgramNotFound, RequestError, ScenarioError
from ._limited import LimitedRun, run_limited
from ._program import find_program
from ._run import Round, Run, read_run
from ._tuner import Answer, Pull, Tuner

__all__ = [
    "Answer",
    "CaptimeError",
    "LaunchError",
    "LimitedRun",
    "ProgramNotFound",
    "Pull",
    "RequestError",
    "Round",
    "Run",
    "ScenarioError",
    "Tuner",
    "find_program",
    "read_run",
    "run_limited",
]
