"""The training that users of Pokémon Red write with SB3, on a ROM that comes with game_rl.

python -m benchmarks.trainings.pokemon_sb3 [--n-envs 8] [--n-steps 256] [--updates 4]

The work of a timestep is that of PokemonRedExperiments, v2: 24 frames with a button in the first 8,
the last one drawn, three half-size screens, 2,488 bits of events, a map of visited places, and
rewards for events and places. One process plays each env, as SB3's SubprocVecEnv does.
"""

import argparse
import io
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from pyboy import PyBoy
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv

from benchmarks.trainings.duel_env import ROM
from benchmarks.trainings.update_clock import UpdateClock

BUTTONS = ("down", "left", "right", "up", "a", "b", "start")
EVENTS, EVENT_BYTES = 0xD747, 311
MAP_ID, X, Y = 0xD35E, 0xD362, 0xD361
LEVELS = (0xD18C, 0xD1B8, 0xD1E4, 0xD210, 0xD23C, 0xD268)
HP = (0xD16C, 0xD198, 0xD1C4, 0xD1F0, 0xD21C, 0xD248)
MOST_HP = (0xD18D, 0xD1B9, 0xD1E5, 0xD211, 0xD23D, 0xD269)
BADGES, BATTLE = 0xD356, 0xD057
WORLD, AROUND, STACK = 444, 12, 3
STUCK_VISITS = 600
Observation = dict[str, np.ndarray]


class PokemonEnv(gym.Env[Any, np.int64]):
    """An env with the observations of the project, whatever ROM is played."""

    def __init__(self, max_episode_timesteps: int) -> None:
        self.max_episode_timesteps = max_episode_timesteps
        self.pyboy = PyBoy(str(ROM), window="null", sound_emulated=False)
        self.pyboy.tick(200)
        self.start = io.BytesIO()
        self.pyboy.save_state(self.start)
        self.action_space = spaces.Discrete(len(BUTTONS))
        self.observation_space = spaces.Dict(
            {
                "screens": spaces.Box(0, 255, (72, 80, STACK), np.uint8),
                "health": spaces.Box(0, 1),
                "level": spaces.Box(-1, 1, (8,)),
                "badges": spaces.MultiBinary(8),
                "events": spaces.MultiBinary(EVENT_BYTES * 8),
                "map": spaces.Box(0, 255, (4 * AROUND, 4 * AROUND, 1), np.uint8),
                "recent_actions": spaces.MultiDiscrete([len(BUTTONS)] * STACK),
            }
        )

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.start.seek(0)
        self.pyboy.load_state(self.start)
        self.visits: dict[tuple[int, int, int], int] = {}
        self.world = np.zeros((WORLD, WORLD), np.uint8)
        self.screens = np.zeros((72, 80, STACK), np.uint8)
        self.actions = np.zeros(STACK, np.int64)
        self.n_timesteps = 0
        self.most_events = 0
        self.before = 0.0
        return self.observe(), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        button = BUTTONS[action]
        self.pyboy.button_press(button)
        self.pyboy.tick(8, False)
        self.pyboy.button_release(button)
        self.pyboy.tick(15, False)
        self.pyboy.tick(1, True)
        self.actions = np.roll(self.actions, 1)
        self.actions[0] = action
        memory = self.pyboy.memory
        if memory[BATTLE] == 0:
            place = memory[MAP_ID], memory[X], memory[Y]
            self.visits[place] = self.visits.get(place, 0) + 1
            self.world[place[2], place[1]] = 255
        observation = self.observe()
        self.most_events = max(self.most_events, int(observation["events"].sum()))
        place = memory[MAP_ID], memory[X], memory[Y]
        is_stuck = self.visits.get(place, 0) >= STUCK_VISITS
        badges = int(observation["badges"].sum())
        total = 2 * self.most_events + 5 * badges + 0.0125 * len(self.visits) - 0.025 * is_stuck
        reward = total - self.before
        self.before = total
        self.n_timesteps += 1
        return observation, reward, False, self.n_timesteps >= self.max_episode_timesteps, {}

    def observe(self) -> Observation:
        memory = self.pyboy.memory
        self.screens = np.roll(self.screens, 1, axis=2)
        self.screens[:, :, 0] = self.pyboy.screen.ndarray[::2, ::2, 0]
        hp = sum(256 * memory[address] + memory[address + 1] for address in HP)
        most_hp = sum(256 * memory[address] + memory[address + 1] for address in MOST_HP)
        levels = 0.02 * sum(memory[address] for address in LEVELS)
        events = np.array(memory[EVENTS : EVENTS + EVENT_BYTES], np.uint8)
        x = min(max(memory[X], AROUND), WORLD - AROUND)
        y = min(max(memory[Y], AROUND), WORLD - AROUND)
        around = self.world[y - AROUND : y + AROUND, x - AROUND : x + AROUND]
        return {
            "screens": self.screens,
            "health": np.array([hp / max(most_hp, 1)], np.float32).clip(0, 1),
            "level": np.sin(levels * 2.0 ** np.arange(8)).astype(np.float32),
            "badges": np.unpackbits(np.array([memory[BADGES]], np.uint8)).astype(np.int8),
            "events": np.unpackbits(events).astype(np.int8),
            "map": around.repeat(2, 0).repeat(2, 1)[:, :, None],
            "recent_actions": self.actions,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--n-steps", type=int, default=256)
    parser.add_argument("--updates", type=int, default=4)
    options = parser.parse_args()
    env = SubprocVecEnv([lambda: PokemonEnv(163_840)] * options.n_envs)
    model = PPO(
        "MultiInputPolicy",
        env,
        n_steps=options.n_steps,
        batch_size=512,
        n_epochs=1,
        gamma=0.997,
        ent_coef=0.01,
        device="cpu",
    )
    clock = UpdateClock()
    model.learn(options.updates * options.n_envs * options.n_steps, callback=clock)
    env.close()
    print(clock.to_json())


if __name__ == "__main__":
    main()
