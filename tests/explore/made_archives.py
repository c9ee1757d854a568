"""Archives that were not explored but written down, for what reads them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from game_rl.config.schema import EnvConfig
from game_rl.explore.archive import Archive, CellScore, Find, Trip
from game_rl.explore.explore_dir import ExploreDir, ExploreSettings, SavedExploration
from game_rl.files.durable_files import write_saved
from game_rl.games.cell import Cell, CoarseVariable
from game_rl.games.definition import Game

Steps = dict[tuple[Cell, Cell], int]


def made_lines(
    begins_in: Cell,
    steps: Steps,
    *,
    rewards: Mapping[Cell, float] | None = None,
    successes: Sequence[Cell] = (),
) -> tuple[Archive, list[str]]:
    """Return an archive of the cells that the steps name, and the lines of its file.

    Args:
        rewards: of the best way to a cell; others have 0.
    """
    known = rewards or {}

    def find(cell: Cell) -> Find:
        score = CellScore(known.get(cell, 0.0), (), 0)
        return Find(cell, 0, score, b"state", is_success=cell in successes)

    archive = Archive(10**9)
    first = archive.begin(find(begins_in))
    cells = dict.fromkeys(cell for edge in steps for cell in edge)
    trip = Trip(b"", [find(cell) for cell in cells], list(cells), dict(steps))
    second = archive.add_round([archive.cells[0]], [trip])
    return archive, [first, second]


def write_way_to_the_right(root: Path, game: Game, *, goal: int = 60) -> Path:
    """Write an exploration that has found the way along the variable `player_x`, in steps of 4."""
    steps: Steps = {((column,), (column + 1,)): 2 for column in range(60)}
    _, lines = made_lines((0,), steps, successes=[(goal,)])
    cell = CoarseVariable(variable="player_x", per=4)
    return write_made(root, game, [cell], lines, frame_skip=4)


def write_made(
    root: Path,
    game: Game,
    cell: Sequence[CoarseVariable],
    lines: Sequence[str],
    *,
    frame_skip: int = 8,
    rom_sha256: str | None = None,
) -> Path:
    """Write the lines as the folder of an exploration; return the folder."""
    root.mkdir(parents=True, exist_ok=True)
    settings = ExploreSettings(
        start_state="shore",
        seed=0,
        cell=tuple(cell),
        prefer=(),
        env=EnvConfig(frame_skip=frame_skip),
        trips=1,
        trip_timesteps=1,
        repeat=0.0,
        most_bytes=10**9,
    )
    files = ExploreDir(root)
    about = SavedExploration(
        game="beacon", rom_sha256=rom_sha256 or game.rom.sha256, settings=settings
    )
    write_saved(files.saved, about)
    files.archive.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return root
