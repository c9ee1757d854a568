"""The policy of a run as Python code uses it: it predicts as a model of Stable-Baselines3 does."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy

from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.envs.observation import Observation
from game_rl.errors import UsageError
from game_rl.playback.trained_run import TrainedRun

PolicyState = tuple[NDArray[Any], ...]
"""What a policy remembers, one array for each of its layers that do; as in Stable-Baselines3."""


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy of a run, which predicts as a model of Stable-Baselines3 does.

    SB3's `evaluate_policy(policy, env)` takes it, too.

    Attributes:
        config: config of the run, with which `make_env` makes the game that it plays.
        action_names: name of each action, such as `left`, in the order of their numbers.
        timesteps: timesteps that it has learned from.
        deterministic: whether `predict` takes the most probable actions or samples them if its
            argument is None; as in the evaluation that chose the policy.
        network: policy of Stable-Baselines3, on the CPU.
    """

    config: RunConfig
    action_names: tuple[str, ...]
    timesteps: int
    deterministic: bool
    network: BasePolicy

    def predict(
        self,
        observation: Observation,
        state: PolicyState | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool | None = None,
    ) -> tuple[NDArray[np.int64], PolicyState | None]:
        """Return the actions for an observation, and the state of the policy after it.

        The arguments and the result are those of SB3's `predict`.

        Args:
            observation: of `make_env`, or of `make_vec_env`, which has one for each env.
            state: state that the call before has returned; None at the beginning, and for policies
                that remember nothing.
            episode_start: bool [n_envs]; in which envs an episode begins with this observation.
            deterministic: whether to take the most probable actions (True) or to sample them
                (False).
                None: as in the evaluation that chose the policy.

        Returns:
            int64 [n_envs] of the vec env, or a single int64 [] that `env.step` takes; and the
            state, which is None if the policy remembers nothing.

        Raises:
            GameRLError: the observation is not one that the policy has learned from.
        """
        seen: Any = dict(observation) if isinstance(observation, Mapping) else observation
        way = self.deterministic if deterministic is None else deterministic
        try:
            actions, after = self.network.predict(
                seen, state=state, episode_start=episode_start, deterministic=way
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(self._refusal(seen)) from error
        return np.asarray(actions, np.int64), after

    def act(self, observations: Observation) -> NDArray[np.int64]:
        """Return the actions alone; deprecated, `predict` returns them first."""
        warnings.warn(
            "TrainedPolicy.act is deprecated; write `action, _ = policy.predict(observation)`",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.predict(observations)[0]

    def _refusal(self, observation: object) -> str:
        found = getattr(observation, "shape", None)
        if isinstance(observation, dict):
            found = {name: getattr(each, "shape", None) for name, each in observation.items()}
        shown = f"a {type(observation).__name__}" if found is None else f"the shape {found}"
        space = self.network.observation_space
        shapes = f"{space.shape}"
        if isinstance(space, spaces.Dict):
            shapes = "a dict of " + ", ".join(
                f"{name} {each.shape}" for name, each in space.items()
            )
        return (
            f"the observation has {shown}, and the policy sees {shapes} (or n of them); take the "
            "observations of game_rl.make_env(policy.config), which reset returns as "
            "`observation, info`"
        )


def trained_policy(run: TrainedRun) -> TrainedPolicy:
    """Return the policy of an opened run."""
    action_names = tuple(run.game.action_names)
    observation_format = make_observation_format(run.config.env, run.game)
    return TrainedPolicy(
        config=run.config,
        action_names=action_names,
        timesteps=run.state.num_timesteps,
        deterministic=run.deterministic,
        network=run.policy(observation_format.space, spaces.Discrete(len(action_names))),
    )
