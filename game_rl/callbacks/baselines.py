"""What policies that have learned nothing reach: random actions, and always the same one."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.evaluation import Evaluation, evaluate
from game_rl.config.values import BASELINES_S
from game_rl.events import BaselinePlayed
from game_rl.games.actions import RANDOM, constant_action
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest

BASELINE_EPISODES = 20
"""Episodes of each baseline before a training, unless `BASELINES_S` are over."""
_TRIED_EPISODES = 4  # of each action, to find the best one


class RandomPolicy:
    """Draws each action evenly from all."""

    def __init__(self, n_actions: int, seed: int) -> None:
        self._n_actions = n_actions
        self._rng = np.random.default_rng(seed)

    def predict(
        self,
        observation: NDArray[Any] | Mapping[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...] | None]:
        """Return actions, as policies of Stable-Baselines3 do."""
        del episode_start, deterministic
        return self._rng.integers(self._n_actions, size=_rows(observation)), state


class ConstantPolicy:
    """Takes one action always."""

    def __init__(self, action: int) -> None:
        self._action = action

    def predict(
        self,
        observation: NDArray[Any] | Mapping[str, NDArray[Any]],
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...] | None]:
        """Return actions, as policies of Stable-Baselines3 do."""
        del episode_start, deterministic
        return np.full(_rows(observation), self._action, np.int64), state


_Baseline = RandomPolicy | ConstantPolicy


def _rows(observation: NDArray[Any] | Mapping[str, NDArray[Any]]) -> int:
    if isinstance(observation, Mapping):
        return len(next(iter(observation.values())))
    return len(observation)


@dataclass(frozen=True)
class Baseline:
    """What a policy that has learned nothing reaches.

    Attributes:
        action: name of the action that it always takes; "" if it draws its actions.
    """

    action: str
    evaluation: Evaluation

    @property
    def name(self) -> str:
        return self.event().name

    def event(self) -> BaselinePlayed:
        played = self.evaluation
        return BaselinePlayed(
            timesteps=0,
            action=self.action,
            episodes=played.episodes,
            mean_reward=played.mean_reward,
            std_reward=played.std_reward,
            success_rate=played.success_rate,
            mean_length=played.mean_length,
            seconds=round(played.seconds, 3),
        )


def play_baseline(
    name: str,
    vec_env: VecEnv,
    action_names: Sequence[str],
    *,
    episodes: int,
    seed: int,
    stop: StopRequest | None = None,
) -> Baseline:
    """Play the baseline `random`, `constant:ACTION` or `best-constant`.

    The best constant is the action with the highest mean reward in four episodes of each, which
    are not among those that count.

    Raises:
        UsageError: there is no such baseline or action.
        EvaluationInterrupted: a stop was requested.
    """

    def played(policy: _Baseline, n: int, seed: int) -> Evaluation:
        is_constant = isinstance(policy, ConstantPolicy)
        return evaluate(
            policy, vec_env, episodes=n, deterministic=is_constant, seed=seed, stop=stop
        )

    action = constant_action(name, action_names)
    if name == RANDOM:
        return Baseline("", played(RandomPolicy(len(action_names), seed), episodes, seed))
    if action is None:
        trial = seed_for(seed, "best_constant")
        tried = [
            played(ConstantPolicy(each), _TRIED_EPISODES, trial).mean_reward
            for each in range(len(action_names))
        ]
        action = int(np.argmax(tried))
    return Baseline(action_names[action], played(ConstantPolicy(action), episodes, seed))


def play_baselines(
    vec_env: VecEnv,
    action_names: Sequence[str],
    *,
    seed: int,
    limit_s: float = BASELINES_S,
    stop: StopRequest | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Baseline]:
    """Play random actions and the best constant action, with a limit of time.

    Random actions have a third of the time, the trials of all constant actions another one. If the
    time is over, the episodes that have ended count, and a baseline without any is left out. The
    best constant action is the one with the highest mean reward so far in its trial.

    Args:
        seed: chooses the episodes; those of the trials are others.
        limit_s: seconds that all of it takes, about.
        clock: tells the time.

    Raises:
        EvaluationInterrupted: a stop was requested.
    """

    def played(policy: _Baseline, episodes: int, seed: int, *, until: float) -> Evaluation:
        return evaluate(
            policy,
            vec_env,
            episodes=episodes,
            deterministic=isinstance(policy, ConstantPolicy),
            seed=seed,
            stop=stop,
            is_time_over=lambda: clock() >= until,
        )

    began = clock()
    third = limit_s / 3
    stream = seed_for(seed, "baseline")
    drawn = RandomPolicy(len(action_names), stream)
    random = played(drawn, BASELINE_EPISODES, seed, until=began + third)
    rewards: list[float] = []
    for action in range(len(action_names)):
        share = (began + 2 * third - clock()) / (len(action_names) - action)
        tried = played(ConstantPolicy(action), _TRIED_EPISODES, stream, until=clock() + share)
        rewards.append(float(np.mean([*tried.rewards, *tried.unfinished])))
    best = int(np.argmax(rewards))
    constant = played(ConstantPolicy(best), BASELINE_EPISODES, seed, until=began + limit_s)
    both = [Baseline("", random), Baseline(action_names[best], constant)]
    return [each for each in both if each.evaluation.episodes]
