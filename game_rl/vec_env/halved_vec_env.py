"""Two vec envs that SB3 sees as one: one plays while actions are chosen for the other."""

import functools
import heapq
import itertools
from collections.abc import Iterable, Sequence
from multiprocessing.process import BaseProcess
from operator import methodcaller
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv, VecMonitor

from game_rl.vec_env.frame_stacks import Arrays, PackedFrames, each_part, in_parts, joined_frames
from game_rl.vec_env.vec_env import Indices, Infos, SharedMemoryVecEnv
from game_rl.vec_env.worker import InProcessWorker
from game_rl.vec_env.workers import WorkerDeath

Outcome = tuple[Any, NDArray[np.float32], NDArray[np.bool_], Infos]
"""Observations (`Arrays`), rewards, dones and infos of a vec step."""


class HalvedVecEnv(SubprocVecEnv):
    """The envs of `first`, followed by those of `second`, each half with its own workers.

    To SB3 this is one SubprocVecEnv inside a VecMonitor. Code that knows about the halves can step
    each one alone (`halves[i].step_async`, `halves[i].step_wait`): while one half plays, the
    actions of the other can be chosen. The vec env owns both halves and closes them.

    Attributes:
        halves: the two halves, each wrapped in a VecMonitor, so their infos have episode returns.
        bounds: for each half, the slice of its rows in a batch of all envs.
        packing: packing of `packed_frames`, or None if the halves do not pack the same way.
    """

    def __init__(self, first: SharedMemoryVecEnv, second: SharedMemoryVecEnv) -> None:
        self._parts = (first, second)
        self.halves = (VecMonitor(first), VecMonitor(second))
        self.bounds = (slice(0, first.num_envs), slice(first.num_envs, None))
        n_envs = first.num_envs + second.num_envs
        self._newest: Arrays | None = None
        self.packing = first.packing if first.packing == second.packing else None
        batches = each_part(functools.partial(_Batches, n_envs), in_parts(first.observation_space))
        for part, bounds in zip(self._parts, self.bounds, strict=True):
            part.allocate = functools.partial(each_part, methodcaller("rows", bounds), batches)
        # Not SubprocVecEnv's: it would start its own processes.
        VecEnv.__init__(self, n_envs, first.observation_space, first.action_space)

    @property
    def processes(self) -> list[BaseProcess | InProcessWorker]:  # type: ignore[override]  # an attribute in SB3
        return [process for part in self._parts for process in part.processes]

    @property
    def closed(self) -> bool:  # type: ignore[override]  # an attribute in SB3
        return any(part.closed for part in self._parts)

    @property
    def waiting(self) -> bool:  # type: ignore[override]  # an attribute in SB3
        return any(part.waiting for part in self._parts)

    @property
    def worker_deaths(self) -> Sequence[WorkerDeath]:
        """Deaths of workers in both halves, oldest first."""
        return tuple(heapq.merge(*(part.worker_deaths for part in self._parts)))

    def packed_frames(self, observations: object) -> PackedFrames | None:
        """Return the packed frames of `observations`, in new arrays.

        Returns:
            The frames, or None if the halves do not pack, or if `observations` is not the object
            that `reset`, `step_wait` or `joined` returned last.
        """
        first, second = (part.packed_frames for part in self._parts)
        if first is None or second is None or observations is not self._newest:
            return None
        return joined_frames(first, second)

    def close(self) -> None:
        for part in self._parts:
            part.close()

    def reset(self) -> Arrays:
        for half, bounds in zip(self.halves, self.bounds, strict=True):
            half.venv._seeds = self._seeds[bounds]
            half.venv._options = self._options[bounds]
        observations = [half.reset() for half in self.halves]
        self.reset_infos = self._joined(part.reset_infos for part in self._parts)
        self._reset_seeds()
        self._reset_options()
        newest: Arrays = each_part(_as_one, *observations)
        self._newest = newest
        return newest

    def step_async(self, actions: Any) -> None:  # noqa: ANN401
        for half, bounds in zip(self.halves, self.bounds, strict=True):
            half.step_async(actions[bounds])

    def step_wait(self) -> Outcome:
        return self.joined(*(half.step_wait() for half in self.halves))

    def joined(self, first: Outcome, second: Outcome) -> Outcome:
        """Join the results of both halves' `step_wait` into one vec step."""
        self.reset_infos = self._joined(part.reset_infos for part in self._parts)
        self._newest = each_part(_as_one, first[0], second[0])
        return (
            self._newest,
            np.concatenate((first[1], second[1])),
            np.concatenate((first[2], second[2])),
            [*first[3], *second[3]],
        )

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        return self._ask("get_attr", indices, attr_name)

    def set_attr(self, attr_name: str, value: object, indices: Indices = None) -> None:
        self._ask("set_attr", indices, attr_name, value)

    def has_attr(self, attr_name: str) -> bool:
        return all(part.has_attr(attr_name) for part in self._parts)

    def env_method(
        self,
        method_name: str,
        *method_args: object,
        indices: Indices = None,
        **method_kwargs: object,
    ) -> list[Any]:
        return self._ask("env_method", indices, method_name, *method_args, **method_kwargs)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        return self._ask("env_is_wrapped", indices, wrapper_class)

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        return self._joined(part.get_images() for part in self._parts)

    def _ask(self, method: str, indices: Indices, *args: object, **kwargs: object) -> list[Any]:
        """Call a method of both parts; return one result for each index, in order."""
        numbers = [range(self.num_envs)[index] for index in self._get_indices(indices)]
        answers: dict[int, Any] = {}
        for part, bounds in zip(self._parts, self.bounds, strict=True):
            mine = [number for number in numbers if number in range(self.num_envs)[bounds]]
            local = [number - bounds.start for number in mine]
            results = getattr(part, method)(*args, indices=local, **kwargs)
            answers |= zip(mine, results or [None] * len(mine), strict=True)
        return [answers[number] for number in numbers]

    @staticmethod
    def _joined(lists: Iterable[Iterable[Any]]) -> list[Any]:
        return list(itertools.chain.from_iterable(lists))


class _Batches:
    """Arrays for all envs in which each half writes its own rows, which saves joining them."""

    def __init__(self, n_envs: int, space: spaces.Space[Any]) -> None:
        assert space.shape is not None
        self._shape = (n_envs, *space.shape)
        self._dtype = space.dtype
        self._batch = np.empty(0)
        self._given: list[slice] = []

    def rows(self, bounds: slice) -> NDArray[Any]:
        """Return a half's rows of the batch that the other half began, or else of a new batch."""
        if len(self._given) != 1 or bounds in self._given:
            self._batch = np.empty(self._shape, self._dtype)
            self._given = []
        self._given.append(bounds)
        rows: NDArray[Any] = self._batch[bounds]
        return rows


def _as_one(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the batch that both arrays are rows of, or a new one if they are not of the same."""
    batch = first.base
    n_envs = len(first) + len(second)
    if isinstance(batch, np.ndarray) and batch is second.base and len(batch) == n_envs:
        return batch
    return np.concatenate((first, second))
