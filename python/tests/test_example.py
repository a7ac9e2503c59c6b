"""The example with scikit-learn, run as its own head says. `scripts/test-install` installs what it needs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from captime import read_run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "scikit-learn"


def test_scikit_learn_is_tuned_under_limits_and_resumes(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    shutil.copytree(EXAMPLE, tmp_path / "example")
    for rounds in (2, 1):
        ended = subprocess.run(
            [sys.executable, "example/tune.py", "--rounds", str(rounds)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert "failed" not in ended.stdout, ended.stdout
        # Where the machine is too slow for any limit, it says so.
        assert ended.returncode == 0 or "No fit ended within its limit" in ended.stderr, ended.stderr
    rounds = read_run(tmp_path / "runs" / "digits").rounds
    assert len(rounds) == 3
    assert {one["outcome"] for one in rounds} <= {"rewarded", "censored"}
