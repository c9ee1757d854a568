"""The processes that play the trips of an exploration."""

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, NoReturn, Self, Union, cast

from game_rl.errors import GameRLError, WorkerError
from game_rl.explore.archive import CellRecord, CellScore, Find, Trip
from game_rl.explore.explore_dir import ExploreSettings
from game_rl.explore.trip import Explorer, Gain, MapScreen, Pace, Screen
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
_PRELOAD = ["game_rl.explore.trip", "game_rl.system.forkserver_signals"]
_LEAVE_TIMEOUT_S = 2.0
_SCREENS_AT_ONCE = 32  # 2 MB in a pipe


class ExploringProcesses:
    """Processes with an `Explorer` each. Use it as a context manager.

    Raises (in any method):
        WorkerError: one of them has died.
        GameRLError: the game cannot be played.
    """

    def __init__(self, game: Game, settings: ExploreSettings, n_processes: int) -> None:
        method = "forkserver" if CAN_FORK else "spawn"
        context = cast("Context", multiprocessing.get_context(method))
        context.set_forkserver_preload(_PRELOAD)
        self._connections: list[Connection] = []
        self._processes: list[BaseProcess] = []
        self._known: dict[Cell, CellScore] = {}
        self._untold: list[dict[Cell, CellScore]] = [{} for _ in range(n_processes)]
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
        return cast("Find", self._ask(_ExplorerProcess.beginning))

    def screens(self, states: Sequence[bytes]) -> list[Screen]:
        """Return what packed states show, each uint8 [144, 160, 3]."""
        return cast("list[Screen]", self._ask(_ExplorerProcess.screens, states))

    def map_screens(self, states: Sequence[bytes]) -> Iterator[MapScreen]:
        """Yield what packed states show of maps."""
        for start in range(0, len(states), _SCREENS_AT_ONCE):
            asked = states[start : start + _SCREENS_AT_ONCE]
            yield from cast("list[MapScreen]", self._ask(_ExplorerProcess.map_screens, asked))

    def gains(self, actions: bytes) -> list[Gain]:
        """Play a way from the beginning; return the moments at which it earns a reward."""
        return cast("list[Gain]", self._ask(_ExplorerProcess.gains, actions))

    def pace(self) -> Pace:
        """Have all processes play for a moment at once, and return how fast they are together."""
        every = range(len(self._processes))
        for number in every:
            self._send(number, (_ExplorerProcess.pace.__name__, (number,)))
        found = cast("list[Pace]", [self._answer(number) for number in every])
        return Pace(
            state_bytes=max(pace.state_bytes for pace in found),
            per_s=sum(pace.per_s for pace in found),
            finds=sum(pace.finds for pace in found) / len(found),
        )

    def trips(
        self, chosen: Sequence[CellRecord], seed: tuple[int, ...], scores: Mapping[Cell, CellScore]
    ) -> list[Trip]:
        """Play a trip from each cell; the trips are the same for any number of processes.

        Args:
            scores: of all known cells; a cell never goes.
        """
        known = self._known
        changed = {cell: score for cell, score in scores.items() if known.get(cell) is not score}
        known.update(changed)
        for untold in self._untold:
            untold.update(changed)
        waiting = deque(enumerate(chosen))
        playing: dict[Connection, int] = {}
        found: dict[int, Trip] = {}
        idle = list(self._connections)
        while len(found) < len(chosen):
            for connection in idle[: len(waiting)]:
                index, record = waiting.popleft()
                self._begin_trip(connection, record, (*seed, index))
                playing[connection] = index
            idle = cast("list[Connection]", wait(list(playing)))
            for connection in idle:
                answer = self._answer(self._connections.index(connection))
                found[playing.pop(connection)] = cast("Trip", answer)
        return [found[index] for index in range(len(chosen))]

    def _begin_trip(
        self, connection: Connection, record: CellRecord, seed: tuple[int, ...]
    ) -> None:
        number = self._connections.index(connection)
        news = self._untold[number]
        self._untold[number] = {}
        arguments = (record.state, record.has_lost, seed, news)
        self._send(number, (_ExplorerProcess.trip.__name__, arguments))

    def _ask(self, method: Callable[..., object], *arguments: object) -> object:
        """Have the first process call a method of its own, and return what that returns."""
        self._send(0, (method.__name__, arguments))
        return self._answer(0)

    def _send(self, number: int, request: tuple[str, tuple[object, ...]]) -> None:
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
    process: _ExplorerProcess | None = None
    with suppress(EOFError, OSError):
        while True:
            name, arguments = connection.recv()
            try:
                process = process or _ExplorerProcess(game, settings)
                connection.send(getattr(process, name)(*arguments))
            except GameRLError as error:
                connection.send(error)


class _ExplorerProcess:
    """What one of the processes does; its methods are called by name."""

    def __init__(self, game: Game, settings: ExploreSettings) -> None:
        self._explorer = Explorer(game, settings)
        self._known: dict[Cell, CellScore] = {}

    def beginning(self) -> Find:
        return self._explorer.beginning()

    def screens(self, states: Sequence[bytes]) -> list[Screen]:
        return [self._explorer.screen(state) for state in states]

    def map_screens(self, states: Sequence[bytes]) -> list[MapScreen]:
        found = map(self._explorer.map_screen, states)
        return [screen for screen in found if screen is not None]

    def gains(self, actions: bytes) -> list[Gain]:
        return self._explorer.gains(actions)

    def pace(self, seed: int) -> Pace:
        return self._explorer.pace(seed)

    def trip(
        self, state: bytes, has_lost: bool, seed: Sequence[int], news: Mapping[Cell, CellScore]
    ) -> Trip:
        """Play a trip; `news` are the scores of cells that are new, or better than before."""
        self._known.update(news)
        return self._explorer.trip(state, seed, self._known, has_lost=has_lost)


def _leave_with_parent() -> None:
    """Exit when the parent has ended, even in the middle of a trip."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
