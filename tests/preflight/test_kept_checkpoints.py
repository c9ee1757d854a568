"""Kept checkpoints: against every course that a small run can take, and a store's own rule."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from game_rl.checkpoints import checkpoint_store
from game_rl.preflight.kept_checkpoints import KeptCheckpoints, offline_checkpoints_at_once
from tests.examples import examples

SAVED_AT_ITS_END_AS_WELL = KeptCheckpoints(
    every_timesteps=1_000,
    evaluate_every_timesteps=10_000,
    keep_last=3,
    keep_every_timesteps=None,
    rollout=300,
    updates=5,
)


def multiples_crossed(update: int, rollout: int, every: int) -> bool:
    return any(t % every == 0 for t in range((update - 1) * rollout + 1, update * rollout + 1))


def evaluations(run: KeptCheckpoints) -> list[int]:
    """After which updates; the run's end is one of them."""
    due = (multiples_crossed(u, run.rollout, run.evaluate_every_timesteps) for u in updates(run))
    return [u for u, is_due in zip(updates(run), due, strict=True) if is_due or u == run.updates]


def updates(run: KeptCheckpoints) -> range:
    return range(1, run.updates + 1)


def played(run: KeptCheckpoints, bests: Sequence[int]) -> Iterator[tuple[list[int], int]]:
    """(kept, how many at once) after each update of the run with these best evaluations.

    What is kept is named by its update, newest first.
    """
    folder: list[int] = []
    best, most_at_once = None, 0
    for update in updates(run):
        timesteps = update * run.rollout
        if update in bests:
            best = timesteps
        due = multiples_crossed(update, run.rollout, run.every_timesteps)
        if due or update in bests or update == run.updates:
            folder.append(timesteps)
            most_at_once = max(most_at_once, len(folder))
            kept = checkpoint_store.kept_checkpoints(
                folder, best=best, keep_last=run.keep_last, keep_every=run.keep_every_timesteps
            )
            folder = sorted(kept)
        yield [timesteps // run.rollout for timesteps in reversed(folder)], most_at_once


def courses(run: KeptCheckpoints) -> Iterator[list[int]]:
    """Every choice of best evaluations; the first one is always the best so far."""
    first, *later = evaluations(run)
    for is_best in itertools.product((False, True), repeat=len(later)):
        yield [first, *itertools.compress(later, is_best)]


def assert_never_low(run: KeptCheckpoints, bests: Sequence[int]) -> None:
    for update, (kept, at_once) in enumerate(played(run, bests), start=1):
        assert run.after(update) >= len(kept), (run, bests, update)
        newest = run.newest(update, len(kept))
        assert all(u <= bound for u, bound in zip(kept, newest, strict=True)), (run, bests, update)
        assert run.at_once(update) >= at_once, (run, bests, update)


@st.composite
def runs(draw: st.DrawFn, *, most_updates: int, most_rollouts_apart: int) -> KeptCheckpoints:
    rollout = draw(st.integers(1, 6))
    every = st.integers(rollout, most_rollouts_apart * rollout)  # a config allows no less
    return KeptCheckpoints(
        every_timesteps=draw(every),
        evaluate_every_timesteps=draw(every),
        keep_last=draw(st.integers(1, 4)),
        keep_every_timesteps=draw(st.none() | st.integers(1, 8 * rollout)),
        rollout=rollout,
        updates=draw(st.integers(1, most_updates)),
    )


@settings(max_examples=examples(800))
@given(runs(most_updates=9, most_rollouts_apart=5))
def test_no_course_keeps_more_and_some_course_keeps_as_many(run: KeptCheckpoints) -> None:
    every_course = [list(played(run, bests)) for bests in courses(run)]
    slack = 0 if run.keep_every_timesteps is None else 1
    for update, moments in enumerate(zip(*every_course, strict=True), start=1):
        kept = max(len(kept) for kept, _ in moments)
        at_once = max(at_once for _, at_once in moments)
        assert kept <= run.after(update) <= kept + slack
        assert at_once <= run.at_once(update) <= at_once + slack


@given(runs(most_updates=150, most_rollouts_apart=40), st.data())
def test_no_course_of_a_long_run_keeps_more(run: KeptCheckpoints, data: st.DataObject) -> None:
    first, *later = evaluations(run)
    chosen = data.draw(st.sets(st.sampled_from(later)) if later else st.just(set()))
    assert_never_low(run, [first, *sorted(chosen)])


@given(runs(most_updates=150, most_rollouts_apart=40))
def test_bounds_never_fall(run: KeptCheckpoints) -> None:
    for bound in (run.after, run.at_once):
        found = [bound(update) for update in updates(run)]
        assert found == sorted(found)


@given(runs(most_updates=60, most_rollouts_apart=5), st.integers(1, 20))
@example(SAVED_AT_ITS_END_AS_WELL, 1)
def test_the_coarse_bound_is_no_lower_than_the_counted_one(run: KeptCheckpoints, most: int) -> None:
    coarse = replace(run, most_counted=most)
    for update in updates(run):
        assert coarse.after(update) >= run.after(update)
        assert coarse.at_once(update) >= run.at_once(update)
        bound, newest = coarse.newest(update, 3), run.newest(update, 3)
        assert all(above >= u for above, u in zip(bound, newest, strict=False))


def test_earlier_bests_count_among_the_newest_while_there_are_few_checkpoints() -> None:
    """Evaluations twice as often as checkpoints: four are kept where three were forecast once."""
    run = KeptCheckpoints(
        every_timesteps=10,
        evaluate_every_timesteps=5,
        keep_last=3,
        keep_every_timesteps=None,
        rollout=5,
        updates=5,
    )
    assert [len(kept) for kept, _ in played(run, bests=[1, 3, 5])] == [1, 2, 3, 4, 4]
    assert [run.after(update) for update in updates(run)] == [1, 2, 3, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize("keep_every", [None, 1, 5_000, 10**12])
def test_a_run_with_more_saves_than_anyone_counts_has_a_bound_above_that_of_a_shorter_one(
    keep_every: int | None,
) -> None:
    long = KeptCheckpoints(
        every_timesteps=1,
        evaluate_every_timesteps=1,
        keep_last=3,
        keep_every_timesteps=keep_every,
        rollout=1,
        updates=10**12,
    )
    short = replace(long, updates=10**5)
    moments = [10**5 - 1, 10**5 + 1, 10**6, 10**6 + 1, 10**9, 10**12]
    found = [short.after(moments[0]), *(long.after(update) for update in moments)]
    assert found == sorted(found)
    assert long.at_once(10**12) <= long.after(10**12) + 1


@given(
    steps=st.integers(1, 60),
    save_every=st.integers(1, 25),
    evaluate_every=st.integers(1, 25),
    keep_last=st.integers(1, 4),
)
def test_an_offline_phase_never_has_more_checkpoints_than_are_forecast(
    steps: int, save_every: int, evaluate_every: int, keep_last: int
) -> None:
    evaluations = [step for step in range(1, steps) if step % evaluate_every == 0]
    most = 0
    for best in (*evaluations, None):  # the better ones end here
        there: list[int] = []
        for step in range(1, steps):
            is_better = step in evaluations and best is not None and step <= best
            if is_better or step % save_every == 0:
                most = max(most, len(there) + 1)
                there.append(step)
                kept = max((e for e in evaluations if e <= step and e <= (best or 0)), default=None)
                others = [name for name in there if name != kept]
                there = [name for name in there if name == kept or name in others[-keep_last:]]
        most = max(most, len(there) + 1)  # the run's own, of timestep 0
    forecast = offline_checkpoints_at_once(
        steps, save_every=save_every, evaluate_every=evaluate_every, keep_last=keep_last
    )
    assert most <= forecast
    if not evaluations or save_every == evaluate_every:
        assert most == forecast
