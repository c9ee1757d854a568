"""Finds at once everything that keeps a document from being a model, with places and hints.

Pydantic stops at the first layer of errors: while one field is wrong, it does not compare two
others. So after each round the wrong values are taken out (their defaults or examples stand in) and
the rest is validated again. A check that read a wrong value is not believed.
"""

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, to_jsonable_python
from pydantic_core.core_schema import ErrorType

from game_rl.config.output_config import without_secrets
from game_rl.config.schema_guide import SchemaGuide, closest, schema_guide
from game_rl.config.strict_model import MOST_PROBLEMS, Key, Problem, StrictModel
from game_rl.config.yaml_tree import LocatedProblem, Node, Place, resolve_plain
from game_rl.errors import ConfigError

M = TypeVar("M", bound=BaseModel)

_ROUNDS = 5  # unknown or wrong values, examples for missing ones, nested checks, the model's checks
_PYDANTIC_ERRORS = frozenset(get_args(ErrorType)) - {"value_error", "assertion_error"}
_LIST_OF_ONE = re.compile(r"a list \[\.\.\.\](?! of [2-9]| with at least [2-9])")
_HEXADECIMAL = re.compile(r"(?=.*\d)\$?([0-9A-Fa-f]{2,6})[hH]?")
"""A number as assemblers and lists of addresses write it: $C010, C010h."""
_SHOWN_CHARACTERS = 60
_SHOWN_KEYS = 24


@dataclass(frozen=True)
class _Error:
    """One error of pydantic, with a key of the document instead of a place in the model."""

    key: Key
    kind: str
    text: str
    problems: tuple[Problem, ...] = ()


class Diagnosis(Generic[M]):
    """The model that a document describes, or what is wrong with the document.

    Attributes:
        instance: the model; None if anything is wrong.
        problems: what is wrong, in no particular order.
    """

    def __init__(
        self, root: Node, model: type[M], more_checks: Callable[[M], Iterable[Problem]]
    ) -> None:
        self.instance: M | None = None
        self.problems: list[LocatedProblem] = []
        self._root = root
        self._model = model
        self._wrong: set[Key] = set()
        self._diagnose(more_checks)

    @functools.cached_property  # a right document needs none
    def _guide(self) -> SchemaGuide:
        return self._every_guide.chosen_by(self._root.plain())

    @functools.cached_property
    def _every_guide(self) -> SchemaGuide:
        return schema_guide(self._model)

    def _diagnose(self, more_checks: Callable[[M], Iterable[Problem]]) -> None:
        tree = self._root
        for _ in range(_ROUNDS):
            instance, errors = _validate(tree, self._model)
            if instance is not None:
                self._report_checks((), more_checks(instance), tree)
                if not self.problems:
                    self.instance = instance
                return
            believed = frozenset(self._wrong)
            slips = {self._meant(error.key) for error in errors if error.kind == "extra_forbidden"}
            for error in errors:
                if not (error.kind == "missing" and error.key in slips):
                    self._report(error, tree, believed)
            if len(self.problems) >= MOST_PROBLEMS:
                return
            for error in sorted(errors, key=lambda error: error.kind != "extra_forbidden"):
                tree = self._mended(tree, error)

    def _report(self, error: _Error, tree: Node, wrong: frozenset[Key]) -> None:
        if error.kind == "problems":
            self._report_checks(error.key, error.problems, tree)
        elif not _touch(error.key, wrong):
            self._add(error.key, self._message(error, tree), tree)

    def _report_checks(self, at: Key, problems: Iterable[Problem], tree: Node) -> None:
        wrong = frozenset(self._wrong)
        for problem in islice(problems, MOST_PROBLEMS):
            reads = (problem.key, *problem.reads)
            if not any(_touch((*at, *key), wrong) for key in reads):
                self._add((*at, *problem.key), problem.message, tree)

    def _add(self, key: Key, message: str, tree: Node) -> None:
        self.problems.append(LocatedProblem(tree.nearest(key).place, key, message))

    def _mended(self, tree: Node, error: _Error) -> Node:
        if error.kind == "problems":
            keys = [(*error.key, *problem.key) for problem in error.problems]
            self._wrong.update(keys)
            for key in keys:
                tree = _without(tree, key)
            return tree
        if error.kind == "missing" and tree.has(error.key):  # a misspelled key now has this name
            return tree
        is_unspaced = error.kind == "extra_forbidden" and self._unspaced(error.key) is not None
        if error.kind == "union_tag_invalid" or (is_unspaced and error.key[:-1]):
            # without its kind, or that key, nothing can be said of the rest
            self._wrong.add(error.key[:-1])
            return _without(tree, error.key[:-1])
        self._wrong.add(error.key)
        if error.kind == "missing":
            example = self._guide.example(error.key)
            place = tree.nearest(error.key).place
            if example is not None:
                return tree.with_value(error.key, _node(example, place))
            return _without(tree, error.key[:-1]) if error.key[:-1] else tree
        meant = self._meant(error.key) if error.kind == "extra_forbidden" else None
        if meant is not None and not tree.has(meant):
            tree = tree.with_value(meant, tree.nearest(error.key))
        return _without(tree, error.key)

    def _meant(self, key: Key) -> Key | None:
        """Return the key of the same section that an unknown one is probably a misspelling of."""
        if self._guide.places_of(key[-1]) or self._every_guide.kinds_with(key):
            return None
        name = closest(key[-1], self._guide.keys(key[:-1]))
        return None if name is None else (*key[:-1], name)

    def _unspaced(self, key: Key) -> str | None:
        """Return the key of the section that is written together with its value, if any is."""
        name, colon, _ = key[-1].partition(":")
        return name if colon and name in self._guide.keys(key[:-1]) else None

    def _message(self, error: _Error, tree: Node) -> str:
        if error.kind == "extra_forbidden":
            return self._unknown_key(error.key)
        if error.kind == "missing":
            return self._missing(error.key)
        allowed = self._guide.allowed(error.key)
        if error.kind not in _PYDANTIC_ERRORS or not allowed:
            return error.text
        node = tree.nearest(error.key)
        hints = [f"allowed: {allowed}", *self._value_hints(error, node, allowed)]
        return f"found {_found(node)}; " + "; ".join(hints)

    def _missing(self, key: Key) -> str:
        text = "missing; add it"
        if example := self._guide.example(key):
            text += f", for example `{key[-1]}: {_written(example)}`"
        allowed = self._guide.allowed(key)
        if allowed not in {"", "text"}:
            text += f" (allowed: {allowed})"
        return text

    def _unknown_key(self, key: Key) -> str:
        name = key[-1]
        section = ".".join(key[:-1])
        known = self._guide.keys(key[:-1])
        hints = getattr(self._model, "key_hints", {})
        hint = hints.get(".".join(key)) or hints.get(name.lower().replace("-", "_"))
        elsewhere = self._guide.places_of(name.lower())
        meant = self._meant(key)
        if hint:
            return f"unknown key; {hint}"
        if unspaced := self._unspaced(key):
            return f"a space is missing after the `:`; write `{unspaced}: ...`"
        if kinds := self._every_guide.kinds_with(key):
            advice = f"it belongs to `{'` and `'.join(kinds)}`; remove it, or write that"
        elif meant:
            advice = f"did you mean {meant[-1]}?"
        elif elsewhere:
            advice = f"did you mean {' or '.join(elsewhere[:3])}?"
        else:
            advice = "remove it, or write one that is allowed"
        shown = known[:_SHOWN_KEYS]
        if len(known) > len(shown):
            shown.append("...")
        where = f" in {section}" if section else ""
        return f"unknown key; {advice} (allowed{where}: {', '.join(shown)})"

    def _value_hints(self, error: _Error, node: Node, allowed: str) -> Iterable[str]:
        choices = self._guide.choices(error.key)
        if choices and (meant := closest(node.text, choices)):
            yield f"did you mean {meant}?"
        default = self._guide.default(error.key)
        if node.value is None and default is not None and not isinstance(default, dict):
            yield f"remove the line to get the default, {_written(default)}"
        if isinstance(node.value, str):
            yield from _text_hints(node, error.kind, allowed)
            for chosen in self._guide.constants_of(error.key, node.value):
                yield f"did you mean {'.'.join((*error.key, chosen))}={node.value}?"
        elif error.kind == "string_type" and node.text:
            yield f'quotes make it text, write "{node.text}"'


class DiagnosedModel(StrictModel):
    """A model whose calls in Python code raise our errors; `model_validate` raises pydantic's."""

    def __init__(self, /, **keys: Any) -> None:  # noqa: ANN401 - sections may be plain dicts
        """Make the model of its keys.

        Raises:
            ConfigError: a key is wrong; the message has every problem.
        """
        try:
            super().__init__(**keys)
        except ValidationError as error:
            raise ConfigError(_problems_of_values(keys, type(self), error)) from None

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # only calls come here


def _problems_of_values(
    values: Mapping[str, object], model: type[BaseModel], refusal: ValidationError
) -> str:
    """Describe the problems of values from Python code as those of a document, one a line.

    Args:
        refusal: what pydantic says of them, for values that are right in a document.
    """
    root = _node_of(to_jsonable_python(values, fallback=str), Place(0, ""))
    found = [(each.key, each.message) for each in Diagnosis(root, model, lambda _: ()).problems]
    if not found:
        found = [(tuple(map(str, each["loc"])), each["msg"]) for each in refusal.errors()]
    rows = [f"  {'.'.join(key)}: {without_secrets(message)}" for key, message in sorted(found)]
    count = "1 problem" if len(rows) == 1 else f"{len(rows)} problems"
    return "\n".join((f"{model.__name__}: {count}", *rows))


def _node_of(value: Any, place: Place) -> Node:  # noqa: ANN401 - whatever JSON has
    if isinstance(value, dict):
        return Node({str(key): _node_of(each, place) for key, each in value.items()}, place)
    if isinstance(value, list):
        return Node([_node_of(each, place) for each in value], place)
    is_text = isinstance(value, str)
    return Node(value, place, "" if value is None else str(value), quoted=is_text)


def _text_hints(node: Node, kind: str, allowed: str) -> Iterable[str]:
    """Yield hints about text that is written where something else belongs."""
    if node.quoted and not isinstance(resolve_plain(node.text), str) and kind != "string_type":
        yield f"the quotes make it text, write {node.text} without them"
    if node.text.lower() in {"yes", "no", "on", "off", "y", "n"} and "true or false" in allowed:
        yield f"{node.text} is text in YAML 1.2"
    if re.fullmatch(r"\d{1,3}([ ,.']\d{3})+", node.text):
        yield f"write {re.sub('[^0-9]', '_', node.text)}"
    if re.match(r"\w+:\S", node.text) and "{" in allowed:
        yield "a space is missing after the `:`"
    if kind.endswith("_type") and _LIST_OF_ONE.search(allowed):
        yield f"write [{node.text}]"
    if "whole number" in allowed and (hexadecimal := _HEXADECIMAL.fullmatch(node.text)):
        yield f"write 0x{hexadecimal[1]}"


def _validate(tree: Node, model: type[M]) -> tuple[M | None, list[_Error]]:
    """Validate as strictly as JSON: a number is not text, but a list may become a tuple."""
    try:
        return model.model_validate_json(json.dumps(tree.plain()), strict=True), []
    except ValidationError as error:
        return None, _merged([_located(found, tree) for found in error.errors()[:MOST_PROBLEMS]])


def _located(details: ErrorDetails, tree: Node) -> _Error:
    kind = details["type"]
    context = details.get("ctx", {})
    key = _document_key(details["loc"], tree, is_missing=kind == "missing")
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        # the key's name in quotes, or the name of a function, which is `_` and the key's name
        key = (*key, context["discriminator"].strip("'_()"))
        if kind == "union_tag_not_found":
            kind = "missing"
    text = str(context["error"]) if "error" in context else details["msg"]
    if details["loc"][-1:] == ("[key]",) and kind.startswith("int"):  # the value may be right
        kind = "wrong_key"
        text = "is not a whole number, which names each entry here: `12: ...`"
    return _Error(key, kind, text, tuple(context.get("problems", ())))


def _document_key(loc: tuple[int | str, ...], tree: Node, *, is_missing: bool) -> Key:
    """Return the key without the names of union members, which pydantic puts into a location."""
    key: Key = ()
    for index, part in enumerate(map(str, loc)):
        is_last = index == len(loc) - 1
        if part in tree.nearest(key).children() or (is_missing and is_last):
            key = (*key, part)
    return key


def _merged(errors: list[_Error]) -> list[_Error]:
    """Keep one error for each key, as each member of a union reports its own."""
    merged: dict[Key, _Error] = {}
    for error in errors:
        inner = any(other.key[: len(error.key)] == error.key != other.key for other in errors)
        is_known = error.key in merged and merged[error.key].kind not in _PYDANTIC_ERRORS
        # pydantic counts only the right items of a list, so one wrong item makes it too short
        follows = inner and (error.kind.endswith("_type") or error.kind == "too_short")
        if not is_known and not follows:
            merged[error.key] = error
    return list(merged.values())


def _touch(key: Key, wrong: Iterable[Key]) -> bool:
    """Whether the value at the key contains, is, or is part of one of the wrong ones."""
    return any(key[: len(other)] == other[: len(key)] for other in wrong)


def _without(tree: Node, key: Key) -> Node:
    """Take out the value; for a list item the whole list, so that no item changes its number."""
    for length in range(len(key)):
        if isinstance(tree.nearest(key[:length]).value, list):
            return tree.without(key[:length])
    return tree.without(key)


def _node(value: object, place: Place) -> Node:
    scalar = value if isinstance(value, int | float | bool) else str(value)
    return Node(scalar, place, str(value))


def _found(node: Node) -> str:
    if isinstance(node.value, dict):
        if not node.value:
            return "an empty section"
        return "a section {" + ", ".join(f"{key}: ..." for key in list(node.value)[:4]) + "}"
    if isinstance(node.value, list):
        return f"a list of {len(node.value)}" if node.value else "an empty list"
    if not node.quoted:
        return _shortened(node.text) or "nothing"
    return json.dumps(_shortened(node.text), ensure_ascii=False)


def _shortened(text: str) -> str:
    text = without_secrets(text)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "..."
    return text.replace("\n", " ")


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) else str(value)
