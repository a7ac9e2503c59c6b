"""Reading runs."""

import builtins
import subprocess
import sys
from pathlib import Path

import pytest

from captime import CaptimeError, Tuner, find_program, read_run


def test_a_run_is_read_as_plain_lists(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "asked"
    with Tuner(scenario, journal=folder) as tuner:
        tuner.tell(tuner.ask(), failed=True)
        before = read_run(folder)
        assert before.best is None and before.no_answer and len(before.rounds) == 1
        tuner.tell(tuner.ask(), reward=0.75, consumption=2)
        tuner.tell(tuner.ask(), censored=True)
    run = read_run(folder)
    assert run.name == "asked" and run.no_answer is None
    assert [one["outcome"] for one in run.rounds] == ["failed", "rewarded", "censored"]
    assert run.rounds[1]["reward"] == 0.75
    assert run.rounds[1]["configuration"].keys() == {"trees", "depth"}
    assert run.best is not None and run.best["configuration"] == run.rounds[1]["configuration"]


def test_a_run_of_captime_itself_is_read_while_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("target: {synthetic: {problem: indep}}\nbudget: {rounds: 50}\n")
    subprocess.run([find_program(), "run", "s.yaml", "--quiet"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    run = read_run(tmp_path / "runs" / "s")
    assert [one["round"] for one in run.rounds] == list(range(1, 51))


def test_pandas_gets_a_column_per_parameter(scenario: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    with Tuner(scenario, journal=tmp_path / "asked") as tuner:
        tuner.tell(tuner.ask(), reward=0.75, consumption=2)
    frame = read_run(tmp_path / "asked").frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.loc[0, "configuration.trees"] == 100 and frame.loc[0, "reward"] == 0.75


def test_without_pandas_the_error_says_what_to_do(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Tuner(scenario, journal=tmp_path / "asked") as tuner:
        tuner.tell(tuner.ask(), failed=True)
    run = read_run(tmp_path / "asked")
    real = builtins.__import__

    def without_pandas(name, *rest, **more):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(CaptimeError, match="pip install pandas"):
        run.frame()


def test_a_missing_run_shows_captimes_own_message(tmp_path: Path) -> None:
    with pytest.raises(CaptimeError, match="none"):
        read_run(tmp_path / "none")


def test_the_package_is_a_program_too() -> None:
    ended = subprocess.run([sys.executable, "-m", "captime", "--version"], stdout=subprocess.PIPE, check=True, text=True)
    assert ended.stdout.startswith("captime ")
