"""One command under limits, over ``captime exec``."""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Union

from ._errors import CaptimeError, LaunchError
from ._program import StrPath, find_program, said

Time = Union[float, str, timedelta]
Size = Union[int, str]


@dataclass(frozen=True)
class LimitedRun:
    """What became of a command that ran under limits."""

    cause: str
    """The limit that ended it: ``wall``, ``cpu`` or ``memory``. ``none`` if it ended by itself, ``cancelled`` if captime was
    asked to stop."""
    exit_code: Optional[int]
    """Its exit code, or ``None`` if a signal ended it."""
    signal: Optional[int]
    """The signal that ended it, or ``None``."""
    wall_seconds: float
    cpu_seconds: float
    """CPU time of the whole process tree."""
    user_seconds: float
    system_seconds: float
    peak_memory_bytes: Optional[int]
    """Peak memory of the whole process tree, where it is known."""
    left_behind: int
    """How many other processes were still alive and were ended."""
    level: str
    """How the limits were enforced: ``cgroup2`` or ``subreaper``."""
    cpu_exact: bool
    """If false, ``cpu_seconds`` is a lower bound."""
    memory_exact: bool
    """If false, ``peak_memory_bytes`` is a lower bound."""
    command: List[str]
    stdout: str
    """What it printed, up to ``output_limit``: the middle is dropped. Empty if the output was not captured."""
    stderr: str
    report: Mapping[str, Any]
    """The whole report, as captime wrote it."""

    @property
    def is_limited(self) -> bool:
        """Whether a limit ended it."""
        return self.cause in ("wall", "cpu", "memory")

    @property
    def is_success(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.cause == "none" and self.exit_code == 0


def run_limited(
    command: Sequence[StrPath],
    *,
    wall: Optional[Time] = None,
    cpu: Optional[Time] = None,
    memory: Optional[Size] = None,
    grace: Optional[Time] = None,
    input: Union[str, bytes, None] = None,
    cwd: Optional[StrPath] = None,
    env: Optional[Mapping[str, str]] = None,
    cpus: Optional[str] = None,
    contain: Optional[str] = None,
    output_limit: Optional[Size] = "1MiB",
    program: Optional[StrPath] = None,
) -> LimitedRun:
    """Runs one command under limits and waits for it. No process of it survives, daemons included.

    Args:
        command: the program and its arguments, never a shell line.
        wall: wall-clock time: seconds, a ``timedelta``, or a text such as ``"1h 30m"``.
        cpu: CPU time of the whole process tree, written in the same way.
        memory: memory of the whole process tree: bytes, or a text such as ``"2GiB"``.
        grace: time between SIGTERM and SIGKILL; by default there is none.
        input: what the command reads from stdin; nothing by default.
        cwd: the folder it runs in.
        env: its environment, instead of this process's own.
        cpus: CPUs to run on, such as ``"0,2-3"``.
        contain: what to keep the command from: ``"off"``, ``"pids"``, ``"full"`` or ``"auto"`` (see ``captime exec --help``).
        output_limit: how much of stdout and of stderr to keep. ``None`` passes both on to this process's own.
        program: the program ``captime``, if it is not where pip installs it and not in ``PATH``.

    The command also ends if this process does, however that happens.

    Raises:
        LaunchError: if the command cannot be started.
        CaptimeError: if captime refuses the limits or fails itself.
        ProgramNotFound: if the program ``captime`` is not installed.
    """
    if isinstance(command, (str, bytes)):
        raise TypeError("the command is a list of arguments: write [\"sleep\", \"10\"], or [\"sh\", \"-c\", ...] for a shell")
    options = ["--stop-on-stdin-eof"]
    for name, limit in (("wall", wall), ("cpu", cpu), ("grace", grace)):
        if limit is not None:
            options += [f"--{name}={_time(limit)}"]
    for name, value in (("memory", memory), ("cpus", cpus), ("contain", contain), ("output-limit", output_limit)):
        if value is not None:
            options += [f"--{name}={value}"]
    is_captured = output_limit is not None
    with tempfile.TemporaryDirectory(prefix="captime-") as folder:
        report = Path(folder, "report.json")
        options += [f"--report={report}"]
        if input is not None:
            given = Path(folder, "input")
            given.write_bytes(input.encode() if isinstance(input, str) else input)
            options += [f"--input={given}"]
        with Path(folder, "stderr").open("w+b") as messages:
            process = subprocess.Popen(
                [find_program(program), "exec", *options, "--", *(os.fspath(part) for part in command)],
                # Never written to: captime notices when this process is gone.
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL if is_captured else None,
                stderr=messages if is_captured else None,
                cwd=cwd,
                env=None if env is None else dict(env),
            )
            with process:
                try:
                    code = process.wait()
                except BaseException:
                    process.terminate()
                    process.wait()
                    raise
            messages.seek(0)
            message = messages.read().decode("utf-8", "replace")
        try:
            found = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise CaptimeError(said(message, code)) from None
    if "error" in found:
        raise LaunchError(said(message, code) if message else found["error"])
    return LimitedRun(
        **{name: found.get(name) for name in LimitedRun.__dataclass_fields__ if name not in ("stdout", "stderr", "report")},
        stdout=_text(found.get("stdout")),
        stderr=_text(found.get("stderr")),
        report=found,
    )


def _time(limit: Time) -> str:
    if isinstance(limit, str):
        return limit
    seconds = limit.total_seconds() if isinstance(limit, timedelta) else float(limit)
    # Never `1e-05`.
    return f"{seconds:.9f}s"


def _text(captured: Optional[Mapping[str, Any]]) -> str:
    if captured is None:
        return ""
    dropped = captured["dropped_bytes"]
    middle = f"\n[{dropped} bytes dropped]\n" if dropped else ""
    return f"{captured['head']}{middle}{captured['tail']}"
