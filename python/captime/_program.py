"""Finds the program ``captime`` and calls it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Iterator, List, Optional, Union

from ._errors import CaptimeError, ProgramNotFound

StrPath = Union[str, "os.PathLike[str]"]

VARIABLE = "CAPTIME_PROGRAM"
USAGE = 2
"""captime's exit code for bad usage or a bad scenario."""


def find_program(program: Optional[StrPath] = None) -> str:
    """The path of the program ``captime``.

    Looks at ``program``, then at the environment variable ``CAPTIME_PROGRAM``, then where pip installs programs for this
    Python, then in ``PATH``.

    Raises:
        ProgramNotFound: if it is in none of these places.
    """
    named = os.fspath(program) if program is not None else os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            said = "the argument `program`" if program is not None else f"the environment variable {VARIABLE}"
            raise ProgramNotFound(f"{said} names `{named}`, which is not a program: correct the path or leave it out")
        return os.path.abspath(found)
    for folder in _folders():
        candidate = os.path.join(folder, "captime")
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    found = shutil.which("captime")
    if found is None:
        raise ProgramNotFound(
            "the program `captime` was not found: install it with `pip install captime` or `cargo install captime`, "
            f"or set {VARIABLE} to its path"
        )
    return os.path.abspath(found)


def _folders() -> Iterator[str]:
    """Where pip puts programs: of this environment, of the user, and beside a package installed with ``--target``."""
    yield sysconfig.get_path("scripts")
    if sys.version_info >= (3, 10):
        yield sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user"))
    else:
        yield sysconfig.get_path("scripts", scheme=f"{os.name}_user")
    yield str(Path(__file__).resolve().parent.parent / "bin")


def output(arguments: List[str], *, program: Optional[StrPath], accepted: "tuple[int, ...]" = (0,)) -> str:
    """What captime prints on stdout. Any exit code that is not accepted is an error with captime's own message."""
    ended = subprocess.run(
        [find_program(program), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode not in accepted:
        raise CaptimeError(said(ended.stderr, ended.returncode))
    return ended.stdout


def said(stderr: str, code: int) -> str:
    """captime's own message, or what is known if it left none."""
    message = stderr.strip()
    if not message:
        how = f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        message = f"captime {how} and said nothing: run the same command in a shell to see why"
    return message
