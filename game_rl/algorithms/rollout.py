"""The vec steps of a rollout: some envs play while the network chooses actions for others."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.buffers.layout import Feed, Transitions, how_episodes_ended
from game_rl.envs.observation import Observation, ObservationFormat, rows_of
from game_rl.schedules import RestartingRamp
from game_rl.vec_env.frame_stacks import Packed, PackedFrames, each_part, packed_frames
from game_rl.vec_env.halved_vec_env import HalvedVecEnv, Outcome


class Decision(NamedTuple):
    """The network's output for a batch of observations, one row for each."""

    actions: NDArray[np.int64]
    values: torch.Tensor
    log_probs: torch.Tensor


Decide = Callable[[Any, slice, NDArray[np.bool_]], Decision]
"""Takes a batch of observations, an array or a dict of parts; the rows of its envs; and in which of
them an episode begins, bool [batch]."""


class VecStep(NamedTuple):
    """One vec step of all envs.

    Attributes:
        frames: newest frame of each observation decided on, packed, uint8 [n_envs, row_bytes].
        next_frames: the frames that followed, with the true last frame where an episode ended.
        terminated: bool [n_envs], True where the game was over.
        truncated: bool [n_envs], True where a limit was hit; never both.
    """

    decision: Decision
    outcome: Outcome
    frames: Packed
    next_frames: Packed
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


def plays_in_halves(env: VecEnv) -> bool:
    """Whether actions are chosen for one half of the envs after the other."""
    return isinstance(env, HalvedVecEnv) or getattr(env, "rows_in_turn", None) is not None


def vec_steps(
    env: VecEnv,
    observations: Observation,
    decide: Decide,
    n_steps: int,
    *,
    begins: NDArray[np.bool_],
    observation_format: ObservationFormat,
) -> Iterator[VecStep]:
    """Play `n_steps` vec steps, and yield each with its frames packed by `observation_format`.

    On a HalvedVecEnv a half gets its next actions as soon as it has played. It then plays on
    without waiting for the other half, and while the caller handles the vec step. Each action is
    chosen for the half's newest observation, and at the end both halves have played `n_steps`.
    `decide` is called for the first half and then for the second. So it is on a training's vec
    env with one worker, so that the number of workers has no effect on what is learned. On any
    other vec env it is called once for all envs.

    The frames of a HalvedVecEnv are packed by its workers if they use the same format. All others
    are packed here.

    Args:
        begins: in which envs an episode begins with `observations`, bool [n_envs].

    Raises:
        ValueError: a frame has a value that the format cannot hold.
    """
    if isinstance(env, HalvedVecEnv):
        steps = _overlapped(env, observations, begins, decide, n_steps)
    elif (halves := getattr(env, "rows_in_turn", None)) is not None:
        steps = _in_turn(env, halves, observations, begins, decide, n_steps)
    else:
        steps = _one_by_one(env, observations, begins, decide, n_steps)
    source = env if isinstance(env, HalvedVecEnv) and env.packing == observation_format else None
    before = source.packed_frames(observations) if source else None
    frames = _newest(observations, observation_format) if before is None else before.shown
    for decision, outcome in steps:
        packed = source.packed_frames(outcome[0]) if source else None
        if packed is None:
            packed = _packed(outcome, observation_format)
        _, _, dones, infos = outcome
        ends = how_episodes_ended(dones, infos)
        yield VecStep(decision, outcome, frames, packed.reached, *ends)
        frames = packed.shown


def _packed(outcome: Outcome, observation_format: ObservationFormat) -> PackedFrames:
    observations, _, dones, infos = outcome
    last_frames = {}
    for number in np.flatnonzero(dones).tolist():
        last = each_part(lambda array: array[None], infos[number]["terminal_observation"])
        last_frames[number] = _newest(last, observation_format)[0]
    return packed_frames(_newest(observations, observation_format), last_frames)


def _newest(observations: Observation, observation_format: ObservationFormat) -> Packed:
    return observation_format.pack(observation_format.newest(observations))


def _one_by_one(
    env: VecEnv,
    observations: Observation,
    begins: NDArray[np.bool_],
    decide: Decide,
    n_steps: int,
) -> Iterator[tuple[Decision, Outcome]]:
    rows = slice(0, env.num_envs)
    for _ in range(n_steps):
        decision = decide(observations, rows, begins)
        observations, rewards, begins, infos = env.step(decision.actions)  # type: ignore[assignment]  # no tuple
        yield decision, (observations, rewards, begins, infos)


def _in_turn(
    env: VecEnv,
    halves: Sequence[slice],
    observations: Observation,
    begins: NDArray[np.bool_],
    decide: Decide,
    n_steps: int,
) -> Iterator[tuple[Decision, Outcome]]:
    """Choose the actions that `_overlapped` chooses, in the same order, and play all envs."""

    def decided(observations: Observation, begins: NDArray[np.bool_]) -> Decision:
        first, second = (decide(rows_of(observations, rows), rows, begins[rows]) for rows in halves)
        return _joined(first, second)

    decision = decided(observations, begins)
    for step in range(n_steps):
        observations, rewards, dones, infos = env.step(decision.actions)  # type: ignore[assignment]  # no tuple
        ahead = decided(observations, dones) if step + 1 < n_steps else decision
        yield decision, (observations, rewards, dones, infos)
        decision = ahead


def _overlapped(
    env: HalvedVecEnv,
    observations: Observation,
    begins: NDArray[np.bool_],
    decide: Decide,
    n_steps: int,
) -> Iterator[tuple[Decision, Outcome]]:
    def begun(
        half: VecMonitor,
        rows: slice,
        observations: Any,  # noqa: ANN401
        begins: NDArray[np.bool_],
    ) -> Decision:
        decision = decide(observations, rows, begins)
        half.step_async(decision.actions)
        return decision

    halves = list(zip(env.halves, env.bounds, strict=True))
    decisions = [
        begun(half, rows, rows_of(observations, rows), begins[rows]) for half, rows in halves
    ]
    for step in range(n_steps):
        outcomes: list[Outcome] = []
        next_decisions: list[Decision] = []
        for half, rows in halves:
            outcome = half.step_wait()
            outcomes.append(outcome)
            if step + 1 < n_steps:
                next_decisions.append(begun(half, rows, outcome[0], outcome[2]))
        yield _joined(*decisions), env.joined(*outcomes)
        decisions = next_decisions


def _joined(first: Decision, second: Decision) -> Decision:
    return Decision(
        np.concatenate((first.actions, second.actions)),
        torch.cat((first.values, second.values)),
        torch.cat((first.log_probs, second.log_probs)),
    )


def feed_vec_step(feeds: Sequence[Feed], observations: Observation, step: VecStep) -> None:
    """Append a vec step to each of `feeds`.

    Args:
        observations: those for which the actions of `step` were chosen.
        step: the vec step, with the rewards as the envs gave them.
    """
    transitions = Transitions(
        observations,
        step.frames,
        step.decision.actions,
        step.outcome[1],
        step.next_frames,
        step.terminated,
        step.truncated,
    )
    for feed in feeds:
        feed.append(transitions)


class EpsilonGreedy:
    """Replaces a scheduled share of actions by random ones, independently for each env.

    Args:
        epsilon: share of random actions at a timestep, counted over all envs.
        n_actions: size of the action space.
        rng: draws which actions are replaced, and by what.
    """

    def __init__(
        self, epsilon: RestartingRamp, *, n_actions: int, rng: np.random.Generator
    ) -> None:
        self.epsilon = epsilon
        self._n_actions = n_actions
        self._rng = rng

    def explored(self, actions: NDArray[np.int64], epsilon: float) -> NDArray[np.int64]:
        """Replace each action with probability `epsilon` by a uniform one; int64 [n_envs]."""
        drawn = self._rng.integers(self._n_actions, size=len(actions))
        return np.where(self._rng.random(len(actions)) < epsilon, drawn, actions)

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable."""
        return {"rng": json.dumps(self._rng.bit_generator.state)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._rng.bit_generator.state = json.loads(state["rng"])
