"""Runs and checkpoints as a command names them, found and compared without torch."""

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import TypeVar

from game_rl.checkpoints.checkpoint_files import FileName, Manifest, read_manifest, read_verified
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.config.schema_guide import meant_folder
from game_rl.config.values import run_at
from game_rl.errors import CheckpointError, NoCheckpointError, UsageError
from game_rl.files.pretrained import why_no_run
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved, parse_saved
from game_rl.games.definition import Game

_Kind = TypeVar("_Kind", bound=Saved)
_RESTORE = "restore it from a copy, or use another checkpoint"


def find_run(root: Path) -> RunDir:
    """Return the run at `root`, or raise UsageError if it is not a run directory."""
    run_dir = RunDir(root)
    if run_dir.exists():
        return run_dir
    raise UsageError(_why_no_run(root))


def _why_no_run(root: Path) -> str:
    """Return what a path is that is no run directory, and what to name instead."""
    text = str(root)
    if (fault := why_no_run(text)) is not None:
        return fault
    whole, at, _ = text.rpartition("@")
    if at and RunDir(Path(whole)).exists():
        return _why_no_checkpoint(root, RunDir(Path(whole)))
    if root.is_file():
        return (
            f"{root} is a file, not a run directory; train it first if it is a config, with "
            f"game-rl train {quote(text)}, then name its run_dir"
        )
    if not root.exists():
        way_out = meant_folder(root) or "name the run_dir of a training, such as runs/duel_ppo"
        return f"{root} is not a run directory: it does not exist; {way_out}"
    return f"{root} is not a run directory: it has no {RunDir(root).config.name}; {_meant(root)}"


def _why_no_checkpoint(root: Path, run_dir: RunDir) -> str:
    if run_at(str(root))[1] is not None:
        return (
            f"{root} names a checkpoint, and this command is for a whole run: name {run_dir.root} "
            f"(game-rl checkpoints {quote(str(root))} shows that checkpoint)"
        )
    found = ", ".join(f"{int(path.name)}" for path in run_dir.checkpoints_newest_first())
    return (
        f"{root} names no checkpoint: write a timestep after the @, one of {found or 'none yet'}; "
        f"or name {run_dir.root} alone (evaluate, record and export then take --checkpoint latest)"
    )


def _meant(root: Path) -> str:
    """Return what to name instead of a folder that is no run directory."""
    above = next((path for path in root.parents if RunDir(path).exists()), None)
    if (root / "lake.json").is_file():
        run = f"; its run is {above}" if above else ""
        return f"it is a Lake, which game-rl replay info {quote(str(root))} shows{run}"
    if above is not None:
        is_checkpoint = root.parent.name == "checkpoints" and root.name.isdecimal()
        return f"it is in the run {above}: name " + (
            f"{above}@{int(root.name)}" if is_checkpoint else str(above)
        )
    inside = next(iter(sorted(path.parent for path in root.glob("*/config.yaml"))), None)
    if inside is not None:
        return f"name a run in it, such as {inside} (game-rl runs {quote(str(root))} lists them)"
    return meant_folder(root) or "name the run_dir of a training, such as runs/duel_ppo"


def open_run(root: Path) -> tuple[RunDir, RunConfig]:
    """Return the run at `root`, and its config as it was resolved at the beginning."""
    run_dir = find_run(root)
    return run_dir, load_config(run_dir.config, is_saved=True)


def timesteps_named(name: str) -> int | None:
    """Return the timesteps that `--checkpoint` names; None for `best` and `latest`."""
    if name in ("best", "latest"):
        return None
    digits = name.replace("_", "").replace(",", "")
    if not (digits.isascii() and digits.isdecimal()):
        raise UsageError(f"--checkpoint must be best, latest or a timestep, not {name!r}")
    return int(digits)


def saved_state(
    run_dir: RunDir, timesteps: int | None = None
) -> tuple[Path, CheckpointState] | None:
    """Return a checkpoint and its description; without `timesteps`, the newest one.

    The newest is None if all are damaged; `newest_valid_checkpoint` says how.

    Raises:
        NoCheckpointError: the run has no such checkpoint.
        CheckpointError: the checkpoint of these timesteps is damaged.
    """
    if timesteps is not None:
        path = kept_path(run_dir, timesteps)
        return path, read_checkpoint_state(path)
    if not run_dir.has_checkpoints():
        raise NoCheckpointError(
            f"{run_dir.root} has no checkpoint yet; train it with: game-rl train --resume "
            + quote(str(run_dir.root))
        )
    for path in run_dir.checkpoints_newest_first() or run_dir.offline.checkpoints_newest_first():
        with suppress(CheckpointError):
            return path, read_checkpoint_state(path)
    return None


def kept_path(run_dir: RunDir, timesteps: int) -> Path:
    """Return the checkpoint of timestep `timesteps`, or raise NoCheckpointError."""
    path = run_dir.checkpoint(timesteps)
    if path.is_dir():
        return path
    found = [f"{int(path.name):,}" for path in run_dir.checkpoints_newest_first()]
    raise NoCheckpointError(
        f"{run_dir.root} keeps no checkpoint of timestep {timesteps:,}; it has: "
        + (", ".join(found) or "none")
        + _before_the_first(run_dir)
    )


def _before_the_first(run_dir: RunDir) -> str:
    """Describe the checkpoints before the first timestep, which no timestep names, if any."""
    found = run_dir.offline.checkpoints_newest_first()
    if not found:
        return ""
    steps = ", ".join(f"{int(path.name):,}" for path in found)
    way_out = (
        ""
        if run_dir.checkpoints_newest_first()
        else f"; learn up to timestep 0 with: {run_dir.way_on} --until 0"
    )
    return (
        f". The checkpoints in {run_dir.offline.checkpoints} (gradient steps {steps}) belong to "
        "the phase before the first timestep, which can only be resumed from its newest "
        f"checkpoint{way_out}"
    )


def read_checkpoint_state(path: Path) -> CheckpointState:
    return read_model(path, read_manifest(path), CheckpointState, "state.json")


def read_model(path: Path, manifest: Manifest, kind: type[_Kind], name: FileName) -> _Kind:
    """Read one JSON file of a checkpoint, after comparing it with the manifest.

    Raises:
        CheckpointError: the file is missing, damaged or not of this kind.
    """
    content = read_verified(path, manifest, name)
    return parse_saved(kind, content, path / name, error=CheckpointError, way_out=_RESTORE)


def check_rom(path: Path, state: CheckpointState, game: Game) -> None:
    """Raise CheckpointError if the weights were learned on another ROM."""
    if state.rom_sha256 != game.rom.sha256:
        raise CheckpointError(
            f"{path} was trained on a ROM with sha256 {state.rom_sha256}, but {game.rom.path} has "
            f"{game.rom.sha256}; restore the ROM that the run started with"
        )
