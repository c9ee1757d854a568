import random

import pytest

from tests.faults import training_faults

_IN_NO_CI = ("rot", "signal")


def test_plans_name_every_fault_of_every_operation_once() -> None:
    counts = {"write": 3, "rename": 2}
    found = training_faults.plans(counts, ("kill-half", "kill-after"), 100, random.Random(0))
    writes = {f"write:{n}:{fault}" for n in (1, 2, 3) for fault in ("kill-half", "kill-after")}
    assert sorted(found) == sorted(writes | {"rename:1:kill-after", "rename:2:kill-after"})
    few = training_faults.plans(counts, ("kill-half", "kill-after"), 4, random.Random(0))
    assert len(few) == 4
    assert sum(plan.startswith("rename") for plan in few) == 2


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=pytest.mark.soak if kind in _IN_NO_CI else pytest.mark.slow)
        for kind in training_faults.KINDS
    ],
)
def test_a_few_faults_of_each_kind_lose_nothing(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = kind == "kill"  # at any moment, from a process's first import on
    arguments = ["--quick", "--only", kind, *([] if fresh else ["--warm"])]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_few_kills_of_a_run_with_parts_of_ones_own_lose_nothing_of_their_state(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", "ppo-own"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_few_kills_of_a_run_with_a_potential_lose_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", "ppo-potential"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_few_kills_of_a_run_with_a_memory_lose_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", "ppo-memory"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo-played", "dqn-played"])
def test_a_few_kills_of_a_run_that_learns_from_played_episodes_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", algorithm]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo-pool", "ppo-novelty"])
def test_a_few_kills_of_a_run_that_tells_its_envs_what_it_has_found_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", algorithm]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_few_kills_of_a_run_whose_observations_have_parts_lose_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", "dqn-lake"]
    arguments += ["--parts", "status"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["ppo", "dqn-lake", "pqn"])
def test_twenty_kills_of_a_run_whose_observations_have_parts_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--kills", "20", "--only", "kill", "--algorithm", algorithm, "--parts", "status"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.slow
def test_a_few_kills_of_a_run_that_normalises_rewards_lose_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--warm", "--kills", "2", "--only", "kill", "--algorithm", "ppo", "--normalize"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["ppo", "dqn-lake", "pqn"])
def test_twenty_kills_of_a_run_that_normalises_rewards_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--kills", "20", "--only", "kill", "--algorithm", algorithm, "--normalize"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize(
    "algorithm", ["ppo-potential", "ppo-pool", "ppo-novelty", "ppo-played", "dqn-played"]
)
def test_twenty_kills_of_a_run_with_a_feature_that_has_a_state_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--kills", "20", "--only", "kill", "--algorithm", algorithm]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["ppo-own", "dqn-own"])
def test_ten_kills_of_a_run_with_parts_of_ones_own_lose_nothing_of_their_state(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--kills", "10", "--only", "kill", "--algorithm", algorithm]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["kill", "failpoint"])
def test_a_few_faults_of_forks_lose_nothing_and_leave_the_parent_alone(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["faults", "--quick", "--fork", "--only", kind])
    assert training_faults.main() == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["ppo", "dqn-lake"])
def test_a_few_kills_of_trainings_on_the_colour_game_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--only", "kill", "--game", "seasons", "--colour", "rgb"]
    monkeypatch.setattr("sys.argv", ["faults", *arguments, "--algorithm", algorithm])
    assert training_faults.main() == 0, capsys.readouterr().out
