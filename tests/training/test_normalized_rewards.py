"""Runs that normalise their rewards: broken off, resumed, forked, evaluated."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from game_rl.algorithms.reward_scaling import RewardScaling
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.training.fork_parts import link_for_play
from game_rl.training.train import resume, train
from game_rl.vec_env.make_vec_env import make_vec_env
from tests.tiny_run import MakeConfig, command, train_once
from tests.training.forks import fork_of, quiet, whole_run
from tests.training.test_resuming import assert_same_run, write_config

REWARD = "{normalize: true, scale: 0.5, clip: 2.0}"
ALGORITHMS = {
    "ppo": "{n_steps: 16, batch_size: 16, n_epochs: 1, reward: REWARD}",
    "pqn": "{name: pqn, n_steps: 16, batch_size: 16, gamma: 0.9, reward: REWARD}",
    "dqn": (
        "{name: dqn, replay: {capacity: 100}, learning_starts: 40, batch_size: 16, n_step: 2, "
        "train_freq: 16, reward: REWARD}"
    ),
}
LEARNING_FROM = (
    "{name: dqn, replay: {capacity: 60}, learning_starts: 40, batch_size: 16, n_step: 2, "
    "train_freq: 16, learn_from: {lakes: [LAKE], own_share: 0.5}, reward: REWARD}"
)


def algorithm(name: str, reward: str = REWARD) -> str:
    return "algorithm=" + ALGORITHMS[name].replace("REWARD", reward)


def statistics(run: RunDir | Path, timesteps: int) -> dict[str, Any]:
    root = run.root if isinstance(run, RunDir) else run
    found = Checkpoint(RunDir(root).checkpoint(timesteps)).play().algorithm.get("reward", {})
    assert isinstance(found, dict)
    return found


def config_of(tmp_path: Path, *changes: str) -> RunConfig:
    overrides = ["evaluation.deterministic=auto", "checkpoints.save_replay_buffer=false", *changes]
    return load_config(write_config(tmp_path, "run", *overrides))


def assert_resumed_is_whole(config: RunConfig, tmp_path: Path, until: int = 96) -> None:
    train(config, command(quiet()))
    part = config.model_copy(update={"run_dir": tmp_path / "part"})
    train(part, command(quiet(), until=until))
    before = statistics(part.run_dir, until)
    assert before["count"] == pytest.approx(until + 1e-4)
    resume(part.run_dir, command(quiet()))
    assert_same_run(part.run_dir, config.run_dir)
    assert statistics(part.run_dir, 192) == statistics(config.run_dir, 192)
    assert statistics(part.run_dir, 192)["count"] == pytest.approx(192 + 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_that_was_broken_off_is_the_run_that_was_not(name: str, tmp_path: Path) -> None:
    keeps = ["checkpoints.save_replay_buffer=true"] if name == "dqn" else []
    config = config_of(tmp_path, algorithm(name), "algorithm.gamma=0.9", *keeps)
    assert_resumed_is_whole(config, tmp_path)


@pytest.mark.slow
def test_a_run_that_learns_from_a_lake_too_is_the_same_run(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    lake = whole_run(make_config, "pqn", name="others").lake
    written = LEARNING_FROM.replace("LAKE", str(lake)).replace("REWARD", REWARD)
    config = config_of(tmp_path, f"algorithm={written}", "checkpoints.save_replay_buffer=true")
    assert_resumed_is_whole(config, tmp_path)


@pytest.mark.slow
def test_lakes_hold_the_games_rewards_and_curves_show_them(make_config: MakeConfig) -> None:
    of_game, scaled = (
        make_config(name, algorithm("pqn", reward), "lake={}", "algorithm.n_epochs=0")
        for name, reward in (("raw", "{}"), ("scaled", "{scale: 100, clip: 0.1}"))
    )
    for config in (of_game, scaled):
        train_once(config)
    rewards = []
    for config in (of_game, scaled):
        lake = Lake.open(RunDir(config.run_dir).lake)
        blocks = [lake.view().block(n) for n in range(len(lake.view().table))]
        rewards.append(np.concatenate([block.columns.rewards for block in blocks]))
        assert not statistics(RunDir(config.run_dir), 192)
    np.testing.assert_array_equal(rewards[0], rewards[1])
    tables = [
        RunDir(config.run_dir).evaluations.read_text(encoding="utf-8")
        for config in (of_game, scaled)
    ]
    assert tables[0] == tables[1]


def test_a_run_of_before_has_no_statistics_and_gets_them_when_asked(
    make_config: MakeConfig,
) -> None:
    config = make_config("run", "recording.episodes=0")
    train(config, command(quiet(), until=96))
    run_dir = RunDir(config.run_dir)
    assert Checkpoint(run_dir.checkpoint(96)).play().algorithm == {}
    output = quiet()
    resume(run_dir.root, command(output), overrides=["algorithm.reward.normalize=true"])
    assert "algorithm.reward.normalize: False -> True" in output.file.getvalue()  # type: ignore[attr-defined]
    assert statistics(run_dir, 192)["count"] == pytest.approx(96 + 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "keeps_returns"),
    [
        ({}, True),
        ({"seed": 7}, False),
        ({"env__n_envs": 4}, False),
        ({"fork__counters": "new"}, True),
        ({"algorithm__scale": 0.25}, True),
    ],
    ids=["same", "seed", "n_envs", "counters", "scale"],
)
def test_a_fork_takes_the_statistics_over(
    changes: dict[str, Any],
    keeps_returns: bool,
    make_config: MakeConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[RewardScaling] = []
    monkeypatch.setattr(RewardScaling, "begin_episodes", lambda self: begun.append(self))
    parent_config = make_config("parent", algorithm("pqn"), "recording.episodes=0")
    parent = train_once(parent_config)
    before = statistics(parent, 128)
    changes = {k.replace("__scale", "__reward__scale"): v for k, v in changes.items()}
    config = fork_of(parent, 128, "fork", **changes)
    first = 0 if "fork__counters" in changes else 128
    train(config, command(quiet(), until=first + 64))
    found = statistics(config.run_dir, first)
    assert found == before
    assert len(begun) == (not keeps_returns)
    later = statistics(config.run_dir, first + 64)
    assert later["count"] == pytest.approx(before["count"] + 64)
    assert len(later["returns"]) == config.env.n_envs


@pytest.mark.slow
def test_a_fork_with_another_algorithm_keeps_them_and_one_may_drop_them(
    make_config: MakeConfig,
) -> None:
    parent = train_once(make_config("parent", algorithm("pqn"), "recording.episodes=0"))
    dqn = make_config("dqn", algorithm("dqn"), "recording.episodes=0").algorithm
    fork = {"fork__optimiser": "new"}
    config = fork_of(
        parent, 128, "fork", algorithm={**dqn.model_dump(), "layer_norm": "channels"}, **fork
    )
    train(config, command(quiet(), until=192))
    assert statistics(config.run_dir, 128)["var"] == statistics(parent, 128)["var"]
    assert statistics(config.run_dir, 192)["count"] == pytest.approx(192 + 1e-4)
    config = fork_of(parent, 128, "raw", seed=9, algorithm__reward__normalize=False)
    train(config, command(quiet(), until=192))
    assert not statistics(config.run_dir, 192)


def test_what_is_expected_is_compared_with_rewards_as_they_were_learned(
    make_config: MakeConfig,
) -> None:
    run_dir = train_once(make_config("run", algorithm("pqn"), "recording.episodes=0"))
    before = run_dir.checkpoint(192).joinpath("play.json").read_bytes()
    run = open_trained_run(run_dir.root, "latest")
    found = evaluate_run(run, episodes=1, seed=7)
    deviation = np.sqrt(statistics(run_dir, 192)["var"] + 1e-8)
    with closing(make_vec_env(run.config.env, run.game, n_envs=1, seed=7)) as vec_env:
        vec_env.seed(7)
        observation: Any = vec_env.reset()
        rewards = []
        over = False
        policy = run.policy(vec_env.observation_space, vec_env.action_space)
        expected = policy.q_net(torch.as_tensor(observation)).max().item()
        while not over:
            observation, reward, done, _ = vec_env.step(policy.predict(observation, None)[0])
            rewards.append(float(reward[0]))
            over = bool(done[0])
    learned = np.clip(0.5 * np.array(rewards) / deviation, -2, 2)
    got = sum(0.9**t * reward for t, reward in enumerate(learned))
    assert found.q_minus_return == pytest.approx(expected - got, abs=1e-4)
    assert found.rewards[0] == pytest.approx(sum(rewards), abs=1e-4)  # as the game gave them
    assert run_dir.checkpoint(192).joinpath("play.json").read_bytes() == before


def test_a_checkpoint_without_its_statistics_compares_nothing(make_config: MakeConfig) -> None:
    """Such as the best one of a fork's parent, of which only the policy is linked."""
    run_dir = train_once(make_config("run", algorithm("pqn"), "recording.episodes=0"))
    link_for_play(Checkpoint(run_dir.checkpoint(192)), run_dir.root / "linked")
    linked = Checkpoint(run_dir.root / "linked")
    run = replace(open_trained_run(run_dir.root, "latest"), checkpoint=linked)
    assert evaluate_run(run, episodes=1, seed=7).q_minus_return is None
