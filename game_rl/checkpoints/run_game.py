"""The game that a run plays: found again after a move, and compared with what it learned on.

A run's config has the absolute path of its game.yaml. If a project folder was moved or copied, the
file is looked for where it was relative to the run, then near the run and the current folder, with
the ROM that the run learned on.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from game_rl.checkpoints.checkpoint_folder import CheckpointFolder
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.named import check_rom, open_run, saved_state, timesteps_named
from game_rl.config.loader import game_path, load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import differences
from game_rl.errors import CheckpointError, GameFileError, GameRLError
from game_rl.explore.potentials import (
    POTENTIALS_FILE,
    potentials_saved_with,
    with_potentials,
)
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game, GameDefinition, load_game
from game_rl.games.parts.part_spec import unused_parts

_NAMED = 5  # changed keys that a message names
_SHOWN = 12  # characters of a digest
_LONGEST = 80  # characters of a value of a changed key
_ABOVE = 4  # folders above a run in which a game file may be, besides where it was
_MOST_TRIED = 64


def check_playable(root: Path, name: str, game: str | None = None) -> Game:
    """Check what can be checked before torch is loaded, and return the game that the run plays.

    Args:
        name: `best`, `latest` or a number of timesteps.
        game: another game file, or None for the run's own.

    Raises:
        GameRLError: there is no such run or checkpoint, or it cannot play the game.
    """
    run_dir, config = open_run(root)
    found = open_game(run_dir, config, game)
    if (saved := saved_state(run_dir, timesteps_named(name))) is not None:
        check_rom(*saved, found)
    return found


def open_game(run_dir: RunDir, config: RunConfig, given: str | None = None) -> Game:
    """Return the game of a run, or the one that the option --game names."""
    game = load_game(given if given is not None else find_game(run_dir, config))
    return completed_game(game, config, run_dir)


def completed_game(
    game: Game, config: RunConfig, run_dir: RunDir, checkpoint: CheckpointFolder | None = None
) -> Game:
    """Return the game with what its rewards need of other folders.

    What a checkpoint has of it comes first, then what the run's folder has; only a run that has
    saved none of it yet reads the other folders.

    Raises:
        UsageError: a folder has no exploration of the game, or one that knows no way.
        CheckpointError: what was saved is damaged.
    """
    saved = potentials_saved_with(run_dir)
    if checkpoint is not None and (own := checkpoint.read(POTENTIALS_FILE)) is not None:
        saved.insert(0, own)
    return with_potentials(game, config.env, saved)


def find_game(run_dir: RunDir, config: RunConfig) -> str:
    """Return where the game of a run is now, or the name of its bundled game.

    Raises:
        GameFileError: it is not where it was, and nowhere near.
    """
    before = game_path(config.game, relative_to=Path())
    if before is None or _is_there(before):
        return config.game
    learned = _learned_on(run_dir)
    found: Path | None = None
    others: list[str] = []
    for path in islice(_places(run_dir.root.absolute(), config, before), _MOST_TRIED):
        game = _game_at(path, run_dir)
        if game is None:
            continue
        if learned is None:  # it has not begun to learn
            return str(path)
        if game.rom.sha256 != learned.rom_sha256:
            others.append(f"{path} has the ROM {game.rom.sha256[:_SHOWN]}…")
            continue
        if not _changes(learned.game, game):
            return str(path)
        found = found or path
    if found is not None:
        return str(found)
    raise GameFileError(_gone(run_dir, before, learned, others))


def moved_game(run_dir: RunDir, overrides: Sequence[str]) -> list[str]:
    """Return the override that gives a run its game back after a move.

    It is empty if none is needed, or if `overrides` name a game.
    """
    if any(override.replace(" ", "").startswith("game=") for override in overrides):
        return []
    config = load_config(run_dir.config, is_saved=True)
    found = find_game(run_dir, config)
    return [] if found == config.game else [f"game={json.dumps(found)}"]


def game_notes(
    run_dir: RunDir, config: RunConfig, state: CheckpointState, game: Game, given: str | None
) -> list[str]:
    """Return what a person who lets a run play should know about its game, in sentences.

    Args:
        state: of the checkpoint that plays.
        given: the game file that --game names, if it was given.
    """
    notes = []
    now = find_game(run_dir, config) if given is None else config.game
    if now != config.game:
        notes.append(
            f"{config.game} is gone; {now}, which has the ROM of the training, is played instead"
        )
    changed = changed_game_keys(state.game, game, config.env.observation.parts)
    if changed:
        notes.append(f"changed since the training: {'; '.join(changed)}")
    return notes


def changed_game_keys(saved: Mapping[str, Any], game: Game, parts: Collection[str]) -> list[str]:
    """Name the keys of a game file that differ from those that were saved, with both values.

    Keys that have no effect on what an agent sees, does or earns are left out.

    Args:
        parts: names of the parts that observations have.
    """
    changed = _changes(saved, game, *unused_parts(parts, saved, _dumped(game)))
    named = [
        f"game.yaml's {_change(key, old, new)}"
        for key, (old, new) in list(changed.items())[:_NAMED]
    ]
    if len(changed) > _NAMED:
        named.append(f"{len(changed) - _NAMED} more changes of game.yaml")
    return named


def _changes(saved: Mapping[str, Any], game: Game, *but: str) -> dict[str, tuple[object, object]]:
    return differences(_with_new_keys(saved), _dumped(game), "rom.path", *but)


def _dumped(game: Game) -> dict[str, Any]:
    return game.definition.model_dump(mode="json", by_alias=True)


def _with_new_keys(saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a saved game file with the defaults of keys that its version did not have."""
    try:
        definition = GameDefinition.model_validate_json(json.dumps(saved))
    except ValidationError:
        return saved
    return definition.model_dump(mode="json", by_alias=True)


def _change(key: str, old: object, new: object) -> str:
    """Return a change in one line; of lists in which one item differs, that item."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        differing = [number for number in range(len(old)) if old[number] != new[number]]
        if len(differing) == 1:
            (number,) = differing
            return _change(f"{key}, item {number + 1}", old[number], new[number])
    return f"{key}: {_shown(old)} -> {_shown(new)}"


def _shown(value: object) -> str:
    """Return a value as it may stand in the file, shortened."""
    if value is None:
        return "none"
    if not isinstance(value, dict | list):
        text = str(value)
    else:
        text = yaml.safe_dump(
            _written(value), default_flow_style=True, sort_keys=False, width=inf
        ).strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _written(value: object) -> object:
    """Return a value without the keys that are not given."""
    if isinstance(value, dict):
        return {key: _written(inner) for key, inner in value.items() if inner is not None}
    return [_written(inner) for inner in value] if isinstance(value, list) else value


def _learned_on(run_dir: RunDir) -> CheckpointState | None:
    with suppress(CheckpointError):
        saved = saved_state(run_dir)
        return None if saved is None else saved[1]
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _places(root: Path, config: RunConfig, before: Path) -> Iterator[Path]:
    """Yield the files that may be the game now, the likeliest first, each once."""
    seen: set[Path] = set()
    for path in _all_places(root, config, before):
        try:
            file = path / "game.yaml" if path.is_dir() else path
            is_new = file.is_file() and file.resolve() not in seen
        except OSError:
            continue
        if is_new:
            seen.add(file.resolve())
            yield file


def _all_places(root: Path, config: RunConfig, before: Path) -> Iterator[Path]:
    if config.run_dir.is_absolute():
        yield Path(os.path.normpath(root / os.path.relpath(before, config.run_dir)))
    near = [*root.parents, Path.cwd()]
    for folder in near:
        for length in range(len(before.parts) - 1, 0, -1):
            yield folder.joinpath(*before.parts[-length:])
    for folder in (*near[:_ABOVE], near[-1]):
        with suppress(OSError):
            yield from sorted([*folder.glob(before.name), *folder.glob(f"*/{before.name}")])


def _game_at(path: Path, run_dir: RunDir) -> Game | None:
    """Return the game of a file; None if there is none, or it is of another user than the run."""
    try:
        if path.stat().st_uid != run_dir.root.stat().st_uid:
            return None
        return load_game(str(path))
    except (GameRLError, OSError):
        return None


def _gone(run_dir: RunDir, before: Path, learned: CheckpointState | None, others: list[str]) -> str:
    rom = "" if learned is None else f" with the ROM {learned.rom_sha256[:_SHOWN]}…"
    found = f" ({'; '.join(others[:_NAMED])})" if others else ""
    return (
        f"{before}, the game of {run_dir.root}, is gone, and no game file{rom} is near the run or "
        f"the current folder{found}; name the file with --game FILE (train --resume and --fork "
        "take game=FILE, or member.game=FILE for an experiment)"
    )
