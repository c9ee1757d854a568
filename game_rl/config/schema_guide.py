"""Describes in a user's words what a model allows at a key; reads its JSON Schema."""

import difflib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from game_rl.config.strict_model import Key

JsonSchema = dict[str, Any]

_WORD_CHARACTERS = 60  # the time to compare words grows with the square of it
_LEAST_BEGINNING = 4  # characters that only one option begins with


class SchemaGuide:
    """The keys that a model knows, and what each may hold."""

    def __init__(self, schema: JsonSchema) -> None:
        self._definitions: JsonSchema = schema.get("$defs", {})
        self._root = schema

    def allowed(self, key: Key) -> str:
        """Return what may be written at the key: `a whole number of at least 1`; "" if unknown."""
        texts = list(dict.fromkeys(filter(None, map(self._describe, self._at(key)))))
        # last what a list may have, so that nothing after it seems to belong to that
        return " or ".join(sorted(texts, key=lambda text: ", each " in text))

    def choices(self, key: Key) -> list[str]:
        """Return the words that are allowed at the key, if it is a choice of words."""
        return [str(word) for schema in self._at(key) for word in _enum(schema)]

    def keys(self, key: Key) -> list[str]:
        """Return the keys that the section at this key may have."""
        found = (name for schema in self._at(key) for name in schema.get("properties", {}))
        return list(dict.fromkeys(found))

    def places_of(self, name: str) -> list[str]:
        """Return all dotted keys of the model that end in this name."""
        places = (".".join(key) for key in self._every_key(self._root, ()) if key[-1] == name)
        return list(dict.fromkeys(places))

    def example(self, key: Key) -> object | None:
        """Return a valid value for the key, if its field gives an example."""
        return next((ex for schema in self._at(key) for ex in schema.get("examples", ())), None)

    def default(self, key: Key) -> object | None:
        if not key:
            return None
        sections = [self._own(schema, key[-1]) for schema in self._at(key[:-1])]
        return next((s["default"] for s in sections if s and "default" in s), None)

    def chosen_by(self, document: object) -> "SchemaGuide":
        """Return the guide without the members of unions that the document does not choose.

        A document chooses a member by its constants, such as `name: dqn`. If it chooses none that
        exists, all members stay.
        """
        root = self._narrowed(self._root, document)
        return SchemaGuide(root | {"$defs": self._definitions})

    def constants_of(self, key: Key, word: str) -> list[str]:
        """Return the keys of the section at this key that choose one of its kinds by this word."""
        found = (
            name for schema in self._at(key) for name, value in _constants(schema) if value == word
        )
        return list(dict.fromkeys(found))

    def kinds_with(self, key: Key) -> list[str]:
        """Return the constants, such as `name: dqn`, of the members of a union with this key."""
        members = [section for section in self._at(key[:-1]) if self._own(section, key[-1])]
        return [f"{name}: {value}" for section in members for name, value in _constants(section)]

    def _narrowed(self, schema: JsonSchema, value: object) -> JsonSchema:
        if not isinstance(value, dict):
            return schema
        if "$ref" in schema:
            definition = self._definitions[schema["$ref"].rsplit("/", 1)[-1]]
            schema = definition | {key: own for key, own in schema.items() if key != "$ref"}
        if options := schema.get("anyOf") or schema.get("oneOf"):
            # with a discriminator of pydantic, the default of a constant chooses no member
            defaults = "discriminator" not in schema
            chosen = [one for one in options if self._is_chosen(one, value, defaults=defaults)]
            chosen = chosen or options
            others = {key: own for key, own in schema.items() if key not in {"anyOf", "oneOf"}}
            return others | {"anyOf": [self._narrowed(one, value) for one in chosen]}
        inner = {
            name: self._narrowed(own, value.get(name, own.get("default")))
            for name, own in schema.get("properties", {}).items()
        }
        return schema | {"properties": inner} if inner else schema

    def _is_chosen(self, schema: JsonSchema, value: dict[str, object], *, defaults: bool) -> bool:
        for section in self._branches(schema):
            for name, constant in _constants(section):
                found = value.get(name)
                if defaults and name not in value:
                    found = section["properties"][name].get("default")
                if found != constant:
                    return False
        return True

    def _own(self, section: JsonSchema, name: str) -> JsonSchema | None:
        own: JsonSchema | None = section.get("properties", {}).get(name)
        return own

    def _branches(self, schema: JsonSchema) -> Iterator[JsonSchema]:
        if "$ref" in schema:
            yield from self._branches(self._definitions[schema["$ref"].rsplit("/", 1)[-1]])
        elif options := schema.get("anyOf") or schema.get("oneOf"):
            for option in options:
                yield from self._branches(option)
        else:
            yield schema

    def _at(self, key: Key) -> list[JsonSchema]:
        found = list(self._branches(self._root))
        for part in key:
            inner = [step for schema in found for step in self._step(schema, part)]
            found = [branch for schema in inner for branch in self._branches(schema)]
        return found

    def _step(self, schema: JsonSchema, part: str) -> Iterator[JsonSchema]:
        if part in schema.get("properties", {}):
            yield schema["properties"][part] | {}
        elif isinstance(schema.get("additionalProperties"), dict):
            yield schema["additionalProperties"]
        elif part.isdecimal() and int(part) < len(schema.get("prefixItems", ())):
            yield schema["prefixItems"][int(part)]
        elif part.isdecimal() and isinstance(schema.get("items"), dict):
            yield schema["items"]

    def _every_key(self, schema: JsonSchema, key: Key) -> Iterator[Key]:
        if len(key) > 6:  # a model may contain itself
            return
        for branch in self._branches(schema):
            for name, inner in branch.get("properties", {}).items():
                yield (*key, name)
                yield from self._every_key(inner, (*key, name))

    def _describe(self, schema: JsonSchema) -> str:
        if choices := _enum(schema):
            words = ", ".join(map(_as_written, choices))
            return words if len(choices) == 1 else f"one of {words}"
        match schema.get("type"):
            case "integer":
                return "a whole number" + _bounds(schema)
            case "number":
                return "a number" + _bounds(schema)
            case "string":
                return _describe_text(schema)
            case "boolean":
                return "true or false"
            case "null":
                return "null"
            case "array":
                return self._describe_list(schema)
            case "object":
                return _describe_section(schema)
        return ""

    def _describe_list(self, schema: JsonSchema) -> str:
        text = "a list [...]"
        least = schema.get("minItems")
        if least is not None and least == schema.get("maxItems"):
            text += f" of {least}"
        elif least:
            text += f" with at least {least}"
        if items := schema.get("items"):
            inner = [self._describe(branch) for branch in self._branches(items)]
            if any(inner):
                text += f", each {' or '.join(inner)}"
        return text


@functools.cache
def schema_guide(model: type[BaseModel]) -> SchemaGuide:
    return SchemaGuide(model.model_json_schema())


def closest(word: str, options: Sequence[str]) -> str | None:
    """Return the option that the word is probably a misspelling, or the beginning, of."""
    by_folded = {_folded(option): option for option in options}
    slip = _folded(word)[:_WORD_CHARACTERS]
    begun = [one for one in by_folded if one.startswith(slip)]
    if len(slip) >= _LEAST_BEGINNING and len(begun) == 1:
        return by_folded[begun[0]]
    matches = difflib.get_close_matches(slip, by_folded, n=1, cutoff=0.65)
    alike = (one for one in by_folded if slip[:3] == one[:3])  # as `environment` and `env`
    begins = (one for one in alike if slip.startswith(one) or one.startswith(slip))
    found = matches[0] if matches else next(begins, None)
    return by_folded[found] if found else None


def meant_folder(root: Path) -> str:
    """Return a question for the run or experiment next to `root` whose name is like its name.

    It is empty if there is none. `game-rl runs` lists all.
    """
    try:
        beside = [path.name for path in root.parent.iterdir() if any(path.glob("*.yaml"))]
    except OSError:
        return ""
    meant = closest(root.name, beside)
    return "" if meant is None else f"did you mean {root.parent / meant}?"


def _folded(word: str) -> str:
    return word.lower().replace("-", "_")


def _constants(section: JsonSchema) -> list[tuple[str, object]]:
    """Return the keys of a section that can have only one value, with that value."""
    inside = section.get("properties", {})
    return [(name, own["const"]) for name, own in inside.items() if "const" in own]


def _enum(schema: JsonSchema) -> list[object]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _as_written(choice: object) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def _bounds(schema: JsonSchema) -> str:
    if "minimum" in schema and "maximum" in schema:
        return f" from {schema['minimum']:_} to {schema['maximum']:_}"
    words = {
        "minimum": "of at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    limits = [f"{word} {schema[name]:_}" for name, word in words.items() if name in schema]
    return f" {' and '.join(limits)}" if limits else ""


def _describe_text(schema: JsonSchema) -> str:
    if "pattern" not in schema:
        return "text"
    if examples := schema.get("examples"):
        return "text like " + ", ".join(map(str, examples))
    return f"text that matches {schema['pattern']}"


def _describe_section(schema: JsonSchema) -> str:
    names = list(schema.get("properties", {}))
    if not names:
        least = schema.get("minProperties", 0)
        few = f"at least {least} " if least else ""
        return f"a section of {few}`name: value` line{'s' * (least != 1)}"
    chosen = dict(_constants(schema))
    if chosen:  # one of several kinds: its keys matter less than what chooses it
        shown = [f"{name}: {_as_written(value)}" for name, value in chosen.items()]
    else:
        shown = [f"{name}: ..." for name in names[:4]]
    if len(names) > len(shown):
        shown.append("...")
    return "{" + ", ".join(shown) + "}"
