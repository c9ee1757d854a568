"""The schema of game.yaml, and the `Game` that a valid file and its ROM make."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from game_rl.config.loader import Document, game_path, load_yaml_model
from game_rl.config.schema import EnvConfig
from game_rl.config.schema_guide import closest
from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.rom import Rom, absent_rom, read_rom
from game_rl.emulator.rom_search import find_rom
from game_rl.errors import GameFileError, RomError
from game_rl.games.actions import ActionSpec, StepWait, action_problems
from game_rl.games.cell import CellEntry, CoarseVariable, coarse, counted_down, usual_cell
from game_rl.games.conditions import Condition, Ending
from game_rl.games.custom_reward import GameReward, Sources, load_custom_reward, reward_source
from game_rl.games.parts.part_format import PartFormat
from game_rl.games.parts.part_kind import GamePart
from game_rl.games.parts.part_spec import PartSpec, part_problems
from game_rl.games.place import MapName, Offsets, read_map_offsets
from game_rl.games.potential import Potential
from game_rl.games.reward_term import RewardTerm
from game_rl.games.screen_area import CropSpec, PlaceScreen
from game_rl.games.start_state import (
    StartStateSpec,
    battery_problem,
    register_problems,
    seed_problems,
    state_file_problem,
)
from game_rl.games.symbol_files import Location, read_symbols
from game_rl.games.variable_spec import TAKES_ARRAYS, VariableSpec, derivation_problems
from game_rl.games.variables import (
    MemoryVariable,
    Variable,
    half_byte_warning,
    place_array,
    place_variable,
)

_BUNDLED = Path(__file__).parent
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_CHARACTERS = 60
_NAMED_SECTIONS = ("start_states", "actions", "variables", "rewards", "endings", "parts")
_TAKES_ARRAYS = (*TAKES_ARRAYS, "random_seed")  # which has a check of its own


class RomFile(StrictModel):
    path: Path | None = None
    """Path of the ROM, relative to game.yaml. Without it, the ROM is found by its hash in `roms` in
    the current folder, and in the folder that the environment variable `GAME_RL_ROMS` names."""
    sha256: (
        Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$", examples=["64 hex digits"])] | None
    ) = None
    """SHA-256 of the ROM revision that the addresses are for."""
    sha1: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{40}$", examples=["40 hex digits"])] | None = (
        None
    )
    """SHA-1 of that revision, as lists of ROMs often have it."""

    @property
    def hashes(self) -> dict[str, str]:
        """The digests that the ROM must have, by algorithm."""
        given = {"sha256": self.sha256, "sha1": self.sha1}
        return {name: digest.lower() for name, digest in given.items() if digest is not None}

    def problems(self) -> Iterable[Problem]:
        if self.path is None and not self.hashes:
            yield Problem(
                ("path",),
                "give the ROM's `path`, or its `sha256` or `sha1`, by which it is found in roms",
                reads=(("sha256",), ("sha1",)),
            )


class ObservationArea(StrictModel):
    crop: CropSpec = CropSpec()
    """The part of the screen that the agent sees."""


class GameDefinition(StrictModel):
    """A game.yaml: everything that game_rl has to know about a game."""

    key_hints: ClassVar[Mapping[str, str]] = {
        "state": "start states are under `start_states`",
        "done": "what ends an episode is under `endings`",
        "memory": "addresses are under `variables`",
        "press": "a script holds buttons: {hold: [start], frames: 4}; only `step` has `press`",
    }

    title: Annotated[str, Field(min_length=1)]
    rom: RomFile
    symbols: Path | None = None
    """Path of a .sym, .noi or .map file, relative to game.yaml."""
    hardware: Literal["dmg", "cgb"] = "dmg"
    """dmg for the four-shade Game Boy, cgb for Game Boy Color."""
    random_seed: str | None = None
    """Variable that gets a random value when an episode starts."""
    start_states: Annotated[dict[str, StartStateSpec], Field(min_length=1)]
    actions: Annotated[dict[str, ActionSpec], Field(min_length=2)]
    """What each action does in a timestep. [a, up] holds these buttons throughout it.
    {hold: [a], frames: 8} presses and releases them, and a list of such steps and {wait: 4} is a
    script; the rest of the timestep is played without buttons."""
    step: StepWait | None = Field(default=None, exclude_if=lambda step: step is None)
    """Plays on after each action until a condition holds, for a game that ignores the buttons for a
    while. Timesteps then differ in length."""
    variables: Annotated[dict[str, VariableSpec], Field(min_length=1)]
    rewards: dict[str, RewardTerm] = Field(default={})
    place: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Variables that say where the player is, such as [map, x, y]; for `same_place_for`, `visited`
    and the map of visited places, which every run of the game has."""
    place_offsets: Path | None = Field(default=None, exclude_if=lambda path: path is None)
    """Path of a YAML file, relative to game.yaml, that places maps side by side in the map of
    visited places, and may name them. Without it, the `offsets` of a `visited` part count."""
    place_names: dict[int, MapName] = Field(default={}, exclude_if=lambda names: not names)
    """Names of maps for the map of visited places, such as {0: the shore}, by their numbers. They
    come before those in the file of offsets."""
    place_screen: PlaceScreen | None = Field(default=None, exclude_if=lambda screen: screen is None)
    """Which part of a map the screen shows. With it, the map of visited places is made of the
    screens that agents saw."""
    cell: Annotated[tuple[CellEntry, ...], Field(min_length=1)] | None = Field(
        default=None, exclude_if=lambda entries: entries is None
    )
    """Variables that are equal in moments that `game-rl explore` treats as the same, such as [room,
    keys, {variable: player_x, per: 16}]. null: the place, in steps of 16, and what rewards
    count."""
    prefer: tuple[str, ...] | None = Field(default=None, exclude_if=lambda names: names is None)
    """Variables, such as [lives], for which `game-rl explore` prefers higher values when two routes
    have the same reward. null: those that end an episode when they are 0 or at most a bound."""
    endings: dict[str, Ending] = Field(default={})
    """Conditions that end the episode; one of them is enough."""
    success: Condition | None = None
    milestones: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Variables, such as [badges, level_sum], whose new maxima are reported when they are first
    reached; for an array, those of each element."""
    observation: ObservationArea = ObservationArea()
    parts: dict[str, PartSpec] = Field(default={})
    """Parts that an observation may have besides the screen; env.observation.parts chooses."""
    reward: (
        Annotated[str, Field(pattern=r"^[\w.]+:\w+$", examples=["my_module:MyReward"])] | None
    ) = None
    """Reward class in Python as `module:Class`, in addition to `rewards` or instead of them. The
    module is a .py file next to this one or in the current folder, or is installed."""

    @property
    def file_of_offsets(self) -> Path | None:
        """The file that places maps side by side in the map of visited places."""
        if self.place_offsets is not None:
            return self.place_offsets
        return next(iter(self.offset_files_of_parts().values()), None)

    @property
    def cell_entries(self) -> tuple[CoarseVariable, ...]:
        """What makes two moments the same while exploring."""
        if self.cell is None:
            return usual_cell(self.place, tuple(self.rewards.values()))
        return coarse(self.cell)

    @property
    def preferred(self) -> tuple[str, ...]:
        """Variables of which more is better while exploring."""
        if self.prefer is None:
            return tuple(dict.fromkeys(counted_down(self.endings.values())))
        return self.prefer

    def game_parts(self) -> dict[str, GamePart]:
        """Return the parts that observations may have besides the screen, by name."""
        return {name: spec.part(name, self) for name, spec in self.parts.items()}

    def part_formats(self) -> dict[str, PartFormat]:
        """Return the forms of all parts, by name."""
        return {name: part.form for name, part in self.game_parts().items()}

    def custom_part_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the parts that the game's own reward class makes."""
        parts = self.game_parts()
        return tuple(name for name in names if parts[name].is_custom)

    def state_files(self) -> Iterator[tuple[Key, Path]]:
        """Yield the files that start states name, with their keys."""
        for key in ("file", "battery"):
            for name, state in self.start_states.items():
                path = getattr(state, key)
                if path is not None:
                    yield ("start_states", name, key), path

    def offset_files_of_parts(self) -> dict[Key, Path]:
        """Return the files that parts name to place maps side by side, by their keys."""
        return {
            ("parts", name, *key): file
            for name, part in self.game_parts().items()
            for key, file in part.offset_files()
        }

    def problems(self) -> Iterable[Problem]:
        yield from self._name_problems()
        for found in action_problems(self.actions):
            yield replace(found, key=("actions", *found.key))
        yield from self._reference_problems()
        yield from derivation_problems(self.variables)
        yield from self._wait_problems()
        yield from seed_problems(self.random_seed, self.start_states, self.variables)
        yield from part_problems(self.game_parts().values())
        n_places = len(self.place or ())
        if self.place_offsets is not None and n_places != 3:
            yield Problem(
                ("place_offsets",),
                f"places maps, but `place` has {n_places} variables, not [map, x, y]; write "
                "`place: [map, x, y]`, or remove this line",
                reads=(("place",),),
            )
        if self.place_names and n_places != 3:
            yield Problem(
                ("place_names",),
                f"names maps, but `place` has {n_places} variables, not [map, x, y]; write "
                "`place: [map, x, y]`, or remove this line",
                reads=(("place",),),
            )
        if self.place_screen is not None and n_places < 2:
            yield Problem(
                ("place_screen",),
                f"needs the x and y of the player, but `place` has {n_places} variables; write "
                "`place: [map, x, y]`, or remove this line",
                reads=(("place",),),
            )
        yield from _named_twice("place", self.place or ())
        yield from _named_twice("milestones", self.milestones)
        if not self.rewards and self.reward is None:
            yield Problem(
                ("rewards",), "there is no reward, so nothing can be learned; add at least one term"
            )

    def _name_problems(self) -> Iterable[Problem]:
        for section in _NAMED_SECTIONS:
            for name in getattr(self, section):
                if not _NAME.fullmatch(name):
                    yield Problem(
                        (section, name),
                        "a name has letters, digits and `_`, and starts with a letter; rename it",
                    )

    def _reference_problems(self) -> Iterable[Problem]:
        for key, variable in self._references():
            if variable not in self.variables:
                message = unknown_name(variable, "variable", self.variables)
                yield Problem(key, message, reads=(("variables", variable),))
            elif self.variables[variable].is_array and not (
                key[0] in ("parts", "milestones") or key[-1] in _TAKES_ARRAYS
            ):
                message = (
                    f"{variable} is an array, and a number is needed; name a variable that is one "
                    f"number, such as {{count: {variable}}}, {{sum: {variable}}} or "
                    f"{{maximum: {variable}}}"
                )
                yield Problem(key, message, reads=(("variables", variable),))

    def _references(self) -> Iterable[tuple[Key, str]]:  # noqa: C901 - a loop a section
        for name, spec in self.variables.items():
            for source in spec.sources:
                yield ("variables", name, str(spec.operation)), source
        for name, term in self.rewards.items():
            yield from ((("rewards", name, *key), found) for key, found in term.references())
        for at, condition in self._conditions():
            yield from (((*at, *key), name) for key, name in condition.references())
        for name, part in self.game_parts().items():
            yield from ((("parts", name, *key), found) for key, found in part.references())
        for index, name in enumerate(self.place or ()):
            yield ("place", str(index)), name
        if self.random_seed is not None:
            yield ("random_seed",), self.random_seed
        for name, state in self.start_states.items():
            for key, variable, _ in state.values:
                yield ("start_states", name, *key), variable
        for index, name in enumerate(self.milestones):
            yield ("milestones", str(index)), name
        for index, entry in enumerate(coarse(self.cell or ())):
            yield ("cell", str(index)), entry.variable
        for index, name in enumerate(self.prefer or ()):
            yield ("prefer", str(index)), name
        if self.place_screen is not None:
            yield from (
                (("place_screen", *key), name) for key, name in self.place_screen.references()
            )

    def _conditions(self) -> Iterable[tuple[Key, Condition]]:
        yield from ((("endings", name), ending) for name, ending in self.endings.items())
        if self.success is not None:
            yield ("success",), self.success
        if self.step is not None:
            yield ("step", "until"), self.step.until

    def _wait_problems(self) -> Iterable[Problem]:
        of_terms = (
            (("rewards", name, *key), condition)
            for name, term in self.rewards.items()
            for key, condition in term.conditions()
        )
        for at, condition in (*self._conditions(), *of_terms):
            for key, part in condition.parts():
                name = "same_place_for" if part.same_place_for is not None else "no_reward_for"
                if part.is_wait and at[0] != "endings":
                    yield Problem((*at, *key, name), "is for endings only; remove it")
                elif part.same_place_for is not None and self.place is None:
                    yield Problem(
                        (*at, *key, name),
                        "needs to know where the player is; name the variables that say so, as in "
                        "`place: [map, x, y]`, next to `endings`",
                        reads=(("place",),),
                    )


def _named_twice(key: str, names: tuple[str, ...]) -> Iterable[Problem]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem((key, str(index)), f"{name} is named twice; remove one")


def unknown_name(name: str, kind: str, known: Iterable[str], *, of: str | None = None) -> str:
    """Return the error message for a name that is not one of the known names `of` something."""
    names = tuple(known)
    guess = closest(name, names)
    name = _shortened(name)
    what = f"there is no {kind} {name}" if of is None else f"{of} has no {kind} {name}"
    if guess is not None:
        return f"{what}; did you mean {guess}?"
    if not names:
        return f"{what}; there are none"
    return f"{what}; known: {', '.join(names[:12])}{', …' if len(names) > 12 else ''}"


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN_CHARACTERS else name[:_SHOWN_CHARACTERS] + "…"


@dataclass(frozen=True)
class Game:
    """A game that has been checked and is ready to play; it is pickled to every worker.

    Attributes:
        name: name of the bundled game, or of the folder or file of its game.yaml.
        folder: folder of game.yaml; paths in the file are relative to it.
        variables: the variables in memory with their addresses, in the order of game.yaml.
        potentials: those that were read for reward terms, by the term's name; see
            `explore.potentials`.
    """

    name: str
    folder: Path
    definition: GameDefinition
    rom: Rom
    variables: tuple[MemoryVariable, ...]
    potentials: Mapping[str, Potential] = field(default_factory=dict)

    @property
    def is_colour(self) -> bool:
        return self.definition.hardware == "cgb"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the ROM or a variable, though the game can be played."""
        found = [None if self.rom.warning is None else f"rom.path: {self.rom.warning}"]
        found += [half_byte_warning(variable, self.rom) for variable in self.variables]
        return tuple(text for text in found if text is not None)

    @property
    def number_names(self) -> tuple[str, ...]:
        """Names of the variables that are a number, not an array."""
        specs = self.definition.variables.items()
        return tuple(name for name, spec in specs if not spec.is_array)

    def starts_of(self, env: EnvConfig) -> dict[str, StartStateSpec]:
        """Return the start states in which a run's episodes begin; unknown names are left out."""
        known = self.definition.start_states
        return {name: known[name] for name in env.start_states or known if name in known}

    def rewards_of(self, env: EnvConfig) -> dict[str, RewardTerm]:
        """Return the reward terms of a run: the game's, then those that the config adds."""
        added = {
            name: RewardTerm(potential=term.potential, weight=term.weight)
            for name, term in env.rewards.items()
        }
        return {**self.definition.rewards, **added}

    def without_potentials(self) -> "Game":
        """Return the game without the reward terms that an exploration gives."""
        terms = {n: t for n, t in self.definition.rewards.items() if not t.is_potential}
        if len(terms) == len(self.definition.rewards):
            return self
        return replace(self, definition=self.definition.model_copy(update={"rewards": terms}))

    def map_offsets(self) -> Offsets:
        """Return where each map lies in the map of visited places; none without such a file.

        Raises:
            GameFileError: the file is missing or wrong.
        """
        file = self.definition.file_of_offsets
        return {} if file is None else read_map_offsets(self.folder / file).maps

    def map_names(self) -> dict[int, str]:
        """Return the names of maps: those of `place_names`, and of the file of offsets.

        Raises:
            GameFileError: the file is missing or wrong.
        """
        file = self.definition.file_of_offsets
        found = {} if file is None else read_map_offsets(self.folder / file).names
        return {**found, **self.definition.place_names}

    @property
    def action_names(self) -> tuple[str, ...]:
        return tuple(self.definition.actions)

    def custom_reward(self, sources: Sources = MappingProxyType({})) -> GameReward | None:
        """Return a new object of the game's own reward class, if any; this runs its Python code.

        Args:
            sources: what its methods may take besides the variables.

        Raises:
            GameFileError: the class cannot be imported or instantiated, or is not a reward class.
        """
        reference = self.definition.reward
        if reference is None:
            return None
        try:
            return load_custom_reward(reference, self.folder, sources)
        except GameFileError as error:
            raise GameFileError(f"the reward of {self.name}, in {self.folder}: {error}") from error

    @property
    def reward_source(self) -> str | None:
        """The file or installed module of the game's own reward class, if it has one."""
        reference = self.definition.reward
        return None if reference is None else reward_source(reference, self.folder)


def bundled_games() -> tuple[str, ...]:
    """Return the names of the games that come with game_rl."""
    return tuple(sorted(file.parent.name for file in _BUNDLED.glob("*/game.yaml")))


def load_game(name_or_path: str, *, without_rom: bool = False) -> Game:
    """Load a bundled game by its name, or any game by the path of its game.yaml or folder.

    `name_or_path` is a path if it contains a slash or ends in .yaml.

    Args:
        without_rom: do not look at the ROM and the files of start states, which may be missing. The
            game then has an `absent_rom`.

    Raises:
        GameFileError: lists every problem of the file, its ROM and its symbols.
    """
    path = game_path(name_or_path, relative_to=Path())
    if path is None:
        names = bundled_games()
        if name_or_path not in names:
            raise GameFileError(
                f"{unknown_name(name_or_path, 'bundled game', names)} "
                f"(for a game of your own give a path: ./{_shortened(name_or_path)}/game.yaml)"
            )
        path = _BUNDLED / name_or_path / "game.yaml"
        return _load_game_file(path, name_or_path, without_rom=without_rom)
    if _exists(path, Path.is_dir):
        path /= "game.yaml"
    name = path.parent.name if path.stem == "game" else path.stem
    return _load_game_file(path, name, without_rom=without_rom)


def _exists(path: Path, test: Callable[[Path], bool]) -> bool:
    try:
        return test(path)
    except (OSError, ValueError):  # a name that is too long, or a folder without permission
        return False


def _load_game_file(path: Path, name: str, *, without_rom: bool) -> Game:
    root, _ = Document(path, GameFileError).tree()
    if root.has(("total_timesteps",)) or root.has(("kind",)):
        raise GameFileError(
            f"{path}: is the config of a training, not a game; name a game.yaml, or the bundled "
            f"{' or '.join(bundled_games())}. game-rl preflight checks a config"
        )
    files = _NamedFiles(path.parent, without_rom=without_rom)
    definition = load_yaml_model(
        path, GameDefinition, error=GameFileError, more_checks=files.problems
    )
    assert files.rom is not None
    return Game(name, path.parent, definition, files.rom, tuple(files.variables))


class _NamedFiles:
    """The files that a game.yaml names, which are read and checked against it."""

    def __init__(self, folder: Path, *, without_rom: bool) -> None:
        self.rom: Rom | None = None
        self.variables: list[MemoryVariable] = []
        self._folder = folder
        self._without_rom = without_rom

    def problems(self, definition: GameDefinition) -> Iterable[Problem]:
        yield from self._offsets_problems(definition)
        if definition.reward is not None:
            try:
                reward_source(definition.reward, self._folder)
            except GameFileError as error:
                yield Problem(("reward",), str(error))
        if self._without_rom:
            self.rom = absent_rom(definition.rom.path or Path(), **definition.rom.hashes)
        else:
            yield from self._rom_problems(definition)
        if self.rom is None:
            return
        file = definition.symbols
        try:
            symbols = {} if file is None else read_symbols(self._folder / file)
        except GameFileError as error:
            yield Problem(("symbols",), str(error))
            return
        yield from self._variable_problems(definition, self.rom, symbols)
        yield from self._value_problems(definition)

    def _rom_problems(self, definition: GameDefinition) -> Iterable[Problem]:
        for key, file in definition.state_files():
            if key[-1] == "file" and not _exists(self._folder / file, Path.is_file):
                yield Problem(
                    key,
                    f"there is no file {self._folder / file}; correct the path, or write a "
                    "`script` from power-on",
                )
        rom = definition.rom
        try:
            at = find_rom(rom.hashes) if rom.path is None else self._folder / rom.path
            self.rom = read_rom(at)
        except RomError as error:
            named = next(iter(rom.hashes)) if rom.path is None else "path"
            yield Problem(("rom", named), str(error))
            return
        digests = {"sha256": self.rom.sha256, "sha1": self.rom.sha1}
        for name, digest in rom.hashes.items():
            if digest != digests[name]:
                yield Problem(
                    ("rom", name),
                    f"{self.rom.path} has {name} {digests[name]}, not {digest}: it is another "
                    "revision of the game, and addresses may differ; use the right one, or write "
                    f"the new {name} here and run `game-rl check-game`",
                )
        key = ("hardware",)
        if definition.hardware == "dmg" and self.rom.requires_colour:
            yield Problem(key, "the cartridge runs on Game Boy Color only; write `hardware: cgb`")
        if definition.hardware == "cgb" and not self.rom.supports_colour:
            yield Problem(key, "the cartridge has no colour; write `hardware: dmg`")
        yield from self._start_state_problems(definition, self.rom)

    def _value_problems(self, definition: GameDefinition) -> Iterable[Problem]:
        variables = {variable.name: variable for variable in self.variables}
        for name, state in definition.start_states.items():
            for key, variable, value in state.values:
                place = ("start_states", name, *key)
                reads = (("variables", variable),)
                spec = definition.variables.get(variable)
                found = variables.get(variable)
                if isinstance(found, Variable):
                    try:
                        found.encode(value)
                    except ValueError as error:
                        yield Problem(place, str(error), reads=reads)
                elif spec is not None and spec.operation is not None:
                    message = f"{variable} is computed from others; name one that is in memory"
                    yield Problem(place, message, reads=reads)

    def _start_state_problems(self, definition: GameDefinition, rom: Rom) -> Iterable[Problem]:
        is_colour = definition.hardware == "cgb"
        for name, state in definition.start_states.items():
            found: dict[str, str | None] = {}
            if state.battery is not None:
                found["battery"] = battery_problem(self._folder / state.battery, rom)
            if state.file is not None:
                found["file"] = state_file_problem(
                    self._folder / state.file,
                    rom,
                    colour=is_colour,
                    accepts_older=state.accept_older,
                )
            for key, reason in found.items():
                if reason is not None:
                    reads = (("rom",), ("hardware",))
                    yield Problem(("start_states", name, key), reason, reads=reads)

    def _offsets_problems(self, definition: GameDefinition) -> Iterable[Problem]:
        files = definition.offset_files_of_parts()
        if definition.place_offsets is not None:
            files[("place_offsets",)] = definition.place_offsets
        for key, file in files.items():
            try:
                read_map_offsets(self._folder / file)
            except GameFileError as error:
                yield Problem(key, str(error))

    def _variable_problems(
        self, definition: GameDefinition, rom: Rom, symbols: Mapping[str, Location]
    ) -> Iterable[Problem]:
        is_colour = definition.hardware == "cgb"
        for name, spec in definition.variables.items():
            if spec.operation is not None:
                continue
            places = ("symbol", "address", "addresses")
            kind = next(kind for kind in places if getattr(spec, kind) is not None)
            key = ("variables", name, kind)
            location = _location(spec, symbols)
            if location is None and spec.symbol is not None:
                message = unknown_name(spec.symbol, "symbol", symbols, of=str(definition.symbols))
                if definition.symbols is None:
                    message = (
                        f"{spec.symbol} needs a symbol file; name it under `symbols`, or write an "
                        "`address`"
                    )
                yield Problem(key, message)
                continue
            try:
                place: MemoryVariable
                if location is not None:
                    place = place_variable(name, spec, location, rom=rom, is_colour=is_colour)
                else:
                    at = spec.addresses or ()
                    place = place_array(name, spec, at, rom=rom, is_colour=is_colour)
            except ValueError as error:
                yield Problem(key, str(error), reads=(("variables", name), ("hardware",)))
            else:
                self.variables.append(place)
                if name == definition.random_seed:
                    yield from register_problems(place)


def _location(spec: VariableSpec, symbols: Mapping[str, Location]) -> Location | None:
    if spec.address is not None:
        return Location(spec.address, spec.bank)
    found = symbols.get(spec.symbol or "")
    if found is None or spec.bank is None:
        return found
    return Location(found.address, spec.bank)
