"""Ask and tell over ``captime ask``."""

import json
import os
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from typing import IO, Any, Dict, Mapping, Optional, Tuple, Type, Union
from types import TracebackType

from ._errors import CaptimeError, RequestError, ScenarioError
from ._program import USAGE, StrPath, find_program, said

Value = Union[bool, int, float, str]


@dataclass(frozen=True)
class Pull:
    """What to run next: a configuration and the limit it may run to."""

    id: int
    """The number to give to ``Tuner.tell``."""
    arm: int
    """The number of the configuration, counted from 1. Arm 1 is the default configuration."""
    configuration: Dict[str, Value]
    """The parameters. A parameter that is not active is absent."""
    limit: float
    """The limit in seconds, or a plain count for ``limits: {of: work}``."""
    instance: Optional[int] = None
    """The instance to run, counted from 1, if the scenario lists instances."""
    instance_name: Optional[str] = None
    """Its name in that list."""


@dataclass(frozen=True)
class Answer:
    """The configuration and the limit to use."""

    arm: int
    configuration: Dict[str, Value]
    limit: float
    gain: float
    """The estimated gain: reward minus cost, or minus the penalty where a run is cut off."""
    interval: Tuple[float, float]
    """The 95 % interval around the gain."""
    pulls: int
    """How many pulls it is based on."""
    censored: float
    """The share of them that was cut off or failed."""


class Tuner:
    """Chooses what to run next and learns from what you tell it.

    Args:
        scenario: a scenario file, or the same as a mapping: ``{"arms": {...}, "limits": {...}}``. The target must be
            ``external``, which is also the default of a mapping. Paths in a mapping must be absolute.
        journal: a folder to record in. A tuner with the same scenario and folder resumes what is there. Without it
            nothing is written.
        program: the program ``captime``, if it is not where pip installs it and not in ``PATH``.

    Several pulls may be open at once, and threads may share a tuner. Close it when you are done, best by a ``with`` block.

    Raises:
        ProgramNotFound: if the program ``captime`` is not installed.
        ScenarioError: if captime refuses the scenario; the message shows the line.

    Example::

        with Tuner("scenario.yaml") as tuner:
            for _ in range(100):
                pull = tuner.ask()
                run = run_limited(["./solver", f"--decay={pull.configuration['decay']}"], wall=pull.limit)
                if run.is_limited:
                    tuner.tell(pull, censored=True)
                elif run.exit_code != 0:
                    tuner.tell(pull, failed=True)
                else:
                    tuner.tell(pull, reward=1.0, consumption=run.wall_seconds)
            print(tuner.best())
    """

    def __init__(
        self,
        scenario: Union[StrPath, Mapping[str, Any]],
        *,
        journal: Optional[StrPath] = None,
        program: Optional[StrPath] = None,
    ) -> None:
        self._lock = threading.Lock()
        self._written: Optional[IO[str]] = None
        if isinstance(scenario, Mapping):
            # JSON is YAML, and captime wants a file.
            self._written = tempfile.NamedTemporaryFile("w", prefix="captime-", suffix=".yaml", encoding="utf-8")
            json.dump({"name": "tuner", "target": "external", **scenario}, self._written, indent=1)
            self._written.flush()
            scenario = self._written.name
        command = [find_program(program), "ask", os.fspath(scenario)]
        if journal is not None:
            command += ["--journal", os.fspath(journal)]
        # A file, not a pipe: it needs no reader while requests are answered.
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, encoding="utf-8"
        )
        try:
            self.best()
        except BaseException:
            self.close()
            raise

    def ask(self) -> Pull:
        """The next pull to run. Run it, then call ``tell``."""
        return Pull(**self._request("ask", {})["pull"])

    def tell(
        self,
        pull: Union[Pull, int],
        *,
        reward: Optional[float] = None,
        consumption: Optional[float] = None,
        censored: Union[bool, float] = False,
        failed: bool = False,
    ) -> None:
        """Says what became of a pull. Give one of:

        - ``reward`` (0 to 1) and ``consumption`` (in the unit of the limit): it ended by itself;
        - ``censored=True``: it was cut off at its limit, or ``censored=12.5`` at that point;
        - ``failed=True``: it crashed, or there is no reward to be read.

        A run that ended by itself beyond its limit counts as cut off.
        """
        if isinstance(pull, Pull):
            number, limit = pull.id, pull.limit
        else:
            number, limit = pull, None
        # `censored=0.0` is a time, and captime says what is wrong with it.
        is_censored = censored is not False
        if (reward is not None or consumption is not None) + is_censored + failed != 1:
            raise TypeError("tell() takes `reward` and `consumption`, or `censored`, or `failed=True`, and only one of these")
        content: Dict[str, Any] = {"id": number}
        if failed:
            content["failed"] = True
        elif is_censored:
            if censored is True and limit is None:
                raise TypeError("tell(): with the number of a pull, give `censored` as the time at which it was cut off")
            content["censored"] = limit if censored is True else _number("censored", censored)
        else:
            if reward is None or consumption is None:
                raise TypeError("tell() needs both `reward` and `consumption`")
            content["reward"] = _number("reward", reward)
            content["consumption"] = _number("consumption", consumption)
        self._request("tell", content)

    def best(self, limit: Optional[float] = None) -> Optional[Answer]:
        """The pair to use if you stopped now, or ``None`` while no pull has earned a reward.

        With ``limit``: the arm to use if every run is granted this limit.
        """
        best = self._request("best", {} if limit is None else {"limit": _number("limit", limit)})["best"]
        if best is None:
            return None
        best["interval"] = tuple(best["interval"])
        return Answer(**best)

    def explain(self) -> Dict[str, Any]:
        """Why the last pull was chosen, as captime gives it: index, runner-up, counts and widths."""
        explanation: Dict[str, Any] = self._request("explain", {})["explain"]
        return explanation

    @property
    def messages(self) -> str:
        """What captime has said besides its answers, such as that it resumed and which pulls are still open."""
        with self._lock:
            return self._messages()

    def close(self) -> None:
        """Ends captime. With a journal, everything you have told it is on disk afterwards."""
        with self._lock:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except BrokenPipeError:
                        pass
            self._process.wait()
            self._stderr.close()
            if self._written is not None:
                self._written.close()

    def __enter__(self) -> "Tuner":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _messages(self) -> str:
        if self._stderr.closed:
            return ""
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")

    def _request(self, kind: str, content: Dict[str, Any]) -> Dict[str, Any]:
        with self._lock:
            stdin, stdout = self._process.stdin, self._process.stdout
            assert stdin is not None and stdout is not None, "both are pipes"
            if stdin.closed:
                raise CaptimeError("this tuner is closed: make a new one, with the same `journal` to resume")
            try:
                stdin.write(json.dumps({kind: content}) + "\n")
                stdin.flush()
                line = stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                code = self._process.wait()
                message = said(self._messages(), code)
                raise ScenarioError(message) if code == USAGE else CaptimeError(message)
        answer: Dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RequestError(f"{answer['error']['what']}: {answer['error']['fix']}")
        return answer


def _number(name: str, value: float) -> float:
    """As a plain number, also from NumPy's; NaN has no place in JSON."""
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(f"`{name}` is {number}: give a finite number, or `failed=True` if there is none")
    return number
