"""Which games others have described already, and how their descriptions are asked for."""

from game_rl.emulator.rom import Rom
from game_rl.errors import UsageError
from game_rl.games.starter import KnownGame
from game_rl.interchange.retro_integration import integration_of, known_from_retro, retro_folder

_RETRO = "retro:"
_NOTHING = "nothing"

SOURCES = f"{_RETRO}FOLDER or {_NOTHING}"
"""What may be asked for, as a message has it."""


def known_game(rom: Rom, source: str | None = None) -> KnownGame | None:
    """Return what others know of the game.

    Args:
        source: where to look, one of `SOURCES`; None for wherever the game is known.

    Raises:
        UsageError: there is no such source, or it does not know the game.
        GameFileError: a file of the source cannot be read.
    """
    if source is None:
        folder = integration_of(rom.sha1)
        return None if folder is None else known_from_retro(folder, rom)
    if source == _NOTHING:
        return None
    if source.startswith(_RETRO):
        return known_from_retro(retro_folder(source.removeprefix(_RETRO)), rom)
    raise UsageError(f"--from {source}: there is no such source; name {SOURCES}")
