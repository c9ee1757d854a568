"""What a trained policy expects while an episode is played."""

from collections.abc import Callable
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import BasePolicy

from game_rl.algorithms.policies import policy_outputs
from game_rl.buffers.unpacking import observation_tensors
from game_rl.envs.make_env import make_observation_format
from game_rl.envs.observation import Observation
from game_rl.playback.trained_run import TrainedRun
from game_rl.vec_env.frame_stacks import frame_stack_of, new_stacks


def value_function(policy: BasePolicy) -> Callable[[Observation], float]:
    """Return the function from a batch of one observation to the return that a policy expects.

    It is the value of PPO, and the highest Q of the others, in units of the rewards as they were
    learned.
    """

    def value(observations: Observation) -> float:
        tensors = observation_tensors(observations, policy.device)
        with torch.no_grad():
            values, _ = policy_outputs(policy, tensors)
            return float(values)

    return value


class PolicyWatcher:
    """Stacks the frames of an episode, and says what a run's policy expects; a `Watcher`."""

    def __init__(self, run: TrainedRun) -> None:
        observation_format = make_observation_format(run.config.env, run.game)
        self._stacks = new_stacks(
            observation_format.frame_space, frame_stack_of(observation_format)
        )
        actions = spaces.Discrete(len(run.game.action_names))
        self._value = value_function(run.policy(observation_format.space, actions))

    def begin(self, observation: Observation) -> None:
        self._stacks.put(0, observation)
        self._stacks.begin_episode(0)

    def value(self) -> float:
        observations: Any = self._stacks.all()
        return self._value(observations)

    def see(self, observation: Observation) -> None:
        self._stacks.turn()
        self._stacks.put(0, observation)
