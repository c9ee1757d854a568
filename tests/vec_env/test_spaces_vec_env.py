from contextlib import closing

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.games.definition import load_game
from game_rl.vec_env.make_vec_env import SpacesVecEnv, make_vec_env


def test_it_has_the_spaces_of_the_envs_that_play_and_does_not_play() -> None:
    config, game = EnvConfig(n_envs=2, n_workers=1, frame_stack=3), load_game("duel")
    spaces_alone = SpacesVecEnv(config, game, n_envs=2)
    with closing(make_vec_env(config, game, n_envs=2, seed=0)) as vec_env:
        assert spaces_alone.num_envs == vec_env.num_envs
        assert spaces_alone.observation_space == vec_env.observation_space
        assert spaces_alone.action_space == vec_env.action_space
    with pytest.raises(RuntimeError, match="nothing is played"):
        spaces_alone.reset()
    with pytest.raises(RuntimeError, match="nothing is played"):
        spaces_alone.step(np.zeros(2, np.int64))
