"""Conditions that end a run before its total: what they count, and what new episodes decide."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.callbacks import EvalCallback, StopTrainingOnNoModelImprovement

from game_rl.callbacks.checkpoint_callback import TrainingTime
from game_rl.callbacks.evaluation import EpisodeEnd, Evaluation, EvaluationGames
from game_rl.callbacks.stop_conditions import StopDecision, StopWhen
from game_rl.checkpoints.checkpoint_state import StopCounters
from game_rl.config.schema import StopWhenConfig
from game_rl.events.event_log import EventLog
from game_rl.seeds import seed_for
from tests.callbacks.conftest import FIXED_STATE


def evaluation(
    rate: float = 0.0, reward: float = 0.0, *, drawn: bool = False, n: int = 20, over: str = ""
) -> Evaluation:
    won = round(n * rate)
    return Evaluation(
        deterministic=not drawn,
        rewards=(reward,) * n,
        lengths=(9,) * n,
        ends=(EpisodeEnd("won", {}, over),) * n,
        successes=(True,) * won + (False,) * (n - won),
        seconds=0.0,
    )


@dataclass(frozen=True, kw_only=True)
class ScriptedGames(EvaluationGames):
    """Plays nothing: each call returns the next of `results`, and is kept in `played`."""

    results: list[Evaluation]
    played: list[EvaluationGames] = field(default_factory=list)

    def play(self, policy: object) -> tuple[Evaluation, ...]:  # noqa: ARG002
        self.played.append(self)
        return (self.results.pop(0),)


def run_of(
    conditions: dict[str, Any], evaluations: list[Evaluation], confirmations: list[Evaluation]
) -> tuple[list[StopDecision], list[EvaluationGames]]:
    """Judge evaluations at timesteps 100, 200, … until a condition is met."""
    games = ScriptedGames(
        vec_env=cast("Any", None), episodes=20, ways=(True, False), seed=1, results=confirmations
    )
    judge = StopWhen(StopWhenConfig(**conditions), games, seed=7, events=EventLog())
    counters, verdicts, best = StopCounters(), [], float("-inf")
    for number, each in enumerate(evaluations, start=1):
        verdicts.append(
            judge.judge(
                cast("Any", None),
                each,
                counters,
                is_best=each.mean_reward > best,
                timesteps=100 * number,
            )
        )
        best, counters = max(best, each.mean_reward), verdicts[-1].counters
        if counters.met:
            break
    return verdicts, games.played


def batches(*wins: int) -> list[Evaluation]:
    """Batches of 100 new episodes with so many wins."""
    return [evaluation(n / 100, n=100) for n in wins]


def test_new_episodes_decide_once_enough_evaluations_in_a_row_have_reached_the_rate() -> None:
    rates = [0.95, 0.9, 1.0, 0.95, 1.0]
    verdicts, played = run_of(
        {"success_rate": 0.95, "confirm_episodes": 100},
        [evaluation(rate, drawn=True) for rate in rates],
        batches(98),
    )
    assert [v.counters.success_rate for v in verdicts] == [1, 0, 1, 2]
    assert [v.is_confirmed for v in verdicts] == [False, False, False, True]
    assert verdicts[-1].counters.met == (
        "stop_when.success_rate: 98% of 100 new episodes, 95% interval 93 to 99%, 95% wanted"
    )
    (games,) = played
    assert (games.episodes, games.ways, games.seed) == (100, (False,), seed_for(7, "stop_when/400"))


@pytest.mark.parametrize(
    ("wins", "is_confirmed"),
    [
        ((98,), True),
        ((92,), False),  # 97 of 100 passed once, for a policy that won 89.5 % of 200 others
        ((97, 97), True),
        ((97, 96), True),
        ((97, 89), False),
        ((97, 93, 93, 97), True),
        ((95, 95, 95, 95), True),
        ((95, 95, 95, 94), False),
    ],
)
def test_new_episodes_are_played_in_batches_until_the_rate_is_decided(
    wins: tuple[int, ...], is_confirmed: bool
) -> None:
    (verdict,), played = run_of(
        {"success_rate": 0.95, "evaluations": 1}, [evaluation(1.0)], batches(*wins)
    )
    assert verdict.is_confirmed == is_confirmed
    assert len(played) == len(wins)
    assert len({games.seed for games in played}) == len(wins)
    event = verdict.event(100)
    assert event is not None
    assert (event.episodes, event.success_rate) == (100 * len(wins), sum(wins) / 100 / len(wins))
    assert event.is_reached == is_confirmed


def test_wins_that_the_start_state_has_made_are_never_confirmed() -> None:
    at_once = [evaluation(1.0, 9.0, n=100, over="won")] * 4
    for goal in ({"success_rate": 0.9}, {"mean_reward": 5.0}):
        (verdict,), _ = run_of(goal | {"evaluations": 1}, [evaluation(1.0, 9.0)], at_once[:])
        assert not verdict.is_confirmed
        event = verdict.event(100)
        assert event is not None
        assert event.over_at_start == 100
        assert "100 of them were over before the first action" in event.in_words


def test_episodes_that_do_not_reach_it_let_the_run_go_on_and_are_others_the_next_time() -> None:
    verdicts, played = run_of(
        {"success_rate": 0.95, "evaluations": 1},
        [evaluation(1.0), evaluation(0.5), evaluation(1.0), evaluation(1.0)],
        batches(90, 90, 100),
    )
    assert [bool(v.counters.met) for v in verdicts] == [False, False, False, True]
    assert [v.confirmation is not None for v in verdicts] == [True, False, True, True]
    assert len({games.seed for games in played} | {1}) == 4  # 1 is the usual evaluations'


def test_each_goal_needs_its_own_evaluations_and_its_own_confirmation() -> None:
    both = {"success_rate": 0.9, "mean_reward": 5.0, "confirm_episodes": 20}
    in_turn = [evaluation(1.0, 0.0), evaluation(0.0, 9.0)] * 3
    assert run_of(both, in_turn, [])[1] == []
    verdicts, _ = run_of(
        both, [evaluation(1.0, 4.0)] * 3, [evaluation(0.0, 9.0), *[evaluation(1.0)] * 2]
    )
    assert [v.is_confirmed for v in verdicts] == [False, False, True]  # 9.0 is not what was reached
    verdicts, _ = run_of(both, [evaluation(0.0, 5.0)] * 2, [evaluation(0.0, 5.0)])
    assert verdicts[-1].counters.met == (
        "stop_when.mean_reward: mean reward 5 in 20 new episodes, 95% interval 5 to 5, 5 wanted"
    )


def rewards(*values: float, n: int = 50) -> Evaluation:
    found = evaluation(n=n)
    return replace(found, rewards=tuple(float(v) for v in values) * (n // len(values)))


def test_a_mean_reward_is_decided_once_the_interval_leaves_it_out_or_by_the_mean_of_all() -> None:
    goal = {"mean_reward": 5.0, "evaluations": 1, "confirm_episodes": 50}
    for played, is_confirmed in (
        ([rewards(5, 7)], True),
        ([rewards(3, 5)], False),
        ([rewards(3, 7), rewards(9)], True),
        ([rewards(3, 7)] * 4, True),
        ([rewards(3, 7)] * 3 + [rewards(3, 6)], False),
    ):
        (verdict,), games = run_of(goal, [evaluation(reward=5.0)], list(played))
        assert (verdict.is_confirmed, len(games)) == (is_confirmed, len(played))


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 3))
def test_no_improvement_ends_a_run_where_sb3s_callback_does(means: list[int], most: int) -> None:
    verdicts, _ = run_of(
        {"no_improvement_evaluations": most}, [evaluation(reward=float(m)) for m in means], []
    )
    ours = [bool(v.counters.met) for v in verdicts]
    sb3 = StopTrainingOnNoModelImprovement(max_no_improvement_evals=most)
    sb3.parent, theirs = cast("EvalCallback", type("Parent", (), {})()), []
    for number in range(len(ours)):
        sb3.parent.best_mean_reward = max(means[: number + 1])
        sb3.n_calls += 1
        theirs.append(not sb3._on_step())
    assert ours == theirs


def test_hours_are_those_of_training_over_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    watch = TrainingTime(3_000.0)
    now[0] += 500  # before the training
    watch.start()
    now[0] += 300
    assert watch.seconds() == 3_300
    now[0] += 299
    judge = StopWhen(StopWhenConfig(hours=1), cast("Any", None), seed=0, events=EventLog())
    assert not judge.has_trained_long_enough(watch.seconds())
    now[0] += 1
    assert judge.has_trained_long_enough(watch.seconds())
    assert judge.after_hours(StopCounters()).met == "stop_when.hours: the run has trained for 1 h"


def test_counters_are_of_one_stop_when() -> None:
    counters = StopCounters(success_rate=1, met="x")
    config = {"stop_when": {"success_rate": 0.9}}
    state = FIXED_STATE.model_copy(update={"config": config, "stop_counters": counters})
    assert state.counters_with({"seed": 1, **config}) == counters
    for other in ({"stop_when": None}, {}, {"stop_when": {"success_rate": 0.95}}):
        assert state.counters_with(other) == StopCounters()
