"""Policies that have learned nothing: what they reach, in how much time, and without a trace."""

import numpy as np
import pytest
import torch

from game_rl.callbacks.baselines import (
    BASELINE_EPISODES,
    ConstantPolicy,
    RandomPolicy,
    play_baseline,
    play_baselines,
)
from game_rl.callbacks.evaluation import evaluate
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.errors import Interrupted, UsageError
from game_rl.events import BaselinePlayed, Evaluated
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, resume, train
from tests.callbacks.conftest import tiny_vec_env
from tests.tiny_env import EPISODE_LENGTH
from tests.tiny_run import MakeConfig

NAMES = ("wait", "press")  # 'press' earns 1 in each timestep, and success as the last action


class Clock:
    """Gains a second each time that it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_the_best_constant_action_is_found_and_both_baselines_are_played() -> None:
    random, constant = play_baselines(tiny_vec_env(), NAMES, seed=3, limit_s=1e9)
    assert (random.action, constant.action) == ("", "press")
    assert (random.name, constant.name) == ("random actions", "always press")
    played = constant.evaluation
    assert played.rewards == (float(EPISODE_LENGTH),) * BASELINE_EPISODES
    assert played.success_rate == 1
    assert played.action_counts == (0, EPISODE_LENGTH * BASELINE_EPISODES)
    assert 0 < random.evaluation.mean_reward < EPISODE_LENGTH
    assert min(random.evaluation.action_counts) > 0


@pytest.mark.parametrize("limit_s", [6, 30, 60, 120, 400])
def test_the_time_is_limited_and_what_has_ended_counts(limit_s: int) -> None:
    clock = Clock()
    found = play_baselines(tiny_vec_env(), NAMES, seed=3, limit_s=limit_s, clock=clock)
    assert clock.now <= limit_s + 8  # each of the four parts asks once more
    assert all(1 <= each.evaluation.episodes <= BASELINE_EPISODES for each in found)
    for each in found:
        assert set(each.evaluation.lengths) == {EPISODE_LENGTH}  # none that was cut short
        assert len(each.evaluation.successes) == each.evaluation.episodes
    if limit_s >= 120:
        assert [each.action for each in found] == ["", "press"]


def test_an_evaluation_whose_time_is_over_has_the_rewards_of_what_is_unfinished() -> None:
    left = iter([False] * 7 + [True])  # two envs: three whole timesteps, and a half
    played = evaluate(
        ConstantPolicy(1),
        tiny_vec_env(),
        episodes=4,
        deterministic=True,
        seed=0,
        is_time_over=lambda: next(left),
    )
    assert (played.episodes, played.unfinished) == (0, (4.0, 4.0))


def test_a_random_policy_draws_evenly_and_the_same_for_a_seed() -> None:
    batch = np.zeros((3_000, 1))
    drawn, _ = RandomPolicy(3, seed=1).predict({"screen": batch})
    assert min(np.bincount(drawn)) > 900
    assert (drawn == RandomPolicy(3, seed=1).predict(batch)[0]).all()


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("random", ""),
        ("constant:wait", "wait"),
        ("constant:1", "press"),
        ("best-constant", "press"),
    ],
)
def test_a_baseline_by_its_name(name: str, action: str) -> None:
    found = play_baseline(name, tiny_vec_env(), NAMES, episodes=3, seed=1)
    assert (found.action, found.evaluation.episodes) == (action, 3)
    assert found.evaluation.deterministic == bool(action)


@pytest.mark.parametrize("name", ["constant:fire", "constant:2", "constant", "best", "wait", ""])
def test_an_unknown_baseline_is_refused_with_the_actions(name: str) -> None:
    with pytest.raises(UsageError, match=r"constant:ACTION, where ACTION is one of wait, press"):
        play_baseline(name, tiny_vec_env(), NAMES, episodes=3, seed=1)


def test_a_training_plays_both_before_it_starts_and_is_the_same_without(
    make_config: MakeConfig,
) -> None:
    def trained(name: str, *overrides: str) -> RunDir:
        config = make_config(name, "total_timesteps=64", *overrides)
        train(config, TrainCommand(stop=StopRequest()))
        return RunDir(config.run_dir)

    with_them, without = trained("with", "evaluation.baselines=true"), trained("without")
    events = read_events(with_them)
    played = [each for each in events if isinstance(each, BaselinePlayed)]
    assert [bool(each.action) for each in played] == [False, True]
    assert events.index(played[-1]) < min(
        place for place, each in enumerate(events) if isinstance(each, Evaluated)
    )
    assert not any(isinstance(each, BaselinePlayed) for each in read_events(without))
    ours, theirs = (
        dict(Checkpoint(each.checkpoints_newest_first()[0]).policy())
        for each in (with_them, without)
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert with_them.evaluations.read_bytes() == without.evaluations.read_bytes()
    resume(with_them.root, TrainCommand(stop=StopRequest()), overrides=["total_timesteps=96"])
    again = [each for each in read_events(with_them) if isinstance(each, BaselinePlayed)]
    assert again == played


def test_a_stop_while_they_are_played_ends_the_training(make_config: MakeConfig) -> None:
    stop = StopRequest()
    stop.ask(Interrupted("stopped by SIGTERM", exit_code=143))
    config = make_config("run", "evaluation.baselines=true")
    with pytest.raises(Interrupted):
        train(config, TrainCommand(stop=stop))
    events = read_events(RunDir(config.run_dir))
    assert not any(isinstance(each, BaselinePlayed) for each in events)
