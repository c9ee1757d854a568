"""The worker process: answers requests (see `worker_protocol`) until its pipe is closed.

This module must not import torch or stable_baselines3: a worker should take 60 MB, not 230. The
same holds for the program's `__main__`, which Python imports again in every worker. This is why
`train.py` and `game_rl.__main__` import the command line (10 MB) only where they call it.
"""

import contextlib
import functools
import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import SCREEN, Observation, ObservationFormat, rows_of
from game_rl.errors import GameRLError
from game_rl.live.live_writer import SlotWriter, draw_next, open_live_file, shown_step
from game_rl.system.output import keep_output_harmless
from game_rl.system.processes import (
    CAN_FORK,
    KILLED,
    free_children_to_import,
    ignore_signals,
    let_others_finish,
    yield_core,
)
from game_rl.system.shared_memory import NamedMemory, NamelessMemory, SharedMemory
from game_rl.vec_env.frame_stacks import Arrays, each_part, part_items
from game_rl.vec_env.worker_protocol import (
    NOTHING_TO_SAY,
    Attachment,
    Channel,
    Failure,
    LiveSlots,
    Reply,
    Request,
    SharedArrays,
    Spaces,
    StepReport,
    WorkerCommand,
    channel_of,
    pack,
    unpack_request,
)

Env = gym.Env[Any, Any]


# A sleeping process wakes up late: on an idle virtual machine, waking two workers took 65 us of
# every vec step. It took 8 us when they polled instead, yielding their core to others. Without a
# network to evaluate, the training process sends the next step sooner than this limit. With one it
# takes longer, and polling would only waste the core.
_SHORT_WAIT_S = 500e-6

_LARGEST_REWARD = float(np.finfo(np.float32).max)


def run_worker(connection: Connection, first_env: int) -> None:
    """Send a greeting, then answer requests until the pipe closes or a request fails."""
    # Ctrl-C and the signals of a terminal and of a batch system reach the whole process group. The
    # parent decides what they mean, and needs its workers to save the run.
    ignore_signals("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
    free_children_to_import()
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    let_others_finish()
    keep_output_harmless()  # a reward in Python may print
    worker = Worker(first_env, functools.partial(recv_handle, connection))
    channel = channel_of(connection)
    message = pack(NOTHING_TO_SAY)
    failed = False
    waits_are_short = False
    try:
        while not failed:
            channel.send(message)
            waits_are_short = _wait(channel, awake=waits_are_short)
            message, failed = worker.answer(channel.take())
        channel.send(message)  # the Failure
    except (EOFError, OSError):
        pass  # the parent closed the pipe
    finally:
        worker.close()


def _wait(channel: Channel, *, awake: bool) -> bool:
    """Wait for a message; return whether it came soon, as the next one may then come soon too."""
    start = time.perf_counter()
    while awake and not channel.is_ready() and time.perf_counter() - start < _SHORT_WAIT_S:
        yield_core()
    channel.is_ready(None)
    return time.perf_counter() - start < _SHORT_WAIT_S


def _leave_with_parent() -> None:
    """Exit when the parent has ended, even if an env hangs at that moment.

    PR_SET_PDEATHSIG does not help: the parent in its sense is the forkserver, which lives as long
    as it has children.
    """
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class Worker:
    """The envs of a worker, from `first_env` on, and its answers to requests.

    Args:
        receive_descriptor: function that returns the file descriptor that follows an ATTACH for
            memory without a name.
    """

    def __init__(self, first_env: int, receive_descriptor: Callable[[], int]) -> None:
        self._first_env = first_env
        self._receive_descriptor = receive_descriptor
        self._envs: list[Env] = []
        self._numbers = range(first_env, first_env)
        self._arrays: SharedArrays  # from ATTACH on
        self._packing: ObservationFormat | None = None
        self._live: dict[int, SlotWriter] = {}
        self._live_file: int | None = None
        self._current_env: int | None = None
        self._per_env: dict[WorkerCommand, Callable[..., Any]] = {
            WorkerCommand.RESET: self._reset,
            WorkerCommand.LOAD_STATE: self._load_state,
            WorkerCommand.RENDER: lambda number: self._env(number).render(),
            WorkerCommand.GET_ATTR: lambda number, name: self._env(number).get_wrapper_attr(name),
            WorkerCommand.HAS_ATTR: lambda number, name: self._env(number).has_wrapper_attr(name),
            WorkerCommand.SET_ATTR: lambda number, name, value: setattr(
                self._env(number), name, value
            ),
            WorkerCommand.CALL: lambda number, method, args, kwargs: self._env(
                number
            ).get_wrapper_attr(method)(*args, **kwargs),
            WorkerCommand.IS_WRAPPED: lambda number, *wrapper: _is_wrapped(
                self._env(number), wrapper
            ),
        }

    def answer(self, message: bytes) -> tuple[bytes, bool]:
        """Return the packed answer, and whether it is a Failure."""
        try:
            result = self._obey(unpack_request(message))
            return pack(NOTHING_TO_SAY if result is None else Reply(result)), False
        except BaseException as error:  # noqa: BLE001 - SystemExit, EOFError: all must reach the user
            return pack(_failure(error, self._current_env)), True

    def close(self) -> None:
        """Close the envs; the pipe is closed by now, so exceptions go to stderr."""
        self._stop_showing()
        for env in self._envs:
            try:
                env.close()
            except Exception:  # noqa: BLE001 - the other envs must be closed too
                traceback.print_exc()

    def _obey(self, request: Request) -> object:
        if request.command is WorkerCommand.STEP:
            reports = self._for_each(self._numbers, self._step, *request.arguments)
            self._pack_all()
            return reports
        if request.command is WorkerCommand.SHOW_IN:
            self._show_in(*request.arguments)
            return None
        if request.command is WorkerCommand.BUILD:
            return self._build(*request.arguments)
        if request.command is WorkerCommand.ATTACH:
            self._attach(*request.arguments)
            return None
        results = self._for_each(request.envs, self._per_env[request.command], *request.arguments)
        if request.command is WorkerCommand.RESET:
            self._pack_all()
        return results

    def _for_each(
        self, numbers: Sequence[int], act: Callable[..., object], *arguments: object
    ) -> list[object] | None:
        results = []
        for number in numbers:
            self._current_env = number
            results.append(act(number, *arguments))
        self._current_env = None
        return None if all(result is None for result in results) else results

    def _build(self, pickled_env_fns: bytes) -> Spaces:
        self.close()  # the envs of a BUILD whose answer an interrupt left unread
        self._envs.clear()
        first: Spaces | None = None
        for number, env_fn in enumerate(pickle.loads(pickled_env_fns), self._first_env):  # noqa: S301
            self._current_env = number
            env = env_fn()
            self._envs.append(env)
            self._numbers = range(self._first_env, number + 1)
            spaces_ = Spaces(env.observation_space, env.action_space)
            first = first or spaces_
            if spaces_ != first:
                raise ValueError(
                    f"its spaces {spaces_} are not those of env {self._first_env}, {first}"
                )
        self._current_env = None
        assert first is not None
        return first

    def _attach(self, attachment: Attachment) -> None:
        memory: SharedMemory
        if attachment.memory_name is None:
            memory = NamelessMemory(self._receive_descriptor())
        else:
            memory = NamedMemory(attachment.memory_name)
        self._arrays = SharedArrays(memory, attachment)
        self._packing = attachment.packing
        memory.close()

    def _show_in(self, slots: LiveSlots) -> None:
        """Open the live file; without it, nothing is shown."""
        self._stop_showing()
        with contextlib.suppress(OSError):
            self._live_file = open_live_file(slots.path)
            self._live = {
                number: SlotWriter(self._live_file, slots.layout, slots.first + number)
                for number in self._numbers
            }

    def _stop_showing(self) -> None:
        self._live = {}
        if self._live_file is not None:
            os.close(self._live_file)
            self._live_file = None

    def _env(self, number: int) -> Env:
        return self._envs[number - self._first_env]

    def _reset(
        self, number: int, seeds: dict[int, int | None], options: dict[int, Any]
    ) -> dict[str, Any]:
        asked = {"options": options[number]} if options[number] else {}
        observation, info = self._env(number).reset(seed=seeds[number], **asked)
        self._store(number, observation)
        return info

    def _step(self, number: int, shown: int | None = None) -> StepReport | None:
        """Play one timestep; if the episode ends, begin the next one at once.

        The stored observation is then the first one of the next episode.

        Args:
            shown: number of the timestep, if it is to be shown in the live file.
        """
        arrays = self._arrays
        env = self._env(number)
        if shown is not None:
            draw_next(_game(env))
        observation, reward, terminated, truncated, info = env.step(self._action(number))
        if shown is not None:
            picture = shown_step(_game(env))
            if self._live:
                action = int(self._action(number))
                self._live[number].write(picture, observation, action=action, timestep=shown)
        if not abs(float(reward)) <= _LARGEST_REWARD:  # or NaN
            raise ValueError(f"the reward is {reward}; check the reward terms of the game")
        arrays.rewards[number] = reward
        arrays.terminated[number] = terminated
        arrays.truncated[number] = truncated
        if not (terminated or truncated):
            self._store(number, observation)
            return StepReport(info, None) if info else None
        if self._live:
            self._live[number].episode += 1
        last_observation = self._copied(number, observation)  # reset() may reuse the env's array
        last_frame = None if self._packing is None else _packed(self._packing, last_observation)
        next_observation, reset_info = env.reset()
        self._store(number, next_observation)
        info = {**info, "terminal_observation": last_observation}
        return StepReport(info, reset_info, last_frame)

    def _pack_all(self) -> None:
        """Pack the frames of all envs together, in a quarter of the time that one by one takes."""
        if self._packing is None:
            return
        arrays = self._arrays
        numbers = self._numbers
        *rows, packed_row = arrays.rows.tolist()
        envs = slice(numbers.start, numbers.stop)
        frames = _newest(arrays.observations, rows, envs)
        try:
            arrays.packed[packed_row, envs] = self._packing.pack(frames)
        except ValueError:
            for place, self._current_env in enumerate(numbers):
                _packed(self._packing, rows_of(frames, place))

    def _action(self, number: int) -> Any:  # noqa: ANN401
        """Return a copy of an env's action, which belongs to the env."""
        actions = self._arrays.actions
        if isinstance(actions, np.ndarray):
            return actions[number].copy()
        return each_part(lambda part: part[number].copy(), actions)

    def _store(self, number: int, observation: object) -> None:
        """Copy into the shared rows, with checks: NumPy would broadcast and cast silently."""
        rings = self._arrays.observations
        rows = self._arrays.rows
        if isinstance(rings, np.ndarray):
            place = rings[rows[0], number, ...]  # a view, of 0-d too
            place[...] = _checked(observation, place)
            return
        parts = _parts_of(observation, rings)
        for row, (key, ring) in zip(rows.tolist(), part_items(rings), strict=False):
            place = ring[row, number, ...]
            place[...] = _checked(parts[key], place, key)

    def _copied(self, number: int, observation: object) -> Arrays:
        """Return a copy of an observation, with the checks of `_store`."""
        rings = self._arrays.observations
        if isinstance(rings, np.ndarray):
            return np.array(_checked(observation, rings[0, number]))
        parts = _parts_of(observation, rings)
        copies = {
            key: np.array(_checked(parts[key], ring[0, number], key))
            for key, ring in part_items(rings)
        }
        return copies if isinstance(rings, dict) else tuple(copies.values())  # type: ignore[return-value]  # keys are strings

    def _load_state(self, number: int, states: dict[int, object]) -> None:
        self._env(number).get_wrapper_attr("load_state")(states[number])


def _game(env: Env) -> GameBoyEnv:
    """Return the game inside of custom wrappers."""
    game = env.unwrapped
    assert isinstance(game, GameBoyEnv)
    return game


def _checked(observation: object, place: Any, key: str | int | None = None) -> NDArray[Any]:  # noqa: ANN401
    """Return an observation, or its part `key`, as an array that fits into `place`."""
    array = np.asarray(observation)
    if array.shape != place.shape or array.dtype != place.dtype:
        what = "the observation" if key is None else f"part {key!r} of the observation"
        raise ValueError(
            f"{what} is {array.dtype} {array.shape}, its space says {place.dtype} {place.shape}"
        )
    return array


def _parts_of(observation: object, rings: Arrays) -> Any:  # noqa: ANN401
    """Return an observation that has the parts of its space, and no others."""
    if isinstance(rings, tuple):
        if isinstance(observation, tuple) and len(observation) == len(rings):
            return observation
        raise ValueError(
            f"the observation is {_described(observation)}, its space says a tuple of {len(rings)}"
        )
    assert isinstance(rings, dict)
    if not isinstance(observation, Mapping):
        raise ValueError(
            f"the observation is {_described(observation)}, its space says a dict of "
            + ", ".join(map(repr, rings))
        )
    if observation.keys() != rings.keys():
        missing = [key for key in rings if key not in observation]
        other = [key for key in observation if key not in rings]
        fault = f"lacks the part {missing[0]!r}" if missing else f"has the part {other[0]!r}"
        raise ValueError(f"the observation {fault}, its space says " + ", ".join(map(repr, rings)))
    return observation


def _described(observation: object) -> str:
    if isinstance(observation, tuple):
        return f"a tuple of {len(observation)}"
    return f"a {type(observation).__name__}"


def _newest(rings: Arrays, rows: list[int], envs: slice) -> Observation:
    """Return the rows that were written last, as views."""
    if isinstance(rings, np.ndarray):
        frames: NDArray[Any] = rings[rows[0], envs]
        return frames
    assert isinstance(rings, dict)
    return {key: ring[row, envs] for row, (key, ring) in zip(rows, rings.items(), strict=True)}


def _packed(packing: ObservationFormat, frame: Any) -> NDArray[np.uint8]:  # noqa: ANN401
    try:
        return packing.pack(frame)
    except ValueError as error:
        raise ValueError(f"{error}{_way_out(packing, frame)}") from None


def _way_out(packing: ObservationFormat, frame: Any) -> str:  # noqa: ANN401
    """Return what to do where it is the screen that cannot be packed."""
    if packing.screen is not None:
        try:
            packing.screen.pack(frame[SCREEN] if packing.is_dict else frame)
        except ValueError:
            return (
                "; if the game shows more than four shades of grey, set hardware: cgb in its "
                "game.yaml"
            )
    return ""


def _is_wrapped(env: Env, wrapper: tuple[str, str]) -> bool:
    """Compare wrappers by name: unpickling SB3's Monitor class, say, would import torch."""
    while isinstance(env, gym.Wrapper):
        if any((base.__module__, base.__qualname__) == wrapper for base in type(env).__mro__):
            return True
        env = env.env
    return False


def _failure(error: BaseException, env: int | None) -> Failure:
    ours = (base for base in type(error).__mro__ if base.__module__ == GameRLError.__module__)
    return Failure(
        env=env,
        exception=type(error).__qualname__,
        message=str(error),
        traceback="".join(traceback.format_exception(error)),
        user_error=next(ours, None),
    )


StartMethod = Literal["forkserver", "spawn", "in_process"]

USUAL_START_METHOD: StartMethod = "forkserver" if CAN_FORK else "spawn"
default_start_method: ContextVar[StartMethod] = ContextVar(
    "start method", default=USUAL_START_METHOD
)


@contextlib.contextmanager
def workers_in_process() -> Iterator[None]:
    """Give vec envs that are made in the block workers in this process, unless they say else."""
    token = default_start_method.set("in_process")
    try:
        yield
    finally:
        default_start_method.reset(token)


class InProcessWorker:
    """A fake of a `WorkerProcess` and of its process, which `kill` ends without a trace.

    It calls the worker's own code in this process, so it gives the same bytes and starts in no
    time, for tests and for a debugger's breakpoints in an env. It answers a message as soon as it
    is sent. What needs a process is missing: an env that hangs or crashes takes this process with
    it, Ctrl-C in an env is an exception of the env, and nothing runs in parallel.
    """

    pid = None

    def __init__(self, first_env: int) -> None:
        self.exitcode: int | None = None
        self._descriptors: list[int] = []
        self._worker: Worker | None = Worker(first_env, self._descriptors.pop)
        self._answers = [pack(NOTHING_TO_SAY)]  # the greeting

    @property
    def process(self) -> "InProcessWorker":
        return self

    def send(self, message: bytes, *, file_descriptor: int | None = None) -> None:
        if self._worker is None:
            raise BrokenPipeError
        if file_descriptor is not None:
            self._descriptors.append(os.dup(file_descriptor))
        self._answers.append(self._worker.answer(message)[0])

    def is_heard(self) -> bool:
        return True

    def receive(self, timeout_s: float) -> bytes:  # noqa: ARG002 - the answer is there
        if self._worker is None:
            raise EOFError
        return self._answers.pop()

    def hang_up(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._end(0)

    def kill(self) -> None:
        if self._worker is not None:
            self._end(KILLED)

    def join(self, timeout: float | None = None) -> None:
        pass

    def is_alive(self) -> bool:
        return self._worker is not None

    def _end(self, exitcode: int) -> None:
        self._worker = None
        self.exitcode = exitcode
