"""Reads a YAML file into a model and writes one: text, overrides, kind, located errors."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn, Protocol, TypeVar

import yaml
from pydantic import BaseModel

from game_rl.config.bundled_configs import bundled_configs, find_config
from game_rl.config.custom_part import source_problems
from game_rl.config.diagnosis import Diagnosis
from game_rl.config.migration import up_to_date
from game_rl.config.output_config import without_secrets
from game_rl.config.schema import RunConfig
from game_rl.config.schema_guide import closest
from game_rl.config.strict_model import Key, Problem, with_changed
from game_rl.config.values import expanded_path
from game_rl.config.yaml_tree import (
    DEPTH_LIMIT,
    DocumentError,
    LocatedProblem,
    Node,
    Place,
    has_half_character,
    parse_document,
    resolve_plain,
)
from game_rl.errors import ConfigError, GameRLError, unencodable
from game_rl.files.pretrained import pretrained_address, stays_as_it_is

M = TypeVar("M", bound=BaseModel)


class HasRunDir(Protocol):
    """The config of a run or of an experiment."""

    @property
    def run_dir(self) -> Path: ...


_ROM_SUFFIXES = (".gb", ".gbc")
LARGEST_YAML_BYTES = 262_144  # a game with a thousand variables has a quarter of this
_SHOWN_PROBLEMS = 50
_SHOWN_CHARACTERS = 60
_SHOWN_OVERRIDE = 200
_OVERRIDES_ORDER = 10**9  # after the last line of any file


def load_config(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    is_saved: bool = False,
    more_checks: Callable[[RunConfig], Iterable[Problem]] = lambda _: (),
) -> RunConfig:
    """Return the run that a file describes, after overrides such as `env.n_envs=16`.

    A file that a run saved (`is_saved`) may have keys of the last release; `overrides` may not.

    A `game` that is a path comes back absolute (see `game_path`). It is relative to the file's
    folder, or in an override to the current one. `run_dir` stays as written and is relative to the
    current folder.

    Args:
        more_checks: checks of what the config names that need more than this package. They get
            the config that is returned.

    Raises:
        ConfigError: the file or an override is wrong; the message has every problem.
    """
    source = Document(Path(path), ConfigError, is_saved=is_saved)
    return _config_in(source, overrides, more_checks)


def changed_config(
    config: RunConfig,
    overrides: Sequence[str] = (),
    *,
    more_checks: Callable[[RunConfig], Iterable[Problem]] = lambda _: (),
) -> RunConfig:
    """Return a config after overrides, checked as `load_config` checks that of a file.

    A `game` that is a path is relative to the current folder and comes back absolute.

    Raises:
        ConfigError: the config or an override is wrong; the message has every problem.
    """
    source = Document(Path("RunConfig"), ConfigError, written=dump_config(config))
    return _config_in(source, overrides, more_checks)


def _config_in(
    source: "Document",
    overrides: Sequence[str],
    more_checks: Callable[[RunConfig], Iterable[Problem]],
) -> RunConfig:
    root, problems = source.tree(overrides)
    if root.has(("rom",)) and (root.has(("actions",)) or root.has(("rewards",))):
        raise ConfigError(
            f"{source.path}: describes a game, not a run; name it in the config of a run, as in "
            f"game-rl train duel_ppo game={quote(str(source.path))} "
            "env.start_states=null"
        )
    config = source.model_of(root, problems, RunConfig, run_dir_problems)
    config = _with_folders_of_parts(config, source, root)
    if not source.is_saved:  # a list of runs needs no class of theirs
        source.refuse(root, custom_part_problems(config))
    game_file = game_path(config.game, relative_to=source.folder_of(root.nearest(("game",))))
    if game_file is not None:
        config = config.model_copy(update={"game": str(game_file)})
    source.refuse(root, more_checks(config))
    return config


def load_yaml_model(
    path: Path,
    model: type[M],
    *,
    error: type[GameRLError] = ConfigError,
    more_checks: Callable[[M], Iterable[Problem]] = lambda _: (),
) -> M:
    """Return the model that a YAML file describes.

    Args:
        path: the file.
        model: a `StrictModel`, so that unknown keys and `problems()` are reported.
        error: type of the error to raise.
        more_checks: checks that need more than the model, such as the files that it names.
    """
    source = Document(path, error)
    return source.model_of(*source.tree(), model, more_checks)


def dump_config(config: BaseModel) -> str:
    """Return YAML that reads back as an equal model."""
    data = config.model_dump(mode="json", by_alias=True)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def json_schema(model: type[BaseModel]) -> str:
    """Return the model's JSON Schema for editors, as the text of a file.

    Editors follow YAML 1.2 to the letter and read `10_000` as text. The schema therefore allows
    such text for whole numbers.
    """
    return json.dumps(_with_underscored_numbers(model.model_json_schema()), indent=2) + "\n"


def game_path(game: str, *, relative_to: Path) -> Path | None:
    """Return the file that a config's `game` names; None if it is the name of a bundled game.

    A path has a slash in it or ends in .yaml or .yml. In a config it is relative to the folder of
    that config, so that a folder with both can be moved (see `Document.folder_of`).
    """
    is_path = "/" in game or os.sep in game or game.endswith((".yaml", ".yml"))
    return (relative_to / expanded_path(game)).absolute() if is_path else None


@dataclass(frozen=True)
class Document:
    """A YAML file that a user or a run wrote, and the type of error that reports its problems.

    Attributes:
        written: its text, if it is no file and `path` is only its name.
    """

    path: Path
    error: type[GameRLError]
    is_saved: bool = False
    written: str | None = None

    def tree(self, overrides: Sequence[str] = ()) -> tuple[Node, list[LocatedProblem]]:
        """Return the file's content after the overrides, and the problems of the text alone."""
        try:
            root, problems = parse_document(self._text())
        except DocumentError as refused:
            self.fail([refused.problem])
        if self.is_saved:
            root = up_to_date(root)
        for number, override in enumerate(overrides):
            shown = without_secrets(override)
            if len(shown) > _SHOWN_OVERRIDE:
                shown = shown[:_SHOWN_OVERRIDE] + "…"
            place = Place(_OVERRIDES_ORDER + number, f"--set {shown}")
            try:
                root, found = _with_override(root, override, place)
            except DocumentError as refused:
                found = [refused.problem]
            problems += found
        return root, problems

    def model_of(
        self,
        root: Node,
        problems: list[LocatedProblem],
        model: type[M],
        more_checks: Callable[[M], Iterable[Problem]] = lambda _: (),
    ) -> M:
        """Return the model that a tree describes.

        Args:
            problems: problems of the text, which are reported with those of the model.
        """
        self._require_mapping(root, model, problems)
        diagnosis = Diagnosis(root, model, more_checks)
        found = [*problems, *diagnosis.problems]
        if found or diagnosis.instance is None:
            self.fail(found)
        return diagnosis.instance

    def folder_of(self, node: Node) -> Path:
        """Return the folder that paths in a node are relative to.

        It is the folder of the file, but the current one for an override.
        """
        return Path() if node.place.order >= _OVERRIDES_ORDER else self.path.parent

    def _require_mapping(
        self, root: Node, model: type[BaseModel], problems: list[LocatedProblem]
    ) -> None:
        required = [name for name, field in model.model_fields.items() if field.is_required()]
        needs = f"it needs {', '.join(required)}" if required else "write `key: value` lines"
        if root.value is None:
            self.fail([*problems, LocatedProblem(root.place, (), f"the file is empty; {needs}")])
        if not isinstance(root.value, dict):
            kind = "a list" if isinstance(root.value, list) else f"only {root.text[:40]!r}"
            message = f"found {kind}; write `key: value` lines, a space after each `:`; {needs}"
            self.fail([*problems, LocatedProblem(root.place, (), message)])

    def refuse(self, root: Node, problems: Iterable[Problem]) -> None:
        """Raise an error with these problems, if there are any, each at its place in `root`."""
        found = [LocatedProblem(root.nearest(p.key).place, p.key, p.message) for p in problems]
        if found:
            self.fail(found)

    def fail(self, problems: list[LocatedProblem]) -> NoReturn:
        """Raise an error with these problems, in the order of the file."""
        ordered = sorted(problems, key=lambda problem: (problem.place, problem.key))
        shown = ordered[:_SHOWN_PROBLEMS]
        labels = [p.place.label for p in shown if p.place.order < _OVERRIDES_ORDER]
        width = max(map(len, labels), default=0)
        rows = [f"  {problem.place.label:<{width}}  {_told(problem)}" for problem in shown]
        if len(ordered) > len(shown):
            rows.append("  ... and more; correct these first")
        count = "1 problem" if len(ordered) == 1 else f"{len(ordered)} problems"
        raise self.error("\n".join((f"{self.path}: {count}", *rows)))

    def _text(self) -> str:
        if self.written is not None:
            return self.written
        try:
            if not self.path.is_file():
                raise self.error(self._no_file())
            if self.path.suffix.lower() in _ROM_SUFFIXES:
                raise self.error(
                    f"{self.path}: is a ROM; `game-rl new-game {quote(str(self.path))}` writes a "
                    "game.yaml for it, which the config of a run names as `game`"
                )
            with self.path.open("rb") as file:
                data = file.read(LARGEST_YAML_BYTES + 1)
        except (OSError, ValueError) as refused:
            reason = getattr(refused, "strerror", None) or refused
            raise self.error(
                f"{self.path}: cannot be read ({reason}); name another file"
            ) from refused
        if len(data) > LARGEST_YAML_BYTES:
            limit = f"{LARGEST_YAML_BYTES // 1024} KiB"
            raise self.error(f"{self.path}: larger than {limit}, not a config; name another file")
        return self._decoded(data)

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as refused:
            encoding = "UTF-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "not UTF-8"
            line = data.count(b"\n", 0, refused.start) + 1
            message = f"the text is {encoding} (byte {refused.start + 1}); save it as UTF-8"
            self.fail([LocatedProblem(Place.line(line), (), message)])

    def _no_file(self) -> str:
        folder = self.path if self.path.is_dir() else self.path.parent
        names = sorted(file.name for file in folder.glob("*.y*ml")) if folder.is_dir() else []
        others = f" (in {folder} there are: {', '.join(names[:20])})" if names else ""
        if folder == self.path:
            way_out = f"name a file in it{others}" if names else "name a config, such as run.yaml"
            return f"{self.path}: is a folder, {way_out}"
        if self.path.exists():
            return f"{self.path}: is not a regular file; name another{others}"
        return f"{self.path}: no such file{self._guess(folder, names)}{others}"

    def _guess(self, folder: Path, names: Sequence[str]) -> str:
        """Return what the path was probably meant to be, as the end of a sentence."""
        if meant := closest(self.path.name, names):
            return f"; did you mean {folder / meant}?"
        if self.error is not ConfigError or self.is_saved:
            return "; check the name"
        if meant := closest(self.path.stem, list(bundled_configs())):
            return f"; did you mean {meant}, a config that comes with game_rl?"
        return "; check the name, or choose one that `game-rl configs` lists"


def _told(problem: LocatedProblem) -> str:
    key = ".".join(without_secrets(part)[:_SHOWN_CHARACTERS] for part in problem.key)
    return without_secrets(f"{key}: {problem.message}" if key else problem.message)


def _with_override(root: Node, text: str, place: Place) -> tuple[Node, list[LocatedProblem]]:
    name, equals, value = text.partition("=")
    key = tuple(part.strip() for part in name.split("."))
    if not equals or not all(key) or len(key) > DEPTH_LIMIT:
        raise DocumentError(place, "not of the form key=value; write --set env.n_envs=16")
    if has_half_character(name):
        raise DocumentError(place, "the key is not UTF-8; type it again")
    node, problems = parse_document(value, place)
    if root.value is not None and not isinstance(root.value, dict):
        return root, problems  # `model_of` reports that the file is not a mapping
    _require_way(root, key, place)
    found = [LocatedProblem(place, key + problem.key, problem.message) for problem in problems]
    return root.with_value(key, node), found


def _require_way(root: Node, key: Key, place: Place) -> None:
    """Refuse an override below a scalar or a missing list item; missing sections are allowed."""
    for length in range(1, len(key)):
        above = ".".join(key[:length])
        outer = root.nearest(key[:length])
        if not root.has(key[:length]) or outer.value is None:
            return
        if isinstance(outer.value, list) and key[length] not in outer.children():
            count = len(outer.value)
            raise DocumentError(place, f"{above} has {count} items, counted from 0; name one")
        if not isinstance(outer.value, dict | list):
            message = f"{above} is {outer.text}, not a section; write --set {above}={{...}}"
            raise DocumentError(place, message)


def _with_folders_of_parts(config: RunConfig, source: Document, root: Node) -> RunConfig:
    """Return the config with the folder of the file that names it at each part that is there."""
    moved = [
        part.beside(source.folder_of(root.nearest(part.key)), is_saved=source.is_saved)
        for part in config.custom_parts
    ]
    if moved == list(config.custom_parts):
        return config
    network = {part.key: part.item for part in moved if part.key[-1] == "network"}
    lists: dict[Key, list[object]] = {}
    for part in moved:
        if part.key not in network:
            lists.setdefault(part.key[:-1], []).append(part.item)
    return with_changed(config, {**network, **lists})


def custom_part_problems(config: RunConfig) -> Iterator[Problem]:
    """Check that the classes of custom parts exist, without running their code."""
    if parts := config.custom_parts:
        yield from source_problems(parts, Path.cwd())


def run_dir_problems(config: HasRunDir) -> Iterable[Problem]:
    """Check that run_dir and lake.path can be folders: the only check that looks at the disk."""
    yield from _folder_problems(("run_dir",), config.run_dir)
    lake = config.lake if isinstance(config, RunConfig) else None
    if lake is not None and lake.path is not None:
        yield from _folder_problems(("lake", "path"), lake.path)


def _folder_problems(key: Key, folder: Path) -> Iterable[Problem]:
    for path in (folder, *folder.parents):
        if (agent := pretrained_address(path)) is not None:
            yield Problem(key, stays_as_it_is(agent))
            return
        try:
            os.fsencode(path)
            is_in_the_way = path.exists() and not path.is_dir()
        except UnicodeEncodeError as refused:
            yield Problem(key, unencodable(refused))
            return
        except (OSError, ValueError) as refused:
            yield Problem(key, f"{folder} cannot be a folder ({refused})")
            return
        if is_in_the_way:
            kind = "run" if key == ("run_dir",) else "Lake"
            yield Problem(key, f"{path} is a file; name a new folder, or that of a {kind}")
            return


def _with_underscored_numbers(schema: object) -> object:
    if isinstance(schema, list):
        return [_with_underscored_numbers(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {name: _with_underscored_numbers(value) for name, value in schema.items()}
    if schema.get("type") == "integer":
        changed |= {"type": ["integer", "string"], "pattern": "^[0-9]+(_[0-9]+)+$"}
    return changed


class _Dumper(yaml.SafeDumper):
    """Quotes text that our own reader would not read as text."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(resolve_plain(text), str) else "'"
    if not text.isprintable():  # rare line breaks would be folded; this style escapes them
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)

KINDS = ("population", "mixture", "study")


def config_kind(path: Path, overrides: Sequence[str] = ()) -> str | None:
    """Return the kind of the experiment that a file describes, or None for a run.

    Raises:
        ConfigError: the file is not YAML, or its kind does not exist.
    """
    source = Document(path, ConfigError)
    root, _ = source.tree(overrides)
    return kind_in(source, root)


def kind_in(source: Document, root: Node) -> str | None:
    """As `config_kind`, for a tree that was read from `source`."""
    if not root.has(("kind",)):
        return None
    node = root.nearest(("kind",))
    if node.value not in KINDS:
        message = (
            f"found {node.text or 'a section'}; allowed: {' or '.join(KINDS)}, or no such line"
        )
        source.fail([LocatedProblem(node.place, ("kind",), f"{message} for a single run")])
    return str(node.value)


def run_based_on(
    source: Document, section: Node, decided: Sequence[tuple[Key, Any, str]]
) -> RunConfig:
    """Return the run that a section describes, whole or as `config: FILE` with changes.

    Args:
        source: the file that has the section.
        decided: keys that the plan decides, each with its value and the name of what decides it.
    """
    base, tree = based_on(source, section)
    tree = with_decided(tree, decided)
    run = _with_folders_of_parts(base.model_of(tree, [], RunConfig), base, tree)
    base.refuse(tree, custom_part_problems(run))
    game_file = game_path(run.game, relative_to=base.folder_of(tree.nearest(("game",))))
    return run if game_file is None else run.model_copy(update={"game": str(game_file)})


def based_on(source: Document, section: Node) -> tuple[Document, Node]:
    """Return the file that the section's key `config` names, and the section merged over it.

    A section without that key comes back unchanged, with `source`.
    """
    file = named_file(source, section)
    if file is None:
        return source, section
    base = Document(file, ConfigError)
    below, problems = base.tree()
    if problems:
        base.fail(problems)
    return base, _merged(below, _labelled(section.without(("config",)), source.path.name))


def named_file(source: Document, section: Node) -> Path | None:
    """Return the file or the bundled config that the section's key `config` names.

    A path is relative to the folder that `Document.folder_of` returns.
    """
    if not section.has(("config",)):
        return None
    node = section.nearest(("config",))
    return find_config(expanded_path(str(node.value)), source.folder_of(node))


def with_decided(tree: Node, decided: Sequence[tuple[Key, Any, str]]) -> Node:
    """Return a copy of the tree with the keys that a plan decides (see `run_based_on`)."""
    for key, value, label in decided:
        tree = tree.with_value(key, _decided_node(value, label))
    return tree


def _decided_node(value: Any, label: str) -> Node:  # noqa: ANN401 - whatever a config holds
    inner = [_decided_node(v, label) for v in value] if isinstance(value, list) else value
    return Node(inner, Place(0, label), f"{value}")


def _labelled(node: Node, file: str) -> Node:
    """Return a copy with the file's name at each place, to merge it into another file."""
    place = replace(node.place, label=f"{file} {node.place.label}")
    value = node.value
    if isinstance(value, dict):
        value = {key: _labelled(child, file) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_labelled(child, file) for child in value]
    return replace(node, place=place, value=value)


_REPLACED = (("env", "start_states"),)  # mappings whose keys are names: a value, not a section


def _merged(below: Node, over: Node, key: Key = ()) -> Node:
    """Merge section by section; a value that is not a section in both replaces the one below."""
    if not isinstance(below.value, dict) or not isinstance(over.value, dict):
        return over
    if key[-2:] in _REPLACED:
        return over
    value = dict(below.value)
    for name, node in over.value.items():
        value[name] = _merged(value[name], node, (*key, name)) if name in value else node
    return replace(below, value=value)
