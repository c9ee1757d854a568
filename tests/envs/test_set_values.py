"""`write` and `hold_values` of a start state, beside a play of the same buttons by hand."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig
from game_rl.envs.episode_starts import game_changes
from game_rl.envs.game_boy_env import EnvState
from game_rl.envs.make_env import make_env
from game_rl.game_check.env_checks import start_warnings
from game_rl.game_check.game_check import check_game
from game_rl.games.definition import Game, load_game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import make_rom
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game

FRAME_SKIP, IDLE = 4, 3
BUTTONS: tuple[list[str], ...] = ([], ["left"], ["right"], ["b"])


def changed_game(**level_1: Any) -> Game:
    states = FAKE_GAME_YAML["start_states"]
    return fake_game(start_states=states | {"level_1": states["level_1"] | level_1})


def by_hand(actions: list[int], *, write: dict[int, int], hold: dict[int, int]) -> list[Any]:
    """The memory of each timestep, and the reward as the fake game's terms say."""
    emulator, seen = FakeEmulator(), []
    emulator.tick(10, render=True)

    def poke(values: dict[int, int]) -> None:
        for address, value in values.items():
            emulator.write(address, value)

    def look() -> tuple[int, int, int]:
        x, health, result = (emulator.read(a) for a in (fake.X, fake.HEALTH, fake.RESULT))
        return x, health, result

    poke(write)
    poke(hold)
    emulator.tick(IDLE, render=True)
    poke(hold)
    before, has_won = look(), look()[2] == 1
    for action in actions:
        emulator.hold(BUTTONS[action])  # type: ignore[arg-type]
        emulator.tick(FRAME_SKIP, render=True)
        poke(hold)
        now = look()
        reward = 0.5 * max(0, now[0] - before[0]) - max(0, before[1] - now[1])
        if now[2] == 1 and not has_won:
            reward, has_won = reward + 10, True
        before = now
        seen.append((now, reward, now[2] in (1, 2)))
        if now[2] in (1, 2):
            break
    return seen


def played(game: Game, actions: list[int]) -> list[Any]:
    seen = []
    with closing(fake_env(game, max_episode_timesteps=1_000)) as env:
        env.reset(seed=0, options={"start_state": "level_1", "idle_frames": IDLE})
        for action in actions:
            _, reward, terminated, _, _ = env.step(action)
            values = env.read_variables()
            found = values["x"], values["health"], values["result"]
            seen.append((found, reward, terminated))
            if terminated:
                break
    return seen


@given(
    st.lists(st.integers(0, 3), max_size=40),
    st.none() | st.integers(1, 149),
    st.none() | st.integers(1, 8),
)
def test_an_episode_with_set_values_is_the_one_played_by_hand(
    actions: list[int], x: int | None, health: int | None
) -> None:
    write = {} if x is None else {"x": x}
    hold = {} if health is None else {"health": health}
    expected = by_hand(
        actions,
        write={fake.X: x} if x is not None else {},
        hold={fake.HEALTH: health} if health is not None else {},
    )
    assert played(changed_game(write=write, hold_values=hold), actions) == expected


def test_health_that_is_held_never_runs_out() -> None:
    hurt = [3] * 100
    assert played(changed_game(), hurt)[-1][2]
    assert not played(changed_game(hold_values={"health": 4}), hurt)[-1][2]


def test_an_env_that_holds_values_continues_from_its_state_exactly() -> None:
    game = changed_game(write={"x": 20}, hold_values={"health": 3})
    actions = [int(a) for a in np.random.default_rng(0).integers(0, 4, 60)]
    outcomes = []
    for stops_at in (None, 17):
        with closing(fake_env(game, max_episode_timesteps=1_000)) as env:
            env.reset(seed=0, options={"start_state": "level_1"})
            seen = [env.step(action)[:2] for action in actions[:stops_at]]
            if stops_at is None:
                outcomes.append(seen)
                continue
            state = EnvState.model_validate_json(env.save_state().model_dump_json())
        with closing(fake_env(game, max_episode_timesteps=1_000)) as env:
            env.load_state(state)
            outcomes.append(seen + [env.step(action)[:2] for action in actions[stops_at:]])
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        assert one[1] == other[1]


def test_other_start_states_hold_nothing() -> None:
    game = changed_game(hold_values={"health": 4})
    with closing(fake_env(game)) as env:
        env.reset(seed=0, options={"start_state": "level_1"})
        assert env.read_variables()["health"] == 4
        env.reset(options={"start_state": "level_2"})
        assert env.read_variables()["health"] == 8


def test_a_start_state_that_sets_nothing_is_dumped_as_before() -> None:
    before = {"script": [{"wait": 10, "hold": None, "frames": None}], "file": None}
    states = fake_game().definition.model_dump(mode="json", by_alias=True)["start_states"]
    assert states["level_1"] == before
    dumped = changed_game(write={"x": 3}).definition.model_dump(mode="json", by_alias=True)
    assert dumped["start_states"]["level_1"] == before | {"write": {"x": 3}}


def test_changes_are_said_in_words_for_the_chosen_start_states() -> None:
    game = changed_game(write={"x": 20, "result": 0}, hold_values={"frames": 9_999})
    (words,) = game_changes(game, EnvConfig())
    assert words == (
        "start state level_1: x starts as 20, result starts as 0, frames is held at 9,999"
    )
    assert game_changes(game, EnvConfig().starting_in(["level_2", "level_1"])) == (words,)
    weighted = EnvConfig(start_states={"level_2": 1.0})
    assert game_changes(game, weighted) == game_changes(fake_game(), EnvConfig()) == ()


UNKEPT = """\
title: Counting
rom: {path: game.gb}
random_seed: null
start_states: {beginning: {script: [{wait: 90}], write: {high: 7}, hold_values: {divider: 99}}}
actions: {idle: [], a: [a]}
variables: {counter: {address: 0xC000}, divider: {address: 0xFF04}, high: {address: 0xC100}}
rewards: {counted: {variable: counter, on: change}}
"""


def test_a_value_that_does_not_stay_is_a_warning_and_all_are_named(tmp_path: Path) -> None:
    (tmp_path / "game.gb").write_bytes(make_rom())
    (tmp_path / "game.yaml").write_text(UNKEPT, encoding="utf-8")
    game = load_game(f"{tmp_path}/game.yaml")
    with closing(make_env(EnvConfig(max_idle_frames=0), game)) as env:
        (warning,) = start_warnings(env)
    assert warning.startswith(
        "start_states.beginning.hold_values.divider: 0xFF04 does not keep 99, it is 0 immediately"
    )
    check = check_game(game, seed=0, timesteps=20)
    assert warning in check.warnings
    told = "start state beginning: high starts as 7, divider is held at 99"
    assert check.to_json()["game_changes"] == (told,)


@pytest.mark.parametrize("value", [-1, 2**16])
def test_a_value_beyond_the_variable_is_refused(value: int) -> None:
    frames = next(v for v in fake_game().variables if v.name == "frames")
    with pytest.raises(ValueError, match="it can be 0 to 65,535"):
        frames.encode(value)
