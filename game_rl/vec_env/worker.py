"""An environment process: the messages that it understands, and what it does with each.

One message each way for each command, however many envs the worker has. A request is a pickled
`Request`; its answer is a pickled `Reply`, or a `Failure`, after which the worker leaves. What
every step moves (observations, actions, rewards) goes through `SharedArrays`. A closed pipe means
that nobody needs the worker any more.

This module stays free of torch and stable_baselines3: a worker is to cost 60 MB, not 230. The same
holds for the `__main__` of the program, which Python imports again in every worker: so `train.py`
and the CLI import torch inside functions.
"""

import enum
import math
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler, recv_handle
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from game_rl.errors import GameRLError
from game_rl.vec_env.shared_arrays import SharedArrays

Env = gym.Env[Any, Any]


class Command(enum.Enum):
    """What a worker can be asked for; the arguments of each, and its result for each env."""

    START = "start"  # never sent: what the greeting of a new worker answers
    BUILD = (
        "build"  # (pickled list of env functions) -> Spaces of the worker's first env, not per env
    )
    ATTACH = "attach"  # (n_envs, n_rows, Spaces), then the file descriptor -> None
    RESET = "reset"  # (seed or None by env, options by env) -> reset info
    STEP = "step"  # () -> StepReport, or None if there is nothing to say
    RENDER = "render"  # () -> picture
    GET_ATTR = "get_attr"  # (name) -> value
    HAS_ATTR = "has_attr"  # (name) -> bool
    SET_ATTR = "set_attr"  # (name, value) -> None
    CALL = "call"  # (method name, arguments, keyword arguments) -> what it returns
    IS_WRAPPED = "is_wrapped"  # (module and qualified name of a wrapper class) -> bool


@dataclass(frozen=True, slots=True)
class Request:
    command: Command
    envs: Sequence[int]  # numbers within the whole vec env; results come in this order
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """`result` is a list with one entry for each env, or None if all entries are None."""

    result: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception, in plain strings, so that it can always be pickled.

    `user_error` is the class of game_rl.errors that the exception belongs to, if any.
    """

    env: int | None
    exception: str
    message: str
    traceback: str
    user_error: type[GameRLError] | None


@dataclass(frozen=True, slots=True)
class Spaces:
    observation: spaces.Space[Any]
    action: spaces.Space[Any]


@dataclass(frozen=True, slots=True)
class StepReport:
    """`info` has terminal_observation if the episode ended; `reset_info` is None if it did not."""

    info: dict[str, Any]
    reset_info: dict[str, Any] | None


def pack(message: Request | Reply | Failure) -> bytes:
    return bytes(ForkingPickler.dumps(message))


NOTHING_TO_SAY = pack(Reply(None))


def run_worker(connection: Connection, first_env: int) -> None:
    """Greet, then answer requests until the pipe closes or something fails."""
    # Ctrl-C reaches the whole process group; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    worker = _Worker(connection, first_env)
    message, failed = NOTHING_TO_SAY, False
    try:
        while not failed:
            connection.send_bytes(message)
            message, failed = worker.answer(connection.recv_bytes())
        connection.send_bytes(message)  # the Failure
    except (EOFError, OSError):
        pass  # the parent closed the pipe
    finally:
        worker.close()


def _leave_with_parent() -> None:
    """End this process even if an env hangs at the moment its parent is killed.

    PR_SET_PDEATHSIG would not do: in its sense the parent is the forkserver, which stays as long
    as it has children.
    """
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Worker:
    def __init__(self, connection: Connection, first_env: int) -> None:
        self._connection = connection
        self._first_env = first_env
        self._envs: list[Env] = []
        self._arrays: SharedArrays | None = None
        self._current_env: int | None = None
        self._per_env: dict[Command, Callable[..., Any]] = {
            Command.RESET: self._reset,
            Command.STEP: self._step,
            Command.RENDER: lambda number: self._env(number).render(),
            Command.GET_ATTR: lambda number, name: self._env(number).get_wrapper_attr(name),
            Command.HAS_ATTR: lambda number, name: self._env(number).has_wrapper_attr(name),
            Command.SET_ATTR: lambda number, name, value: setattr(self._env(number), name, value),
            Command.CALL: self._call,
            Command.IS_WRAPPED: lambda number, *wrapper: _is_wrapped(self._env(number), wrapper),
        }

    def answer(self, message: bytes) -> tuple[bytes, bool]:
        """The packed answer, and whether it is a Failure."""
        try:
            result = self._obey(pickle.loads(message))  # noqa: S301 - from our own parent
            return (NOTHING_TO_SAY if result is None else pack(Reply(result))), False
        except BaseException as error:  # noqa: BLE001 - SystemExit, EOFError: all must reach the user
            return pack(_failure(error, self._current_env)), True

    def close(self) -> None:
        """Close the envs; nobody listens any more, so trouble goes to stderr."""
        for env in self._envs:
            try:
                env.close()
            except Exception:  # noqa: BLE001 - the other envs must be closed too
                traceback.print_exc()

    def _obey(self, request: Request) -> object:
        if request.command is Command.BUILD:
            return self._build(*request.arguments)
        if request.command is Command.ATTACH:
            self._attach(*request.arguments)
            return None
        act = self._per_env[request.command]
        results = []
        for number in request.envs:
            self._current_env = number
            results.append(act(number, *request.arguments))
        self._current_env = None
        return None if all(result is None for result in results) else results

    def _build(self, pickled_env_fns: bytes) -> Spaces:
        first: Spaces | None = None
        for number, env_fn in enumerate(pickle.loads(pickled_env_fns), self._first_env):  # noqa: S301
            self._current_env = number
            env = env_fn()
            self._envs.append(env)
            spaces_ = Spaces(env.observation_space, env.action_space)
            first = first or spaces_
            if spaces_ != first:
                raise ValueError(
                    f"its spaces {spaces_} are not those of env {self._first_env}, {first}"
                )
        self._current_env = None
        assert first is not None
        return first

    def _attach(self, n_envs: int, n_rows: int, spaces_: Spaces) -> None:
        file_descriptor = recv_handle(self._connection)
        self._arrays = SharedArrays(
            file_descriptor,
            n_envs=n_envs,
            n_rows=n_rows,
            observation_space=spaces_.observation,
            action_space=spaces_.action,
        )
        os.close(file_descriptor)

    def _env(self, number: int) -> Env:
        return self._envs[number - self._first_env]

    def _shared(self) -> SharedArrays:
        assert self._arrays is not None
        return self._arrays

    def _reset(
        self, number: int, seeds: dict[int, int | None], options: dict[int, Any]
    ) -> dict[str, Any]:
        asked = {"options": options[number]} if options[number] else {}
        observation, info = self._env(number).reset(seed=seeds[number], **asked)
        self._store(number, observation)
        return info

    def _step(self, number: int) -> StepReport | None:
        """One timestep; where an episode ends, the next one begins at once.

        The stored observation is then the first of the next episode.
        """
        arrays = self._shared()
        env = self._env(number)
        observation, reward, terminated, truncated, info = env.step(arrays.actions[number].copy())
        if not math.isfinite(reward):
            raise ValueError(f"the reward is {reward}; check the reward terms of the game")
        arrays.rewards[number] = reward
        arrays.terminated[number] = terminated
        arrays.truncated[number] = truncated
        if not (terminated or truncated):
            self._store(number, observation)
            return StepReport(info, None) if info else None
        last_observation = np.array(observation)  # a copy: reset() may reuse the env's own array
        next_observation, reset_info = env.reset()
        self._store(number, next_observation)
        return StepReport({**info, "terminal_observation": last_observation}, reset_info)

    def _store(self, number: int, observation: object) -> None:
        """Copy into the shared row; NumPy alone would broadcast and cast without a word."""
        arrays = self._shared()
        place = arrays.observations[arrays.row[0], number]
        array = np.asarray(observation)
        if array.shape != place.shape or array.dtype != place.dtype:
            raise ValueError(
                f"the observation is {array.dtype} {array.shape}, "
                f"its space says {place.dtype} {place.shape}"
            )
        place[...] = array

    def _call(
        self, number: int, method: str, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        return self._env(number).get_wrapper_attr(method)(*args, **kwargs)


def _is_wrapped(env: Env, wrapper: tuple[str, str]) -> bool:
    """Like SB3's is_wrapped, but by name: to unpickle its Monitor class would import torch."""
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
