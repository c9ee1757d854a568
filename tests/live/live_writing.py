"""Timesteps for the live file whose every value follows from their number."""

from functools import cache

import numpy as np

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.games.definition import load_game
from game_rl.live.live_file import LiveLayout
from game_rl.live.live_writer import ShownStep, make_live_layout


def layout_of(n_envs: int, *, has_own_reward: bool = False) -> LiveLayout:
    game = load_game("duel")
    if has_own_reward:
        definition = game.definition.model_copy(update={"reward": "my_reward:Lines"})
        object.__setattr__(game, "definition", definition)
    return make_live_layout(
        game,
        make_observation_format(EnvConfig(), game),
        run_id="0" * 32,
        n_envs=n_envs,
        fps=4,
        has_probabilities=True,
    )


@cache
def numbered_step(number: int) -> tuple[ShownStep, np.ndarray]:
    rng = np.random.default_rng(number)
    definition = load_game("duel").definition
    grey = (85 * rng.integers(0, 4, (144, 160))).astype(np.uint8)
    step = ShownStep(
        screen=np.repeat(grey[:, :, None], 3, axis=2),
        start_state="level_2",
        episode_timestep=number + 1,
        reward_terms={name: number + index / 8 for index, name in enumerate(definition.rewards)},
        variables={name: number * index for index, name in enumerate(definition.variables)},
    )
    return step, rng.integers(0, 256, (1, 72, 80), dtype=np.uint8)
