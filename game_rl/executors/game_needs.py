"""Checks that nodes have the files of a user's own game, which is never sent."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from game_rl.config.loader import load_yaml_model
from game_rl.errors import GameFileError
from game_rl.games.definition import GameDefinition
from game_rl.storage.game_files import game_files


@dataclass(frozen=True)
class GameNeeds:
    """The files that nodes must have of a user's own game.

    Attributes:
        files: sha256 of each file, by its path. Empty for a bundled game.
        rom: path of the ROM among them, or None for a bundled game.
    """

    files: dict[str, str] = field(default_factory=dict)
    rom: str | None = None

    def problem(self) -> str | None:
        """Return which file this machine lacks or has with other content, or None."""
        for path, sha256 in self.files.items():
            found = _sha256(Path(path))
            if found != sha256:
                what = f"the ROM {path}" if path == self.rom else path
                state = "is not there" if found is None else "has different content there"
                return (
                    f"{what} {state}; a game of your own is never sent: copy its folder, with the "
                    f"ROM, to the same path on every node (this file has sha256 {sha256})"
                )
        return None


def game_needs(game: str) -> GameNeeds:
    """Return the needs of the game that a config names.

    Raises:
        GameFileError: a file of it is missing here.
    """
    found = game_files(game)
    if found.game_file is None:
        return GameNeeds()
    file = found.paths[found.game_file]
    definition = load_yaml_model(file, GameDefinition, error=GameFileError)
    rom = file.parent / definition.rom.path
    hashes = {}
    for path in (rom, *found.paths.values()):
        sha256 = _sha256(path)
        if sha256 is None:
            raise GameFileError(f"{path} cannot be read")
        hashes[str(path)] = sha256
    return GameNeeds(hashes, str(rom))


def _sha256(path: Path) -> str | None:
    """Return the sha256 of a file, or None if it is missing or unreadable."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
