"""The bundled game as a user of SB3 would wrap it: with Gymnasium, PyBoy and NumPy only.

It is as fast as a user would make it without effort: no sound, only the last frame of a timestep is
rendered, and only the five bytes that rewards need are read. The picture, actions, rewards, endings
and start state are those of `game.yaml`.
"""

import io
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pyboy import PyBoy

ROM = Path(__file__).parents[2] / "game_rl" / "games" / "duel" / "duel.gb"

PLAYER_HEALTH, PLAYER_ROUNDS = 0xC0A5, 0xC0A6
OPPONENT_HEALTH, OPPONENT_ROUNDS = 0xC0B5, 0xC0B6
FIGHT_RESULT = 0xC0C5  # 0: running, 1: won, 2: lost

_SINGLE = ("left", "right", "down", "a", "b", "up")
ACTIONS = ((), *((button,) for button in _SINGLE), ("up", "left"), ("up", "right"))


class DuelEnv(gym.Env[NDArray[np.uint8], np.int64]):
    def __init__(self, size: str, colour: str, frame_skip: int, max_idle_frames: int) -> None:
        self.half = size == "half"
        self.channels = 3 if colour == "rgb" else 1
        self.frame_skip = frame_skip
        self.max_idle_frames = max_idle_frames
        self.pyboy = PyBoy(str(ROM), window="null", sound_emulated=False)
        self.start_state = self.play_to_the_fight()
        height, width = (72, 80) if self.half else (144, 160)
        self.observation_space = spaces.Box(0, 255, (height, width, self.channels), np.uint8)
        self.action_space = spaces.Discrete(len(ACTIONS))

    def play_to_the_fight(self) -> io.BytesIO:
        for frames_before in (90, 12):
            self.pyboy.tick(frames_before)
            self.pyboy.button_press("start")
            self.pyboy.tick(4)
            self.pyboy.button_release("start")
        self.pyboy.tick(29)
        state = io.BytesIO()
        self.pyboy.save_state(state)
        return state

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self.start_state.seek(0)
        self.pyboy.load_state(self.start_state)
        self.held: tuple[str, ...] = ()
        idle_frames = int(self.np_random.integers(self.max_idle_frames + 1))
        if idle_frames:
            self.pyboy.tick(idle_frames)
        self.before = self.read()
        return self.observe(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        for button in self.held:
            self.pyboy.button_release(button)
        self.held = ACTIONS[action]
        for button in self.held:
            self.pyboy.button_press(button)
        self.pyboy.tick(self.frame_skip, True, False)
        health, rounds, opponent_health, opponent_rounds, result = now = self.read()
        reward = 0.05 * max(0, self.before[2] - opponent_health)
        reward -= 0.05 * max(0, self.before[0] - health)
        reward += 0.5 * max(0, rounds - self.before[1])
        reward -= 0.5 * max(0, opponent_rounds - self.before[3])
        reward += {0: 0.0, 1: 1.0, 2: -1.0}[result]
        self.before = now
        return self.observe(), reward, result != 0, False, {}

    def read(self) -> tuple[int, int, int, int, int]:
        memory = self.pyboy.memory
        return (
            memory[PLAYER_HEALTH],
            memory[PLAYER_ROUNDS],
            memory[OPPONENT_HEALTH],
            memory[OPPONENT_ROUNDS],
            memory[FIGHT_RESULT],
        )

    def observe(self) -> NDArray[np.uint8]:
        screen: NDArray[np.uint8] = self.pyboy.screen.ndarray[:, :, : self.channels]
        if not self.half:
            return screen.copy()
        wide = screen.astype(np.uint16)
        rows = wide[0::2] + wide[1::2]
        means = (rows[:, 0::2] + rows[:, 1::2]) // 4
        return means.astype(np.uint8)

    def close(self) -> None:
        self.pyboy.stop(save=False)


def make_duel(
    size: str, colour: str, frame_skip: int, max_idle_frames: int, max_episode_timesteps: int
) -> gym.Env[NDArray[np.uint8], np.int64]:
    env = DuelEnv(size, colour, frame_skip, max_idle_frames)
    return gym.wrappers.TimeLimit(env, max_episode_timesteps)
