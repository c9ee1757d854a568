"""Games as stable-retro describes them, as sections of a game.yaml.

An integration is a folder with `data.json` (addresses and types), `scenario.json` (rewards, the end
of an episode, buttons), `metadata.json` (the state to begin with), `rom.sha` and states. What each
of them means is as in stable-retro 0.9 and 1.0: its documents, and the program where that does
something else. Nothing of the package is imported, and no program in an integration is run.
"""

import importlib.util
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from game_rl.emulator.emulator import BUTTONS, SCREEN_HEIGHT, SCREEN_WIDTH
from game_rl.emulator.rom import Rom
from game_rl.errors import GameFileError, UsageError
from game_rl.games.actions import button_problems
from game_rl.games.start_state import read_limited
from game_rl.games.starter import KnownGame
from game_rl.games.symbol_files import Location
from game_rl.games.variable_spec import VariableSpec
from game_rl.games.variables import place_variable
from game_rl.interchange.retro_measure import (
    ALWAYS_0,
    Measure,
    Term,
    reward_terms,
    time_term,
    whole_number,
)
from game_rl.interchange.retro_variables import CannotBeSaidError, retro_variable

_LARGEST_FILE_BYTES = 4 * 2**20
_DEEPEST_NODE = 8
_MOST_ACTIONS = 40
_LINE_WIDTH = 100

_Groups = Iterable[Iterable[Iterable[str]]]  # if the file is right
_PACKAGES = ("stable_retro", "retro")  # of versions since 1.0, and before
_FOLDERS = ("stable", "experimental", "contrib")
_OF_GAME_BOY = re.compile(r"(.+?)-(GameBoy|GbColor|Gbc|Gb)(-v\d+)?")


def installed_integrations() -> Iterator[Path]:
    """Yield the folders of Game Boy games in the installed stable-retro, if there is one."""
    for package in _PACKAGES:
        try:
            spec = importlib.util.find_spec(package)  # which does not import it
        except (ImportError, ValueError):
            continue
        if spec is None:
            continue
        for location in spec.submodule_search_locations or ():
            for name in _FOLDERS:
                for folder in sorted(Path(location, "data", name).glob("*-G*")):
                    # a folder without a hash adds variables to another one of its name
                    if _OF_GAME_BOY.fullmatch(folder.name) and (folder / "rom.sha").is_file():
                        yield folder


def integrations_by_hash() -> dict[str, Path]:
    """Return the installed integrations by the SHA-1 of each ROM that they are for."""
    folders = reversed(list(installed_integrations()))  # the first one with a hash stays
    return {sha1: folder for folder in folders for sha1 in _hashes(folder)}


def retro_folder(name: str) -> Path:
    """Return the folder of an integration, which is named by its path or, if installed, its name.

    Raises:
        UsageError: there is none.
    """
    path = Path(name).expanduser()
    if (path / "data.json").is_file():
        return path
    installed = {folder.name: folder for folder in reversed(list(installed_integrations()))}
    for known, folder in installed.items():
        if name in (known, re.sub(r"-v\d+$", "", known)):
            return folder
    if path.is_dir():
        raise UsageError(f"{path} has no data.json; name the folder of one of stable-retro's games")
    where = "stable-retro is not installed here, so name a folder"
    if installed:
        where = f"stable-retro has {len(installed)} for the Game Boy; game-rl games lists them"
    raise UsageError(f"there is no integration {name} of stable-retro; {where}")


def _hashes(folder: Path) -> tuple[str, ...]:
    try:
        text = read_limited(folder / "rom.sha", _LARGEST_FILE_BYTES, "a list of hashes")
    except (OSError, ValueError):
        return ()
    return tuple(text.decode("ascii", "replace").lower().split())


def known_from_retro(folder: Path, rom: Rom) -> KnownGame:
    """Return what an integration says about the game, and what of it cannot be said.

    Raises:
        GameFileError: a file of the integration cannot be read.
    """
    return _Conversion(folder, rom).known()


@dataclass
class _Section:
    """The lines of one section of game.yaml."""

    key: str
    about: str
    lines: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, text: str, comment: str) -> str:
        """Add a line, and return its name, which gets a number if it is taken."""
        taken = name
        number = 2
        while taken in self.lines:
            taken = f"{name}_{number}"
            number += 1
        line = f"  {taken}: {text}"
        comment = f"# {_one_line(comment)}"
        is_short = len(line) + len(comment) < _LINE_WIDTH
        self.lines[taken] = f"{line}  {comment}" if is_short else f"  {comment}\n{line}"
        return taken

    @property
    def text(self) -> str:
        return "\n".join((f"# {self.about}", f"{self.key}:", *self.lines.values(), ""))


class _Conversion:
    def __init__(self, folder: Path, rom: Rom) -> None:
        self._folder = folder
        self._name = _one_line(folder.resolve().name)
        self._rom = rom
        self._notes: list[str] = []
        self._specs: dict[str, VariableSpec] = {}
        self._names: dict[str, str] = {}
        """Names of the variables in game.yaml, by those in data.json."""
        self._variables = _Section(
            "variables", "From data.json: comments show the original entries."
        )
        self._rewards = _Section(
            "rewards", "From scenario.json, where each frame counts, as each timestep does here."
        )
        self._endings = _Section("endings", "From `done` in scenario.json.")

    def known(self) -> KnownGame:
        folder = self._folder
        data = _object(_read_json(folder / "data.json"))
        scenario = self._optional("scenario.json", "rewards and endings")
        hashes = _hashes(folder)
        if hashes and self._rom.sha1 not in hashes:
            self._notes.append(
                f"{self._name} is for the ROM with sha1 {hashes[0]}, and this one has "
                f"{self._rom.sha1}: it may be another revision, with other addresses"
            )
        for name, entry in _object(data.get("info")).items():
            self._add_variable(name, _object(entry))
        sections: dict[str, str] = {}
        if self._specs:
            self._add_rewards(scenario)
            self._add_endings(_object(scenario.get("done")))
            found = (self._variables, self._rewards, self._endings)
            sections = {section.key: section.text for section in found if section.lines}
        else:
            self._notes.append("data.json has no variable that can be read here")
        sections |= self._actions(scenario.get("actions"))
        sections |= self._crop(scenario)
        self._tell_of_states(_object(self._optional("metadata.json", None)))
        self._tell_of_notes()
        notes = tuple(map(_one_line, self._notes))
        return KnownGame(f"{self._name} of stable-retro", sections, notes, title=_title(self._name))

    def _optional(self, name: str, what: str | None) -> dict[str, Any]:
        path = self._folder / name
        if path.is_file():
            return _object(_read_json(path))
        if what is not None:
            self._notes.append(f"{self._name} has no {name}, so {what} are not known")
        return {}

    # --- variables --------------------------------------------------------------------------------

    def _add_variable(self, name: str, entry: Mapping[str, Any]) -> None:
        try:
            fields = retro_variable(entry, self._rom)
            spec = VariableSpec.model_validate(fields)
            location = Location(fields["address"], fields.get("bank"))
            is_colour = self._rom.supports_colour
            place_variable(name, spec, location, rom=self._rom, is_colour=is_colour)
        except (CannotBeSaidError, ValueError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            self._notes.append(f"variable {name}: {reason}")
            return
        comment = f"{name}: {entry['address']} {entry['type']}"
        if "mask" in entry:
            comment += f" mask {entry['mask']}"
        fields["address"] = f"0x{fields['address']:04X}"
        if "mask" in fields:
            fields["mask"] = f"0x{fields['mask']:02X}"
        ours = self._variables.add(_name(name), _flow(fields), comment)
        self._names[name] = ours
        self._specs[ours] = spec

    def _variable(self, name: str) -> str:
        if name not in self._names:
            raise CannotBeSaidError(f"{name} is not a variable that could be taken from data.json")
        return self._names[name]

    # --- rewards ----------------------------------------------------------------------------------

    def _add_rewards(self, scenario: Mapping[str, Any]) -> None:
        reward = _object(scenario.get("reward"))
        players = scenario.get("rewards")
        if isinstance(players, list) and players:
            reward = _object(players[0])
            if len(players) > 1:
                self._notes.append("rewards: those of the first player are taken")
        script = reward.get("script")
        if script is not None:
            self._notes.append(
                f"reward: {script} is a function of a program in Lua; write it as terms under "
                "`rewards`, or as a class in Python"
            )
        else:
            for name, entry in _object(reward.get("variables")).items():
                try:
                    self._add_reward(name, Measure.of(_object(entry), is_delta=True))
                except CannotBeSaidError as error:
                    self._notes.append(f"reward {name}: {error}")
            if "time" in reward:
                self._add_time_reward(Measure.of(_object(reward["time"]), is_delta=True))
        if not self._rewards.lines:
            scores = (name for name in self._specs if "score" in name.lower())
            variable = next(scores, next(iter(self._specs)))
            term = f"{{variable: {variable}, on: increase, weight: 1.0}}"
            self._rewards.add(f"{variable}_up", term, "A GUESS: no reward could be imported")
            self._notes.append("rewards: none could be imported; the one in the file is a guess")

    def _add_time_reward(self, measure: Measure) -> None:
        try:
            self._add_term("time", time_term(measure), f"time: {measure.comment}")
        except CannotBeSaidError as error:
            self._notes.append(f"reward: {error}")

    def _add_reward(self, name: str, measure: Measure) -> None:
        variable = self._variable(name)
        if not measure.reward and not measure.penalty:
            raise CannotBeSaidError("has neither reward nor penalty, so it earns nothing")
        is_signed = self._specs[variable].type.startswith("s")
        for ending, term in reward_terms(measure, variable, is_signed=is_signed):
            self._add_term(f"{variable}{ending}", term, f"{name}: {measure.comment}")

    def _add_term(self, name: str, term: Term, comment: str) -> None:
        if not term["weight"]:
            return
        if term["variable"] == ALWAYS_0 and ALWAYS_0 not in self._variables.lines:
            first = next(iter(self._specs))
            text = f"{{difference: [{first}, {first}]}}"
            self._variables.add(ALWAYS_0, text, "for rewards that need no amount")
        self._rewards.add(name, _flow(term), comment)

    # --- endings ----------------------------------------------------------------------------------

    def _add_endings(self, done: Mapping[str, Any]) -> None:
        script = done.get("script")
        if script is not None:
            self._notes.append(
                f"done: {script} is a function of a program in Lua; write it as conditions under "
                "`endings`"
            )
            return
        conditions: dict[str, str] = {}
        is_all = done.get("condition") == "all"
        try:
            for name, condition, comment in self._conditions(done, is_all=is_all, depth=0):
                conditions[comment] = condition
                if not is_all:
                    self._endings.add(name, condition, comment)
        except CannotBeSaidError as error:
            self._notes.append(f"done: {error}")
            return
        if is_all and conditions:
            self._endings.add(
                "done", _joined("all", list(conditions.values())), "; ".join(conditions)
            )
        elif is_all:
            self._notes.append("done: `all` without conditions always holds; it is left out")

    def _conditions(
        self, node: Mapping[str, Any], *, is_all: bool, depth: int
    ) -> Iterator[tuple[str, str, str]]:
        """Yield name, condition and comment of each variable and node in a node.

        Raises:
            CannotBeSaidError: one of them cannot be said, and all of them must hold.
        """
        if depth > _DEEPEST_NODE:
            raise CannotBeSaidError(f"has nodes in nodes, more than {_DEEPEST_NODE} deep")
        for name, entry in _object(node.get("variables")).items():
            measure = Measure.of(_object(entry), is_delta=False)
            try:
                variable = self._variable(name)
                condition = measure.condition(variable)
            except CannotBeSaidError as error:
                if is_all:
                    raise
                self._notes.append(f"done {name}: {error}")
                continue
            is_none_left = not measure.is_delta and measure.equal_to == 0
            label = f"no_{variable}" if is_none_left else variable
            yield label, condition, f"{name}: {measure.comment}"
        for name, entry in _object(node.get("nodes")).items():
            inner = _object(entry)
            key = "all" if inner.get("condition") == "all" else "any"
            try:
                found = list(self._conditions(inner, is_all=key == "all", depth=depth + 1))
                if not found:
                    raise CannotBeSaidError(f"node {name} is empty")
            except CannotBeSaidError as error:
                if is_all:
                    raise
                self._notes.append(f"done {name}: {error}")
                continue
            comments = "; ".join(comment for _, _, comment in found)
            yield (
                _name(name),
                _joined(key, [each for _, each, _ in found]),
                f"{name}: {key} of {comments}",
            )

    # --- the rest ---------------------------------------------------------------------------------

    def _actions(self, groups: _Groups | None) -> dict[str, str]:
        """Return the section of actions, if the scenario chooses the buttons."""
        if groups is None:
            return {}
        try:
            sets = _button_sets(groups)
        except (TypeError, AttributeError):
            self._notes.append("actions: they are not lists of lists of buttons")
            return {}
        unknown = sorted({b for each in chain.from_iterable(sets) for b in each} - set(BUTTONS))
        if unknown:
            self._notes.append(f"actions: the Game Boy has no button {', '.join(unknown)}")
        sets = [[each for each in group if each <= set(BUTTONS)] for group in sets]
        if math.prod(map(len, sets)) <= _MOST_ACTIONS:
            about = (
                "From `actions` in scenario.json: each group of buttons with each of the others."
            )
            found = [frozenset().union(*each) for each in product(*sets)]
        else:
            about = "From `actions` in scenario.json, whose combinations are too many to learn."
            found = [each for each in chain.from_iterable(sets) if len(each) == 1]
            found += [frozenset(pair) for pair in product(("left", "right"), ("a", "b"))]
        section = _Section("actions", about)
        for each in (frozenset[str](), *found):
            buttons = tuple(button for button in BUTTONS if button in each)
            name = "_".join(buttons) or "idle"
            if not list(button_problems((), buttons)):
                section.lines[name] = f"  {name}: [{', '.join(buttons)}]"
        return {"actions": section.text} if len(section.lines) > 1 else {}

    def _crop(self, scenario: Mapping[str, Any]) -> dict[str, str]:
        crop = scenario.get("crop")
        crops = scenario.get("crops")
        if isinstance(crops, list) and crops:
            crop = crops[0]
        if not isinstance(crop, list) or len(crop) != 4:
            return {}
        left, top, width, height = map(whole_number, crop)
        width = width or SCREEN_WIDTH - left
        height = height or SCREEN_HEIGHT - top
        width = min(width, SCREEN_WIDTH - left)
        height = min(height, SCREEN_HEIGHT - top)
        if (left, top, width, height) == (0, 0, SCREEN_WIDTH, SCREEN_HEIGHT):
            return {}
        if min(left, top) < 0 or min(width, height) < 1:
            self._notes.append(f"crop: {crop} is not a part of the screen")
            return {}
        area = f"{{top: {top}, left: {left}, height: {height}, width: {width}}}"
        text = f"# From `crop` in scenario.json: {crop}\nobservation: {{crop: {area}}}\n"
        return {"observation": text}

    def _tell_of_states(self, metadata: Mapping[str, Any]) -> None:
        states = sorted(path.name for path in self._folder.glob("*.state"))
        if not states:
            return
        default = metadata.get("default_state")
        begins = ""
        if isinstance(default, str) and len(states) > 1:
            begins = f"; it starts with {default}"
        self._notes.append(
            f"its start states ({', '.join(states)}) come from another emulator, gambatte, and "
            f"PyBoy cannot load them{begins}; let a script in `start_states` reach the same place"
        )

    def _tell_of_notes(self) -> None:
        try:
            data = read_limited(self._folder / "notes.txt", _LARGEST_FILE_BYTES, "notes")
        except (OSError, ValueError):
            return
        text = " ".join(data.decode("utf-8", "replace").split())[:500]
        if text:
            self._notes.append(f"notes.txt says: {text}")


def _button_sets(groups: _Groups) -> list[list[frozenset[str]]]:
    """Return the sets of buttons of each group, in our names.

    Raises:
        TypeError, AttributeError: they are no lists of lists of texts.
    """
    return [[frozenset(button.lower() for button in each) for each in group] for group in groups]


def _read_json(path: Path) -> object:
    """Read a JSON file.

    Raises:
        GameFileError: it is missing or no JSON.
    """
    try:
        data = read_limited(path, _LARGEST_FILE_BYTES, "a file of an integration")
        found: object = json.loads(data)
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GameFileError(
            f"{path} cannot be read ({reason}); copy the integration again"
        ) from None
    return found


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(text: str) -> str:
    """Return a name as game.yaml allows it."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
    is_word = name.lower() in ("true", "false", "null", ALWAYS_0)
    return f"_{name}" if name[0].isdigit() or is_word else name


def _title(folder: str) -> str:
    match = _OF_GAME_BOY.fullmatch(folder)
    name = match[1] if match else folder
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)


def _flow(fields: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}"


def _joined(key: str, conditions: list[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"{{{key}: [{', '.join(conditions)}]}}"


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
