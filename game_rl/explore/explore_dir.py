"""The folder of an exploration: its files, what is explored, and its progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from game_rl.config.schema import EnvConfig
from game_rl.config.strict_model import StrictModel
from game_rl.errors import UsageError
from game_rl.files.json_lines import located_lines, parsed
from game_rl.files.run_dir import has_file, is_locked, locked
from game_rl.files.saved import Saved, Sha256, read_saved
from game_rl.games.cell import CoarseVariable
from game_rl.games.definition import Game

_SHOWN = 12  # characters of a digest


class ExploreSettings(StrictModel):
    """What an exploration depends on, besides the game."""

    start_state: str
    seed: int
    cell: tuple[CoarseVariable, ...]
    """Variables of a cell; none: a coarse picture of the screen, and rewards do not count."""
    prefer: tuple[str, ...]
    """Variables of which more is better where two ways to a cell have the same reward."""
    env: EnvConfig
    trips: int
    """Trips of a round."""
    trip_timesteps: int
    """Timesteps of a trip, unless the episode ends before."""
    repeat: float
    """Probability that a timestep repeats the button of the one before."""
    most_bytes: int
    """Limit of the size of all states, in memory; the file has at most twice as many."""


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
    def compacting(self) -> Path:
        """The archive without what it needs no more, as long as it is being written."""
        return self.root / "archive.tmp"

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

    @property
    def best_picture(self) -> Path:
        """Screens of the best way, where it earns a reward."""
        return self.root / "best.png"

    @property
    def place_screens(self) -> Path:
        """The maps of the game, joined from screens of cells; see `places.screen_map`."""
        return self.root / "place_screens.npz"

    @property
    def is_locked(self) -> bool | None:
        """Whether a process explores in the folder; None if this user cannot find out."""
        return is_locked(self.root / "lock")

    @property
    def state(self) -> str:
        """`exploring`, `stopped` or `unknown`."""
        return {True: "exploring", False: "stopped", None: "unknown"}[self.is_locked]

    def exists(self) -> bool:
        return has_file(self.saved)

    def read(self) -> SavedExploration:
        """Read what is explored.

        Raises:
            UsageError: it is not the folder of an exploration.
        """
        found = read_saved(SavedExploration, self.saved, error=UsageError)
        if found is None:
            raise UsageError(
                f"{self.root} is not the folder of an exploration: it has no {self.saved.name}; "
                "name what was given to game-rl explore as --output"
            )
        return found

    def read_of(self, game: Game) -> SavedExploration:
        """Read what is explored, which must be this game.

        Raises:
            UsageError: it is not the folder of an exploration, or it has explored another ROM.
        """
        found = self.read()
        if found.rom_sha256 != game.rom.sha256:
            raise UsageError(
                f"{self.root} has explored another ROM, {found.rom_sha256[:_SHOWN]}…, and "
                f"{game.name} has {game.rom.sha256[:_SHOWN]}…; restore the ROM, or explore this "
                "one into another folder"
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
