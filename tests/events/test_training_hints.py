"""Hints on recorded trainings: they fire on the bad ones, and are silent on those that learn."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from game_rl.events import BaselinePlayed, Evaluated
from game_rl.events.run_view import Curve
from game_rl.events.training_hints import RULES, Hint, HintSettings, Training, hints_for
from tests.recorded_curves.record import Recording, recorded, recorded_names

GOOD = ("duel_ppo", "duel_pqn", "seasons_ppo", "seasons_ppo_short")
BAD = {
    "learning_rate_09": {"updates_too_large", "entropy_collapsed"},
    "collapsed_entropy": {"updates_too_large", "entropy_collapsed"},
    "large_rewards": {"reward_scale"},
    "small_rewards": {"reward_scale"},
    "short_episodes": {"all_truncated"},
    "paid_to_walk_left": {"reward_without_success"},
    "stuck_policy": {"likeliest_action_stuck"},
    "paid_jumps": {"reward_in_a_loop"},
}
SETTINGS = HintSettings(
    total_timesteps=100_000,
    n_actions=4,
    value_weight=0.5,
    scales_rewards=False,
    has_endings=True,
    truncation="`stuck: {no_reward_for: 256}` in `endings`",
)


BY_HAND = {"episodes_stuck", "flat_at_the_end", "one_action", "no_better_than_baseline"}


def moments(recording: Recording) -> Iterator[Training]:
    """The training as it was after each hundredth of it."""
    end = max(int(curve.timesteps[-1]) for curve in recording.curves.values())
    for timesteps in (*range(end // 100, end, end // 100), end):
        curves = {
            name: Curve(curve.timesteps[:n], curve.values[:n])
            for name, curve in recording.curves.items()
            if (n := int((curve.timesteps <= timesteps).sum()))
        }
        played = [e for e in recording.evaluations if e.timesteps <= timesteps]
        yield Training(
            settings=recording.settings,
            timesteps=timesteps,
            curves=curves,
            evaluations=played,
            is_at_end=timesteps == end >= recording.settings.total_timesteps,
        )


def all_hints(recording: Recording) -> dict[str, Hint]:
    return {hint.name: hint for training in moments(recording) for hint in hints_for(training)}


@pytest.mark.parametrize("name", GOOD)
def test_a_run_that_learns_well_gets_no_hint(name: str) -> None:
    assert not all_hints(recorded(name))


@pytest.mark.parametrize("name", BAD)
def test_a_bad_run_gets_its_hints(name: str) -> None:
    assert BAD[name] <= all_hints(recorded(name)).keys()


def test_each_recording_says_what_made_it_and_is_tried() -> None:
    assert {*GOOD, *BAD} <= set(recorded_names())
    for name in recorded_names():
        assert recorded(name).command.startswith("game-rl train ")


def test_large_updates_that_learn_fast_are_not_too_large() -> None:
    assert "updates_too_large" not in all_hints(recorded("fast_learner"))


def test_a_paid_detour_is_named_with_its_term() -> None:
    hint = all_hints(recorded("paid_to_walk_left"))["reward_without_success"]
    assert hint.key == "rewards.pacing"
    assert "pacing alone rises" in hint.text


def curve(*values: float, end: int = 100_000) -> Curve:
    return Curve(
        np.linspace(end // len(values), end, len(values)).astype(np.int64), np.array(values, float)
    )


def training(timesteps: int = 100_000, **curves: Curve) -> Training:
    named = {name.replace("__", "/"): found for name, found in curves.items()}
    return Training(settings=SETTINGS, timesteps=timesteps, curves=named, evaluations=[])


def given(found: Training) -> set[str]:
    return {hint.name for hint in hints_for(found)}


def test_nothing_is_said_without_curves() -> None:
    assert not given(training())
    assert not given(replace(training(), is_at_end=True))


@pytest.mark.parametrize(("won", "hints"), [(0.0, {"episodes_stuck"}), (0.9, set[str]())])
def test_stuck_episodes_are_named_unless_the_run_wins(won: float, hints: set[str]) -> None:
    found = training(
        game__stuck__episodes=curve(*[0.4] * 9),
        game__stuck__timesteps=curve(*[300.0] * 9),
        rollout__success_rate=curve(*[won] * 9),
    )
    assert given(found) == hints
    if hints:
        assert next(hints_for(found)).text == (
            "40% of the episodes are stuck: the same states repeat for 300 timesteps of an "
            "episode; game.yaml can truncate them with `stuck: {no_reward_for: 256}` in `endings`"
        )


@pytest.mark.parametrize(("other", "names"), [(0.1, ["reward_in_a_loop"]), (10.0, [])])
def test_a_looped_reward_is_named_if_it_is_a_large_part(other: float, names: list[str]) -> None:
    found = training(
        game__looped__heal=curve(*[0.8] * 9),
        game__reward__heal=curve(*[2.0] * 9),
        game__reward__way=curve(*[other] * 9),
    )
    hints = list(hints_for(found))
    assert [hint.name for hint in hints] == names
    assert [hint.key for hint in hints] == ["rewards.heal"] * len(names)


def played(timesteps: int, **changes: Any) -> Evaluated:
    values = {
        "timesteps": timesteps,
        "policy_timesteps": timesteps,
        "episodes": 20,
        "mean_reward": 1.0,
        "std_reward": 0.1,
        "success_rate": 0.1,
        "mean_length": 10,
        "seconds": 1,
    }
    return Evaluated.model_validate(values | changes)


@pytest.mark.parametrize(
    ("rates", "deterministic", "says"),
    [
        ((0.1, 0.1), True, True),
        ((0.9, 0.1), True, False),  # one may have drawn hard episodes
        ((0.1, 0.1), False, False),
        ((0.7, 0.7), True, False),
    ],
)
def test_an_evaluation_far_below_the_training_twice_is_stuck(
    rates: tuple[float, ...], deterministic: bool, says: bool
) -> None:
    evaluations = [
        played(60_000 + 20_000 * n, success_rate=rate, deterministic=deterministic)
        for n, rate in enumerate(rates)
    ]
    found = replace(training(rollout__success_rate=curve(*[0.8] * 9)), evaluations=evaluations)
    assert given(found) == ({"likeliest_action_stuck"} if says else set())


@pytest.mark.parametrize(("last", "says"), [(1.0, True), (1.5, False)])
def test_a_run_that_has_not_improved_is_flat_at_its_end_only(last: float, says: bool) -> None:
    rewards = (0.0, 0.5, 1.0, 1.0, last, last)
    evaluations = [
        played(10_000 * n, mean_reward=reward, success_rate=None)
        for n, reward in enumerate(rewards, start=1)
    ]
    found = replace(training(), evaluations=evaluations)
    assert not given(found)
    assert given(replace(found, is_at_end=True)) == ({"flat_at_the_end"} if says else set())


def test_values_that_are_lost_are_too_large_updates() -> None:
    rewards = curve(*[3.0] * 9)
    assert given(training(rollout__ep_rew_mean=rewards, train__loss=curve(*[1e5] * 9))) == {
        "updates_too_large"
    }
    assert not given(training(rollout__ep_rew_mean=rewards, train__loss=curve(*[10.0] * 9)))


def test_every_rule_is_tried_here_or_on_a_recording() -> None:
    tried = {name for hints in BAD.values() for name in hints}
    assert {rule.__name__ for rule in RULES} == tried | BY_HAND


def evaluations(*counts: tuple[int, ...], reward: float = 2.0, at: int = 60_000) -> list[Evaluated]:
    """An evaluation every 10,000 timesteps with these counts of the actions."""
    return [
        Evaluated(
            timesteps=at + 10_000 * number,
            policy_timesteps=at + 10_000 * number,
            deterministic=True,
            episodes=20,
            mean_reward=reward,
            std_reward=1.0,
            success_rate=1.0,
            mean_length=100,
            action_counts=count,
            seconds=1.0,
        )
        for number, count in enumerate(counts)
    ]


def named(found: Training) -> dict[str, Hint]:
    return {hint.name: hint for hint in hints_for(found)}


FIRE, MIXED = (0, 1_490, 0, 0), (1, 1_489, 0, 0)


def test_a_policy_of_one_action_is_told_even_if_it_wins() -> None:
    settings = replace(SETTINGS, action_names=("wait", "fire", "left", "right"))
    found = replace(training(), settings=settings, evaluations=evaluations(MIXED, FIRE, FIRE))
    assert "fire in all 1,490 timesteps" in named(found)["one_action"].text
    for counts, at in (
        ((FIRE, MIXED), 60_000),
        ((FIRE,), 60_000),
        ((FIRE, (0, 0, 1_490, 0)), 60_000),
        ((FIRE, FIRE), 10_000),
        (((0, 9, 0, 0), (0, 9, 0, 0)), 60_000),
        (((), ()), 60_000),  # as in logs of older versions
    ):
        found = replace(training(), evaluations=evaluations(*counts, at=at))
        assert "one_action" not in named(found)


def baseline(reward: float, success: float | None = None, action: str = "") -> BaselinePlayed:
    return BaselinePlayed(
        timesteps=0,
        action=action,
        episodes=20,
        mean_reward=reward,
        std_reward=1.0,
        success_rate=success,
        mean_length=100,
        seconds=1.0,
    )


def test_an_agent_that_is_no_better_than_the_better_baseline_is_told() -> None:
    both = [baseline(0.5, 0.0), baseline(1.9, 1.0, "fire")]
    found = replace(training(), evaluations=evaluations(MIXED, MIXED), baselines=both)
    text = named(found)["no_better_than_baseline"].text
    assert "always fire: success 100%, reward 1.90 in 20 episodes" in text
    better = [
        [],
        [baseline(0.5, 0.0)],
        [baseline(1.6, 1.0)],
        [baseline(2.5, 0.9)],  # it succeeds more often
    ]
    for each in better:
        assert "no_better_than_baseline" not in named(replace(found, baselines=each))
    early = replace(found, evaluations=evaluations(MIXED, MIXED, at=30_000))
    assert "no_better_than_baseline" not in named(early)
