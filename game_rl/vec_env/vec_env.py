"""A SubprocVecEnv with several envs per worker, shared memory and frame stacks.

Exceptions in a worker reach the caller with their traceback.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from game_rl.envs.packing import FramePacking
from game_rl.vec_env.frame_stacks import (
    FrameStacks,
    Packed,
    PackedFrames,
    packed_frames,
    stacked_space,
)
from game_rl.vec_env.in_process_worker import InProcessWorker, StartMethod
from game_rl.vec_env.worker_protocol import (
    STEP,
    Attachment,
    Request,
    Spaces,
    StepReport,
    WorkerCommand,
)
from game_rl.vec_env.workers import EnvFn, WorkerDeath, Workers

Infos = list[dict[str, Any]]
Indices = int | Iterable[int] | None

_NO_INFO: Mapping[str, Any] = MappingProxyType({})


class SharedMemoryVecEnv(SubprocVecEnv):
    """A drop-in SubprocVecEnv: same seeds and actions, same observations, rewards, dones and infos.

    It differs from SB3's class in five ways:
    - Rewards are float32, as in DummyVecEnv.
    - An observation that does not match its space, a reward that is not finite and an env whose
      spaces differ from the others' are errors.
    - `remotes` and `work_remotes` do not exist.
    - An observation is a single array, never a dict or tuple of arrays.
    - Workers are not forked from this process, whose threads may hold locks.

    Arrays that `reset` and `step_wait` return belong to the caller. After an error the vec env is
    closed, and calls other than `close` raise WorkerError. After a KeyboardInterrupt the workers
    are still alive and answer the next call.

    A worker that dies is replaced (see `Workers`), and the next step ends the episodes of its envs:
    the reward is 0, the episode is truncated, `terminal_observation` is the last observation seen,
    and the info has `worker_restarted` and the entries of `lost_info`. New episodes have begun by
    then. Their seed comes from the env's last seed of `seed()` and the number of times that the
    worker has died. The other envs are not affected.

    Args:
        env_fns: one function for each env. They are sent by cloudpickle, those of one worker
            together, so an object that they share (a ROM) is sent and held once. Nothing they
            import may import torch.
        frame_stack: number of frames in an observation, stacked as by VecFrameStack(self,
            frame_stack, channels_order="first"). Above 1, observations must be uint8 pictures
            [C, H, W].
        packing: format in which workers also pack each frame, or None not to pack. A frame that
            cannot be packed without loss counts as an exception of its env.
        n_workers: number of processes, each with a contiguous block of envs; None for one per env.
        timeout_s: seconds that a worker may take for one command.
        lost_info: entries for the infos of episodes that end because their worker died.
        start_method: "forkserver", with which workers share the memory of the modules they import,
            "spawn", or "in_process" for a fake (see `in_process_worker`). None is "forkserver" on
            Linux and "spawn" elsewhere, except in a block of `workers_in_process`.

    Attributes:
        packed_frames: the packed frames of the last `reset`, `step_wait` or `load_states`; None
            without `packing`. They lie in memory shared with the workers: the next `reset` or the
            second `step_async` from then on overwrites them.
        allocate: function that makes the arrays for observations; None means np.empty.

    Raises:
        ValueError: `frame_stack` is more than 1 and the observations are not pictures, the
            packing does not fit the frames, or the start method is "fork" or unknown.
        WorkerError: an env could not be built, or its spaces differ.
        GameRLError: an env's constructor raised one.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        frame_stack: int = 1,
        packing: FramePacking | None = None,
        n_workers: int | None = None,
        timeout_s: float = 60.0,
        lost_info: Mapping[str, Any] = _NO_INFO,
        start_method: StartMethod | None = None,
    ) -> None:
        self.waiting = False
        self.packing = packing
        self.packed_frames: PackedFrames | None = None
        self.allocate: Callable[[], NDArray[Any]] | None = None
        self._lost_info = lost_info
        n_envs = len(env_fns)
        self._workers = Workers(
            env_fns, n_workers=n_workers or n_envs, timeout_s=timeout_s, start_method=start_method
        )
        blocks = self._workers.blocks
        self._worker_of = [worker for worker, envs in enumerate(blocks) for _ in envs]
        self._last_seeds: list[int | None] = [None] * n_envs
        try:
            spaces = self._workers.build()
            observation_space = stacked_space(spaces.observation, frame_stack)
            _check_packing(packing, spaces)
            attachment = Attachment(n_envs, frame_stack + 1, spaces, packing)
            self._arrays = self._workers.attach(attachment)
            self._stacks = FrameStacks(self._arrays.observations)
            # Not SubprocVecEnv's: it would start its own processes.
            VecEnv.__init__(self, n_envs, observation_space, spaces.action)
        except BaseException:
            self.close()
            raise

    @property
    def processes(self) -> list[BaseProcess | InProcessWorker]:  # type: ignore[override]  # an attribute in SB3
        return self._workers.processes

    @property
    def closed(self) -> bool:  # type: ignore[override]  # an attribute in SB3
        return not self._workers.is_open

    @property
    def worker_deaths(self) -> Sequence[WorkerDeath]:
        """The death of each worker that was replaced, oldest first."""
        return tuple(self._workers.deaths.noted)

    def close(self) -> None:
        self._workers.close()

    def reset(self) -> NDArray[Any]:
        self.waiting = False
        self._last_seeds = [
            last if seed is None else seed
            for seed, last in zip(self._seeds, self._last_seeds, strict=True)
        ]
        answers = self._workers.exchange(self._reset_request)
        self.reset_infos = [info for worker in sorted(answers) for info in answers[worker]]
        self._workers.lost.clear()
        self._reset_seeds()
        self._reset_options()
        self._stacks.begin_episode(slice(None))
        self._take_packed({})
        return self._observations()

    def step_async(self, actions: NDArray[Any]) -> None:
        actions = np.asarray(actions)
        if actions.shape != self._arrays.actions.shape:
            raise ValueError(f"actions are {actions.shape}, not {self._arrays.actions.shape}")
        np.copyto(self._arrays.actions, actions, casting="same_kind")
        self._stacks.turn()
        self._arrays.rows[:] = self._stacks.newest, 1 - self._arrays.rows[1]
        self._workers.request(self._step_request)
        self.waiting = True

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], Infos]:
        answers = self._workers.collect(self._step_request)
        self.waiting = False
        self._workers.deaths.vec_steps += 1
        last_frames: dict[int, Packed] = {}
        if any(answers.values()):
            dones, infos, last_frames = self._take_in_reports(answers)
        else:  # no episode has ended
            dones = np.zeros(self.num_envs, np.bool_)
            infos = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        self._take_packed(last_frames)
        return self._observations(), self._arrays.rewards.copy(), dones, infos

    def _take_in_reports(
        self, answers: Mapping[int, Any]
    ) -> tuple[NDArray[np.bool_], Infos, dict[int, Packed]]:
        """Return a vec step's dones and infos, and the last frames of episodes that ended."""
        for worker in self._workers.lost:
            self._cut_short(self._workers.blocks[worker])
        arrays = self._arrays
        time_limits = (arrays.truncated & ~arrays.terminated).tolist()
        infos: Infos = [{"TimeLimit.truncated": time_limit} for time_limit in time_limits]
        last_frames: dict[int, Packed] = {}
        for worker, answer in answers.items():
            take_in = self._take_in_loss if worker in self._workers.lost else self._take_in
            for number, report in zip(self._workers.blocks[worker], answer or (), strict=False):
                if report is not None:
                    last_frames |= take_in(number, report, infos[number])
        self._workers.lost.clear()
        return arrays.terminated | arrays.truncated, infos, last_frames

    @property
    def last_seeds(self) -> Sequence[int | None]:
        """The last seed of each env, from which the seeds after worker deaths are derived."""
        return tuple(self._last_seeds)

    def save_states_async(self) -> None:
        """Start a call of every env's `save_state`; `save_states_wait` returns the results."""
        self._workers.request(self._save_request)

    def save_states_wait(self) -> list[Any] | None:
        """Return each env's state, or None if a worker has died, which the next step reports."""
        answers = self._workers.collect(self._save_request)
        if self._workers.lost:
            return None
        return [state for worker in sorted(answers) for state in answers[worker]]

    def load_states(
        self, states: Sequence[Any], observations: NDArray[Any], seeds: Sequence[int | None]
    ) -> None:
        """Call `load_state` of every env; the next call must be `step_async`.

        Args:
            states: states from `save_states_wait`, of as many envs with the same spaces.
            observations: the observations that `reset` or `step_wait` had returned last.
            seeds: the value of `last_seeds` at that time.
        """

        def request(worker: int) -> Request:
            envs = self._workers.blocks[worker]
            return Request(WorkerCommand.LOAD_STATE, envs, ({n: states[n] for n in envs},))

        self._workers.exchange(request)
        self._workers.lost.clear()
        self._stacks.restore(observations)
        if self.packing is not None:
            frames = self._arrays.observations[self._stacks.newest]
            self._packed_row()[:] = self.packing.pack(frames)
        self._take_packed({})
        self._last_seeds = list(seeds)
        self._reset_seeds()

    def _save_request(self, worker: int) -> Request:
        return Request(WorkerCommand.CALL, self._workers.blocks[worker], ("save_state", (), {}))

    def _cut_short(self, envs: range) -> None:
        """Overwrite these envs' rows, in which a dead worker may have left anything."""
        block = slice(envs.start, envs.stop)
        self._arrays.rewards[block] = 0
        self._arrays.terminated[block] = False
        self._arrays.truncated[block] = True

    def _take_in(self, number: int, report: StepReport, info: dict[str, Any]) -> dict[int, Packed]:
        """Take in an env's report; return its last packed frame if the episode has ended."""
        for name, value in report.info.items():
            info.setdefault(name, value)
        if report.reset_info is not None:
            self.reset_infos[number] = report.reset_info
            last_frame = info["terminal_observation"]
            info["terminal_observation"] = self._stacks.ending_with(number, last_frame)
            self._stacks.begin_episode(number)
        return {} if report.last_frame is None else {number: report.last_frame}

    def _take_in_loss(
        self, number: int, reset_info: dict[str, Any], info: dict[str, Any]
    ) -> dict[int, Packed]:
        info["terminal_observation"] = self._stacks.before(number)
        info["worker_restarted"] = True
        info |= self._lost_info
        self.reset_infos[number] = reset_info
        self._stacks.begin_episode(number)
        return {number: self._packed_row(before=1)[number].copy()}

    def _observations(self) -> NDArray[Any]:
        return self._stacks.all(None if self.allocate is None else self.allocate())

    def _take_packed(self, last_frames: dict[int, Packed]) -> None:
        if self.packing is not None:
            self.packed_frames = packed_frames(self._packed_row(), last_frames)

    def _packed_row(self, *, before: Literal[0, 1] = 0) -> Packed:
        """Return the packed newest frames, or with `before` those one step older."""
        packed: Packed = self._arrays.packed[self._arrays.rows[1] ^ before]
        return packed

    def _step_request(self, worker: int) -> Request:
        if worker not in self._workers.lost:
            return STEP
        envs = self._workers.blocks[worker]
        seeds = {number: self._restart_seed(number) for number in envs}
        return Request(WorkerCommand.RESET, envs, (seeds, dict.fromkeys(envs)))

    def _reset_request(self, worker: int) -> Request:
        envs = self._workers.blocks[worker]
        seeds = {number: self._seeds[number] for number in envs}
        if worker in self._workers.lost:
            seeds = {n: self._restart_seed(n) if s is None else s for n, s in seeds.items()}
        return Request(WorkerCommand.RESET, envs, (seeds, {n: self._options[n] for n in envs}))

    def _restart_seed(self, number: int) -> int | None:
        """Derive a new seed: the old one might bring back the episode that killed the worker."""
        seed = self._last_seeds[number]
        if seed is None:
            return None
        deaths = self._workers.deaths.count(self._worker_of[number])
        return int(np.random.SeedSequence((seed, deaths)).generate_state(1)[0])

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        return self._ask(WorkerCommand.GET_ATTR, indices, attr_name)

    def set_attr(self, attr_name: str, value: object, indices: Indices = None) -> None:
        self._ask(WorkerCommand.SET_ATTR, indices, attr_name, value)

    def has_attr(self, attr_name: str) -> bool:
        return all(self._ask(WorkerCommand.HAS_ATTR, None, attr_name))

    def env_method(
        self,
        method_name: str,
        *method_args: object,
        indices: Indices = None,
        **method_kwargs: object,
    ) -> list[Any]:
        return self._ask(WorkerCommand.CALL, indices, method_name, method_args, method_kwargs)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:
        name = (wrapper_class.__module__, wrapper_class.__qualname__)
        return self._ask(WorkerCommand.IS_WRAPPED, indices, *name)

    def get_images(self) -> Sequence[NDArray[Any] | None]:
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"no images: render_mode is {self.render_mode}, not rgb_array", stacklevel=2
            )
            return [None] * self.num_envs
        return self._ask(WorkerCommand.RENDER, None)

    def _ask(self, command: WorkerCommand, indices: Indices, *arguments: object) -> list[Any]:
        """Send a command to the envs' workers; return one result for each index, in order."""
        numbers = [range(self.num_envs)[index] for index in self._get_indices(indices)]
        asked: dict[int, list[int]] = {}
        for number in numbers:
            asked.setdefault(self._worker_of[number], []).append(number)
        requests = {worker: Request(command, envs, arguments) for worker, envs in asked.items()}
        answers = self._workers.exchange(requests.get)
        by_worker = {
            worker: iter(answers[worker] or [None] * len(envs)) for worker, envs in asked.items()
        }
        return [next(by_worker[self._worker_of[number]]) for number in numbers]


def _check_packing(packing: FramePacking | None, spaces: Spaces) -> None:
    shape = spaces.observation.shape
    if packing is not None and packing.shape != shape:
        raise ValueError(f"the packing is for frames {packing.shape}, not {shape}")
