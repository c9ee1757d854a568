"""The processes that play the trips of an exploration."""

import multiprocessing
import os
import pickle
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, Union, cast

from game_rl.errors import GameRLError, WorkerError
from game_rl.explore.archive import CellRecord, CellScore, Find, Trip
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.explore.trip import Explorer
from game_rl.games.cell import Cell
from game_rl.games.definition import Game
from game_rl.system.output import keep_output_harmless
from game_rl.system.processes import (
    CAN_FORK,
    changed_environment,
    free_children_to_import,
    ignore_signals,
    let_others_finish,
    python_variables,
    short_temporary_folder,
    signal_name,
)

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext  # Windows lacks the first

Context = Union["ForkServerContext", "SpawnContext"]
_LEAVE_TIMEOUT_S = 2.0


class _Job(NamedTuple):
    """A trip to play: its number in the round, and the packed state from which it begins."""

    number: int
    state: bytes


class _Request(NamedTuple):
    """What a process is to play; without jobs, the beginning of the episode.

    Attributes:
        known: pickled scores of all known cells.
    """

    seed: tuple[int, ...] = ()
    jobs: Sequence[_Job] = ()
    known: bytes = b""


class ExploringProcesses:
    """Processes with an `Explorer` each. Use it as a context manager.

    Raises (in any method):
        WorkerError: one of them has died.
        GameRLError: the game cannot be played.
    """

    def __init__(self, game: Game, settings: ExploreSettings, n_processes: int) -> None:
        method = "forkserver" if CAN_FORK else "spawn"
        context = cast("Context", multiprocessing.get_context(method))
        self._connections: list[Connection] = []
        self._processes: list[BaseProcess] = []
        with changed_environment(python_variables()), short_temporary_folder():
            for number in range(n_processes):
                ours, theirs = context.Pipe()
                with theirs:
                    process = context.Process(
                        target=_run_explorer,
                        args=(theirs, game, settings),
                        name=f"game_rl explorer {number}",
                        daemon=True,
                    )
                    process.start()
                self._connections.append(ours)
                self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join(_LEAVE_TIMEOUT_S)
            process.kill()
            process.join()

    def beginning(self) -> Find:
        """Return the first cell of the episode."""
        self._send(0, _Request())
        found = self._answer(0)
        assert isinstance(found, Find)
        return found

    def trips(
        self, chosen: Sequence[CellRecord], seed: tuple[int, ...], scores: Mapping[Cell, CellScore]
    ) -> list[Trip]:
        """Play a trip from each cell; the trips are the same for any number of processes."""
        known = pickle.dumps(scores)
        jobs = [_Job(index, record.state) for index, record in enumerate(chosen)]
        n_processes = len(self._processes)
        for number in range(n_processes):
            self._send(number, _Request(seed, jobs[number::n_processes], known))
        found: dict[int, Trip] = {}
        for number in range(n_processes):
            answer = self._answer(number)
            assert isinstance(answer, dict)
            found |= answer
        return [found[index] for index in range(len(chosen))]

    def _send(self, number: int, request: _Request) -> None:
        try:
            self._connections[number].send(request)
        except OSError:
            self._raise_death(number)

    def _answer(self, number: int) -> object:
        try:
            answer = self._connections[number].recv()
        except (EOFError, OSError):
            self._raise_death(number)
        if isinstance(answer, GameRLError):
            raise answer
        return answer

    def _raise_death(self, number: int) -> NoReturn:
        process = self._processes[number]
        process.join(_LEAVE_TIMEOUT_S)
        how = process.exitcode
        raise WorkerError(
            f"process {number} of the exploration has died"
            + (f" by {signal_name(-how)}" if how is not None and how < 0 else f", exit code {how}")
            + "; all rounds before this one are saved: continue with --resume, and with fewer "
            "--processes if memory was short"
        )


def _run_explorer(connection: Connection, game: Game, settings: ExploreSettings) -> None:
    """Answer requests until the pipe is closed."""
    ignore_signals("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
    free_children_to_import()
    let_others_finish()
    keep_output_harmless()  # a reward in Python may print
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    explorer: Explorer | None = None
    with suppress(EOFError, OSError):
        while True:
            request: _Request = connection.recv()
            try:
                explorer = explorer or Explorer(game, settings)
                connection.send(_played(explorer, request))
            except GameRLError as error:
                connection.send(error)


def _played(explorer: Explorer, request: _Request) -> Find | dict[int, Trip]:
    if not request.jobs and not request.known:
        return explorer.beginning()
    known = pickle.loads(request.known)  # noqa: S301 - from our own parent
    return {
        job.number: explorer.trip(job.state, (*request.seed, job.number), known)
        for job in request.jobs
    }


def _leave_with_parent() -> None:
    """Exit when the parent has ended, even in the middle of a trip."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
