"""The potentials of a run's reward terms: read from explorations, saved with the run."""

import functools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from game_rl.config.schema import EnvConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.explore.archive import Archive
from game_rl.explore.explore_dir import ExploreDir
from game_rl.explore.graph import timesteps_to_go
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import CheckpointFile, Saved, read_saved
from game_rl.games.cell import Cell
from game_rl.games.definition import Game, unknown_name
from game_rl.games.potential import Potential, SavedPotential


class SavedPotentials(Saved):
    """The potentials of a run's reward terms, by the term's name."""

    terms: dict[str, SavedPotential]


POTENTIALS_FILE = CheckpointFile(
    name="potentials.json",
    words="potentials of rewards",
    model=SavedPotentials,
    fork="unless its counters are new",
)


# Measured with the 8,669 cells from which an exploration of beacon knows a way: bytes in a process,
# and in the file. How many there are is known only once the exploration is read.
_CELL_BYTES = 155
_SAVED_CELL_BYTES = 4.7
_USUAL_CELLS = 10_000


class PotentialsFeature(Feature):
    """What reward terms know of the way to go."""

    file = POTENTIALS_FILE

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of the cells in this process and in each worker."""
        if not run.n_potentials:
            return ()
        cells = run.n_potentials * _USUAL_CELLS
        return (Part("potentials", run.n_processes * cells * _CELL_BYTES),)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        return round(run.n_potentials * _USUAL_CELLS * _SAVED_CELL_BYTES)

    def standing_files(self, run: PlannedRun) -> Iterable[Part]:
        if run.n_potentials:
            yield Part("potentials", self.checkpoint_bytes(run, 0))

    def fetched(self, run_dir: RunDir, checkpoint: Path, paths: Collection[str]) -> None:  # noqa: ARG002
        file = checkpoint / POTENTIALS_FILE.name
        if file.exists():
            write_atomic(run_dir.potentials, file.read_bytes())


def with_potentials(game: Game, env: EnvConfig, saved: Sequence[SavedPotentials] = ()) -> Game:
    """Return the game with the potentials that its reward terms and those of the config need.

    Args:
        saved: potentials of the run. The first that is of the folder that a term names is taken;
            if there is none, the exploration in that folder is read.

    Raises:
        UsageError: the folder has no exploration of the game, or one that knows no way.
        CheckpointError: what was saved is damaged.
    """
    found = dict(game.potentials)
    for name, term in game.rewards_of(env).items():
        if term.potential is None:
            continue
        folder = term.potential
        if name in found and found[name].folder == folder:
            continue
        try:
            found[name] = _saved(saved, name, folder) or _read(folder, game)
        except UsageError as error:
            raise UsageError(f"reward term {name}: {error}") from None
    return game if found == game.potentials else replace(game, potentials=found)


def _saved(saved: Sequence[SavedPotentials], name: str, folder: Path) -> Potential | None:
    for each in saved:
        known = each.terms.get(name)
        if known is not None and known.folder == str(folder):
            try:
                return known.potential()
            except ValueError as error:
                raise CheckpointError(
                    f"the potential of reward term {name} that was saved with the run is damaged: "
                    f"{error}; use another checkpoint"
                ) from None
    return None


def explored_folder(potential: Path, game: Game) -> Path:
    """Return the folder that a reward term names, relative to that of game.yaml."""
    return Path(os.path.normpath(game.folder / potential))


def _read(folder: Path, game: Game) -> Potential:
    """Read the exploration in a folder; see `explored_folder`.

    Raises:
        UsageError: see `with_potentials`.
    """
    files = ExploreDir(explored_folder(folder, game))
    if not files.root.exists():
        raise UsageError(
            f"there is no folder {files.root}; make it with game-rl explore GAME "
            f"--output {quote(str(files.root))}, or correct the path"
        )
    saved = files.read_of(game)
    if not saved.settings.cell:
        raise UsageError(
            f"the cells of {files.root} are pictures, and a potential needs variables; explore the "
            "game.yaml, which names some under `cell`"
        )
    for entry in saved.settings.cell:
        if entry.variable not in game.number_names:
            raise UsageError(
                f"a cell of {files.root} has a variable that game.yaml lacks: "
                f"{unknown_name(entry.variable, 'number', game.number_names)}; explore again into "
                "another folder"
            )
    try:
        modified = files.archive.stat()
    except FileNotFoundError:
        raise UsageError(
            f"{files.root} has no {files.archive.name}; continue it with game-rl explore --resume "
            f"--output {files.root}"
        ) from None
    version = (modified.st_size, modified.st_mtime_ns)
    to_go = _of_archive(files.archive, version)
    settings = saved.settings
    return Potential(folder, settings.cell, settings.env.frame_skip, to_go)


@functools.lru_cache(maxsize=4)
def _of_archive(
    file: Path,
    version: tuple[int, int],  # noqa: ARG001 - so that a file that has changed is read again
) -> Mapping[Cell, int]:
    archive = Archive.read(file, most_bytes=0)  # without its states
    try:
        return timesteps_to_go(archive)
    except UsageError as error:
        raise UsageError(
            f"{file.parent} has found no end to go to: {error}; continue it with game-rl explore "
            f"--resume --output {file.parent}"
        ) from None


def potentials_saved_with(run_dir: RunDir) -> list[SavedPotentials]:
    """Return the potentials that a run has saved, if it has some.

    Raises:
        CheckpointError: the file is damaged.
    """
    found = read_saved(
        SavedPotentials,
        run_dir.potentials,
        error=CheckpointError,
        way_out="delete it, and a resume takes them from the checkpoint",
    )
    return [] if found is None else [found]
