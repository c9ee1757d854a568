"""`game-rl configs`: the configs that come with game_rl."""

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from game_rl.cli.printing import SafeConsole, add_json, print_facts, print_result
from game_rl.config.bundled_configs import bundled_configs, named_files, summary_of
from game_rl.config.loader import config_kind
from game_rl.config.schema_guide import closest
from game_rl.errors import UsageError


def add_configs(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_configs)
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
    known = bundled_configs()
    if arguments.name is None:
        if arguments.copy:
            raise UsageError("--copy copies one config: name it; game-rl configs lists them")
        rows = [_facts(file) for file in known.values()]
        if arguments.json:
            print_facts(rows)
            return 0
        table = Table(
            Column("name", no_wrap=True),
            Column("kind", no_wrap=True),
            Column("what it is for", overflow="fold"),
            box=None,
            pad_edge=False,
        )
        for row in rows:
            table.add_row(row["name"], row["kind"], Text(row["summary"]))
        SafeConsole().print(table)
        if not arguments.quiet:
            print("train one with game-rl train NAME, print it with game-rl configs NAME")
        return 0
    file = known.get(Path(arguments.name).name.removesuffix(".yaml"))
    if file is None:
        meant = closest(arguments.name, list(known))
        guess = f"; did you mean {meant}? game-rl" if meant else "; game-rl"
        raise UsageError(f"there is no bundled config {arguments.name!r}{guess} configs lists them")
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


def _facts(file: Path) -> Mapping[str, str]:
    return {
        "name": file.stem,
        "kind": config_kind(file) or "run",
        "summary": summary_of(file),
        "file": str(file),
    }


def _copy(arguments: argparse.Namespace, file: Path) -> int:
    """Copy a config and what it needs; files that are there with the same content stay."""
    sources = dict.fromkeys([file, *named_files(file)])
    for source in tuple(sources):  # and the schema that its first line names for editors
        first, _, _ = source.read_text(encoding="utf-8").partition("\n")
        sources[source.with_name(first.partition("$schema=")[2].strip())] = None
    targets = {Path(source.name): source for source in sources}
    for target, source in targets.items():
        if target.exists() and target.read_bytes() != source.read_bytes():
            raise UsageError(
                f"{target} exists already with other content; move it away, or print the config "
                f"into another file: game-rl configs {file.stem} > other.yaml"
            )
    for target, source in targets.items():
        if not target.exists():
            shutil.copyfile(source, target)
    names = [str(target) for target in targets]
    text = f"{file.name}" + (f", with {', '.join(names[1:])}" if names[1:] else "")
    print_result(arguments, names, text, f"train it with game-rl train {file.name}")
    return 0
