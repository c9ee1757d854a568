"""`reward: module:Class` in game.yaml: a user's own Python class, and its state as plain data.

A game.yaml may come from a stranger, so its Python code runs only when an env is built.

What JSON can represent stays as it is. A tuple becomes `{"!tuple": [...]}`; a dict with another key
than text becomes `{"!dict": [[key, value], ...]}`; Counters and defaultdicts are marked likewise.
"""

import ast
import hashlib
import importlib.util
import json
import math
import sys
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from pydantic import JsonValue

from game_rl.errors import GameFileError

_NOT_THEIRS = (Path(__file__).parent, Path(importlib.__file__).parent, Path())  # and <frozen ...>
_SHOWN_CLASSES = 12
_SHOWN_CHARACTERS = 500  # of an error message of the user's code

CUSTOM_TERM = "custom"
"""Name of the reward term for a class that returns a bare number."""


class CustomReward(Protocol):
    """A user's reward class; each env makes an object of it, without arguments.

    `variables` has the variables of game.yaml by name. A checkpoint saves the object's attributes,
    which must be plain data: numbers, strings, and lists, tuples and dicts of them (see
    `plain_data`). A class with other attributes needs two more methods: `save_state(self)`, which
    returns plain data, and `load_state(self, state)`, which restores it.
    """

    def reset(self, variables: Mapping[str, int]) -> None:
        """Begin an episode."""

    def step(self, variables: Mapping[str, int]) -> float | Mapping[str, float]:
        """Return the reward of a timestep, or a mapping of term to reward."""


def reward_source(reference: str, folder: Path) -> str:
    """Return the file or installed module that `module:Class` names, without running its code.

    Raises:
        GameFileError: there is no such module, or the file is not valid Python or lacks the class.
    """
    module_name, _, class_name = reference.partition(":")
    path = folder / f"{module_name}.py"
    if path.is_file():
        _check_source(path, class_name)
        return str(path)
    # only the first part of a dotted name, as finding the rest would import the first part
    if importlib.util.find_spec(module_name.partition(".")[0]) is None:
        raise _no_module(module_name, path)
    return f"the module {module_name}"


def load_custom_reward(reference: str, folder: Path) -> "GameReward":
    """Return a new object of `module:Class`; `module` is a .py in `folder`, or importable.

    Raises:
        GameFileError: there is no such module or class, or importing it or making the object
            failed, or the class lacks `reset` or `step`.
    """
    module_name, _, class_name = reference.partition(":")
    module = _load_module(module_name, folder)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [n for n, v in vars(module).items() if isinstance(v, type)]
        raise _no_class(class_name, str(module.__file__), classes)
    return GameReward(found, reference, Path(module.__file__ or folder).parent)


class GameReward:
    """A custom reward that can be saved; its methods raise nothing but GameFileError.

    That error names the class, and the line, where the user's code fails.
    """

    def __init__(self, reward_class: type, reference: str, folder: Path) -> None:
        self._class, self._reference, self._folder = reward_class, reference, folder
        try:
            self._reward = reward = reward_class()
        except (Exception, SystemExit) as error:
            raise GameFileError(
                f"{reference}() failed with {self._told(error)}; a reward class is called without "
                "arguments"
            ) from error
        for method in ("reset", "step"):
            if not callable(getattr(reward, method, None)):
                raise GameFileError(
                    f"{reference} has no method {method}; a reward class has "
                    "`reset(self, variables)` and `step(self, variables)`"
                )
        self._reset = getattr(reward, "reset")  # noqa: B009 - checked above
        self._step = getattr(reward, "step")  # noqa: B009 - checked above

    def reset(self, variables: Mapping[str, int]) -> None:
        try:
            self._reset(variables)
        except (Exception, SystemExit) as error:
            raise self._failure("reset", error) from error

    def step(self, variables: Mapping[str, int]) -> float | Mapping[str, float]:
        try:
            earned = self._step(variables)
            if isinstance(earned, Mapping):
                return {str(name): float(reward) for name, reward in earned.items()}
            return float(earned)
        except (Exception, SystemExit) as error:
            raise self._failure("step", error) from error

    def save_state(self) -> JsonValue:
        save = getattr(self._reward, "save_state", None)
        try:
            state = state_to_json(vars(self._reward) if save is None else save(), "the state")
            copy: JsonValue = json.loads(json.dumps(state, allow_nan=False))
        except (Exception, SystemExit) as error:
            raise self._unsaved(error) from error
        return copy

    def load_state(self, state: JsonValue) -> None:
        load = getattr(self._reward, "load_state", None)
        try:
            if load is not None:
                load(state_from_json(state))
            else:
                vars(self._reward).clear()
                vars(self._reward).update(state_from_json(state))
        except (Exception, SystemExit) as error:
            raise self._failure("load_state", error) from error

    def renewed(self) -> "GameReward":
        """Return a new object with this one's saved state, as a resumed run makes it."""
        reward = GameReward(self._class, self._reference, self._folder)
        reward.load_state(self.save_state())
        return reward

    def _unsaved(self, error: BaseException) -> GameFileError:
        return GameFileError(
            f"{self._reference} cannot be saved in a checkpoint: {self._told(error)}; keep only "
            "plain data in its attributes (numbers, strings, and lists, tuples and dicts of them), "
            "or give the class `save_state(self)`, which returns plain data, and "
            "`load_state(self, state)`"
        )

    def _failure(self, method: str, error: BaseException) -> GameFileError:
        told, line = _told(error), _line_of(error, self._folder)
        way_out = "correct it there" if line else "`step` returns a number or a mapping of them"
        return GameFileError(f"{self._reference}.{method} failed with {told}{line}; {way_out}")

    def _told(self, error: BaseException) -> str:
        return _told(error) + _line_of(error, self._folder)


def _load_module(name: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    try:
        if path.is_file():
            return _load_file(path)
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise _no_module(name, path) from None
        raise GameFileError(f"{name} needs the module {error.name}; install it") from error
    except (Exception, SystemExit) as error:
        place = _line_of(error, folder)
        raise GameFileError(
            f"importing {name} failed with {_told(error)}{place}; fix it"
        ) from error


def _check_source(path: Path, class_name: str) -> None:
    """Check a reward file as text; other mistakes only show when it runs."""
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise GameFileError(f"{path} cannot be read: {_told(error)}; fix it") from None
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    assigned = {node.id for node in nodes if isinstance(node, ast.Name)}
    if not {class_name, "*"} & {*classes, *imported, *assigned}:
        raise _no_class(class_name, str(path), classes)


def _no_module(name: str, path: Path) -> GameFileError:
    return GameFileError(f"there is no module {name}: neither {path} nor an installed one")


def _no_class(name: str, source: str, classes: Iterable[str]) -> GameFileError:
    public = [other for other in classes if other[0] != "_"]
    shown = ", ".join(public[:_SHOWN_CLASSES]) or "none"
    more = ", …" if len(public) > _SHOWN_CLASSES else ""
    return GameFileError(f"{source} has no class {name}; it has: {shown}{more}; name one of them")


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_SHOWN_CHARACTERS]


def _line_of(error: BaseException, folder: Path) -> str:
    """Return the line of the user's code that led to the error, in words; "" if there is none.

    It is the innermost in a file of the folder, or else the one that we called.
    """
    frames = traceback.extract_tb(error.__traceback__)
    called = [f for f in frames if Path(f.filename).parent not in _NOT_THEIRS]
    theirs = [f for f in called if _is_own_file(Path(f.filename), folder)] or called[:1]
    return (
        f" in {theirs[-1].filename}, line {theirs[-1].lineno}: `{theirs[-1].line}`"
        if theirs
        else ""
    )


def _is_own_file(path: Path, folder: Path) -> bool:
    """Whether the file is in the folder, and not in one of packages that happens to be there."""
    if not path.is_relative_to(folder):
        return False
    return "site-packages" not in path.relative_to(folder).parts


def _load_file(path: Path) -> ModuleType:
    """Import a file under a unique name, so that two games may both have a `reward.py`."""
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    name = f"game_rl_reward_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


_MARK = "!"
_FACTORIES: dict[str, Callable[[], Any]] = {f.__name__: f for f in (int, float, str, list, dict)}


def state_to_json(value: object, name: str = "it") -> JsonValue:
    """Return what `state_from_json` turns into an equal value of the same types.

    Args:
        value: None, numbers, text, and lists, tuples, dicts, Counters and defaultdicts of them.
        name: what the value is called in messages.

    Raises:
        ValueError: it is no plain data; the message begins with the part that is not.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return _items(value, name)
    if type(value) is tuple:
        return {f"{_MARK}tuple": _items(value, name)}
    if isinstance(value, dict):
        return _dict_to_json(value, name)
    what = f"{value}" if isinstance(value, float) else f"of type {type(value).__name__}"
    raise ValueError(f"{name} is {what}")


def state_from_json(value: JsonValue) -> Any:  # noqa: ANN401 - whatever was saved
    """Return the value that `state_to_json` represented."""
    if isinstance(value, list):
        return [state_from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    match list(value.items()):
        case [("!tuple", list(items))]:
            return tuple(map(state_from_json, items))
        case [("!dict", list(pairs))]:
            return _filled({}, pairs)
        case [("!Counter", list(pairs))]:
            return _filled(Counter(), pairs)
        case [("!defaultdict", [str(factory), *pairs])]:
            return _filled(defaultdict(_FACTORIES[factory]), pairs)
    return {key: state_from_json(item) for key, item in value.items()}


def _items(values: list[Any] | tuple[Any, ...], name: str) -> list[JsonValue]:
    return [state_to_json(item, f"{name}[{index}]") for index, item in enumerate(values)]


def _dict_to_json(value: dict[Any, Any], name: str) -> JsonValue:
    inner = {key: state_to_json(item, f"{name}[{key!r}]") for key, item in value.items()}
    is_text = all(isinstance(key, str) and not key.startswith(_MARK) for key in inner)
    if is_text and not isinstance(value, Counter | defaultdict):
        return inner
    pairs: list[JsonValue] = [
        [state_to_json(key, f"a key of {name}"), item] for key, item in inner.items()
    ]
    if isinstance(value, Counter):
        return {f"{_MARK}Counter": pairs}
    if not isinstance(value, defaultdict):
        return {f"{_MARK}dict": pairs}
    for factory_name, factory in _FACTORIES.items():
        if value.default_factory is factory:
            return {f"{_MARK}defaultdict": [factory_name, *pairs]}
    known = ", ".join(_FACTORIES)
    raise ValueError(f"{name} is a defaultdict of {value.default_factory}, not of {known}")


def _filled(target: dict[Any, Any], pairs: list[JsonValue]) -> dict[Any, Any]:
    for pair in pairs:
        assert isinstance(pair, list)
        key, item = pair
        target[state_from_json(key)] = state_from_json(item)
    return target
