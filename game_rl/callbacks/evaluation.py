"""Evaluations: whole episodes are played, summed up, and compared with others."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from math import inf, sqrt
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, Space
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.data_parallel import torch_threads
from game_rl.checkpoints.checkpoint_state import Best
from game_rl.checkpoints.model_state import drawing_from
from game_rl.envs.episode_ends import OVER_AT_START
from game_rl.envs.observation import Observation, rows_of
from game_rl.episodes.episode_files import EndedEpisode
from game_rl.episodes.episode_logging import ended_episode, is_logged
from game_rl.events import Evaluated, StartStateResult
from game_rl.returns import LearnedRewards
from game_rl.statistics import mean_interval, wilson_interval
from game_rl.system.stop_request import StopRequest


@dataclass(frozen=True)
class Values:
    """The returns that a policy expects.

    Attributes:
        of: returns the expected discounted returns, [n], of a batch of n observations.
        gamma: the discount factor.
        learned: makes the rewards that the policy has learned; None if they are those of the game.
    """

    of: Callable[[Observation], NDArray[np.float32]]
    gamma: float
    learned: LearnedRewards | None = None

    def reward(self, rewards: NDArray[np.float32], env: int) -> float:
        """Return this env's reward as the policy has learned it."""
        of_env = rewards[env : env + 1]
        return float((of_env if self.learned is None else self.learned(of_env))[0])


LIMIT_REACHED = "limit reached"
"""In place of an ending's name, of an episode that `env.max_episode_timesteps` has truncated."""
LOCKED_UP = "locked up"
"""Likewise, of one in which the game has locked up the CPU."""


@dataclass(frozen=True)
class EpisodeEnd:
    """How an episode ended.

    Attributes:
        ending: name of the ending in game.yaml, or one of the two texts above.
        variables: each variable of game.yaml that is a number, as it was at the end.
        over_at_start: what held before the first action, so that no policy had a choice; or "".
    """

    ending: str
    variables: Mapping[str, float]
    over_at_start: str = ""


@dataclass(frozen=True)
class VariableAtEnd:
    """A variable at the end of episodes: its mean, standard deviation, least and largest value."""

    mean: float
    std: float
    min: float
    max: float


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Results of some episodes; rewards are undiscounted, lengths are in timesteps.

    Attributes:
        deterministic: whether the policy took its most probable actions or sampled them.
        rewards: undiscounted sum of each episode, in the order in which they ended.
        lengths: timesteps of each episode.
        successes: whether each episode was a success, if the game file defines success.
        start_states: name of each episode's start state; empty where the env does not say, as for
            an episode that a dead worker cut short.
        q_minus_return: mean over the episodes of the return that the policy expected at the first
            observation minus the discounted return that it got, with rewards scaled as in learning.
            Above 0, the policy overestimates.
        action_counts: how often each action was taken; empty if the actions are not discrete.
        seconds: duration of the evaluation in seconds.
        ended: the episodes with their actions, if the envs log them, in the same order.
        ends: how each episode ended, in the same order; empty where the env does not say.
        unfinished: rewards so far of the episodes that were still running when the time was up.
    """

    deterministic: bool
    rewards: tuple[float, ...]
    lengths: tuple[int, ...]
    successes: tuple[bool, ...]
    start_states: tuple[str, ...] = ()
    q_minus_return: float | None = None
    action_counts: tuple[int, ...] = ()
    seconds: float = field(compare=False)
    ended: tuple[EndedEpisode, ...] = field(default=(), compare=False, repr=False)
    ends: tuple[EpisodeEnd, ...] = field(default=(), repr=False)
    unfinished: tuple[float, ...] = ()

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.rewards)

    @property
    def mean_reward(self) -> float:
        """Mean of the episodes' rewards."""
        return float(np.mean(self.rewards))

    @property
    def std_reward(self) -> float:
        """Standard deviation of the episodes' rewards, not of their mean."""
        return float(np.std(self.rewards))

    @property
    def success_rate(self) -> float | None:
        """Share of successful episodes, 0..1, or None if the game does not define success."""
        return float(np.mean(self.successes)) if self.successes else None

    @property
    def reward_interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval of the mean reward; None for fewer than five episodes."""
        return mean_interval(self.mean_reward, self.std_reward, self.episodes)

    @property
    def success_interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the success rate; None if the game does not define success."""
        if not self.successes:
            return None
        return wilson_interval(sum(self.successes), len(self.successes))

    @property
    def mean_length(self) -> float:
        """Mean number of timesteps of an episode."""
        return float(np.mean(self.lengths))

    @property
    def endings(self) -> dict[str, int]:
        """Number of episodes with each ending, the most frequent first."""
        return dict(Counter(end.ending for end in self.ends).most_common())

    @property
    def variables(self) -> dict[str, VariableAtEnd]:
        """The variables of game.yaml at the end of the episodes."""
        found: dict[str, list[float]] = {}
        for end in self.ends:
            for name, value in end.variables.items():
                found.setdefault(name, []).append(value)
        return {
            name: VariableAtEnd(float(np.mean(v)), float(np.std(v)), min(v), max(v))
            for name, v in found.items()
        }

    @property
    def over_at_start(self) -> int:
        """Number of episodes in which an ending or success held before the first action."""
        return sum(bool(end.over_at_start) for end in self.ends)

    @property
    def by_start_state(self) -> dict[str, StartStateResult] | None:
        """Results by start state; None unless the episodes started in several."""
        names = sorted(set(self.start_states) - {""})
        return {name: self._of(name) for name in names} if len(names) > 1 else None

    def _of(self, start_state: str) -> StartStateResult:
        episodes = [i for i, name in enumerate(self.start_states) if name == start_state]
        is_known = len(self.successes) == self.episodes
        return StartStateResult(
            episodes=len(episodes),
            successes=sum(self.successes[i] for i in episodes) if is_known else None,
            mean_reward=float(np.mean([self.rewards[i] for i in episodes])),
        )

    def beats(self, best: Best | None) -> bool:
        """Whether the mean reward is higher than the best one so far, if there is one."""
        return best is None or self.mean_reward > best.mean_reward

    def to_json(self) -> dict[str, object]:
        """Return the results as plain data, without the single episodes."""
        return {
            "episodes": self.episodes,
            "mean_reward": self.mean_reward,
            "std_reward": self.std_reward,
            "reward_interval": _as_list(self.reward_interval),
            "success_rate": self.success_rate,
            "success_interval": _as_list(self.success_interval),
            "mean_length": self.mean_length,
            "deterministic": self.deterministic,
            "q_minus_return": self.q_minus_return,
            "endings": self.endings,
            "variables": {name: asdict(value) for name, value in self.variables.items()},
            "by_start_state": _by_start_state_json(self.by_start_state),
        }


def joined_evaluations(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return evaluations of one policy, played in the same way, as a single one."""

    def all_of(name: str) -> tuple[Any, ...]:
        return tuple(chain.from_iterable(getattr(each, name) for each in evaluations))

    counts = zip(*(each.action_counts for each in evaluations), strict=True)
    return Evaluation(
        deterministic=evaluations[0].deterministic,
        rewards=all_of("rewards"),
        lengths=all_of("lengths"),
        successes=all_of("successes"),
        start_states=all_of("start_states"),
        action_counts=tuple(map(sum, counts)),
        seconds=sum(each.seconds for each in evaluations),
        ended=all_of("ended"),
        ends=all_of("ends"),
    )


class EvaluationInterrupted(Exception):  # noqa: N818 - not an error
    """The run was asked to stop during an evaluation, which can be played again."""


def evaluate(
    policy: PolicyPredictor,
    vec_env: VecEnv,
    *,
    episodes: int,
    deterministic: bool,
    seed: int,
    stop: StopRequest | None = None,
    values: Values | None = None,
    is_time_over: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Play whole episodes, without any effect on a training in the same process.

    The same seed gives the same start states, idle frames and drawn actions.

    Args:
        values: the returns that the policy expects, to be compared with those that it gets.
        is_time_over: asked at each timestep; once it is True, the episodes that have ended are all.

    Raises:
        EvaluationInterrupted: a stop was requested during the evaluation.
    """
    onlooker = _Onlooker(stop, values, vec_env.action_space, is_time_over)
    started = time.monotonic()
    vec_env.seed(seed)
    with torch_threads(1), drawing_from(seed):
        rewards, lengths = _played(policy, vec_env, onlooker, episodes, deterministic=deterministic)
    return Evaluation(
        deterministic=deterministic,
        rewards=tuple(map(float, rewards)),  # which are numpy's, without a Monitor
        lengths=tuple(map(int, lengths)),
        successes=tuple(onlooker.successes),
        start_states=tuple(onlooker.start_states),
        q_minus_return=onlooker.q_minus_return,
        action_counts=tuple(onlooker.action_counts),
        seconds=time.monotonic() - started,
        ended=tuple(onlooker.ended),
        ends=tuple(onlooker.ends),
        unfinished=tuple(onlooker.unfinished),
    )


def _played(
    policy: PolicyPredictor,
    vec_env: VecEnv,
    onlooker: "_Onlooker",
    episodes: int,
    *,
    deterministic: bool,
) -> tuple[list[float], list[int]]:
    """Play with SB3's function; return rewards and lengths in the order of the episodes' ends."""
    try:
        rewards, lengths = evaluate_policy(
            policy,
            vec_env,
            n_eval_episodes=episodes,
            deterministic=deterministic,
            return_episode_rewards=True,
            callback=onlooker,
        )
    except _TimeOver as over:
        return over.rewards, over.lengths
    assert isinstance(rewards, list) and isinstance(lengths, list)  # noqa: PT018 - both come from one call
    return rewards, lengths


@dataclass(frozen=True, kw_only=True)
class EvaluationGames:
    """The games that every evaluation of a run plays, so that their results are comparable.

    Attributes:
        ways: values of `deterministic`; all episodes are played once with each.
    """

    vec_env: VecEnv
    episodes: int
    ways: tuple[bool, ...]
    seed: int
    stop: StopRequest | None = None
    values: Values | None = None

    def play(self, policy: PolicyPredictor) -> tuple[Evaluation, ...]:
        """Play one evaluation for each of `ways`, all with the same seed.

        Raises:
            EvaluationInterrupted: a stop was requested during the evaluation.
        """
        return tuple(
            evaluate(
                policy,
                self.vec_env,
                episodes=self.episodes,
                deterministic=deterministic,
                seed=self.seed,
                stop=self.stop,
                values=self.values,
            )
            for deterministic in self.ways
        )


def better_of(played: Sequence[Evaluation]) -> Evaluation:
    """Return the first, unless another is better by more than the difference's standard error."""
    best = played[0]
    for other in played[1:]:
        if other.mean_reward - best.mean_reward > standard_error_of_difference(best, other):
            best = other
    return best


def standard_error_of_difference(one: Evaluation, other: Evaluation) -> float:
    """Return the standard error of the difference of the mean rewards.

    It is sqrt(s1^2 / n1 + s2^2 / n2) with sample variances, and infinite if one evaluation has a
    single episode, whose variance is unknown.
    """
    if min(one.episodes, other.episodes) < 2:
        return inf
    variances = (np.var(e.rewards, ddof=1, dtype=np.float64) / e.episodes for e in (one, other))
    return sqrt(sum(map(float, variances)))


class _TimeOver(Exception):  # noqa: N818 - not an error
    """The time of an evaluation is over; has the results of the episodes that have ended."""

    def __init__(self, rewards: list[float], lengths: list[int]) -> None:
        super().__init__()
        self.rewards = rewards
        self.lengths = lengths


class _Onlooker:
    """Callback of SB3's evaluate_policy, called after each timestep of each env."""

    def __init__(
        self,
        stop: StopRequest | None,
        values: Values | None,
        actions: Space[Any],
        is_time_over: Callable[[], bool],
    ) -> None:
        self.unfinished: list[float] = []
        self._is_time_over = is_time_over
        self.successes: list[bool] = []
        self.action_counts = [0] * int(actions.n) if isinstance(actions, Discrete) else []
        self.ended: list[EndedEpisode] = []
        self.ends: list[EpisodeEnd] = []
        self.start_states: list[str] = []
        self._stop = stop
        self._values = values
        self._expected: dict[int, float] = {}  # of each env's present episode
        self._returns: dict[int, float] = {}
        self._discounts: dict[int, float] = {}
        self._differences: list[float] = []

    @property
    def q_minus_return(self) -> float | None:
        return float(np.mean(self._differences)) if self._differences else None

    def __call__(self, local: dict[str, Any], _: dict[str, Any]) -> None:
        if self._stop is not None and self._stop.is_asked:
            raise EvaluationInterrupted
        if self._is_time_over():
            self.unfinished = [float(each) for each in local["current_rewards"]]
            raise _TimeOver(local["episode_rewards"], local["episode_lengths"])
        # an episode counts only until its env has played its share of the episodes
        counted = local["episode_counts"][local["i"]] < local["episode_count_targets"][local["i"]]
        if counted and self.action_counts:
            self.action_counts[local["actions"][local["i"]]] += 1
        if self._values is not None:
            self._compare(self._values, local, counted=counted)
        if not (local["done"] and counted):
            return
        if is_logged(local["info"]):
            self.ended.append(ended_episode(local["i"], local["info"]))
        self.start_states.append(str(local["info"].get("start_state", "")))
        self.ends.append(_end_of(local["info"]))
        success = local["info"].get("is_success")
        if success is not None:
            self.successes.append(bool(success))

    def _compare(self, values: Values, local: dict[str, Any], *, counted: bool) -> None:
        env = local["i"]
        if env not in self._expected:
            observation = rows_of(local["observations"], slice(env, env + 1))
            self._expected[env] = float(values.of(observation)[0])
            self._returns[env] = 0.0
            self._discounts[env] = 1.0
        self._returns[env] += self._discounts[env] * values.reward(local["rewards"], env)
        self._discounts[env] *= values.gamma
        if local["done"]:
            if counted:
                self._differences.append(self._expected[env] - self._returns[env])
            del self._expected[env]


def _end_of(info: Mapping[str, Any]) -> EpisodeEnd:
    without = LOCKED_UP if "lock_up" in info else LIMIT_REACHED
    variables = {str(name): float(value) for name, value in info.get("game", {}).items()}
    return EpisodeEnd(str(info.get("ending", without)), variables, str(info.get(OVER_AT_START, "")))


def evaluated_event(
    evaluation: Evaluation,
    *,
    timesteps: int,
    policy_timesteps: int,
    is_best: bool = False,
    is_final: bool = False,
) -> Evaluated:
    return Evaluated(
        timesteps=timesteps,
        policy_timesteps=policy_timesteps,
        deterministic=evaluation.deterministic,
        episodes=evaluation.episodes,
        mean_reward=evaluation.mean_reward,
        std_reward=evaluation.std_reward,
        success_rate=evaluation.success_rate,
        mean_length=evaluation.mean_length,
        action_counts=evaluation.action_counts,
        seconds=round(evaluation.seconds, 3),
        is_best=is_best,
        is_final=is_final,
        by_start_state=evaluation.by_start_state,
    )


def _as_list(interval: tuple[float, float] | None) -> list[float] | None:
    return None if interval is None else list(interval)


def _by_start_state_json(
    results: Mapping[str, StartStateResult] | None,
) -> dict[str, dict[str, object]] | None:
    if results is None:
        return None
    return {
        name: {
            "episodes": result.episodes,
            "mean_reward": result.mean_reward,
            "success_rate": result.success_rate,
        }
        for name, result in results.items()
    }
