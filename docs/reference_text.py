"""Writes the parts of the reference that the code decides: `make reference`.

These are keys of configs, what may change in them, commands, the Python API, events and exit codes.
A page has them between two comments:

    <!-- generated: run keys -->
    <!-- end -->

The option --check changes nothing; its exit code is 1 if a page is not current.
"""

import argparse
import ast
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

from pydantic import BaseModel

from game_rl import errors, events
from game_rl.cli.parser import COMMANDS, GROUPS, make_parser
from game_rl.config.allowed_changes import FILE_OPERATIONS, OPERATIONS, ROLES, FileRule, KeyRule
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Role
from game_rl.games.definition import GameDefinition

JsonSchema = dict[str, Any]

MODELS: Mapping[str, type[BaseModel]] = {
    "run": RunConfig,
    "game": GameDefinition,
    "population": PopulationConfig,
    "mixture": MixtureConfig,
    "study": StudyConfig,
}
_OF_EVERY_COMMAND = {"help", "quiet", "verbose"}
_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_<>\[\]{}|$#~])")


def _escaped(text: str) -> str:
    """Return text of a docstring or a help text as Markdown; spans in backquotes stay code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def _entry(term: str, facts: str = "", text: str = "", *, anchor: str = "") -> str:
    """Return an item of a list that a code host and Sphinx show alike."""
    target = f'<a id="{anchor}"></a>' if anchor else ""
    head = f"- {target}**`{term}`**" + (f": {facts}" if facts else "")
    return f"{head}\\\n  {text}\n" if text else f"{head}\n"


def _slug(title: str) -> str:
    """Return the anchor that a code host and MyST give to a heading."""
    return re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-")


# --- keys of configs --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Section:
    """A section of a config that has a heading of its own."""

    key: str
    schema: JsonSchema
    kind: str = ""  # what chooses it among several, as `name: dqn`

    @property
    def title(self) -> str:
        return f"`{self.key}` with `{self.kind}`" if self.kind else f"`{self.key}`"

    @property
    def anchor(self) -> str:
        return _slug(self.title)


class _Keys:
    """All keys of one model, section by section."""

    def __init__(self, name: str) -> None:
        self._root = MODELS[name].model_json_schema()
        self._definitions: JsonSchema = self._root.get("$defs", {})
        self._waiting: list[_Section] = []
        self._recursive: dict[str, _Section] = {}  # of models that contain themselves, once each

    def text(self) -> str:
        blocks = ["## Keys of the file\n\n", *self._entries(_Section("", self._root))]
        while self._waiting:
            section = self._waiting.pop(0)
            blocks.append(f"\n## {section.title}\n\n")
            if text := section.schema.get("description"):
                blocks.append(_escaped(text) + "\n\n")
            nested, self._waiting = self._waiting, []
            blocks += self._entries(section)
            self._waiting += nested
        return "".join(blocks)

    def _entries(self, section: _Section) -> Iterator[str]:
        required = section.schema.get("required", ())
        for name, schema in section.schema.get("properties", {}).items():
            yield self._key(section, name, schema, is_required=name in required)
        if isinstance(inner := section.schema.get("additionalProperties"), dict):
            yield self._key(section, "NAME", inner, is_required=False)

    def _key(self, section: _Section, name: str, schema: JsonSchema, *, is_required: bool) -> str:
        key = f"{section.key}.{name}".lstrip(".")
        facts = " or ".join(dict.fromkeys(self._kinds(key, section.kind, schema)))
        if is_required and "const" not in schema:
            facts += "; required"
        elif "default" in schema and not self._is_plain_section(schema):
            facts += f"; default `{_yaml(schema['default'])}`"
        example = "".join(f"; for example `{_yaml(one)}`" for one in schema.get("examples", ())[:1])
        own = self._definitions.get(schema.get("$ref", "").rsplit("/", 1)[-1], {})
        text = schema.get("description") or own.get("description", "")
        anchor = re.sub(r"[\W_]+", "-", f"{key} {section.kind.partition(': ')[2]}").strip("-")
        has_heading = any(waiting.title == f"`{key}`" for waiting in self._waiting)
        anchor = "" if has_heading else anchor.lower()
        return _entry(key, facts + example, _escaped(text), anchor=anchor)

    def _is_plain_section(self, schema: JsonSchema) -> bool:
        """Return whether the default of a section is the defaults of its keys."""
        default = schema.get("default")
        if not isinstance(default, dict):
            return False
        if "$ref" in schema:
            own = self._definitions[schema["$ref"].rsplit("/", 1)[-1]].get("properties", {})
            return all(own.get(key, {}).get("default") == one for key, one in default.items())
        return bool(schema.get("oneOf")) or not default

    def _kinds(self, key: str, kind: str, schema: JsonSchema) -> Iterator[str]:
        """Yield what may be written at a key; sections that it may have wait for their turn."""
        if "$ref" in schema:
            inner = self._definitions[schema["$ref"].rsplit("/", 1)[-1]]
            yield from self._kinds(key, kind, inner)
        elif options := schema.get("anyOf") or schema.get("oneOf"):
            for option in options:
                yield from self._kinds(key, kind, option)
        elif schema.get("properties"):
            yield self._link(key, kind, schema, "section")
        elif isinstance(inner := _inner_of(schema), dict):
            yield from self._kinds_of_mapping(key, kind, inner)
        elif schema.get("type") == "array" and isinstance(items := schema.get("items"), dict):
            least = f" with at least {schema['minItems']}" if schema.get("minItems") else ""
            each = " or ".join(self._kinds(key, kind, items))
            yield f"list{least}: each {each}"
        else:
            yield _scalar(schema)

    def _kinds_of_mapping(self, key: str, kind: str, inner: JsonSchema) -> Iterator[str]:
        name = inner.get("$ref", "").rsplit("/", 1)[-1]
        if name == "JsonValue" or "$ref" not in inner:
            values = self._kinds(f"{key}.NAME", kind, inner) if name != "JsonValue" else ()
            words = " or ".join(values)
            yield "section of names" + (f", each with a {words}" if words else "")
        else:
            found = self._link(f"{key}.NAME", kind, self._definitions[name], "section")
            yield f"section of names, each with a {found}"

    def _link(self, key: str, kind: str, schema: JsonSchema, word: str) -> str:
        inside = schema["properties"]
        constants = [f"{name}: {one['const']}" for name, one in inside.items() if "const" in one]
        own = _Section(key, schema, constants[0] if constants else kind)
        model = schema.get("title", "")
        is_known = model in self._recursive
        if f'"#/$defs/{model}"' in json.dumps(inside):
            own = self._recursive.setdefault(model, own)
        waiting = {section.anchor: section for section in self._waiting}
        if own.anchor in waiting and waiting[own.anchor].schema != schema:
            own = _Section(f"{own.key}.N", schema, own.kind)  # an item of a list, by its number
        if own.anchor not in waiting and not is_known:
            self._waiting.append(own)
        link = f"[{word}](#{own.anchor})"
        return f"{link} `{constants[0]}`" if constants else link


def _inner_of(schema: JsonSchema) -> object:
    """Return the schema of the values of a section whose keys are names."""
    return next(iter(schema.get("patternProperties", {}).values()), None) or schema.get(
        "additionalProperties"
    )


def _scalar(schema: JsonSchema) -> str:
    if "const" in schema:
        return f"`{_yaml(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{_yaml(one)}`" for one in schema["enum"])
    words = {"integer": "whole number", "number": "number", "string": "text", "null": "`null`"}
    words |= {"boolean": "`true` or `false`", "array": "list", "object": "section"}
    if schema.get("format") == "path":
        return "path"
    return words.get(str(schema.get("type")), "any value") + _bounds(schema)


def _bounds(schema: JsonSchema) -> str:
    def number(name: str) -> str | None:
        return None if name not in schema else f"{schema[name]:,}"

    if (least := number("minimum")) is not None and (most := number("maximum")) is not None:
        return f" from {least} to {most}"
    words = {"minimum": "at least", "exclusiveMinimum": "above"}
    words |= {"maximum": "at most", "exclusiveMaximum": "below"}
    limits = [f"{word} {number(name)}" for name, word in words.items() if name in schema]
    return f" {' and '.join(limits)}" if limits else ""


def _yaml(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key}: {_yaml(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_yaml, value)) + "]"
        case str():
            return value or '""'
    return json.dumps(value)


# --- what may change --------------------------------------------------------------------------


def roles_text() -> str:
    """Return the roles of keys, each with its keys."""
    lines = ["| role | of | keys |", "|---|---|---|"]
    for role in Role:
        keys = ", ".join(f"`{key}`" for key, own in ROLES.items() if own is role)
        lines.append(f"| {role.name.lower()} | {_escaped(role.value)} | {keys} |")
    return "\n".join(lines) + "\n"


def allowed_changes_text() -> str:
    """Return a table of operations and roles, then each operation with reasons and exceptions."""
    names = [role.name.lower() for role in Role]
    blocks = ["| |", *(f" {name} |" for name in names), "\n|---|", ":-:|" * len(names), "\n"]
    for title, rule in OPERATIONS.items():
        marks = "".join(" bound |" if role in rule.roles else " |" for role in Role)
        blocks.append(f"| [{title}](#{_slug(title)}) |{marks}\n")
    for title, rule in OPERATIONS.items():
        blocks += [f"\n## {title}\n\n{_escaped(rule.meaning)}\n\n", *_bound_and_free(rule)]
    for title, of_file in FILE_OPERATIONS.items():
        blocks += [f"\n## {title}\n\n{_escaped(of_file.meaning)}\n\n", *_free(of_file)]
    return "".join(blocks)


def _bound_and_free(rule: KeyRule) -> Iterator[str]:
    """Yield what is bound and what is not, with one item for all that has the same reason."""
    roles = {f"keys of the role **{role.name.lower()}**": why for role, why in rule.roles.items()}
    bound = {f"**`{key}`**": reason for key, reason in rule.bound.items()}
    free = {f"but not **`{key}`**": reason for key, reason in rule.free.items()}
    for group in (roles, bound, free):
        yield from _by_reason(group)


def _free(rule: FileRule) -> Iterator[str]:
    return _by_reason({f"**`{key}`**": reason for key, reason in rule.free.items()})


def _by_reason(group: Mapping[str, str]) -> Iterator[str]:
    for reason in dict.fromkeys(group.values()):
        names = ", ".join(name for name, own in group.items() if own == reason)
        text = reason.format(kind="experiment", stage="generation")
        yield f"- {names}: {_escaped(text)}\n"


# --- commands ---------------------------------------------------------------------------------


def commands_text() -> str:
    _, parsers = make_parser(list(COMMANDS))
    blocks = []
    with patch.dict(os.environ, {"COLUMNS": "9999", "NO_COLOR": "1"}):  # argparse reads them
        for title, group in GROUPS.items():
            blocks.append(f"## {title[0].upper()}{title[1:]}\n\n")
            for command in group:
                blocks += _command(parsers[command.name])
    return "".join(blocks)


def command_groups_text() -> str:
    """Return the groups of `game-rl --help` with the names of their commands."""
    lines = ["| group | commands |", "|---|---|"]
    for title, group in GROUPS.items():
        lines.append(f"| {title} | {', '.join(f'`{command.name}`' for command in group)} |")
    return "\n".join(lines) + "\n"


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    words = parser.format_usage().removeprefix("usage: ").split()
    usage = textwrap.fill(
        " ".join(words),
        100,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield f"### `{parser.prog}`\n\n{_escaped(parser.description or '')}\n\n"
    yield f"```text\n{usage}\n```\n\n"
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in parser._actions:
        if action in inner or action.help == argparse.SUPPRESS or action.dest in _OF_EVERY_COMMAND:
            continue
        help_text = parser._get_formatter()._expand_help(action) if action.help else ""
        yield _entry(_invocation(action), _escaped(help_text))
    if example := (parser.epilog or "").partition("example:")[2].strip().partition("\n\n")[0]:
        yield f"\nExample: `{example}`\n"
    yield "\n"
    for commands in inner:
        for command in commands.choices.values():
            yield from _command(command)


def _invocation(action: argparse.Action) -> str:
    values = "" if action.nargs == 0 else _values(action)
    if not action.option_strings:
        return values
    return ", ".join(action.option_strings) + (f" {values}" if values else "")


def _values(action: argparse.Action) -> str:
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    name = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    match action.nargs:
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} ..."
        case "?":
            return f"[{name}]"
    return str(name)


# --- events and exit codes --------------------------------------------------------------------


def events_text() -> str:
    """Return the events that are written to a file, those of runs and those of experiments."""
    blocks = []
    for title, union in (("runs", events.Event), ("experiments", events.ExperimentEvent)):
        blocks.append(f"## Events of {title}\n\n")
        for model in get_args(union):
            if model.is_kept:
                blocks += _event(model)
    return "".join(blocks)


def _event(model: type[events.TimedEvent]) -> Iterator[str]:
    yield f"### `{model.model_fields['event'].default}`\n\n{_escaped(model.__doc__ or '')}\n\n"
    schema = model.model_json_schema()
    shared = {"event", "time", "generation" if "generation" in model.model_fields else "timesteps"}
    for name, own in schema.get("properties", {}).items():
        if name not in shared:
            yield _entry(name, _plain(own, schema), _escaped(own.get("description", "")))
    yield "\n"


def _plain(schema: JsonSchema, root: JsonSchema) -> str:
    """Return what a key of an event holds, in words."""
    if options := schema.get("anyOf"):
        inner = [_plain(one, root) for one in options if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(inner)) + ", or left out"
    if "$ref" in schema:
        keys = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]["properties"]
        return "object with " + ", ".join(f"`{key}`" for key in keys)
    if schema.get("type") == "array":
        return f"list: each {_plain(schema.get('items', {}), root)}"
    if schema.get("type") == "object":
        return (
            f"object of names, each with a {_plain(schema.get('additionalProperties', {}), root)}"
        )
    return _scalar({key: one for key, one in schema.items() if key != "minimum"})


def exit_codes_text() -> str:
    """Return each exit code with the errors that lead to it."""
    tree = errors.__doc__ or ""
    rows = re.findall(r"^[ │├└─]*(\w+)  +(\d+)   +(.*)$", tree, re.MULTILINE)
    lines = ["| exit code | error in Python | when |", "|--:|---|---|"]
    for code in sorted({code for _, code, _ in rows}, key=int):
        for name, own, when in rows:
            if own == code:
                assert getattr(errors, name).exit_code == int(code)
                lines.append(f"| {code} | `{name}` | {_escaped(when)} |")
    return "\n".join(lines) + "\n"


def key_hints_text() -> str:
    """Return what the key of another tool is here, as an error about it would say."""
    lines = ["| key | what to write here |", "|---|---|"]
    for name, hint in RunConfig.key_hints.items():
        if "." not in name and name != "<<":
            lines.append(f"| `{name}` | {_escaped(hint)} |")
    return "\n".join(lines) + "\n"


# --- the Python API ---------------------------------------------------------------------------

_PACKAGE = Path(errors.__file__).parent
_WIDTH = 100  # of a line of code
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:    .*\n|\n)+)", re.MULTILINE)
_ITEM = re.compile(r"^    (\w[\w ,]*): ((?:.*\n)(?:     +.*\n|\n(?=     ))*)", re.MULTILINE)


def python_functions_text() -> str:
    """Return the functions of the public API with their signatures, read without running them."""
    tree = _parsed("game_rl.api")
    public = _public_names(tree)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return "".join(_function(node) for node in found if node.name in public)


def python_results_text() -> str:
    """Return the classes whose objects the functions return, with all that they have."""
    tree = _parsed("game_rl.api")
    classes = {name: cls for name in _RESULTS for cls in [_class(tree, name)]}
    return "".join(_class_text(node) for node in classes.values())


_RESULTS = ("TrainingResult", "TrainedPolicy", "Evaluation", "PreflightReport")


def _parsed(module: str) -> ast.Module:
    path = _PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def _public_names(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError("api.py has no __all__")


def _class(tree: ast.Module, name: str) -> ast.ClassDef:
    """Return the definition of a class that a module imports."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    module = next(node.module for node in imports if name in [each.name for each in node.names])
    found = [node for node in _parsed(str(module)).body if isinstance(node, ast.ClassDef)]
    return next(node for node in found if node.name == name)


def _function(node: ast.FunctionDef) -> str:
    text, sections = _docstring(node)
    blocks = [f"\n### `{node.name}`\n\n```py\n{_signature(node)}\n```\n\n{text}\n\n"]
    blocks += [_entry(name, text=words) for name, words in sections.get("Args", {}).items()]
    for name, words in sections.get("Raises", {}).items():
        blocks.append(f"\nRaises `{name}`: {words}\n")
    return "".join(blocks)


def _class_text(node: ast.ClassDef) -> str:
    text, sections = _docstring(node)
    told = sections.get("Attributes", {})
    blocks = [f"\n### `{node.name}`\n\n{text}\n\n"]
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign):
            name = ast.unparse(inner.target)
            blocks.append(_entry(name, f"`{ast.unparse(inner.annotation)}`", told[name]))
        elif isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            words = _docstring(inner)[0].partition("\n\n")[0]
            decorators = [ast.unparse(each) for each in inner.decorator_list]
            if {"property", "cached_property"} & set(decorators):
                assert inner.returns is not None
                blocks.append(_entry(inner.name, f"`{ast.unparse(inner.returns)}`", words))
            else:
                blocks.append(_entry(_signature(inner, is_short=True), text=words))
    return "".join(blocks)


def _docstring(
    node: ast.FunctionDef | ast.ClassDef,
) -> tuple[str, dict[str, dict[str, str]]]:
    """Return the text of a docstring before its sections, and the items of each section."""
    whole = (ast.get_docstring(node) or "") + "\n"
    assert whole.strip(), f"{node.name} has no docstring"
    found = {
        section[1]: {name: _escaped(text) for name, text in _ITEM.findall(section[2])}
        for section in _SECTION.finditer(whole)
    }
    text = _SECTION.sub("", whole)
    return "\n\n".join(_escaped(part) for part in text.strip().split("\n\n")), found


def _signature(node: ast.FunctionDef, *, is_short: bool = False) -> str:
    """Return the signature; a short one is without types."""
    one = [_parameter(*each, is_short=is_short) for each in _parameters(node.args)]
    returns = "" if node.returns is None or is_short else f" -> {ast.unparse(node.returns)}"
    line = f"{node.name}({', '.join(one)}){returns}"
    if is_short or len(line) <= _WIDTH:
        return line
    return "\n".join([f"{node.name}(", *(f"    {each}," for each in one), f"){returns}"])


def _parameters(found: ast.arguments) -> Iterator[tuple[str, ast.arg | None, ast.expr | None]]:
    """Yield stars, name and default of each parameter, and of the star between them."""
    positional = [each for each in (*found.posonlyargs, *found.args) if each.arg != "self"]
    plain = len(positional) - len(found.defaults)
    for each, default in zip(positional, [*[None] * plain, *found.defaults], strict=True):
        yield "", each, default
    if found.vararg is not None or found.kwonlyargs:
        yield "*", found.vararg, None
    for each, default in zip(found.kwonlyargs, found.kw_defaults, strict=True):
        yield "", each, default
    if found.kwarg is not None:
        yield "**", found.kwarg, None


def _parameter(
    stars: str, found: ast.arg | None, default: ast.expr | None, *, is_short: bool
) -> str:
    name = "" if found is None else found.arg
    is_typed = found is not None and found.annotation is not None and not is_short
    kind = f": {ast.unparse(found.annotation)}".replace("'", '"') if is_typed else ""
    value = "" if default is None else ast.unparse(default).replace("'", '"')
    equals = " = " if kind else "="
    return f"{stars}{name}{kind}{equals + value if value else ''}"


def _keys_of(name: str) -> Callable[[], str]:
    return lambda: _Keys(name).text()


TEXTS: Mapping[str, Callable[[], str]] = {
    **{f"{name} keys": _keys_of(name) for name in MODELS},
    "roles": roles_text,
    "allowed changes": allowed_changes_text,
    "commands": commands_text,
    "command groups": command_groups_text,
    "events": events_text,
    "exit codes": exit_codes_text,
    "key hints": key_hints_text,
    "python functions": python_functions_text,
    "python results": python_results_text,
}
"""The text for each name that a comment `generated` may have."""

_PLACE = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def current(page: str) -> str:
    """Return a page with its generated parts as the code has them now."""
    return _PLACE.sub(lambda place: f"{place[1]}\n{TEXTS[place[2]]().strip()}\n{place[3]}", page)


def pages() -> list[Path]:
    """Return the pages that have a generated part."""
    found = sorted(Path(__file__).parent.rglob("*.md"))
    return [page for page in found if _PLACE.search(page.read_text(encoding="utf-8"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    arguments = parser.parse_args()
    stale = 0
    for page in pages():
        old = page.read_text(encoding="utf-8")
        new = current(old)
        if new != old:
            stale += 1
            print(f"{page.name}: {'not current' if arguments.check else 'written'}")
            if not arguments.check:
                page.write_text(new, encoding="utf-8")
    return int(arguments.check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
