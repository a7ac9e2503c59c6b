"""Ask and tell against the real program."""

import os
import re
import threading
from pathlib import Path

import pytest

from captime import CaptimeError, ProgramNotFound, Pull, RequestError, ScenarioError, Tuner


def play(tuner: Tuner, rounds: int) -> None:
    """Deep trees are best, and a hundred trees take two seconds."""
    for _ in range(rounds):
        pull = tuner.ask()
        used = pull.configuration["trees"] / 50
        if used <= pull.limit:
            tuner.tell(pull, reward=pull.configuration["depth"] / 4, consumption=used)
        else:
            tuner.tell(pull, censored=True)


def test_the_best_arm_is_found(scenario: Path) -> None:
    with Tuner(scenario) as tuner:
        assert tuner.best() is None
        first = tuner.ask()
        assert first == Pull(id=1, arm=1, configuration={"trees": 100, "depth": 2}, limit=12.5)
        tuner.tell(first, failed=True)
        assert tuner.best() is None, "nothing was rewarded"
        play(tuner, 80)
        best = tuner.best()
        assert best is not None
        assert best.configuration == {"trees": 100, "depth": 4}
        assert best.interval[0] <= best.gain <= best.interval[1]
        assert best.pulls > 3 and 0 <= best.censored <= 1
        at_five = tuner.best(limit=5)
        assert at_five is not None and at_five.limit == 5
        assert tuner.explain()["chosen"]["arm"] >= 1


def test_a_mapping_is_a_scenario_with_an_external_target() -> None:
    scenario = {"arms": {"grid": {"x": [1, 2, "a word"]}}, "limits": {"grid": ["1s", "2s"]}}
    with Tuner(scenario) as tuner:
        written = tuner._written.name
        values = [tuner.ask().configuration["x"] for _ in range(3)]
        assert sorted(map(str, values)) == ["1", "2", "a word"]
    assert not os.path.exists(written), "the file is gone with the tuner"


def test_instances_are_named(tmp_path: Path) -> None:
    scenario = {
        "target": {"external": {"instances": ["easy", "hard"]}},
        "arms": {"grid": {"x": [1, 2]}},
        "limits": {"grid": ["1s"]},
    }
    with Tuner(scenario) as tuner:
        pull = tuner.ask()
        assert (pull.instance, pull.instance_name) in [(1, "easy"), (2, "hard")]


def test_a_journal_resumes(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "asked"
    with Tuner(scenario, journal=folder) as tuner:
        play(tuner, 5)
        left_open = tuner.ask()
    with Tuner(scenario, journal=folder) as tuner:
        assert "6 pulls" in tuner.messages
        tuner.tell(left_open.id, reward=0.5, consumption=2)
        assert tuner.ask().id == 7


def test_one_journal_has_one_tuner(scenario: Path, tmp_path: Path) -> None:
    folder = tmp_path / "asked"
    with Tuner(scenario, journal=folder):
        with pytest.raises(CaptimeError, match=re.escape(str(folder))):
            Tuner(scenario, journal=folder)


def test_a_bad_scenario_shows_captimes_own_message(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("target: external\narms: {grid: {x: [1]}}\nlimits: {grid: [1s]}\npolcy: rcucb\n")
    with pytest.raises(ScenarioError, match=r"(?s)polcy.*bad\.yaml:4:1.*policy"):
        Tuner(bad)
    with pytest.raises(ScenarioError, match=r"none\.yaml"):
        Tuner(tmp_path / "none.yaml")


def test_a_refused_request_changes_nothing(scenario: Path) -> None:
    with Tuner(scenario) as tuner:
        pull = tuner.ask()
        with pytest.raises(RequestError, match="pull 7"):
            tuner.tell(7, failed=True)
        with pytest.raises(RequestError, match="reward"):
            tuner.tell(pull, reward=2, consumption=1)
        tuner.tell(pull, reward=1, consumption=1)
        with pytest.raises(RequestError, match="pull 1"):
            tuner.tell(pull, reward=1, consumption=1)


@pytest.mark.parametrize(
    "told",
    [{}, {"reward": 1}, {"consumption": 1}, {"failed": True, "censored": True}, {"reward": 1, "consumption": 1, "failed": True}],
)
def test_a_pull_is_told_in_one_way(scenario: Path, told: dict) -> None:
    with Tuner(scenario) as tuner:
        pull = tuner.ask()
        with pytest.raises(TypeError, match="tell"):
            tuner.tell(pull, **told)
        tuner.tell(pull, failed=True)


def test_what_is_not_a_number_is_refused_before_it_is_sent(scenario: Path) -> None:
    with Tuner(scenario) as tuner:
        pull = tuner.ask()
        with pytest.raises(ValueError, match="failed=True"):
            tuner.tell(pull, reward=float("nan"), consumption=1)
        tuner.tell(pull, censored=pull.limit)


def test_threads_share_a_tuner(scenario: Path) -> None:
    with Tuner(scenario) as tuner:
        threads = [threading.Thread(target=play, args=(tuner, 20)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tuner.ask().id == 81


def test_a_captime_that_is_gone_is_an_error_and_not_a_wait(scenario: Path) -> None:
    with Tuner(scenario) as tuner:
        tuner._process.kill()
        tuner._process.wait()
        with pytest.raises(CaptimeError, match="ended by signal 9"):
            tuner.ask()
    with pytest.raises(CaptimeError, match="closed"):
        tuner.ask()


def test_a_missing_program_says_how_to_get_it(scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProgramNotFound, match="correct the path"):
        Tuner(scenario, program="/nowhere/captime")
    monkeypatch.setenv("CAPTIME_PROGRAM", "/nowhere/else")
    with pytest.raises(ProgramNotFound, match="CAPTIME_PROGRAM names `/nowhere/else`"):
        Tuner(scenario)
    monkeypatch.delenv("CAPTIME_PROGRAM")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("captime._program._folders", lambda: iter(()))
    with pytest.raises(ProgramNotFound, match="pip install captime"):
        Tuner(scenario)
