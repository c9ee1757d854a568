"""The time left against runs that are played on paper, whose end is known."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from game_rl.events import (
    Begun,
    ConfirmationPlayed,
    CurvesRecorded,
    Ended,
    Evaluated,
    Evaluating,
    Event,
    PlannedEpisodes,
    Progress,
    Recorded,
    Resumed,
    RolloutEnded,
    StopConditionMet,
)
from game_rl.events.time_left import SEVERAL_UPDATES, EndClock, TimeLeft

START = datetime(2026, 1, 1, tzinfo=UTC)
SHORT = PlannedEpisodes(
    every_timesteps=10_000, episodes=40, final_episodes=100, clip_episodes=2, clip_frames=3_600
)
LENGTH, FRAME_SKIP = 163, 8


@dataclass(frozen=True)
class PaperRun:
    """A run in which everything always takes equally long.

    Attributes:
        wins_at: timestep of the evaluation that is confirmed.
    """

    total: int = 60_000
    rollout: int = 1_000
    rollout_s: float = 0.5
    update_s: float = 0.3
    episode_s: float = 0.18
    planned: PlannedEpisodes | None = SHORT
    wins_at: int | None = None
    stop_when: tuple[str, ...] = ()

    def events(self) -> list[Event]:
        return list(self._played())

    def _played(self) -> Iterator[Event]:
        planned = self.planned or SHORT
        now = START
        yield Begun(time=now, run="0", algorithm="ppo", total_timesteps=self.total, device="cpu",
                    frame_skip=FRAME_SKIP, precision="float32", planned=self.planned,
                    stop_when=self.stop_when)  # fmt: skip
        at = 0
        while at < self.total:
            at += self.rollout
            now += timedelta(seconds=self.rollout_s)
            yield RolloutEnded(
                time=now, timesteps=at, timesteps_per_s=self.rollout / self.rollout_s
            )
            now += timedelta(seconds=self.update_s)
            every = planned.every_timesteps or 2 * self.total
            if at // every > (at - self.rollout) // every:
                yield Evaluating(time=now, timesteps=at, policy_timesteps=at,
                                 episodes=planned.episodes)  # fmt: skip
                took = planned.episodes * self.episode_s
                now += timedelta(seconds=took)
                is_won = at == self.wins_at
                if is_won:
                    yield Evaluating(time=now, timesteps=at, policy_timesteps=at,
                                     episodes=planned.confirm_episodes,
                                     is_confirmation=True)  # fmt: skip
                    now += timedelta(seconds=planned.confirm_episodes * self.episode_s)
                for deterministic in (True, False):
                    yield Evaluated(time=now, timesteps=at, policy_timesteps=at, mean_length=LENGTH,
                                    episodes=planned.episodes // 2, mean_reward=0.0, std_reward=0.0,
                                    deterministic=deterministic, seconds=took / 2)  # fmt: skip
                if is_won:
                    yield ConfirmationPlayed(
                        time=now, timesteps=at, deterministic=True, mean_reward=0.0, std_reward=0.0,
                        episodes=planned.confirm_episodes, mean_length=LENGTH, is_reached=True,
                        seconds=planned.confirm_episodes * self.episode_s)  # fmt: skip
                    yield StopConditionMet(time=now, timesteps=at, text="won")
                    break
        yield Evaluating(time=now, timesteps=at, policy_timesteps=at, is_final=True,
                         episodes=planned.final_episodes)  # fmt: skip
        now += timedelta(seconds=planned.final_episodes * self.episode_s)
        yield Evaluated(time=now, timesteps=at, policy_timesteps=at, is_final=True, mean_reward=0.0,
                        std_reward=0.0, episodes=planned.final_episodes, mean_length=LENGTH,
                        seconds=planned.final_episodes * self.episode_s)  # fmt: skip
        now += timedelta(seconds=planned.clip_episodes * LENGTH * FRAME_SKIP / 1_300)
        yield Recorded(time=now, timesteps=at, path="best.gif")
        yield Ended(time=now, timesteps=at, reason="completed", exit_code=0)


def after_each(events: list[Event]) -> Iterator[tuple[Event, TimeLeft | None, float]]:
    """Yield each event but the last with what the clock says and the true seconds left.

    They are asked for at the event, and half-way to the next one.
    """
    clock, end = EndClock(), events[-1].time
    for event, following in pairwise(events):
        clock.hear(event)
        if following.time == event.time:
            continue
        for now in (event.time, event.time + (following.time - event.time) / 2):
            yield event, clock.time_left(now), (end - now).total_seconds()


def test_the_time_left_counts_evaluations_the_final_one_and_the_clip() -> None:
    n_known = 0
    for event, left, true_s in after_each(PaperRun().events()):
        if left is None:
            assert event.timesteps <= 1_000 or isinstance(event, Recorded)
        elif not left.is_about:
            n_known += 1
            assert left.seconds == pytest.approx(true_s, abs=0.4)
    assert n_known > 100


def test_the_time_left_is_about_until_several_updates_and_an_evaluation_are_known() -> None:
    events = PaperRun().events()
    played = events.index(next(event for event in events if isinstance(event, Evaluated)))
    clock = EndClock()
    for n, event in enumerate(events[: played + 3]):
        clock.hear(event)
        left = clock.time_left(event.time)
        if left is not None:
            assert left.is_about == (n < played)
    without = PlannedEpisodes(final_episodes=1)
    clock, found = EndClock(), []
    for event in PaperRun(planned=without, rollout=1_000).events()[: SEVERAL_UPDATES + 3]:
        if not isinstance(event, Evaluating | Evaluated):
            clock.hear(event)
            left = clock.time_left(event.time)
            found.append(None if left is None else left.is_about)
    assert found == [None, None, *[True] * (SEVERAL_UPDATES - 1), False, False]


def test_a_run_that_may_be_won_has_at_most_the_time_with_one_confirmation() -> None:
    planned = SHORT.model_copy(update={"confirm_episodes": 100})
    run = PaperRun(planned=planned, wins_at=40_000, stop_when=("success",))
    never = replace(run, wins_at=None).events()
    clock = EndClock()
    for event in run.events():
        clock.hear(event)
        left = clock.time_left(event.time)
        is_half = isinstance(event, Evaluated) and event.deterministic  # the other way follows
        if 20_000 <= event.timesteps < 40_000 and not is_half:
            assert left is not None
            assert left.qualifier == "at most"
            true_s = (never[-1].time - event.time).total_seconds() + 100 * run.episode_s
            assert left.seconds == pytest.approx(true_s, abs=0.4)
        if isinstance(event, StopConditionMet):
            assert left is not None
            true_s = (run.events()[-1].time - event.time).total_seconds()
            assert (left.qualifier, left.seconds) == ("about", pytest.approx(true_s, abs=0.1))


def test_the_phases_of_a_run_are_named() -> None:
    planned = SHORT.model_copy(update={"confirm_episodes": 100})
    run = PaperRun(total=10_000, planned=planned, wins_at=10_000, stop_when=("success",))
    clock = EndClock()
    phases = ["playing"]
    for event in run.events():
        clock.hear(event)
        if isinstance(event, RolloutEnded) and event.timesteps == 1_000:
            assert clock.phase == "learning"
            clock.hear(Progress(time=event.time, timesteps=1_032, timesteps_per_s=1.0))
            assert clock.phase == "playing"
        if clock.phase != phases[-1]:
            phases.append(clock.phase)
    assert phases == ["playing", "learning", "evaluating", "confirming", "playing",
                      "final evaluation", "recording", "ended"]  # fmt: skip
    assert clock.time_left(START) is None


def test_a_log_of_an_older_version_has_the_time_by_the_pace_with_its_evaluations() -> None:
    """10,000 timesteps in 5 minutes of this session, though a rollout says 100 a second."""
    begun = PaperRun(total=100_000, planned=None).events()[0]
    times = [60, 61, 66]
    resumed = Resumed(time=_minute(60), timesteps=1_000, run="0", checkpoint="000000001000",
                      total_timesteps=100_000, device="cpu", precision="float32",
                      superseded_from_bytes=0, restored=())  # fmt: skip
    rollouts = [
        RolloutEnded(time=_minute(at), timesteps=timesteps, timesteps_per_s=100.0)
        for at, timesteps in zip(times, (1_500, 2_000, 12_000), strict=True)
    ]
    clock = EndClock()
    for event in (begun, rollouts[0], resumed, *rollouts[1:]):
        clock.hear(event)
    left = clock.time_left(_minute(66))
    assert left is not None
    assert left.seconds == pytest.approx(88_000 / (10_000 / 300))


def test_a_pace_of_long_ago_does_not_count() -> None:
    clock = EndClock()
    clock.hear(PaperRun(total=100_000, planned=None).events()[0])
    for minute, timesteps in ((1, 0), (100, 50_000), (110, 51_000)):
        clock.hear(RolloutEnded(time=_minute(minute), timesteps=timesteps, timesteps_per_s=9.0))
    left = clock.time_left(_minute(110))
    assert left is not None
    assert left.seconds == pytest.approx(49_000 * 600 / 1_000)


def test_before_the_first_evaluation_its_length_is_guessed_from_the_episodes_of_the_training() -> (
    None
):
    begun, first, second = PaperRun(total=3_000).events()[:3]
    clock = EndClock()
    for event in (begun, first, second):
        clock.hear(event)
    without = clock.time_left(second.time)
    clock.hear(CurvesRecorded(time=second.time, values={"rollout/ep_len_mean": 200.0}))
    guessed = clock.time_left(second.time)
    assert without is not None
    assert guessed is not None
    episodes = 40 + 100  # of an evaluation at the end, and the final one
    clip_s = 2 * 200 * FRAME_SKIP / 1_300
    assert guessed.seconds - without.seconds == pytest.approx(episodes * 200 / 2_000 + clip_s)


def test_the_time_left_does_not_grow_while_nothing_is_heard() -> None:
    clock = EndClock()
    for event in PaperRun().events()[:60]:
        clock.hear(event)
    lefts = [clock.time_left(event.time + timedelta(seconds=n)) for n in range(0, 900, 30)]
    seconds = [left.seconds for left in lefts if left is not None]
    assert seconds == sorted(seconds, reverse=True)
    assert len(seconds) == len(lefts)


def _minute(number: int) -> datetime:
    return START + timedelta(minutes=number)
