"""Files that a command writes: each option that names one, checked before the command begins.

An output must not be a file that the command reads, nor replace an existing file of another kind,
so that a slip of the hand costs no game file, config or ROM.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from game_rl.errors import UsageError


@dataclass(frozen=True)
class FileKind:
    """A kind of file, known by the ending of its name and by its first bytes.

    Attributes:
        name: with its article.
        suffix: ending of the name.
        first: what a file of this kind may begin with, after `at` bytes; in lower case.
    """

    name: str
    suffix: str
    first: tuple[bytes, ...]
    at: int = 0

    def is_in(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes is of this kind."""
        return head[self.at :].lower().startswith(self.first)


PNG = FileKind("a PNG", ".png", (b"\x89png",))
SVG = FileKind("an SVG", ".svg", (b"<?xml", b"<svg"))
GIF = FileKind("a GIF", ".gif", (b"gif8",))
MP4 = FileKind("an MP4", ".mp4", (b"ftyp",), at=4)
HTML = FileKind("an HTML page", ".html", (b"<!doctype html", b"<html"))
HTM = FileKind("an HTML page", ".htm", HTML.first)
ZIP = FileKind("a zip", ".zip", (b"pk",))
ONNX = FileKind("an ONNX model", ".onnx", (b"\x08",))
PICKLE = FileKind("a replay buffer", ".pkl", (b"\x80",))
ROUTE = FileKind("an episode", ".json", (b'{"start_state"',))
TRACE = FileKind("a trace", ".csv", (b"episode,start_state,timestep",))
_REPORT = {
    "report.md": FileKind("a report", ".md", (b"# ",)),
    "report.json": FileKind("a report", ".json", (b'{\n  "title"',)),
    "report.png": PNG,
}
_HEAD_BYTES = 64


@dataclass(frozen=True)
class _Output:
    option: str
    destination: str
    kinds: tuple[FileKind, ...]
    any_name: bool
    only_if: tuple[str, str] | None
    is_report: bool


def add_output(
    parser: argparse.ArgumentParser,
    option: str,
    *kinds: FileKind,
    text: str,
    metavar: str = "FILE",
    default: Path | None = None,
    required: bool = False,
    any_name: bool = False,
    only_if: tuple[str, str] | None = None,
) -> None:
    """Add an option that names a file to write.

    Args:
        kinds: what the file may be; none for the folder of a comparison's report.
        any_name: whether the file may have a name without the ending of its kind.
        only_if: an argument and the value with which the option names such a file.
    """
    action = parser.add_argument(
        option, type=Path, metavar=metavar, default=default, required=required, help=text
    )
    output = _Output(option, action.dest, kinds, any_name, only_if, is_report=not kinds)
    parser.set_defaults(outputs=(*(parser.get_default("outputs") or ()), output))


def add_output_folder(
    parser: argparse.ArgumentParser,
    option: str,
    *,
    text: str,
    metavar: str = "DIR",
    default: Path | None = None,
    required: bool = False,
) -> None:
    """Add an option that names a folder to make, or to write to."""
    action = parser.add_argument(
        option, type=Path, metavar=metavar, default=default, required=required, help=text
    )
    folders = parser.get_default("output_folders") or ()
    parser.set_defaults(output_folders=(*folders, (option, action.dest)))


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, or that would replace something else.

    Raises:
        UsageError: an output is a folder, is in a file, has the wrong ending, is a file that the
            command reads or writes besides, or is an existing file of another kind; or a folder to
            write to is a file or in one.
    """
    _check_folders(arguments)
    outputs: tuple[_Output, ...] = getattr(arguments, "outputs", ())
    given = [
        (each, getattr(arguments, each.destination))
        for each in outputs
        if getattr(arguments, each.destination) is not None
        if each.only_if is None or getattr(arguments, each.only_if[0]) == each.only_if[1]
    ]
    files: list[tuple[str, Path, tuple[FileKind, ...]]] = []
    for each, path in given:
        if each.is_report:
            files += ((each.option, path / name, (kind,)) for name, kind in _REPORT.items())
        else:
            files.append((each.option, path, each.kinds))
    for each, path in given:
        if not each.is_report and not each.any_name:
            _check_ending(each, path)
    own = {each.destination for each in outputs} | {"outputs", "output_folders"}
    others = {name: value for name, value in vars(arguments).items() if name not in own}
    for number, (option, path, kinds) in enumerate(files):
        _check_place(option, path)
        for source in _paths(others):
            if _is_same(path, source):
                raise UsageError(
                    f"{option} {path} is a file that the command reads; name another one"
                )
        for other, earlier, _ in files[:number]:
            if path == earlier or _is_same(path, earlier):
                raise UsageError(f"{other} and {option} both write {path}; name two files")
        _check_replaced(option, path, kinds)


def _check_folders(arguments: argparse.Namespace) -> None:
    for option, destination in getattr(arguments, "output_folders", ()):
        folder = getattr(arguments, destination)
        if folder is None:
            continue
        _check_above(option, folder, [folder.absolute(), *folder.absolute().parents])


def _check_ending(output: _Output, path: Path) -> None:
    endings = [kind.suffix for kind in output.kinds]
    if path.suffix.lower() in endings:
        return
    with suppress(OSError):
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a device
    found = f"not {path.suffix}" if path.suffix else "and has no ending"
    raise UsageError(
        f"{output.option} {path}: the file's name must end in {' or '.join(endings)}, {found}"
    )


def _check_place(option: str, path: Path) -> None:
    """Refuse a file whose place is a folder, or in a file; its folder is made later."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; name a file in it")
    _check_above(option, path, path.absolute().parents)


def _check_above(option: str, path: Path, folders: Sequence[Path]) -> None:
    above = next(folder for folder in folders if folder.exists())
    if not above.is_dir():
        raise UsageError(f"{option} {path}: {above} is a file, not a folder; name another place")


def _check_replaced(option: str, path: Path, kinds: tuple[FileKind, ...]) -> None:
    if not path.is_file():
        return
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head and not any(kind.is_in(head) for kind in kinds):
        names = dict.fromkeys(kind.name for kind in kinds)
        raise UsageError(
            f"{option} {path} exists and is not {' or '.join(names)}; name another file, or move "
            "this one away"
        )


def _paths(values: Mapping[str, object]) -> Iterator[Path]:
    """Yield the arguments that may be paths."""
    for value in values.values():
        several = value if isinstance(value, list | tuple) else [value]
        for each in several:
            if isinstance(each, str | Path):
                yield Path(each)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return other.is_file() and path.is_file() and path.samefile(other)
    except (OSError, ValueError):  # no path after all: too long, or with a null byte
        return False
