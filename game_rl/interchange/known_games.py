"""Which games are described already, and where their descriptions are asked for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from game_rl.emulator.rom import Rom, read_rom
from game_rl.emulator.rom_search import found_roms
from game_rl.errors import GameFileError, RomError, UsageError
from game_rl.games.definition import bundled_games, load_game
from game_rl.games.starter import KnownGame
from game_rl.interchange.pyboy_wrappers import (
    has_wrapper,
    known_from_pyboy,
    wrapped_titles,
)
from game_rl.interchange.retro_integration import (
    installed_integrations,
    integrations_by_hash,
    known_from_retro,
    retro_folder,
)

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
        folder = integrations_by_hash().get(rom.sha1)
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


@dataclass(frozen=True)
class DescribedGame:
    """A game.yaml.

    Attributes:
        name: what commands call it: a bundled game's name, or the file's path.
        hashes: those of its ROM, by algorithm.
    """

    name: str
    title: str
    hashes: Mapping[str, str]

    def is_of(self, rom: Rom) -> bool:
        """Whether it names this very ROM."""
        found = {"sha256": rom.sha256, "sha1": rom.sha1}
        return bool(self.hashes) and all(found[n] == digest for n, digest in self.hashes.items())


@dataclass(frozen=True)
class FoundRom:
    """A ROM in the folders where ROMs are looked for.

    Attributes:
        games: names of the games that are for it.
        sources: those that know it, as `known_game` takes them.
        problem: why it cannot be played; None if it can.
    """

    path: Path
    title: str
    games: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class ListedGames:
    """All games that are known here.

    Attributes:
        examples: those of a checkout's `examples`; an installed package has none.
        own: game files in folders of the current one.
        retro: names of the games of the installed stable-retro.
    """

    bundled: tuple[DescribedGame, ...]
    examples: tuple[DescribedGame, ...]
    own: tuple[DescribedGame, ...]
    retro: tuple[str, ...]
    roms: tuple[FoundRom, ...]


def listed_games() -> ListedGames:
    """Read which games and ROMs are known here; every ROM is read as a whole."""
    bundled = tuple(_described(bundled_games()))
    examples = tuple(_described(_game_files(_EXAMPLES)))
    is_elsewhere = Path.cwd() != _EXAMPLES
    own = tuple(_described(_game_files(Path()))) if is_elsewhere else ()
    described = (*bundled, *examples, *own)
    integrations = integrations_by_hash()
    return ListedGames(
        bundled=bundled,
        examples=examples,
        own=own,
        retro=tuple(folder.name for folder in installed_integrations()),
        roms=tuple(_found(path, described, integrations) for path in found_roms()),
    )


def described_games(rom: Rom) -> tuple[str, ...]:
    """Return the names of the bundled games and examples that are for this very ROM."""
    names = (*bundled_games(), *_game_files(_EXAMPLES))
    return tuple(game.name for game in _described(names) if game.is_of(rom))


_EXAMPLES = Path(__file__).parents[2] / "examples"  # in a checkout


def _game_files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/game.yaml")):
        shown = path
        if path.is_absolute() and path.is_relative_to(Path.cwd()):
            shown = path.relative_to(Path.cwd())
        yield str(shown)


def _described(names: Iterable[str]) -> Iterator[DescribedGame]:
    """Yield the games that can be read; `check-game` says what is wrong with the others."""
    for name in names:
        try:
            definition = load_game(name, without_rom=True).definition
        except GameFileError:
            continue
        yield DescribedGame(name, definition.title, definition.rom.hashes)


def _found(
    path: Path, described: Iterable[DescribedGame], integrations: Mapping[str, Path]
) -> FoundRom:
    try:
        rom = read_rom(path)
    except RomError as error:
        return FoundRom(path, "", problem=str(error))
    games = tuple(game.name for game in described if game.is_of(rom))
    sources = []
    if rom.sha1 in integrations:
        sources.append(f"{_RETRO}{integrations[rom.sha1].name}")
    if has_wrapper(rom):
        sources.append(_PYBOY)
    return FoundRom(path, rom.title, games, tuple(sources))
