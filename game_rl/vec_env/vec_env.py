"""A SubprocVecEnv with several envs per worker, shared memory and frame stacks.

Exceptions in a worker reach the caller with their traceback.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from types import MappingProxyType
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv

from game_rl.envs.observation import ObservationFormat
from game_rl.vec_env.frame_stacks import (
    Arrays,
    FrameStack,
    Packed,
    PackedFrames,
    packed_frames,
    part_items,
    stack_sizes,
    stacked_space,
    stacks_in,
)
from game_rl.vec_env.worker import InProcessWorker, StartMethod
from game_rl.vec_env.worker_protocol import (
    STEP,
    Attachment,
    LiveSlots,
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

    An observation is an array, or a dict or a tuple of arrays for a Dict or a Tuple space.

    It differs from SB3's class in four ways:
    - Rewards are float32, as in DummyVecEnv.
    - An observation that does not match its space, a reward that is not finite and an env whose
      spaces differ from the others' are errors.
    - `remotes` and `work_remotes` do not exist.
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
            [C, H, W], or dicts of boxes. For those it may be a number for each part, by name; the
            others are not stacked.
        packing: format in which workers also pack each frame into a row, or None not to pack. A
            frame that cannot be packed without loss counts as an exception of its env.
        n_workers: number of processes, each with a contiguous block of envs; None for one per env.
        timeout_s: seconds that a worker may take for one command.
        lost_info: entries for the infos of episodes that end because their worker died.
        start_method: "forkserver", with which workers share the memory of the modules they import,
            "spawn", or "in_process" for a fake (see `InProcessWorker`). None is "forkserver" on
            Linux and "spawn" elsewhere, except in a block of `workers_in_process`.

    Attributes:
        packed_frames: the packed frames of the last `reset`, `step_wait` or `load_states`; None
            without `packing`. They lie in memory shared with the workers: the next `reset` or the
            second `step_async` from then on overwrites them.
        allocate: function that makes the arrays for observations, in parts if they have parts;
            None means np.empty.
        rows_in_turn: rows of a batch for which actions are chosen one after another, as for the
            halves of a HalvedVecEnv; None: for all envs at once.

    Raises:
        ValueError: `frame_stack` is more than 1 and the observations are not pictures, it has a
            part that does not exist or cannot be stacked, the packing does not fit the frames, or
            the start method is "fork" or unknown.
        TypeError: a space, or a part of one, is not an array of a fixed shape.
        WorkerError: an env could not be built, or its spaces differ.
        GameRLError: an env's constructor raised one.
    """

    def __init__(
        self,
        env_fns: Sequence[EnvFn],
        *,
        frame_stack: FrameStack = 1,
        packing: ObservationFormat | None = None,
        n_workers: int | None = None,
        timeout_s: float = 60.0,
        lost_info: Mapping[str, Any] = _NO_INFO,
        start_method: StartMethod | None = None,
    ) -> None:
        self.waiting = False
        self.packing = packing
        self.packed_frames: PackedFrames | None = None
        self.allocate: Callable[[], Arrays] | None = None
        self.rows_in_turn: tuple[slice, slice] | None = None
        self._lost_info = lost_info
        self._step = self._next_step = STEP
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
            sizes = part_items(stack_sizes(spaces.observation, frame_stack))
            n_rows = tuple(size + 1 for _, size in sizes)
            self._arrays = self._workers.attach(Attachment(n_envs, n_rows, spaces, packing))
            self._stacks = stacks_in(self._arrays.observations)
            # Not SubprocVecEnv's: it would start its own processes.
            VecEnv.__init__(self, n_envs, observation_space, spaces.action)
        except BaseException:
            self.close()
            raise

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a vec env cannot be copied or pickled, as its envs play in processes of their own; "
            "make another one with make_vec_env(config)"
        )

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

    def reset(self) -> Arrays:
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

    def step_async(self, actions: Any) -> None:  # noqa: ANN401
        """Begin a vec step.

        Args:
            actions: [n_envs, *action shape]; for a Dict or a Tuple space, an action for each env.
        """
        if isinstance(self._arrays.actions, np.ndarray):
            _copy_actions(self._arrays.actions, actions)
        else:
            for key, part in part_items(self._arrays.actions):
                _copy_actions(part, [action[key] for action in actions])
        self._stacks.turn()
        self._arrays.rows[:] = *self._stacks.newest_rows, 1 - self._arrays.rows[-1]
        self._step = self._next_step
        self._next_step = STEP
        self._workers.request(self._step_request)
        self.waiting = True

    def step_wait(self) -> tuple[Arrays, NDArray[np.float32], NDArray[np.bool_], Infos]:
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
        arrays = self._arrays
        for worker in self._workers.lost:
            envs = self._workers.blocks[worker]
            block = slice(envs.start, envs.stop)
            arrays.rewards[block] = 0  # the dead worker may have left anything
            arrays.terminated[block] = False
            arrays.truncated[block] = True
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

    def show_in(self, live: LiveSlots) -> None:
        """Let the workers write shown timesteps to the run's live file; see `show_next_step`."""
        self._workers.show_in(live)

    @property
    def vec_steps(self) -> int:
        """The vec steps so far, without one that is under way."""
        return self._workers.deaths.vec_steps

    def show_next_step(self) -> int:
        """Let all envs show the vec step that the next `step_async` begins; return its number."""
        number = self.vec_steps + (2 if self.waiting else 1)
        self._next_step = Request(WorkerCommand.STEP, (), (number,))
        return number

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
        self,
        states: Sequence[Any],
        observations: Any,  # noqa: ANN401
        seeds: Sequence[int | None],
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
            self._packed_row()[:] = self.packing.pack(self._stacks.newest_frames)  # type: ignore[arg-type]  # no tuple
        self._take_packed({})
        self._last_seeds = list(seeds)
        self._reset_seeds()

    def _save_request(self, worker: int) -> Request:
        return Request(WorkerCommand.CALL, self._workers.blocks[worker], ("save_state", (), {}))

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

    def _observations(self) -> Arrays:
        out: Any = None if self.allocate is None else self.allocate()
        return self._stacks.all(out)

    def _take_packed(self, last_frames: dict[int, Packed]) -> None:
        if self.packing is not None:
            self.packed_frames = packed_frames(self._packed_row(), last_frames)

    def _packed_row(self, *, before: Literal[0, 1] = 0) -> Packed:
        """Return the packed newest frames, or with `before` those one step older."""
        packed: Packed = self._arrays.packed[self._arrays.rows[-1] ^ before]
        return packed

    def _step_request(self, worker: int) -> Request:
        if worker not in self._workers.lost:
            return self._step
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


def _copy_actions(shared: NDArray[Any], actions: Any) -> None:  # noqa: ANN401
    actions = np.asarray(actions)
    if actions.shape != shared.shape:
        raise ValueError(f"actions are {actions.shape}, not {shared.shape}")
    np.copyto(shared, actions, casting="same_kind")


def _check_packing(packing: ObservationFormat | None, spaces: Spaces) -> None:
    if packing is None:
        return
    if packing.is_dict:
        if spaces.observation != packing.frame_space:
            raise ValueError(
                f"the packing is for frames {packing.frame_space}, not {spaces.observation}"
            )
    elif packing.frame_shape != spaces.observation.shape:
        shape = spaces.observation.shape
        raise ValueError(f"the packing is for frames {packing.frame_shape}, not {shape}")
