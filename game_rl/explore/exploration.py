"""An exploration: its folder, the processes that play its trips, its rounds one after the other.

All trips of a round begin from the archive as it was before the round, each with a seed of its own,
and what they found is added in their order. So the archive is the same for any number of processes.
"""

import json
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, Union, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from game_rl.errors import GameRLError, UsageError, WorkerError
from game_rl.explore.archive import Archive, CellRecord, CellScore, Find, Trip
from game_rl.explore.trip import Explorer, ExploreSettings
from game_rl.files.durable_files import rename, sync_directory, synced_file, write_atomic
from game_rl.files.json_lines import JsonLines, located_lines, parsed
from game_rl.files.run_dir import locked
from game_rl.files.saved import Saved, Sha256, read_saved
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
    def sheet(self) -> Path:
        """Screens of some cells."""
        return self.root / "sheet.png"

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


class RoundProgress(Saved):
    """A line of `progress.jsonl`."""

    round: int
    seconds: float
    timesteps: int
    cells: int
    reward: float


_PROGRESS = TypeAdapter(RoundProgress)


def read_progress(folder: ExploreDir) -> Iterator[RoundProgress]:
    """Yield the lines of `progress.jsonl`."""
    found = (parsed(_PROGRESS, line) for _, line in located_lines(folder.progress))
    yield from (line for line in found if line is not None)


class Exploration:
    """Explores in rounds; hold the folder's lock.

    Args:
        folder: where it is kept; it continues what is there.

    Attributes:
        archive: all that was found so far.
        new_terms: the reward terms that the last round was the first to earn.
        seconds: time of all rounds, those of earlier sittings included.

    Raises:
        UsageError: the archive in the folder is damaged.
    """

    def __init__(self, folder: ExploreDir, game: Game, settings: ExploreSettings) -> None:
        self._folder = folder
        self._game = game
        self._settings = settings
        if folder.archive.exists():
            end = sum(len(line) for _, line in located_lines(folder.archive))
            os.truncate(folder.archive, end)  # a kill may have left a part of a line
        self.archive = Archive.read(folder.archive, settings.most_bytes)
        self.new_terms: tuple[str, ...] = ()
        self.seconds = max((line.seconds for line in read_progress(folder)), default=0.0)

    def rounds(self, n_processes: int) -> Iterator[Archive]:
        """Explore round after round, and yield the archive once the round is in the file."""
        settings = self._settings
        archive = self.archive
        before_s = time.monotonic() - self.seconds
        with ExploringProcesses(self._game, settings, n_processes) as explorers:
            if not archive.cells:
                self._append(archive.begin(explorers.beginning()))
            while True:
                if archive.written_bytes > 2 * settings.most_bytes:
                    self._compact()
                seed = (settings.seed, archive.rounds)
                chosen = archive.choose(settings.trips, np.random.default_rng(seed))
                trips = explorers.trips(chosen, seed, archive.scores())
                earned = set(archive.earned)
                self._append(archive.add_round(chosen, trips))
                self.new_terms = tuple(sorted(set(archive.earned) - earned))
                self.seconds = time.monotonic() - before_s
                self._note_progress()
                yield archive

    def _append(self, line: str) -> None:
        with JsonLines(self._folder.archive) as file:
            file.append(line)

    def _compact(self) -> None:
        """Write the archive's file anew, without the states that are not needed any more."""
        path = self._folder.archive
        new = path.with_suffix(".tmp")
        with synced_file(new) as file:
            for line in self.archive.compacted(path):
                file.write(line.encode() + b"\n")
        rename(new, path)
        sync_directory(path.parent)
        self.archive.written_bytes = self.archive.state_bytes

    def _note_progress(self) -> None:
        line = RoundProgress(
            round=self.archive.rounds,
            seconds=round(self.seconds, 3),
            timesteps=self.archive.timesteps,
            cells=len(self.archive.cells),
            reward=self.archive.best().score.reward,
        )
        with JsonLines(self._folder.progress) as file:
            file.append(line.model_dump_json())

    def write_best(self) -> Path:
        """Write the best way as an episode that `check-game --recorded` plays; return the file."""
        names = self._game.action_names
        settings = self._settings
        episode = {
            "start_state": settings.start_state,
            "seed": settings.seed,
            "frame_skip": settings.env.frame_skip,
            "actions": [names[action] for action in self.archive.best().way.whole()],
        }
        write_atomic(self._folder.best, json.dumps(episode) + "\n")
        return self._folder.best

    def screens(self, most: int) -> Iterator[tuple[CellRecord, NDArray[np.uint8]]]:
        """Yield some cells, spread over all, with what is seen in them, uint8 [144, 160, 3]."""
        held = [record for record in self.archive.cells if record.state]
        step = max(1.0, len(held) / most)
        with closing(Explorer(self._game, self._settings)) as explorer:
            for index in range(min(most, len(held))):
                record = held[int(index * step)]
                yield record, explorer.screen(record.state)


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
