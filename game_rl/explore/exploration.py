"""An exploration: its folder, the processes that play its trips, its rounds one after the other.

All trips of a round begin from the archive as it was before the round, each with a seed of its own,
and what they found is added in their order. So the archive is the same for any number of processes.
"""

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from game_rl.errors import GameRLError, UsageError, WorkerError
from game_rl.explore.archive import Archive, CellRecord, Trip
from game_rl.explore.trip import Explorer, ExploreSettings
from game_rl.files.durable_files import write_saved
from game_rl.files.json_lines import JsonLines
from game_rl.files.run_dir import locked
from game_rl.files.saved import Saved, Sha256, read_saved
from game_rl.games.definition import Game
from game_rl.system.processes import (
    CAN_FORK,
    changed_environment,
    ignore_signals,
    let_others_finish,
    python_variables,
    short_temporary_folder,
)


class SavedExploration(Saved):
    """`explore.json`: what is explored, and how."""

    game: str
    """Name of the bundled game, or absolute path of its game.yaml."""
    rom_sha256: Sha256
    settings: ExploreSettings


@dataclass(frozen=True)
class ExploreDir:
    """Paths of an exploration's files."""

    root: Path

    @property
    def saved(self) -> Path:
        return self.root / "explore.json"

    @property
    def archive(self) -> Path:
        """The cells, a line for each round; see `Archive`."""
        return self.root / "archive.jsonl"

    @property
    def progress(self) -> Path:
        """Seconds, timesteps, cells and best reward after each round, one JSON object a line."""
        return self.root / "progress.jsonl"

    @property
    def best(self) -> Path:
        """The actions of the best way, in the form of `check-game --recorded`."""
        return self.root / "best.json"

    def exists(self) -> bool:
        return self.saved.is_file()

    def read(self) -> SavedExploration:
        """Read what is explored.

        Raises:
            UsageError: the folder is none of an exploration.
        """
        found = read_saved(SavedExploration, self.saved, error=UsageError)
        if found is None:
            raise UsageError(
                f"{self.root} is not the folder of an exploration: it has no {self.saved.name}; "
                "name what was given to game-rl explore as --output"
            )
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder.

        Raises:
            UsageError: another process explores in it.
        """
        busy = f"another game-rl explore is writing to {self.root}; wait until it has ended"
        self.root.mkdir(parents=True, exist_ok=True)
        with locked(self.root / "lock", busy=busy):
            yield


class Progress(Saved):
    """A line of `progress.jsonl`."""

    round: int
    seconds: float
    timesteps: int
    cells: int
    reward: float


@dataclass
class Exploration:
    """Explores in rounds.

    Attributes:
        archive: all that was found so far.
        new_terms: the reward terms that the last round was the first to earn.
    """

    folder: ExploreDir
    game: Game
    settings: ExploreSettings
    archive: Archive
    new_terms: tuple[str, ...] = ()

    def rounds(self, n_processes: int) -> Iterator[Archive]:
        """Explore round after round, and yield the archive after each; hold the folder's lock.

        What was yielded is in the file.
        """
        settings = self.settings
        began_s = time.monotonic() - self._earlier_s()
        with (
            JsonLines(self.folder.archive) as file,
            JsonLines(self.folder.progress) as progress,
            exploring_processes(self.game, settings, n_processes) as explorers,
        ):
            if not self.archive.cells:
                file.append(self.archive.begin(explorers.beginning()))
            while True:
                number = self.archive.rounds
                random = np.random.default_rng([settings.seed, number])
                chosen = self.archive.choose(settings.trips, random)
                trips = explorers.trips(chosen, (settings.seed, number), self.archive)
                earned = set(self.archive.earned)
                file.append(self.archive.add_round(chosen, trips))
                self.new_terms = tuple(sorted(set(self.archive.earned) - earned))
                line = Progress(
                    round=number + 1,
                    seconds=round(time.monotonic() - began_s, 3),
                    timesteps=self.archive.timesteps,
                    cells=len(self.archive.cells),
                    reward=self.archive.best().score.reward,
                )
                progress.append(line.model_dump_json())
                yield self.archive

    def _earlier_s(self) -> float:
        """Return the seconds that earlier sittings have explored."""
        lines = list(read_progress(self.folder))
        return lines[-1].seconds if lines else 0.0


def read_progress(folder: ExploreDir) -> Iterator[Progress]:
    from game_rl.files.json_lines import located_lines, parsed
    from pydantic import TypeAdapter

    kind = TypeAdapter(Progress)
    for _, line in located_lines(folder.progress):
        found = parsed(kind, line)
        if found is not None:
            yield found


class ExploringProcesses:
    """Processes with an `Explorer` each."""

    def __init__(self, game: Game, settings: ExploreSettings, n_processes: int) -> None:
        context = multiprocessing.get_context("forkserver" if CAN_FORK else "spawn")
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

    def beginning(self):  # noqa: ANN201
        return self._ask(0, ("beginning",))

    def trips(
        self, chosen: Sequence[CellRecord], seed: Sequence[int], archive: Archive
    ) -> list[Trip]:
        """Play a trip from each cell, as many at once as there are processes."""
        known = pickle.dumps(archive.scores())
        n = len(self._connections)
        jobs = [(index, record.state) for index, record in enumerate(chosen)]
        for number, connection in enumerate(self._connections):
            self._send(number, ("trips", known, tuple(seed), jobs[number::n]))
        found: list[Trip | None] = [None] * len(chosen)
        for number in range(n):
            for index, trip in self._answer(number):
                found[index] = trip
        return [trip for trip in found if trip is not None]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join(2.0)
            if process.is_alive():
                process.kill()
                process.join()

    def _ask(self, number: int, request: tuple):
        self._send(number, request)
        return self._answer(number)

    def _send(self, number: int, request: tuple) -> None:
        try:
            self._connections[number].send(request)
        except OSError:
            self._raise_death(number)

    def _answer(self, number: int):
        try:
            answer = self._connections[number].recv()
        except (EOFError, OSError):
            self._raise_death(number)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _raise_death(self, number: int):
        process = self._processes[number]
        process.join(1.0)
        raise WorkerError(
            f"explorer {number} has died (exit code {process.exitcode}); all rounds before are "
            "saved: continue with --resume, with fewer --processes if memory was short"
        )


@contextmanager
def exploring_processes(
    game: Game, settings: ExploreSettings, n_processes: int
) -> Iterator[ExploringProcesses]:
    processes = ExploringProcesses(game, settings, n_processes)
    try:
        yield processes
    finally:
        processes.close()


def _run_explorer(connection: Connection, game: Game, settings: ExploreSettings) -> None:
    """Answer requests until the pipe is closed."""
    ignore_signals("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
    let_others_finish()
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    explorer: Explorer | None = None
    try:
        while True:
            request = connection.recv()
            try:
                explorer = explorer or Explorer(game, settings)
                if request[0] == "beginning":
                    answer = explorer.beginning()
                else:
                    _, known, seed, jobs = request
                    scores = pickle.loads(known)
                    answer = [
                        (index, explorer.trip(state, (*seed, index), scores))
                        for index, state in jobs
                    ]
            except GameRLError as error:
                answer = error
            connection.send(answer)
    except (EOFError, OSError):
        pass


def _leave_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
