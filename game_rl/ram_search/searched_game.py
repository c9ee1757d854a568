"""What is searched: a ROM, alone or with the game.yaml that describes it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from shlex import quote

from game_rl.config.loader import game_path
from game_rl.emulator.emulator import BUTTONS, Button, Emulator
from game_rl.emulator.ram import Ram, ram_of
from game_rl.emulator.rom import Rom, read_rom
from game_rl.errors import UsageError
from game_rl.games.actions import ActionSpec, presses_of
from game_rl.games.definition import Game, load_game, unknown_name
from game_rl.games.start_state import (
    ScriptStep,
    StartStateSpec,
    make_start_state,
    play_script,
)
from game_rl.games.symbol_files import Location, read_symbols

ROM_SUFFIXES = (".gb", ".gbc")
SYMBOL_SUFFIXES = (".sym", ".noi", ".map")


@dataclass(frozen=True)
class SearchedGame:
    """A ROM, and what is known of the game so far.

    Attributes:
        file: its game.yaml; None for a ROM alone.
        folder: folder that paths of moments are relative to.
        start: where a search begins, if no moment says it: the steps that are played from power-on
            or from a start state.
        start_state: name of that start state; None for power-on.
    """

    rom: Rom
    is_colour: bool
    folder: Path
    game: Game | None = None
    file: Path | None = None
    start_state: str | None = None
    start: tuple[ScriptStep, ...] = ()

    @cached_property
    def ram(self) -> Ram:
        return ram_of(self.rom, colour=self.is_colour)

    @property
    def known_game(self) -> Game:
        """The game of its game.yaml.

        Raises:
            UsageError: there is none.
        """
        if self.game is None:
            raise UsageError(
                "a recorded episode needs a game.yaml, which says where it begins; game-rl "
                f"new-game {quote(str(self.rom.path))} writes one"
            )
        return self.game

    @contextmanager
    def emulator(self) -> Iterator[Emulator]:
        """Yield an emulator that was just switched on, and close it afterwards."""
        from game_rl.emulator.pyboy_emulator import PyBoyEmulator

        emulator = PyBoyEmulator(self.rom, colour=self.is_colour)
        try:
            yield emulator
        finally:
            emulator.close()

    def bring_to_start(self, emulator: Emulator, power_on: bytes, name: str | None = None) -> None:
        """Bring the emulator to the beginning of the search, or to another start state."""
        name = name or self.start_state
        if name is None:
            emulator.load_state(power_on)
        else:
            make_start_state(
                emulator,
                name,
                self.start_states[name],
                rom=self.rom,
                power_on=power_on,
                folder=self.folder,
            )
        if self.start and name == self.start_state:
            play_script(emulator, self.start)

    @property
    def start_states(self) -> dict[str, StartStateSpec]:
        return {} if self.game is None else self.game.definition.start_states

    def check_start_state(self, name: str) -> None:
        """Raise UsageError if the game has no such start state."""
        if self.game is None:
            raise UsageError(
                f"start state {name}: a ROM alone has none; name a game.yaml, or give --script"
            )
        if name not in self.start_states:
            raise UsageError(unknown_name(name, "start state", self.start_states))

    @property
    def button_sets(self) -> tuple[frozenset[Button], ...]:
        """What random play holds: the buttons of the game's actions, or each button alone."""
        if self.game is None:
            usual = [frozenset[Button]((b,)) for b in BUTTONS if b not in ("start", "select")]
            return (frozenset(), *usual, frozenset({"right", "a"}), frozenset({"left", "a"}))
        found = dict.fromkeys(
            buttons
            for action in self.game.definition.actions.values()
            for buttons in _held_in(action)
        )
        return tuple(found)

    def symbols(self, file: Path | None = None) -> tuple[dict[str, Location], Path | None]:
        """Return the symbols at the user's side, and their file; none if there is no file."""
        found = file
        if found is None and self.game is not None and self.game.definition.symbols is not None:
            found = self.game.folder / self.game.definition.symbols
        if found is None:
            beside = (self.rom.path.with_suffix(suffix) for suffix in SYMBOL_SUFFIXES)
            found = next((path for path in beside if path.is_file()), None)
        return ({}, None) if found is None else (read_symbols(found), found)


def _held_in(action: ActionSpec) -> Iterator[frozenset[Button]]:
    for press in presses_of(action, 4):
        yield press.buttons


def game_with_its_start(game: Game) -> SearchedGame:
    """Return a game, of which a search begins in the first start state."""
    first = next(iter(game.definition.start_states))
    return SearchedGame(game.rom, game.is_colour, game.folder, game, start_state=first)


def searched_game(
    word: str,
    *,
    start_state: str | None = None,
    start: Sequence[ScriptStep] = (),
    from_power_on: bool = False,
) -> SearchedGame:
    """Return what a command names: a bundled game, a game.yaml, its folder, or a ROM.

    Args:
        start_state: where the search begins; None for the first one.
        start: steps that are played there.
        from_power_on: whether they are played from power-on instead.

    Raises:
        GameFileError, UsageError: there is no such game, ROM or start state.
    """
    path = Path(word)
    if path.suffix.lower() in ROM_SUFFIXES:
        rom = read_rom(path, named_by="the path")
        found = SearchedGame(rom, rom.supports_colour, Path(), start=tuple(start))
        if start_state is not None:
            found.check_start_state(start_state)
        return found
    game = load_game(word)
    named = game_path(word, relative_to=Path())
    file = None
    if named is not None:
        file = named / "game.yaml" if named.is_dir() else named
    name = start_state
    if name is None and not from_power_on:
        name = next(iter(game.definition.start_states))
    found = replace(game_with_its_start(game), file=file, start_state=name, start=tuple(start))
    if name is not None:
        found.check_start_state(name)
    return found
