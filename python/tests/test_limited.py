"""One command under limits, for real. Times are far apart, so that a busy machine changes nothing."""

import os
import subprocess
import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import pytest

from captime import CaptimeError, LaunchError, run_limited


def test_what_a_command_prints_and_returns() -> None:
    run = run_limited(["sh", "-c", "cat; echo no >&2; exit 3"], wall=60, input="hello\n")
    assert (run.cause, run.exit_code, run.signal) == ("none", 3, None)
    assert (run.stdout, run.stderr) == ("hello\n", "no\n")
    assert not run.is_success and not run.is_limited
    assert run.command[0] == "sh" and run.report["exit_code"] == 3
    assert 0 <= run.wall_seconds < 60


@pytest.mark.parametrize("wall", [0.3, "300ms", timedelta(milliseconds=300)])
def test_a_wall_limit_ends_the_whole_tree(wall) -> None:
    run = run_limited(["sh", "-c", "sleep 100 & sleep 100"], wall=wall)
    assert run.cause == "wall" and run.is_limited and run.exit_code is None
    assert 0.3 <= run.wall_seconds < 60


def test_a_cpu_limit_counts_cpu_time() -> None:
    run = run_limited(["sh", "-c", "while :; do :; done"], cpu=0.2, wall=120)
    assert run.cause == "cpu" and run.cpu_seconds >= 0.19


def test_a_memory_limit_holds() -> None:
    hungry = "x = bytearray(1 << 30); print(len(x))"
    run = run_limited([sys.executable, "-c", hungry], memory="100MiB", wall=120)
    assert not run.is_success, run
    # Where memory can only be polled, the process may notice first.
    assert run.cause == "memory" or "MemoryError" in run.stderr


def test_folder_and_environment_are_those_given(tmp_path: Path) -> None:
    run = run_limited(["sh", "-c", "pwd; echo $WORD"], wall=60, cwd=tmp_path, env={**os.environ, "WORD": "yes"})
    assert run.stdout == f"{tmp_path.resolve()}\nyes\n"


def test_long_output_is_cut_in_the_middle() -> None:
    run = run_limited(["sh", "-c", "echo first; seq 100000; echo last"], wall=60, output_limit=1000)
    assert run.stdout.startswith("first") and run.stdout.endswith("last\n")
    assert "bytes dropped]" in run.stdout and len(run.stdout) < 2000


def test_a_command_that_cannot_be_started_is_an_error() -> None:
    with pytest.raises(LaunchError, match="no-such-program"):
        run_limited(["no-such-program"], wall=1)
    # A command that says so itself is not.
    assert run_limited(["sh", "-c", "exit 127"], wall=60).exit_code == 127


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(TypeError, match="list of arguments"):
        run_limited("sleep 10", wall=1)
    with pytest.raises(CaptimeError, match="10s"):
        run_limited(["true"], wall="10")
    with pytest.raises(CaptimeError, match="wall"):
        run_limited(["true"], wall=-1)


def test_the_command_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = textwrap.dedent(
        """
        import sys
        from captime import run_limited
        run_limited(["sh", "-c", f"echo $$ > {sys.argv[1]}.new; mv {sys.argv[1]}.new {sys.argv[1]}; sleep 1000"], contain="off")
        """
    )
    asking = subprocess.Popen([sys.executable, "-c", script, str(mark)])
    patience = time.monotonic() + 120
    while not mark.exists():
        assert time.monotonic() < patience and asking.poll() is None
        time.sleep(0.05)
    asking.kill()
    asking.wait()
    pid = int(mark.read_text())
    while is_alive(pid):
        assert time.monotonic() < patience, "the command outlives the process that asked for it"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # A zombie has ended.
    return state.rsplit(")", 1)[1].split()[0] != "Z"
