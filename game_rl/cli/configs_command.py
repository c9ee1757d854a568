"""`game-rl configs`: the configs that come with game_rl."""

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from game_rl.cli.arguments import add_command
from game_rl.cli.printing import add_json, print_facts, print_result
from game_rl.config.bundled_configs import bundled_configs, named_files, summary_of
from game_rl.config.loader import config_kind
from game_rl.config.schema_guide import closest
from game_rl.errors import UsageError

if TYPE_CHECKING:
    from game_rl.cli.arguments import Commands


def add_configs(commands: "Commands", summary: str) -> None:
    parser = add_command(
        commands,
        "configs",
        _configs,
        summary=summary,
        example="game-rl configs duel_ppo > run.yaml",
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="print the text of this config; without a name, list all",
    )
    parser.add_argument(
        "--copy",
        action="store_true",
        help="copy the config NAME into the current folder instead, with the files that it needs: "
        "the configs that it names, and the schemas that an editor reads",
    )
    add_json(parser, "list")


def _configs(arguments: argparse.Namespace) -> int:
    if arguments.name is None:
        if arguments.copy:
            raise UsageError("--copy copies one config: name it; game-rl configs lists them")
        return _list(arguments)
    file = _named(arguments.name)
    if arguments.copy:
        return _copy(arguments, file)
    if arguments.json:
        print_facts([_facts(file)])
        return 0
    print(file.read_text(encoding="utf-8"), end="")
    if others := ", ".join(each.name for each in named_files(file)):
        hint = f"{file.name} names {others}, which must be next to it: --copy copies all of them"
        print(hint, file=sys.stderr)
    return 0


def _named(name: str) -> Path:
    known = bundled_configs()
    found = known.get(Path(name).name.removesuffix(".yaml"))
    if found is None:
        meant = closest(name, list(known))
        guess = f"; did you mean {meant}? game-rl" if meant else "; game-rl"
        raise UsageError(f"there is no bundled config {name!r}{guess} configs lists them")
    return found


def _facts(file: Path) -> Mapping[str, str]:
    return {
        "name": file.stem,
        "kind": config_kind(file) or "run",
        "summary": summary_of(file),
        "file": str(file),
    }


def _list(arguments: argparse.Namespace) -> int:
    rows = [_facts(file) for file in bundled_configs().values()]
    if arguments.json:
        print_facts(rows)
        return 0
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("what it is for", overflow="fold")
    for row in rows:
        table.add_row(row["name"], row["kind"], Text(row["summary"]))
    Console().print(table)
    if not arguments.quiet:
        print("train one with game-rl train NAME, print it with game-rl configs NAME")
    return 0


def _copy(arguments: argparse.Namespace, file: Path) -> int:
    """Copy a config and what it needs; files that are there with the same content stay."""
    sources = [file, *named_files(file)]
    sources += dict.fromkeys(_schema_of(source) for source in sources)
    targets = {Path(source.name): source for source in sources}
    for target, source in targets.items():
        if target.exists() and target.read_bytes() != source.read_bytes():
            raise UsageError(
                f"{target} is here already, with other content; move it away, or print the config "
                f"into another file: game-rl configs {file.stem} > other.yaml"
            )
    for target, source in targets.items():
        if not target.exists():
            shutil.copyfile(source, target)
    names = [str(target) for target in targets]
    text = f"{file.name}" + (f", with {', '.join(names[1:])}" if names[1:] else "")
    print_result(arguments, names, text, f"train it with game-rl train {file.name}")
    return 0


def _schema_of(file: Path) -> Path:
    """Return the schema that a config's first line names for editors."""
    first, _, _ = file.read_text(encoding="utf-8").partition("\n")
    return file.with_name(first.partition("$schema=")[2].strip())
