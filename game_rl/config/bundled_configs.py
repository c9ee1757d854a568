"""The configs that come with game_rl: where they are, and how one is found by its name."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

_PACKAGE = Path(__file__).parents[1]
_SENTENCE = re.compile(r".*?[.?](?=\s|$)", re.DOTALL)


def bundled_folder() -> Path:
    """Return the folder: in the package where it was built, next to it in a checkout."""
    built = _PACKAGE / "configs"
    return built if built.is_dir() else _PACKAGE.parent / "configs"


def bundled_configs() -> dict[str, Path]:
    """Return the file of each bundled config by its name, in the order of names."""
    return {file.stem: file for file in sorted(bundled_folder().glob("*.yaml"))}


def find_config(name: Path, folder: Path = Path()) -> Path:
    """Return the file that a path means if it may also be the name of a bundled config.

    A file at that path comes first, then one with the suffix .yaml, then the bundled config, which
    is named without folder and suffix. If there is none of them, the path comes back.

    Args:
        folder: folder that the path is relative to.
    """
    path = folder / name
    if path.is_file() or name.suffix in (".yaml", ".yml") or len(name.parts) != 1:
        return path
    beside = path.with_name(f"{path.name}.yaml")
    return beside if beside.is_file() else bundled_configs().get(str(name), path)


def summary_of(file: Path) -> str:
    """Return the first sentence of a config's comments, which say what it is for."""
    lines = file.read_text(encoding="utf-8").splitlines()
    comments = []
    for line in lines[1:]:  # the first one is for editors
        if not line.startswith("#"):
            break
        comments.append(line.removeprefix("#").strip())
    found = _SENTENCE.match(" ".join(comments))
    return found[0] if found else ""


def named_files(file: Path) -> Sequence[Path]:
    """Return the files next to a config that it names as `config`, and those that they name."""
    found: dict[Path, None] = {}
    waiting = [file]
    while waiting:
        for name in _named(yaml.safe_load(waiting.pop().read_text(encoding="utf-8"))):
            path = file.with_name(name)
            if path not in found and path.is_file():
                found[path] = None
                waiting.append(path)
    return list(found)


def _named(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _named(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "config" and isinstance(value, str):
                yield value
            else:
                yield from _named(value)
