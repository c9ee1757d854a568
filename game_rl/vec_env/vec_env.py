"""SB3's SubprocVecEnv with several envs in a worker, shared memory, stacks, errors that arrive."""

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import cloudpickle
import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from game_rl.errors import WorkerError
from game_rl.vec_env.frame_stacks import FrameStacks, stacked_space
from game_rl.vec_env.shared_arrays import SharedArrays, nameless_file
from game_rl.vec_env.worker import Command, Request, Spaces, StepReport
from game_rl.vec_env.worker_pool import StartMethod, WorkerPool

Infos = list[dict[str, Any]]
Indices = int | Iterable[int] | None


class SharedMemoryVecEnv(SubprocVecEnv):
    """A drop-in SubprocVecEnv: same seeds and actions, same observations, rewards, dones and infos.

    Differences: rewards are float32, as DummyVecEnv's; an observation that is not what its space
    says, a reward that is not finite and an env with other spaces are errors; `remotes` and
    `work_remotes` do not exist; an observation is one array, no dict or tuple of arrays.

    Whatever `reset` and `step_wait` return belongs to the caller. After an error everything is
    closed, and calls other than `close` raise WorkerError. After a KeyboardInterrupt the workers
    are still there and answer the next call.

    Args:
        env_fns: one for each env; they travel by cloudpickle, those of one worker together, so that
            what they share (a ROM) is sent and held once. Nothing they import may import torch.
        frame_stack: observations are stacks of so many frames, as VecFrameStack(self, frame_stack,
            channels_order="first") would give; more than one only of uint8 pictures [C, H, W].
        n_workers: processes; each has a contiguous block of envs. None: one for each env.
        timeout_s: how long a worker may take for one command.
        start_method: forkserver lets workers share the memory of what they import.

    Raises:
        ValueError: `frame_stack` is more than 1 and the observations are no pictures.
        WorkerError: an env could not be built, or its spaces differ.
        GameRLError: an env's constructor raised one.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gym.Env[Any, Any]]],
        *,
        frame_stack: int = 1,
        n_workers: int | None = None,
        timeout_s: float = 60.0,
        start_method: StartMethod = "forkserver",
    ) -> None:
        self.waiting = False
        n_envs = len(env_fns)
        self._blocks = _contiguous_blocks(n_envs, min(n_workers or n_envs, n_envs))
        self._worker_of = [worker for worker, envs in enumerate(self._blocks) for _ in envs]
        self._pool = WorkerPool(self._blocks, timeout_s=timeout_s, start_method=start_method)
        self.processes = self._pool.processes
        try:
            spaces_ = self._build_envs(env_fns)
            observation_space = stacked_space(spaces_.observation, frame_stack)
            self._arrays = self._share_arrays(n_envs, frame_stack + 1, spaces_)
            self._stacks = FrameStacks(self._arrays.observations)
            # Not SubprocVecEnv's: it would start its own processes.
            VecEnv.__init__(self, n_envs, observation_space, spaces_.action)
        except BaseException:
            self.close()
            raise

    @property
    def closed(self) -> bool:  # type: ignore[override]  # a plain attribute in SB3
        return not self._pool.is_open

    def close(self) -> None:
        self._pool.close()

    def reset(self) -> NDArray[Any]:
        self.waiting = False
        seeds = dict(enumerate(self._seeds))
        options = dict(enumerate(self._options))
        self.reset_infos = self._ask(Command.RESET, None, seeds, options)
        self._reset_seeds()
        self._reset_options()
        self._stacks.begin_episode(slice(None))
        return self._stacks.all()

    def step_async(self, actions: NDArray[Any]) -> None:
        actions = np.asarray(actions)
        if actions.shape != self._arrays.actions.shape:
            raise ValueError(f"actions are {actions.shape}, not {self._arrays.actions.shape}")
        np.copyto(self._arrays.actions, actions, casting="same_kind")
        self._stacks.turn()
        self._arrays.row[0] = self._stacks.newest
        self._pool.request(
            {worker: Request(Command.STEP, envs) for worker, envs in enumerate(self._blocks)}
        )
        self.waiting = True

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], Infos]:
        reports = self._pool.collect()
        self.waiting = False
        arrays = self._arrays
        time_limits = (arrays.truncated & ~arrays.terminated).tolist()
        infos: Infos = [{"TimeLimit.truncated": time_limit} for time_limit in time_limits]
        for worker, worker_reports in reports.items():
            for number, report in zip(self._blocks[worker], worker_reports or (), strict=False):
                if report is not None:
                    self._take_in(number, report, infos)
        dones = arrays.terminated | arrays.truncated
        return self._stacks.all(), arrays.rewards.copy(), dones, infos

    def _take_in(self, number: int, report: StepReport, infos: Infos) -> None:
        info = infos[number] = {**report.info, **infos[number]}
        if report.reset_info is not None:
            self.reset_infos[number] = report.reset_info
            last_frame = info["terminal_observation"]
            info["terminal_observation"] = self._stacks.ending_with(number, last_frame)
            self._stacks.begin_episode(number)

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        return self._ask(Command.GET_ATTR, indices, attr_name)

    def set_attr(self, attr_name: str, value: object, indices: Indices = None) -> None:
        self._ask(Command.SET_ATTR, indices, attr_name, value)

    def has_attr(self, attr_name: str) -> bool:
        return all(self._ask(Command.HAS_ATTR, None, attr_name))

    def env_method(
        self,
        method_name: str,
        *method_args: object,
        indices: Indices = None,
        **method_kwargs: object,
    ) -> list[Any]:
        return self._ask(Command.CALL, indices, method_name, method_args, method_kwargs)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        name = (wrapper_class.__module__, wrapper_class.__qualname__)
        return self._ask(Command.IS_WRAPPED, indices, *name)

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"no images: render_mode is {self.render_mode}, not rgb_array", stacklevel=2
            )
            return [None] * self.num_envs
        return self._ask(Command.RENDER, None)

    def _ask(self, command: Command, indices: Indices, *arguments: object) -> list[Any]:
        """One result for each index, in their order."""
        numbers = [range(self.num_envs)[index] for index in self._get_indices(indices)]
        asked: dict[int, list[int]] = {}
        for number in numbers:
            asked.setdefault(self._worker_of[number], []).append(number)
        results = self._pool.exchange(
            {worker: Request(command, envs, arguments) for worker, envs in asked.items()}
        )
        by_worker = {
            worker: iter(results[worker] or [None] * len(envs)) for worker, envs in asked.items()
        }
        return [next(by_worker[self._worker_of[number]]) for number in numbers]

    def _build_envs(self, env_fns: Sequence[Callable[[], gym.Env[Any, Any]]]) -> Spaces:
        results = self._pool.exchange(
            {
                worker: Request(
                    Command.BUILD, envs, (cloudpickle.dumps([env_fns[number] for number in envs]),)
                )
                for worker, envs in enumerate(self._blocks)
            }
        )
        for worker, spaces_ in results.items():
            if spaces_ != results[0]:
                raise WorkerError(
                    f"env {self._blocks[worker][0]} has {spaces_}, but env 0 has {results[0]}"
                )
        first: Spaces = results[0]
        return first

    def _share_arrays(self, n_envs: int, n_rows: int, spaces_: Spaces) -> SharedArrays:
        file_descriptor = nameless_file()
        try:
            arrays = SharedArrays(
                file_descriptor,
                n_envs=n_envs,
                n_rows=n_rows,
                observation_space=spaces_.observation,
                action_space=spaces_.action,
            )
            request = Request(Command.ATTACH, (), (n_envs, n_rows, spaces_))
            workers = range(len(self._blocks))
            self._pool.request(dict.fromkeys(workers, request), file_descriptor=file_descriptor)
            self._pool.collect()
        finally:
            os.close(file_descriptor)
        return arrays


def _contiguous_blocks(n_envs: int, n_workers: int) -> list[range]:
    """Blocks in order whose sizes differ by one at most."""
    bounds = [worker * n_envs // n_workers for worker in range(n_workers + 1)]
    return [range(first, end) for first, end in itertools.pairwise(bounds)]
