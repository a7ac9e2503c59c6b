"""Every Python block of the documentation is run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


# What the page on other tuners takes for granted: the reader's own solver.
SOLVER = """
target: {command: [sh, -c, 'exit 10', solver, '{decay}', '{instance}'], instances: [instances/a.cnf], reward: {exit: [10, 20]}}
arms: {space: {decay: {real: [0.7, 0.99]}}}
limits: {of: cpu, from: 0.1s, to: 5s, points: 4, scale: log}
"""


def blocks():
    for page in ("python.md", "pull.md"):
        parts = (DOCS / page).read_text(encoding="utf-8").split("```python\n")[1:]
        for number, part in enumerate(parts, 1):
            yield pytest.param(part.split("```")[0], id=f"{page} {number}")


@pytest.mark.parametrize("block", list(blocks()))
def test_a_block_of_the_documentation_runs(block: str, tmp_path: Path) -> None:
    (tmp_path / "solver.yaml").write_text(SOLVER, encoding="utf-8")
    # The program is found by its name, as after `pip install`.
    program = Path(os.environ.get("CAPTIME_PROGRAM", sys.executable))
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [sys.executable, "-c", block],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.strip(), "a block shows what it found"


def test_there_are_blocks() -> None:
    assert len(list(blocks())) >= 4
