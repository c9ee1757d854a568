"""What the envs of a training show is what their games show."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecEnv

from game_rl.config.schema import EnvConfig
from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.make_env import make_env, make_observation_format
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game, load_game
from game_rl.live.live_file import LiveReader, LiveScreen
from game_rl.live.live_writer import LiveFile, make_live_layout
from game_rl.training.extensions.live_extension import LiveParts
from game_rl.vec_env.make_vec_env import make_training_env
from tests.tiny_run import TINY_GAME
from tests.vec_env.envs import processes_of

N_ENVS, N_STEPS, SEED = 3, 50, 11
SEEN: dict[str, tuple[str, dict[str, Any]]] = {
    "crop": (str(TINY_GAME), {"size": "full"}),
    "half": ("duel", {"size": "half"}),
    "screen and parts": ("duel", {"parts": ["status"]}),
    "no screen": ("duel", {"screen": False, "parts": ["status"]}),
    "colour": ("seasons", {"size": "half", "colour": "rgb"}),
    "colour, no screen": ("seasons", {"screen": False, "parts": ["status"]}),
    "rooms of a map": ("beacon", {"size": "half"}),
}


def config_of(observation: dict[str, Any], **more: Any) -> EnvConfig:
    settings = {"n_envs": N_ENVS, "n_workers": 2, "max_episode_timesteps": 17, "frame_stack": 2}
    return EnvConfig.model_validate({"observation": observation, **settings, **more})


class Watched(NamedTuple):
    vec_env: VecEnv
    parts: LiveParts
    live: LiveFile
    reader: LiveReader


@contextmanager
def watched(config: EnvConfig, game: Game, folder: Path) -> Iterator[Watched]:
    layout = make_live_layout(
        game,
        make_observation_format(config, game),
        run_id="0" * 32,
        n_envs=config.n_envs,
        fps=4,
        has_probabilities=False,
    )
    with ExitStack() as stack:
        live = stack.enter_context(closing(LiveFile(RunDir(folder).live_frames, layout)))
        vec_env = stack.enter_context(closing(make_training_env(config, game, seed=SEED)))
        parts = LiveParts(vec_env)
        parts.show_in(live.path, layout)
        reader = LiveReader.open(RunDir(folder))
        assert reader is not None
        yield Watched(vec_env, parts, live, stack.enter_context(reader))


class Twin:
    """An env of the same seed and actions, which draws every timestep."""

    def __init__(self, env: GameEnv, seed: int) -> None:
        self.env, self.episode, self.timestep, self.is_over = env, 0, 0, False
        self.observation, info = env.reset(seed=seed)
        self.start_state = info["start_state"]

    def step(self, action: int) -> None:
        if self.is_over:
            self.observation, info = self.env.reset()
            self.start_state = info["start_state"]
            self.episode, self.timestep = self.episode + 1, 0
        self.observation, _, terminated, truncated, _ = self.env.step(action)
        self.timestep, self.is_over = self.timestep + 1, terminated or truncated

    def assert_shown(self, screen: LiveScreen, action: int) -> None:
        env: Any = self.env.unwrapped
        picture = env.render()
        if screen.pixels.ndim == 2:
            picture = picture[:, :, 0]
        np.testing.assert_array_equal(screen.pixels, picture)
        values = env.read_variables()
        assert screen.variables == {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }
        assert screen.reward_terms == env.reward_terms
        assert screen.map_at == map_at(env.game.name, values)
        assert screen.episode_reward == sum(env.reward_terms.values())
        assert (screen.episode, screen.episode_timestep) == (self.episode, self.timestep)
        assert (screen.start_state, screen.action) == (self.start_state, action)
        seen = self.observation if isinstance(self.observation, dict) else None
        assert screen.parts.keys() == ({"screen"} if seen is None else seen.keys())
        for name, array in screen.parts.items():
            expected = np.asarray(self.observation if seen is None else seen[name])
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected)


def map_at(game: str, values: Mapping[str, Any]) -> tuple[int, int] | None:
    """Where the screen lies on its map: below the bar of beacon, above that of seasons."""
    if game == "beacon":
        return (0, 16)
    return (values["camera"], 0) if game == "seasons" else None


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEN)
def test_a_shown_timestep_is_that_of_an_env_that_draws_all(name: str, tmp_path: Path) -> None:
    game_name, observation = SEEN[name]
    game, config = load_game(game_name), config_of(observation)
    random = np.random.default_rng(0)
    with watched(config, game, tmp_path) as seen, ExitStack() as stack:
        seen.vec_env.reset()
        twins = []
        for number in range(N_ENVS):
            env = stack.enter_context(closing(make_env(config, game, draws=True)))
            twins.append(Twin(env, SEED + number))
        for step in range(1, N_STEPS + 1):
            is_shown = step % 3 == 1
            if is_shown:
                assert seen.parts.show_next_step() == step
            actions = random.integers(len(game.action_names), size=N_ENVS)
            seen.vec_env.step(actions)
            for twin, action in zip(twins, actions.tolist(), strict=True):
                twin.step(action)
            screens = seen.reader.read()
            assert [screen.env for screen in screens] == list(range(N_ENVS))
            assert {screen.timestep for screen in screens} == {step - (step - 1) % 3}
            if is_shown:
                for twin, screen, action in zip(twins, screens, actions.tolist(), strict=True):
                    twin.assert_shown(screen, action)
        assert max(twin.episode for twin in twins) >= 2


@pytest.mark.parametrize("name", ["half", "no screen", "colour, no screen"])
def test_the_states_of_envs_that_are_watched_are_those_of_others(name: str, tmp_path: Path) -> None:
    game_name, observation = SEEN[name]
    game, config = load_game(game_name), config_of(observation)
    states = []
    for is_watched in (True, False):
        random = np.random.default_rng(0)
        with watched(config, game, tmp_path) as seen:
            seen.vec_env.reset()
            for _ in range(20):
                if is_watched:
                    seen.parts.show_next_step()
                seen.vec_env.step(random.integers(len(game.action_names), size=N_ENVS))
            states.append(seen.vec_env.env_method("save_state"))
            assert len(seen.reader.read()) == (N_ENVS if is_watched else 0)
    assert states[0] == states[1]


@pytest.mark.skipif(os.name == "nt", reason="sends a signal")
def test_the_worker_that_replaces_a_dead_one_goes_on_in_its_slots(tmp_path: Path) -> None:
    game, config = load_game("duel"), config_of({"size": "half"})
    with watched(config, game, tmp_path) as seen:
        seen.vec_env.reset()
        actions = np.zeros(N_ENVS, np.int64)
        for _ in range(2):
            seen.parts.show_next_step()
            seen.vec_env.step(actions)
        os.kill(processes_of(seen.vec_env)[0].pid, signal.SIGKILL)
        seen.parts.show_next_step()
        _, _, dones, _ = seen.vec_env.step(actions)
        assert dones.tolist() == [True, True, False]  # of the first half's only worker
        screens = seen.reader.read()
        assert [screen.timestep for screen in screens] == [2, 2, 3]  # a reset shows nothing
        assert seen.parts.show_next_step() == 4
        seen.vec_env.step(actions)
        screens = seen.reader.read()
        assert [screen.timestep for screen in screens] == [4, 4, 4]
        assert [screen.episode for screen in screens] == [1, 1, 0]
        assert [screen.episode_timestep for screen in screens] == [1, 1, 4]


def test_a_timestep_can_be_announced_while_one_is_under_way(tmp_path: Path) -> None:
    game, config = load_game("duel"), config_of({"size": "half"})
    with watched(config, game, tmp_path) as seen:
        seen.vec_env.reset()
        actions = np.zeros(N_ENVS, np.int64)
        seen.vec_env.step_async(actions)
        assert seen.parts.show_next_step() == 2
        seen.vec_env.step_wait()
        assert seen.reader.read() == []
        seen.vec_env.step(actions)
        assert [screen.timestep for screen in seen.reader.read()] == [2] * N_ENVS
        seen.vec_env.step(actions)
        assert [screen.timestep for screen in seen.reader.read()] == [2] * N_ENVS


def test_a_live_file_that_is_gone_does_not_end_the_training(tmp_path: Path) -> None:
    game, config = load_game("duel"), config_of({"size": "half"})
    with watched(config, game, tmp_path) as seen:
        seen.vec_env.reset()
        seen.live.close()
        seen.parts.show_next_step()
        seen.vec_env.step(np.zeros(N_ENVS, np.int64))
        seen.parts.show_in(seen.live.path, seen.live.layout)
        seen.parts.show_next_step()
        seen.vec_env.step(np.zeros(N_ENVS, np.int64))
