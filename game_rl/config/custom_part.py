"""Custom parts in a run's config: `callbacks`, `env.wrappers` and `algorithm.network`.

An item of such a list, as rl_zoo3 has them, and such a network are `module:Class`, or a mapping of
one `module:Class` to its arguments. `custom_class` says where a module is looked up. A config that
was read from a file in another folder than the current one names that folder, as `FOLDER/module`,
so that the class is found wherever the run goes on.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, JsonValue

from game_rl.config.custom_class import class_source, load_class, module_file
from game_rl.config.schema_guide import closest
from game_rl.config.strict_model import Key, Problem
from game_rl.errors import ConfigError

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_PATTERN = rf"(.*/)?{_NAME}(\.{_NAME})*:{_NAME}"
_REFERENCE = re.compile(_PATTERN)
_FORM = "write module:Class, or {module:Class: {name: value}} with arguments"


def _checked_item(item: object) -> object:
    """Return the item in its shortest form."""
    if isinstance(item, str):
        _check_reference(item)
        return item
    if not isinstance(item, dict) or len(item) != 1:
        found = "a section of " + ", ".join(map(str, item)) if isinstance(item, dict) else item
        raise ValueError(f"found {found}; {_FORM}")
    ((reference, arguments),) = item.items()
    _check_reference(reference)
    if not isinstance(arguments, dict | None):
        raise ValueError(f"found {arguments} for the arguments of {reference}; {_FORM}")
    return {reference: arguments} if arguments else reference


def _check_reference(text: str) -> None:
    if _REFERENCE.fullmatch(text):
        return
    module, dot, name = text.rpartition(".")
    meant = f"{module}:{name}"
    hint = f"did you mean {meant}? " if dot and _REFERENCE.fullmatch(meant) else ""
    raise ValueError(f"found {text}, which is not module:Class; {hint}{_FORM}")


PartItem = Annotated[
    Annotated[str, Field(pattern=f"^{_PATTERN}$", examples=["my_parts:MyClass"])]
    | dict[str, dict[str, JsonValue]],
    BeforeValidator(_checked_item),
]
PartItems = tuple[PartItem, ...]


class PartError(ConfigError):
    """A part that cannot be used.

    Attributes:
        key: key of the part in the run's config.
        message: what is wrong, without the key.
    """

    def __init__(self, key: Key, message: str) -> None:
        super().__init__(key, message)
        self.key = key
        self.message = message

    def __str__(self) -> str:
        return f"{'.'.join(self.key)}: {self.message}"


@dataclass(frozen=True)
class CustomPart:
    """A custom class, with the arguments for its objects.

    Attributes:
        key: its key in the run's config, such as `callbacks.0`.
        written: `module:Class`, or `FOLDER/module:Class`.
    """

    key: Key
    written: str
    arguments: Mapping[str, JsonValue]

    @property
    def reference(self) -> str:
        """`module:Class`, without a folder."""
        return self.written.rpartition("/")[2]

    @property
    def file_name(self) -> Path:
        """Its module as a file of a folder."""
        return module_file(self.reference.partition(":")[0], Path())

    def places(self, folder: Path) -> tuple[Path, ...]:
        """Return where its module is looked up; `folder` is the current one."""
        named = self.written.rpartition("/")[0]
        return tuple(dict.fromkeys((folder / named, folder)))

    @property
    def name(self) -> str:
        """Its key and class, for messages."""
        return f"{'.'.join(self.key)}, {self.reference}"

    @property
    def item(self) -> str | dict[str, Mapping[str, JsonValue]]:
        """As a config has it."""
        return {self.written: self.arguments} if self.arguments else self.written

    def beside(self, folder: Path, *, is_saved: bool) -> "CustomPart":
        """Return the part with the folder of the file that names it, if its module is there.

        So it is if that is the current folder, or if the module is elsewhere. A missing module of a
        config that is new is sought there, and the message says so.
        """
        here = Path.cwd()
        place = (here / folder / self.written.rpartition("/")[0]).resolve()
        if place == here.resolve():
            return replace(self, written=self.reference)
        if "/" not in self.written and not (place / self.file_name).is_file():
            if is_saved:
                return self
            with suppress(ConfigError):
                self.source(here)
                return self
        return replace(self, written=f"{place.as_posix()}/{self.reference}")

    def source(self, folder: Path) -> str:
        """Return its file or installed module, without running its code.

        Raises:
            ConfigError: there is no such module or class.
        """
        return class_source(self.reference, self.places(folder), error=ConfigError)

    def load(
        self, folder: Path, *, base: tuple[str, str], of_what: str, before: Sequence[object] = ()
    ) -> Callable[..., Any]:
        """Import the class, and check that the arguments fit.

        Args:
            base: module and name of the class that it must inherit from.
            of_what: what the part is, for the message.
            before: arguments that come before the part's own.

        Raises:
            PartError: there is no such class, it is no such part, or takes other arguments.
        """
        try:
            found, _ = load_class(self.reference, self.places(folder), error=ConfigError)
        except ConfigError as error:
            raise PartError(self.key, str(error)) from error
        bases = [(one.__module__, one.__qualname__) for one in found.__mro__]
        if base not in bases:
            raise PartError(
                self.key, f"{self.reference} is not {of_what}: let it inherit from {'.'.join(base)}"
            )
        self._check_arguments(found, before)
        return found

    def load_callback(self, folder: Path) -> Callable[..., Any]:
        """As `load`, for a callback; its class is known by name, as this loads no torch itself."""
        base = ("stable_baselines3.common.callbacks", "BaseCallback")
        return self.load(folder, base=base, of_what="a callback of Stable-Baselines3")

    def load_features_extractor(self, folder: Path) -> Callable[..., Any]:
        """As `load`, for a features extractor, whose objects get the observation space first."""
        base = ("stable_baselines3.common.torch_layers", "BaseFeaturesExtractor")
        what = "a features extractor of Stable-Baselines3"
        return self.load(folder, base=base, of_what=what, before=(None,))

    def _check_arguments(self, found: type, before: Sequence[object]) -> None:
        try:
            signature = inspect.signature(found)
        except ValueError:  # of a class in C
            return
        try:
            signature.bind(*before, **self.arguments)
        except TypeError as error:
            parameters = list(signature.parameters.values())[len(before) :]
            known = {each.name for each in parameters}
            unknown = [name for name in self.arguments if name not in known]
            guess = ""
            if unknown and (near := closest(unknown[0], sorted(known))):
                guess = f"; did you mean {near}?"
            shown = inspect.Signature(parameters)
            raise PartError(
                self.key,
                f"{error}; the arguments of {self.reference} are {shown}{guess}",
            ) from None


def parts_of(items: PartItems, *key: str) -> tuple[CustomPart, ...]:
    """Return the parts that a list of the config names.

    Args:
        key: key of the list.
    """
    found = []
    for number, item in enumerate(items):
        written = {item: {}} if isinstance(item, str) else item
        for reference, arguments in written.items():
            found.append(CustomPart((*key, str(number)), reference, arguments))
    return tuple(found)


def source_problems(parts: Sequence[CustomPart], folder: Path) -> Iterator[Problem]:
    """Check that the classes exist, without running their code."""
    for part in parts:
        try:
            part.source(folder)
        except ConfigError as error:
            yield Problem(part.key, str(error))


def callback_problems(parts: Sequence[CustomPart], folder: Path) -> Iterator[Problem]:
    """Import the classes of callbacks, and check that they are some and take the arguments."""
    for part in parts:
        try:
            part.load_callback(folder)
        except PartError as error:
            yield Problem(error.key, error.message)


def network_problems(parts: Sequence[CustomPart], folder: Path) -> Iterator[Problem]:
    """Import the classes of networks, and check that they are some and take the arguments."""
    for part in parts:
        try:
            part.load_features_extractor(folder)
        except PartError as error:
            yield Problem(error.key, error.message)


def part_files(parts: Sequence[CustomPart], folder: Path) -> dict[Path, Path]:
    """Return the files that have the classes, by their path in their folder.

    Installed modules are left out, and modules that are missing.
    """
    found = {}
    for part in parts:
        try:
            source = Path(part.source(folder))
        except ConfigError:
            continue
        if source.is_absolute():
            found[part.file_name] = source
    return found
