"""Which games others have described already, and how their descriptions are asked for."""

from game_rl.emulator.rom import Rom
from game_rl.errors import UsageError
from game_rl.games.starter import KnownGame
from game_rl.interchange.pyboy_wrappers import known_from_pyboy, wrapped_titles
from game_rl.interchange.retro_integration import integration_of, known_from_retro, retro_folder

_RETRO = "retro:"
_NOTHING = "nothing"

_PYBOY = "pyboy"

SOURCES = f"{_RETRO}FOLDER, {_PYBOY} or {_NOTHING}"
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
        return known_from_pyboy(rom) if folder is None else known_from_retro(folder, rom)
    if source == _NOTHING:
        return None
    if source.startswith(_RETRO):
        return known_from_retro(retro_folder(source.removeprefix(_RETRO)), rom)
    if source == _PYBOY:
        known = known_from_pyboy(rom)
        if known is None:
            raise UsageError(
                f"PyBoy has no wrapper for the cartridge title {rom.title!r}; it has them for "
                f"{', '.join(wrapped_titles())}"
            )
        return known
    raise UsageError(f"--from {source}: there is no such source; name {SOURCES}")
