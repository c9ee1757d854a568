"""States that all envs of a process share are made once, because saving one is slow."""

import dataclasses
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env
from game_rl.games.definition import load_game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import make_rom
from tests.envs.example import FAKE_ROM, fake_env, fake_game, fake_game_seeded_at


class Counting(FakeEmulator):
    saved = 0

    def save_state(self) -> bytes:
        self.saved += 1
        return super().save_state()


def test_the_first_env_of_a_process_saves_power_on_and_start_states_for_all() -> None:
    game = dataclasses.replace(fake_game(), rom=dataclasses.replace(FAKE_ROM, sha256="0c" * 32))
    options = [{"start_state": f"level_{n}"} for n in (2, 1, 3)]
    observations, counts = [], []
    for _ in range(3):
        emulator = Counting()
        with closing(make_env(EnvConfig(), game, emulator=emulator)) as env:
            observations.append([env.reset(seed=0, options=of)[0] for of in options])
        counts.append(emulator.saved)
    assert counts == [1 + 3, 0, 0]
    np.testing.assert_array_equal(observations[1], observations[0])
    np.testing.assert_array_equal(observations[2], observations[0])


COUNTING = """\
title: Counting
rom: {path: game.gb}
random_seed: seed
start_states: {beginning: {script: [{wait: 90}]}}
actions: {idle: [], a: [a]}
variables: {counter: {address: 0xC000}, seed: {address: 0xFF00, type: u8}}
rewards: {counted: {variable: counter, on: change}}
"""


class StillEmulator(FakeEmulator):
    """A game that waits for a button and counts no frames, as in a menu."""

    def _advance(self) -> None:
        super()._advance()
        self._memory[fake.FRAME_COUNT : fake.FRAME_COUNT + 2] = b"\0\0"


def test_starts_that_vary_are_not_spoken_of() -> None:
    with closing(fake_env(max_idle_frames=30)) as env:
        assert env.start_warnings() == env.start_warnings(["level_1", "level_3"]) == []


def test_a_seed_that_the_game_overwrites_is_named() -> None:
    with closing(fake_env(fake_game_seeded_at(fake.HELD))) as env:
        (warning,) = env.start_warnings()
        assert warning.startswith(
            "random_seed: other (0xC002) makes no difference within 600 frames of random play from "
            "level_1; name the variable"
        )


def test_a_seed_that_makes_no_difference_to_anything_else_is_found_by_a_thorough_check() -> None:
    with closing(fake_env(fake_game_seeded_at(0xC030))) as env:
        assert env.start_warnings() == []
        (warning,) = env.start_warnings(["level_2", "level_3"])
        assert "makes no difference within 4,800 frames of random play from level_2, level_3" in (
            warning
        )


def test_idle_frames_in_a_game_that_stands_still_are_named() -> None:
    with closing(fake_env(emulator=StillEmulator(), max_idle_frames=20)) as env:
        (warning,) = env.start_warnings()
        assert warning.startswith("env.max_idle_frames: 20 frames without a button make no diff")
    with closing(fake_env(emulator=StillEmulator(), max_idle_frames=0)) as env:
        assert env.start_warnings() == []


def test_a_seed_in_a_register_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "game.gb").write_bytes(make_rom())
    (tmp_path / "game.yaml").write_text(COUNTING, encoding="utf-8")
    with closing(make_env(EnvConfig(), load_game(f"{tmp_path}/game.yaml"))) as env:
        (warning,) = env.start_warnings()
    assert warning.startswith(
        "random_seed: seed (0xFF00) does not keep what is written to it, as it is a hardware "
        "register, and makes no difference within 600 frames"
    )


def test_an_env_that_was_checked_plays_like_one_that_was_not() -> None:
    episodes = []
    for is_checked in (False, True):
        with closing(make_env(EnvConfig(), load_game("duel"))) as env:
            if is_checked:
                assert env.start_warnings() == []
            frames = [env.reset(seed=5)[0]]
            frames += [env.step(action)[0] for action in (2, 2, 4, 5, 7, 2)]
            episodes.append((np.stack(frames), env.save_state()))
    np.testing.assert_array_equal(episodes[0][0], episodes[1][0])
    assert episodes[0][1] == episodes[1][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["duel", "beacon", "seasons"])
def test_the_starts_of_the_bundled_games_vary(name: str) -> None:
    game = load_game(name)
    with closing(make_env(EnvConfig(), game)) as env:
        assert env.start_warnings(list(game.definition.start_states)) == []
