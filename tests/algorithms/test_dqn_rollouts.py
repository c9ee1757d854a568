"""DQN's rollouts by turns against SB3's own loop, in which nothing overlaps."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq

from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.make_algorithm import make_dqn
from game_rl.config.algorithms import DQNConfig
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from tests.algorithms.conftest import Witness
from tests.tiny_context import tiny_context

VEC_STEPS = 7
CONFIG = {
    "name": "dqn",
    "replay": {"capacity": 90},
    "train_freq": VEC_STEPS,
    "batch_size": 8,
    "target_update_interval": 9,
    "tau": 0.5,
    "exploration": {"start": 0.3, "end": 0.3},
}


def make(vec_env: HalvedVecEnv) -> LeanDQN:
    model = make_dqn(
        DQNConfig.model_validate(CONFIG),
        tiny_context(vec_env, frame_stack=2),
    )
    model.set_logger(Logger(None, []))
    for parameter in model.q_net_target.parameters():
        parameter.data += 0.1  # so that an update is seen
    return model


def plain_rollout(model: LeanDQN, *arguments: Any, **keywords: Any) -> RolloutReturn:
    """SB3's loop, told what both halves do before either plays."""
    env = model.env
    assert isinstance(env, HalvedVecEnv)

    def sample(starts: int, *_: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        assert isinstance(model._last_obs, np.ndarray)
        halves = [model._explored(model._last_obs[bounds], starts) for bounds in env.bounds]
        return np.concatenate(halves), np.concatenate(halves)

    model._sample_action = sample  # type: ignore[method-assign]
    return OffPolicyAlgorithm.collect_rollouts(model, *arguments, **keywords)


@pytest.mark.parametrize("learning_starts", [0, 3 * VEC_STEPS, 10**6])
def test_rollouts_are_those_of_sb3s_loop(vec_env: HalvedVecEnv, learning_starts: int) -> None:
    outcomes: list[Any] = []
    for collect in (LeanDQN.collect_rollouts, plain_rollout):
        model, witness, dumps = make(vec_env), Witness(), []
        model._setup_learn(10**6, witness)
        model.dump_logs = lambda model=model, dumps=dumps: dumps.append(model.num_timesteps)  # type: ignore[method-assign]
        assert isinstance(model.train_freq, TrainFreq)
        returned = [
            collect(
                model,
                vec_env,
                witness,
                model.train_freq,
                model.replay_buffer,
                learning_starts=learning_starts,
                log_interval=2,
            )
            for _ in range(3)  # the next one goes on where the last one ended
        ]
        state = {k: np.asarray(v) for k, v in model.replay_buffer.pond.state_dict().items()}
        targets = torch.cat([p.flatten() for p in model.q_net_target.parameters()])
        outcomes.append(
            (
                returned,
                witness.seen,
                state,
                targets.detach().numpy(),
                model._last_obs,
                (model.num_timesteps, model._n_calls, model._episode_num, dumps),
                model.exploration.state(),
            )
        )
    np.testing.assert_equal(outcomes[0], outcomes[1])
    assert outcomes[0][-2][-1]  # something was logged, so episodes ended


def test_a_callback_can_end_the_rollout(vec_env: HalvedVecEnv) -> None:
    model, witness = make(vec_env), Witness(last_step=9)
    model.learn(10**6, callback=witness)
    assert model.num_timesteps == 9
    assert witness.seen[-1] != "end"
