"""What runs would do on the same observations, beside their policies asked one by one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from game_rl.errors import ExperimentError, LakeError
from game_rl.jobs.member_jobs import compare_actions
from game_rl.jobs.results import read_differences
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.playback.trained_run import open_trained_run
from game_rl.run_dir import RunDir
from game_rl.training.train import train
from tests.lake.plays import SCHEMA
from tests.tiny_run import MakeConfig, command
from tests.training.forks import KINDS, quiet

SHORT = ("total_timesteps=64", "recording.episodes=0", "evaluation.final_episodes=1")


def plain_actions(root: Path, timesteps: int, stacks: Sequence[torch.Tensor]) -> list[int]:
    """Of one observation after another, by the network's own outputs."""
    run = open_trained_run(root, str(timesteps))
    n_actions = spaces.Discrete(len(run.game.action_names))
    policy: Any = run.policy(spaces.Box(0, 255, tuple(stacks[0].shape), np.uint8), n_actions)
    policy.set_training_mode(False)
    found = []
    for stack in stacks:
        with torch.no_grad():
            if run.config.algorithm.name == "ppo":
                outputs = policy.get_distribution(stack[None]).distribution.logits
            else:
                outputs = policy.q_net(stack[None])
        found.append(int(outputs[0].argmax()))
    return found


def test_shares_are_those_of_policies_that_are_asked_one_by_one(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    for name, kind in {"00": "ppo", "01": "pqn", "02": "dqn"}.items():
        train(make_config(name, *KINDS[kind], *SHORT), command(quiet()))
    lake = RunDir(tmp_path / "01").lake
    asked, results = {"00": 64, "01": 64, "02": 64}, [tmp_path / "a.json", tmp_path / "b.json"]
    for result in results:
        compare_actions(tmp_path, asked, lake=lake, observations=40, seed=7, result=result)
    found = read_differences(results[0])
    assert results[0].read_bytes() == results[1].read_bytes()

    view = Lake.open(lake).view()
    rows = np.random.default_rng(7).integers(len(view), size=40)
    stacks = [torch.from_numpy(Sampler(view).take(np.array([row])).stacks[0]) for row in rows]
    actions = [plain_actions(tmp_path / name, 64, stacks) for name in asked]
    expected = [
        [sum(a != b for a, b in zip(one, other, strict=True)) / 40 for other in actions]
        for one in actions
    ]
    assert found.observations == 40
    assert found.runs == ("00", "01", "02")
    np.testing.assert_array_equal(found.shares, expected)
    assert np.max(expected) > 0


def test_means_are_over_pairs_and_a_pair_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "actions.json"
    path.write_text(
        '{"seed": 1, "observations": 10, "runs": ["a", "b", "c"],'
        ' "shares": [[0, 0.2, 0.4], [0.2, 0, 0.9], [0.4, 0.9, 0]]}',
        encoding="utf-8",
    )
    found = read_differences(path)
    assert list(found.pairs()) == [("a", "b", 0.2), ("a", "c", 0.4), ("b", "c", 0.9)]
    assert found.among({"a", "b"}) == 0.2
    assert found.among({"a", "b", "c"}) == pytest.approx(0.5)
    assert found.among({"a"}) is None
    assert found.between("b", {"a", "c"}) == pytest.approx(0.55)
    assert found.between("b", set()) is None


def test_of_an_empty_lake_nothing_is_asked(tmp_path: Path) -> None:
    Lake.create(tmp_path / "lake", SCHEMA)
    result = tmp_path / "actions.json"
    found = compare_actions(
        tmp_path, {"00": 1, "01": 1}, lake=tmp_path / "lake", observations=9, seed=1, result=result
    )
    assert (found.observations, found.shares) == (0, ())
    assert read_differences(result) == found
    assert found.among({"00", "01"}) is None


def test_what_is_no_lake_and_no_result_is_said(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="is not a Lake"):
        compare_actions(
            tmp_path, {}, lake=tmp_path / "x", observations=1, seed=1, result=tmp_path / "r"
        )
    (tmp_path / "r").write_text("{}", encoding="utf-8")
    with pytest.raises(ExperimentError, match="delete it"):
        read_differences(tmp_path / "r")
