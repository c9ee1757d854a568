"""What an episode reaches for the first time, against a list of all that it has had."""

import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from game_rl.envs.episode_progress import (
    MILESTONES,
    MilestoneWatch,
    NewMilestone,
    is_new_maximum,
)
from game_rl.games.definition import GameDefinition
from game_rl.games.variables import Values
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game, moment

NUMBERS = st.integers(-3, 40)
FLAGS = st.tuples(*[st.integers(0, 1)] * 3)
TIMESTEPS = st.lists(
    st.tuples(NUMBERS, FLAGS, st.lists(st.sampled_from(["a", "b"]), max_size=2)), max_size=30
)


def reached_by_hand(timesteps: list[tuple[int, tuple[int, ...], list[str]]]) -> list[set[str]]:
    """Return what each timestep but the first reaches, by looking back at all before."""
    counted: dict[str, list[int]] = {}
    found = []
    terms: list[str] = []
    for number, flags, gained in timesteps[1:]:
        new = {term for term in gained if term not in terms}
        terms += gained
        now = {"level": number, **{f"flags[{i}]": flag for i, flag in enumerate(flags)}}
        first = {
            "level": timesteps[0][0],
            **{f"flags[{i}]": flag for i, flag in enumerate(timesteps[0][1])},
        }
        for name, value in now.items():
            before = counted.setdefault(name, [])
            is_high = all(value > b and value - b >= abs(b) / 20 for b in before)
            if value > first[name] and is_high:
                before.append(value)
                new.add(f"{name}={value}")
        found.append(new)
    return found


def names(found: list[NewMilestone]) -> set[str]:
    return {m.name if m.value is None else f"{m.name}={m.value}" for m in found}


def reached(watch: MilestoneWatch, values: Values, gained: list[str]) -> list[NewMilestone]:
    at = moment(values, gained=gained)
    watch.step(at)
    found: list[NewMilestone] = at.info.get(MILESTONES, [])
    return found


@given(TIMESTEPS.filter(bool), st.integers(0, 30))
def test_a_watch_finds_what_is_new_also_when_it_was_saved_and_loaded(
    timesteps: list[tuple[int, tuple[int, ...], list[str]]], saved_after: int
) -> None:
    values = [{"level": number, "flags": flags} for number, flags, _ in timesteps]
    watch, found = MilestoneWatch(["level", "flags"]), []
    watch.reset(moment(values[0]))
    for index, (now, (_, _, gained)) in enumerate(zip(values, timesteps, strict=True)):
        if index == 0:
            continue
        if index == saved_after:
            state = json.loads(json.dumps(watch.save_state()))
            watch = MilestoneWatch(["level", "flags"])
            watch.load_state(state, moment(values[index - 1], running=True))
        found.append(names(reached(watch, now, gained)))
    assert found == reached_by_hand(timesteps)


def test_the_next_episode_begins_anew() -> None:
    watch = MilestoneWatch(["level"])
    for _ in range(2):
        watch.reset(moment({"level": 1}))
        assert reached(watch, {"level": 2}, ["a"]) == [
            NewMilestone("reward_term", "a"),
            NewMilestone("variable", "level", 2),
        ]


@given(st.lists(st.integers(0, 2**32 - 1), max_size=200))
def test_a_number_counts_few_times_however_often_it_grows(scores: list[int]) -> None:
    best, n_counted = None, 0
    for score in sorted(scores):
        if is_new_maximum(score, best):
            best, n_counted = score, n_counted + 1
    assert n_counted <= 420


def test_an_env_tells_what_an_episode_reaches_in_the_timestep_in_which_it_does() -> None:
    game = fake_game(milestones=["x"])
    with closing(fake_env(game)) as env:
        env.reset(seed=0)
        idle, right = env.step(0)[4], env.step(2)[4]
        assert MILESTONES not in idle
        assert {m.name for m in right[MILESTONES]} == {"progress", "x"}


def test_an_env_that_continues_from_a_state_tells_nothing_twice() -> None:
    game = fake_game(milestones=["x"])
    with closing(fake_env(game)) as one, closing(fake_env(game)) as two:
        one.reset(seed=0)
        one.step(2)
        two.load_state(
            type(one.save_state()).model_validate_json(one.save_state().model_dump_json())
        )
        for action in (0, 1, 2, 2, 2):
            assert one.step(action)[4] == two.step(action)[4]


@pytest.mark.parametrize(
    ("given_names", "message"),
    [
        (["y"], "there is no variable y"),
        (["x", "x"], "x is named twice; remove one"),
    ],
)
def test_a_mistake_in_milestones_is_named(given_names: list[str], message: str) -> None:
    definition: Any = FAKE_GAME_YAML | {"milestones": given_names}
    with pytest.raises(ValidationError, match=message) as error:
        GameDefinition.model_validate(definition)
    assert f"milestones.{len(given_names) - 1}: " in str(error.value)


def test_a_game_without_milestones_is_dumped_as_before() -> None:
    assert "milestones" not in GameDefinition.model_validate(FAKE_GAME_YAML).model_dump()


def test_what_is_reached_has_the_place_of_the_player() -> None:
    watch = MilestoneWatch(["level"], ["room", "x"])
    watch.reset(moment({"level": 0, "room": 3, "x": 8}))
    (found,) = reached(watch, {"level": 1, "room": 4, "x": 9}, [])
    assert found == NewMilestone("variable", "level", 1, (4, 9))
