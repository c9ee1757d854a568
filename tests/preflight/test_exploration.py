from typing import Any

import pytest

from tests.preflight.test_findings import Make, by_code

CODE = "restart_without_effect"
PQN = {"name": "pqn", "n_steps": 32, "batch_size": 128}  # a rollout of 256, a run of a million
DQN = {"name": "dqn", "learning_starts": 50_000}


@pytest.mark.parametrize(
    ("algorithm", "restart", "cause"),
    [
        (PQN, {"at": 50_000, "start": 0.5, "over": 1_000}, "the main line is at 0.5"),
        (PQN, {"at": 500_000, "start": 0.5, "over": 255}, "less than one rollout of 256"),
        (PQN, {"at": 900_000, "start": 0.5, "over": 100_001}, "until timestep 1,000,001"),
        (DQN, {"at": 49_999, "start": 1.0, "over": 1_000}, "before learning_starts, 50,000"),
    ],
)
def test_a_restart_that_does_less_than_it_says_is_told(
    algorithm: dict[str, Any], restart: dict[str, Any], cause: str, situation: Make
) -> None:
    exploration = {"restarts": [restart], "end": 0.0}
    finding = by_code(situation(algorithm=algorithm | {"exploration": exploration}))[CODE]
    assert finding.severity == "warning"
    assert finding.key == "algorithm.exploration.restarts.0"
    assert cause in finding.message


def test_a_restart_that_has_an_effect_is_not(situation: Make) -> None:
    good = {"restarts": [{"at": 500_000, "start": 0.5, "over": 256}]}
    for algorithm in (PQN | {"exploration": good}, DQN | {"exploration": good}):
        assert CODE not in by_code(situation(algorithm=algorithm))
    assert CODE not in by_code(situation())
