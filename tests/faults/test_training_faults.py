import random

import pytest

from tests.faults import training_faults
from tests.faults.trainings import WarmStarts

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
    kind: str,
    warm_starts: WarmStarts,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    starts = None if kind == "kill" else warm_starts  # at any moment, from the first import on
    monkeypatch.setattr("sys.argv", ["faults", "--quick", "--only", kind])
    assert training_faults.main(starts) == 0, capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        "ppo-own",  # parts of one's own, with a state
        "ppo-potential",
        "ppo-memory",
        "ppo-curiosity",
        "ppo-played",
        "dqn-played",
        "ppo-pool",  # tells its envs what it has found, as the next one
        "ppo-novelty",
        "dqn-lake --parts status",
        "ppo --normalize",
    ],
)
def test_a_few_kills_of_a_run_with_a_feature_that_has_a_state_lose_nothing(
    settings: str,
    warm_starts: WarmStarts,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["--kills", "2", "--only", "kill", "--algorithm", *settings.split()]
    monkeypatch.setattr("sys.argv", ["faults", *arguments])
    assert training_faults.main(warm_starts) == 0, capsys.readouterr().out


@pytest.mark.soak
@pytest.mark.parametrize("algorithm", ["ppo", "dqn-lake", "pqn"])
def test_twenty_kills_of_a_run_whose_observations_have_parts_lose_nothing(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--kills", "20", "--only", "kill", "--algorithm", algorithm, "--parts", "status"]
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
