"""Whether episodes differ in what happens, against games of which it is known."""

import dataclasses
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_env, make_game_env
from game_rl.game_check.env_checks import StartCourses, check_starts, start_warnings
from game_rl.games.definition import Game, load_game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import make_rom
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game, fake_game_seeded_at

COUNTING = """\
title: Counting
rom: {path: game.gb}
random_seed: seed
start_states: {beginning: {script: [{wait: 90}]}}
actions: {idle: [], a: [a]}
variables: {counter: {address: 0xC000}, seed: {address: 0xFF00, type: u8}}
rewards: {counted: {variable: counter, on: change}}
"""


class CreepingEmulator(FakeEmulator):
    """Every 64th frame, as counted from power-on, moves the player if no button is held."""

    def _advance(self) -> None:
        super()._advance()
        if self._memory[fake.FRAME_COUNT] % 64 == 0 and not self._wanted:
            self._memory[fake.X] += 1


class TwoFoldEmulator(FakeEmulator):
    """Only the lowest bit of the seed matters."""

    def _draw(self) -> None:
        seed, self._memory[fake.SEED] = self._memory[fake.SEED], self._memory[fake.SEED] & 1
        super()._draw()
        self._memory[fake.SEED] = seed


def game_without_seed(**changes: Any) -> Game:
    """The fake game without the key `random_seed`; a counter in it counts frames."""
    game = fake_game(**changes)
    definition = dict(FAKE_GAME_YAML | changes)
    del definition["random_seed"]
    without = type(game.definition).model_validate(definition, context=None, by_alias=True)
    return dataclasses.replace(game, definition=without)


def played(game: Game | None = None, **settings: Any) -> GameBoyEnv:
    """A fake env of long timesteps, as the fake emulator draws slowly."""
    return fake_env(game, **({"frame_skip": 40} | settings))


def test_starts_that_vary_are_not_spoken_of() -> None:
    with closing(played(max_idle_frames=30)) as env:
        assert start_warnings(env) == []
        courses, warnings = check_starts(env, ["level_3"])
    assert warnings == []
    # the screen shows the seed modulo 4
    assert courses == [StartCourses("level_3", 20, 4, 600)]


def test_idle_frames_that_change_a_counter_and_nothing_that_happens_are_named() -> None:
    # how much B hurts depends on the counter
    game = game_without_seed(actions={"idle": [], "left": ["left"], "right": ["right"]})
    with closing(played(game, max_idle_frames=30)) as env:
        for name in ("level_1", "level_2"):  # what differs is the counter in memory
            counts = set()
            for seed in range(8):
                env.reset(seed=seed, options={"start_state": name})
                counts.add(env.read_variables()["frames"])
            assert len(counts) > 1
        (warning,) = start_warnings(env)
        courses, _ = check_starts(env, ["level_2"])
    assert warning.startswith(
        "env.max_idle_frames: 30 frames without a button make no difference: 20 seeds gave 1 "
        "course of events from level_1; if the game draws random numbers, name the variable"
    )
    assert "--find-seed" in warning
    assert courses == [StartCourses("level_2", 20, 1, 600)]


def test_an_episode_that_nothing_varies_is_named_without_play() -> None:
    with closing(played(game_without_seed(), max_idle_frames=0)) as env:
        (warning,) = start_warnings(env)
    assert warning.startswith("random_seed: there is none, and env.max_idle_frames is 0: 20 seeds")


def test_episodes_that_differ_by_idle_frames_alone_are_named() -> None:
    with closing(
        played(game_without_seed(), emulator=CreepingEmulator(), max_idle_frames=30)
    ) as env:
        (warning,) = start_warnings(env)
    assert warning.startswith(
        "random_seed: there is none, so episodes from level_1 differ only by their 0 to 30 idle "
        "frames"
    )


def test_a_game_file_that_says_that_there_is_no_seed_is_believed() -> None:
    game = fake_game(random_seed=None)
    for idle_frames in (0, 30):
        with closing(played(game, max_idle_frames=idle_frames)) as env:
            assert start_warnings(env) == []


def test_a_seed_that_the_game_overwrites_is_named() -> None:
    with closing(played(fake_game_seeded_at(fake.HELD))) as env:
        (warning,) = start_warnings(env)
    assert warning.startswith(
        "random_seed: other (0xC002) makes no difference: 20 seeds gave 1 course of events from "
        "level_1; name the variable"
    )


def test_a_seed_that_makes_no_difference_to_anything_else_is_named() -> None:
    with closing(played(fake_game_seeded_at(0xC030))) as env:
        _, (warning,) = check_starts(env, ["level_2", "level_3"])
    assert "20 seeds gave 1 course of events from level_2 and level_3" in warning


def test_a_seed_that_makes_little_difference_is_named_by_a_thorough_check() -> None:
    with closing(played(emulator=TwoFoldEmulator())) as env:
        assert start_warnings(env) == []
        courses, (warning,) = check_starts(env, ["level_1"])
    assert courses == [StartCourses("level_1", 20, 2, 600)]
    assert "seed (0xC006) makes little difference: 20 seeds gave 2 courses" in warning


def test_a_seed_in_a_register_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "game.gb").write_bytes(make_rom())
    (tmp_path / "game.yaml").write_text(COUNTING, encoding="utf-8")
    with closing(make_env(EnvConfig(), load_game(f"{tmp_path}/game.yaml"))) as env:
        (warning,) = start_warnings(env)
    assert warning.startswith(
        "random_seed: seed (0xFF00) does not keep what is written to it, as it is a hardware "
        "register, and makes no difference: 20 seeds gave 1 course"
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"endings": {"begun": {"variable": "x", "equals": 80}}}, "the ending begun holds already"),
        ({"success": {"variable": "x", "equals": 80}}, "success holds already, so episodes"),
    ],
)
def test_start_states_that_are_over_or_won_at_once_are_named(
    changes: dict[str, Any], told: str
) -> None:
    with closing(played(fake_game(**changes), start_states=["level_2", "level_3"])) as env:
        warnings = start_warnings(env)
    assert [text.partition(",")[0] for text in warnings] == [
        f"start_states.{name}: {told}".partition(",")[0] for name in ("level_2", "level_3")
    ]


def test_an_env_that_was_checked_plays_like_one_that_was_not() -> None:
    episodes = []
    for is_checked in (False, True):
        with closing(make_env(EnvConfig(), load_game("duel"))) as env:
            if is_checked:
                assert start_warnings(env) == []
            frames: list[Any] = [env.reset(seed=5)[0]]
            frames += [env.step(action)[0] for action in (2, 2, 4, 5, 7, 2)]
            episodes.append((np.stack(frames), env.save_state()))
    np.testing.assert_array_equal(episodes[0][0], episodes[1][0])
    assert episodes[0][1] == episodes[1][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["duel", "beacon", "seasons", "courier"])
def test_the_starts_of_the_bundled_games_vary(name: str) -> None:
    game = load_game(name)
    with closing(make_game_env(EnvConfig(), game)) as env:
        courses, warnings = check_starts(env, list(game.definition.start_states))
    assert warnings == []
    assert all(each.courses > 1 for each in courses)
