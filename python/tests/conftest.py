"""The program under test: the one that CAPTIME_PROGRAM names, or the one installed beside this package."""

import textwrap
from pathlib import Path

import pytest

SCENARIO = """
name: asked
target: external
arms: {grid: {trees: [100, 200, 300], depth: [2, 4]}}
limits: {of: wall, grid: [1s, 5s, 12.5s]}
price: {cost: x, penalty: 10 * x}
policy: rcucb
seed: 3
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "asked.yaml"
    file.write_text(textwrap.dedent(SCENARIO))
    return file
