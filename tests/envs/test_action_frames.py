"""Actions that press and release within a timestep, frame by frame and in a ROM that counts."""

import hashlib
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from game_rl.config.schema import EnvConfig
from game_rl.emulator.emulator import BUTTONS, RecordingEmulator
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import check_env_config, make_emulator, make_env
from game_rl.errors import UsageError
from game_rl.game_check.game_check import check_game
from game_rl.game_check.recorded_episode import RecordedEpisode
from game_rl.games.definition import Game, load_game
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import COUNTS_PRESSES, make_rom
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game

PULSE = {"hold": ["a"], "frames": 8}


class FrameLog(FakeEmulator):
    """Notes the held buttons of every frame, and how many frames were played at each picture."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[set[str]] = []
        self.pictures: list[int] = []

    def _advance(self) -> None:
        super()._advance()
        bits = self.read(fake.HELD)
        self.held.append({button for i, button in enumerate(BUTTONS) if bits >> i & 1})

    def _draw(self) -> None:
        super()._draw()
        self.pictures.append(len(self.held))

    def forget(self) -> None:
        self.held, self.pictures = [], []


def frames_of(action: Any, frame_skip: int) -> list[set[str]]:
    """The buttons in each frame of a timestep, as the file says it."""
    if isinstance(action, dict):
        action = [action]
    if not any(isinstance(step, dict) for step in action):
        return [set(action)] * frame_skip
    frames: list[set[str]] = []
    for step in action:
        frames += [set(step.get("hold", ()))] * step.get("wait", step.get("frames"))
    while len(frames) < frame_skip:
        frames.append(set())
    return frames


def game_of(*actions: Any) -> Game:
    """The fake game without endings, with an action that does nothing, and these."""
    numbered = {f"do_{i}": action for i, action in enumerate(actions)}
    return fake_game(actions={"idle": []} | numbered, endings={})


held = st.lists(st.sampled_from(["a", "b", "right", "up"]), min_size=1, max_size=2, unique=True)
pulses = st.fixed_dictionaries({"hold": held, "frames": st.integers(1, 7)})
steps = pulses | st.fixed_dictionaries({"wait": st.integers(1, 7)})
any_action = held | pulses | st.lists(steps, min_size=1, max_size=4)


def is_allowed(action: Any) -> bool:
    if not isinstance(action, list) or not isinstance(action[0], dict):
        return True
    each = [frozenset(step.get("hold", ())) for step in action]
    return any(each) and all(one != other or not one for one, other in pairwise(each))


@given(any_action, st.integers(0, 9), st.lists(st.booleans(), min_size=1, max_size=6))
def test_each_frame_has_the_buttons_that_the_file_says(
    action: Any, more: int, play: list[bool]
) -> None:
    assume(is_allowed(action))
    frames, emulator = frames_of(action, 0), FrameLog()
    frame_skip = max(1, len(frames) + (frames[-1:] not in ([], [set()]))) + more
    env = fake_env(game_of(action), emulator=emulator, frame_skip=frame_skip)
    with closing(env):
        env.reset(seed=0)
        emulator.forget()
        for does in play:
            env.step(int(does))
    assert emulator.held == [
        buttons for does in play for buttons in frames_of(action if does else [], frame_skip)
    ]
    assert emulator.pictures == [(i + 1) * frame_skip for i in range(len(play))]


@given(any_action, st.integers(1, 5), st.lists(st.booleans(), min_size=1, max_size=4))
def test_a_clip_has_the_pictures_of_every_frame_in_turn(
    action: Any, apart: int, play: list[bool]
) -> None:
    assume(is_allowed(action))
    game, frame_skip = game_of(action), 30
    watched = RecordingEmulator(FakeEmulator(), picture_frames=apart)
    by_hand = FakeEmulator()
    expected = []
    with closing(fake_env(game, emulator=watched, frame_skip=frame_skip)) as env:  # type: ignore[arg-type]
        env.reset(seed=0, options={"start_state": "level_1", "idle_frames": 0})
        watched.take_pictures()
        by_hand.load_state(watched.save_state())
        for does in play:
            env.step(int(does))
            for i, buttons in enumerate(frames_of(action if does else [], frame_skip)):
                by_hand.hold(buttons)  # type: ignore[arg-type]
                by_hand.tick(1, render=True)
                if (i + 1) % apart == 0 or i + 1 == frame_skip:
                    expected.append(by_hand.screen().copy())
        assert watched.save_state() == by_hand.save_state()
    np.testing.assert_array_equal(watched.take_pictures(), expected)


def counting_game(folder: Path, **actions: Any) -> Game:
    """A game on a ROM that counts how often A goes down."""
    rom = make_rom(program=COUNTS_PRESSES)
    (folder / "game.gb").write_bytes(rom)
    definition = {
        "title": "Presses",
        "rom": {"path": "game.gb", "sha256": hashlib.sha256(rom).hexdigest()},
        "start_states": {"begin": {"script": [{"wait": 120}]}},
        "actions": {"idle": [], **actions},
        "variables": {"presses": {"address": 0xC000}},
        "rewards": {"press": {"variable": "presses", "on": "increase", "weight": 1}},
    }
    path = folder / "game.yaml"
    path.write_text(yaml.safe_dump(definition), encoding="utf-8")
    return load_game(str(path))


TWO_PRESSES = [{"hold": ["a"], "frames": 3}, {"wait": 2}, {"hold": ["a", "b"], "frames": 1}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "expected"), [(["a"], 1), (PULSE, 10), (TWO_PRESSES, 20)], ids=str
)
@pytest.mark.parametrize("is_resumed", [False, True])
def test_an_agent_that_presses_a_ten_times_presses_ten_times(
    action: Any, expected: int, is_resumed: bool, tmp_path: Path
) -> None:
    config = EnvConfig(frame_skip=9, max_idle_frames=0)
    game = counting_game(tmp_path, press=action)
    total, env = 0.0, make_env(config, game)
    assert isinstance(env, GameBoyEnv)
    env.reset(seed=0)
    for _ in range(10):
        total += env.step(1)[1]
        if is_resumed:
            state = env.save_state()
            env.close()
            env = make_env(config, game)
            assert isinstance(env, GameBoyEnv)
            env.load_state(state)
    env.close()
    assert total == expected


def test_check_game_plays_timesteps_in_which_every_action_fits(tmp_path: Path) -> None:
    game = counting_game(tmp_path, hold=["a"], press=PULSE)
    recorded = RecordedEpisode(start_state="begin", actions=("press",) * 50)
    check = check_game(game, seed=0, timesteps=1, recorded=recorded)
    (term,) = check.reward_terms
    assert 50 <= term.total <= 51
    assert not any("no action makes a difference" in warning for warning in check.warnings)


@pytest.mark.parametrize(("frame_skip", "fits"), [(8, False), (9, True)])
def test_an_action_that_is_longer_than_a_timestep_is_refused_with_the_way_out(
    frame_skip: int, fits: bool, tmp_path: Path
) -> None:
    game = counting_game(tmp_path, hold=["a"], press=PULSE)
    config = EnvConfig(frame_skip=frame_skip)
    if fits:
        check_env_config(config, game)
        make_env(config, game).close()
        return
    for refused in (lambda: check_env_config(config, game), lambda: make_env(config, game)):
        with pytest.raises(UsageError, match="press takes 9 frames") as caught:
            refused()
        assert "env.frame_skip is 8" in str(caught.value)
        assert "write env.frame_skip=9, or shorten the action" in str(caught.value)
        assert caught.value.exit_code == 2


def test_a_script_that_ends_without_buttons_may_fill_the_timestep() -> None:
    script = [{"hold": ["b"], "frames": 3}, {"wait": 2}]
    fake_env(game_of(script), frame_skip=5).close()
    with pytest.raises(UsageError, match=r"do_0 takes 5 frames; write env\.frame_skip=5"):
        fake_env(game_of(script), frame_skip=4)


def test_plain_lists_are_dumped_as_they_are_written() -> None:
    game = fake_game(actions=FAKE_GAME_YAML["actions"] | {"press": PULSE, "twice": TWO_PRESSES})
    dumped = game.definition.model_dump(mode="json")["actions"]
    assert {name: dumped[name] for name in FAKE_GAME_YAML["actions"]} == FAKE_GAME_YAML["actions"]
    assert dumped["press"] == PULSE
    assert fake_game(actions=dumped).definition == game.definition


def test_two_presses_and_the_pictures_between_them_are_those_of_pyboy(tmp_path: Path) -> None:
    game = counting_game(tmp_path, press=TWO_PRESSES)
    watched = RecordingEmulator(make_emulator(game), picture_frames=3)
    with closing(make_env(EnvConfig(frame_skip=9, max_idle_frames=0), game, watched)) as env:  # type: ignore[arg-type]
        env.reset(seed=0)
        watched.take_pictures()
        assert env.step(1)[1] == 2
        assert len(watched.take_pictures()) == 3
