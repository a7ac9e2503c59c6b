"""What ``captime run`` wrote, as plain lists."""

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, List, Optional, TypedDict

from ._errors import CaptimeError
from ._program import StrPath, output

if TYPE_CHECKING:
    import pandas

NO_ANSWER = 3
"""captime's exit code for a run without a reward."""


class Round(TypedDict):
    """One round with an outcome, as ``captime export`` gives it. Times are in seconds."""

    round: int
    arm: int
    configuration: Dict[str, Any]
    limit: float
    instance: Optional[str]
    seed: Optional[int]
    outcome: str
    """``rewarded``, ``censored`` or ``failed``."""
    reward: Optional[float]
    consumption: Optional[float]
    gain: Optional[float]
    wall_seconds: Optional[float]
    cpu_seconds: Optional[float]
    exit_code: Optional[int]
    signal: Optional[int]
    arm_name: Optional[str]
    score: Optional[float]
    peak_memory_bytes: Optional[int]
    failure: Optional[str]
    node: Optional[str]


@dataclass(frozen=True)
class Run:
    """A run: its rounds and its answer."""

    name: str
    rounds: List[Round]
    """One dictionary per round with an outcome, in the order of the rounds."""
    best: Optional[Dict[str, Any]]
    """What ``captime best --format json`` prints, or ``None`` while no pull has earned a reward."""
    no_answer: Optional[str]
    """Why there is no answer, and what to do; ``None`` if there is one."""

    def frame(self) -> "pandas.DataFrame":
        """The rounds as a pandas DataFrame, with one column per parameter, called ``configuration.NAME``.

        Raises:
            CaptimeError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise CaptimeError(
                "pandas is not installed: `pip install pandas`, or use `rounds`, which is a plain list"
            ) from None
        rows = []
        for round_ in self.rounds:
            row: Dict[str, Any] = {name: value for name, value in round_.items() if name != "configuration"}
            row.update((f"configuration.{name}", value) for name, value in round_["configuration"].items())
            rows.append(row)
        columns = [name for name in Round.__annotations__ if name != "configuration"]
        parameters = {name: None for row in rows for name in row if name not in columns}
        return pandas.DataFrame(rows, columns=[*columns, *parameters])


def read_run(folder: StrPath, *, program: Optional[StrPath] = None) -> Run:
    """Reads a run: its folder, or its name in ``runs/``. Also works while it runs and after a crash.

    Raises:
        CaptimeError: if there is no such run, or it is damaged. The message is captime's own.
    """
    run = os.fspath(folder)
    lines = output(["export", "--format=jsonl", "--", run], program=program)
    best = json.loads(output(["best", "--format=json", "--", run], program=program, accepted=(0, NO_ANSWER)))
    no_answer = best["no_answer"]
    return Run(
        name=best["name"],
        rounds=[json.loads(line) for line in lines.split("\n") if line],
        best=None if no_answer else best,
        no_answer=f"{no_answer['why']}: {no_answer['fix']}" if no_answer else None,
    )
