"""Every Python block of the page on Python is run."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks():
    parts = (DOCS / "python.md").read_text(encoding="utf-8").split("```python\n")[1:]
    for number, part in enumerate(parts, 1):
        yield pytest.param(part.split("```")[0], id=str(number))


@pytest.mark.parametrize("block", list(blocks()))
def test_a_block_of_the_documentation_runs(block: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.strip(), "a block shows what it found"


def test_there_are_blocks() -> None:
    assert len(list(blocks())) >= 3
