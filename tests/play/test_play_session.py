"""A person's play: what is recorded plays again to the same game, whatever was taken back."""

import json
import random
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.emulator.emulator import BUTTONS, FRAMES_PER_SECOND, Button
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.rom import read_rom
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_game_env
from game_rl.game_check.recorded_episode import (
    LONGEST_EPISODE_TIMESTEPS,
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
)
from game_rl.games.definition import Game, load_game
from game_rl.play.play_session import PlaySession, possible_buttons


def env_of(game: Game, frame_skip: int) -> GameBoyEnv:
    config = EnvConfig(
        max_episode_timesteps=LONGEST_EPISODE_TIMESTEPS,
        frame_skip=frame_skip,
        observation=ObservationConfig(size="full"),
    )
    return make_game_env(config, game, draws=True)


class Person:
    """Holds some buttons for a while, then others."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.held: list[Button] = []
        self.left = 0

    def buttons(self) -> list[Button]:
        if not self.left:
            self.left = self.rng.randrange(1, 30)
            self.held = self.rng.sample(BUTTONS, self.rng.choice((0, 1, 1, 2)))
            self.held = [each for each in self.held if each not in ("start", "select")]
        self.left -= 1
        return self.held


def played_again(session: PlaySession, game: Game, folder: Path) -> GameBoyEnv:
    """Read the record and play it in an env of its own."""
    path = folder / "episode.json"
    path.write_text(session.record(), encoding="utf-8")
    episode = read_recorded_episode(path, game)
    env = make_game_env(episode_config(game, episode), game, draws=True)
    env.reset(seed=episode.seed, options=dict(episode.options))
    for timestep in recorded_timesteps(episode, game):
        timestep.play(env)
    return env


def assert_same(session: PlaySession, again: GameBoyEnv) -> None:
    assert session.env is not None
    assert again.read_variables() == session.variables()
    assert again.reward_terms == session.reward_terms
    np.testing.assert_array_equal(again.render(), session.screen)
    ours, theirs = (e.emulator.save_state(picture=False) for e in (session.env, again))
    assert ours == theirs


@pytest.mark.parametrize("frame_skip", [4, 7])
def test_a_play_is_played_again_exactly_with_what_was_taken_back_left_out(
    tmp_path: Path, frame_skip: int
) -> None:
    game = load_game("duel")
    with closing(env_of(game, frame_skip)) as env:
        session = PlaySession(env, frame_skip=frame_skip)
        session.begin("level_1", seed=11)
        person = Person(frame_skip)
        expected: list[frozenset[Button]] = []
        for part in (800, 700, 300):
            for _ in range(part):
                if session.end is None:
                    held = person.buttons()
                    session.play(held)
                    expected.append(possible_buttons(held))
            if part != 300:
                before = session.frames
                seconds = session.take_back()
                assert 10 <= seconds < 11.2
                assert session.frames == before - round(seconds * FRAMES_PER_SECOND)
                expected = expected[: session.frames]
        while session.frames % frame_skip:
            session.play(())
            expected.append(frozenset())
        flat = [press.buttons for press in session.presses for _ in range(press.frames)]
        assert flat == expected
        assert any(session.reward_terms.values())
        with closing(played_again(session, game, tmp_path)) as again:
            assert_same(session, again)


def test_an_ending_ends_the_episode_and_can_be_taken_back(tmp_path: Path) -> None:
    game = load_game("duel")
    with closing(env_of(game, 8)) as env:
        session = PlaySession(env, frame_skip=8)
        session.begin("level_3", seed=3)
        while session.end is None:
            session.play(())
        assert session.end == ("fight_over", False)
        frames = session.frames
        session.play(["a"])
        assert session.frames == frames
        with closing(played_again(session, game, tmp_path)) as again:
            assert not again.episode.running
            assert_same(session, again)
        assert session.take_back(1) >= 1
        assert session.end is None
        session.play(["a"])
        assert session.frames < frames


def test_the_way_back_ends_at_the_beginning() -> None:
    game = load_game("duel")
    with closing(env_of(game, 4)) as env:
        session = PlaySession(env, frame_skip=4)
        session.begin("level_1", seed=0)
        first = session.screen.copy()
        values = session.variables()
        for _ in range(200):
            session.play(["right"])
        assert session.take_back() == pytest.approx(200 / FRAMES_PER_SECOND)
        assert (session.frames, session.presses) == (0, ())
        np.testing.assert_array_equal(session.screen, first)
        assert session.variables() == values
        assert session.take_back() == 0


def test_a_rom_without_a_game_file_is_played_from_power_on() -> None:
    """As a script of a game file would from the first frame on."""
    rom = read_rom(load_game("duel").folder / "duel.gb", named_by="the path")
    with closing(PyBoyEmulator(rom, colour=False)) as emulator:
        session = PlaySession(emulator, frame_skip=4)
        session.begin("power_on", seed=0)
        presses: list[tuple[tuple[Button, ...], int]] = [((), 90), (("start",), 5), ((), 60)]
        for held, frames in presses:
            for _ in range(frames):
                session.play(held)
        shown = session.screen.copy()
        session.take_back(1)
        assert session.env is None
        assert (session.reward_terms, session.variables()) == ({}, {})
    with closing(PyBoyEmulator(rom, colour=False)) as other:
        for held, frames in (((), 1), *presses):
            other.hold(held)
            other.tick(frames, render=True)
        np.testing.assert_array_equal(other.screen(), shown)


def test_of_opposite_buttons_the_later_one_is_held() -> None:
    assert possible_buttons(["left", "a", "right"]) == {"a", "right"}
    assert possible_buttons(["right", "left", "down", "up"]) == {"left", "up"}
    assert possible_buttons(["up", "left", "b", "b"]) == {"up", "left", "b"}
    assert possible_buttons([]) == frozenset()


@pytest.mark.parametrize("has_success", [True, False])
def test_a_play_that_has_not_ended_is_no_success_where_the_game_has_one(
    has_success: bool, tmp_path: Path
) -> None:
    folder = load_game("duel").folder
    shutil.copy(folder / "duel.gb", tmp_path)
    shutil.copy(folder / "duel.sym", tmp_path)
    text = (folder / "game.yaml").read_text(encoding="utf-8")
    if not has_success:
        text = "".join(line for line in text.splitlines(True) if not line.startswith("success:"))
    (tmp_path / "game.yaml").write_text(text, encoding="utf-8")
    with closing(env_of(load_game(str(tmp_path / "game.yaml")), 4)) as env:
        session = PlaySession(env, frame_skip=4)
        session.begin("level_1", seed=1)
        for _ in range(40):
            session.play(["right"])
        assert json.loads(session.record())["success"] is (False if has_success else None)
