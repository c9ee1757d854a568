"""Verification of a Lake: every byte is compared with its checksum."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from game_rl.errors import LakeError
from game_rl.lake.horizon import Horizon
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.row_reader import missing_rows
from game_rl.lake.segment import (
    OPEN,
    SEALED,
    SHELVED,
    DamagedFileError,
    check_sha256,
    read_index,
    read_schema,
    scan,
)
from game_rl.lake.view import LakeView

_ADVICE = (
    "delete the damaged files, or restore them from a copy, and the Lake works again; a checkpoint "
    "that needs a deleted file cannot be resumed"
)
_ADVICE_FOR_ARRAYS = (
    "restore the damaged files from a copy, or import the replay buffer again: a Lake of arrays "
    "needs all of its files"
)


@dataclass
class Report:
    """The findings of `verify`.

    Attributes:
        damaged: what is wrong with each damaged file, by its name.
        open_files: bytes of the torn end of each file that is being written or that a crash left,
            by its name.
        advice: what to do about the damage; empty if there is none.
    """

    n_segments: int = 0
    n_transitions: int = 0
    n_bytes: int = 0
    damaged: dict[str, str] = field(default_factory=dict)
    open_files: dict[str, int] = field(default_factory=dict)
    advice: str = ""


def verify(
    path: Path,
    progress: Callable[[int, int], None] = lambda *_: None,
    *,
    decodes: bool = True,
) -> Report:
    """Read a whole Lake and report what is damaged.

    Args:
        progress: is called with the number of files that are done and the number of all.
        decodes: whether blocks are unpacked, too. The checksums of the files show every later
            change without that, and much sooner.

    Raises:
        LakeError: the Lake has no lake.json, or it is damaged.
    """
    lake = Lake.open(path)
    report = Report()
    segments = lake.files(SEALED) + lake.files(SHELVED)
    for number, file in enumerate(segments):
        progress(number, len(segments))
        with _found(file, file.name, report):
            _verify_segment(lake, file, report, decodes=decodes)
    try:
        Horizon(path).firsts()
    except LakeError as error:
        report.damaged["horizon.json"] = str(error)
    if lake.schema.arrays is not None and not report.damaged:
        report.damaged.update(missing_rows(lake.view()))
    for file in lake.files(OPEN):
        with suppress(FileNotFoundError):  # its writer has sealed it
            report.open_files[file.name] = _torn_bytes(file)
    for pin in sorted((path / "pins").glob("*.json")):
        with _found(pin, f"pins/{pin.name}", report):
            lake.view(Mark.from_json(pin.read_text(errors="replace", encoding="utf-8"), source=pin))
    progress(len(segments), len(segments))
    if report.damaged:
        report.advice = _ADVICE if lake.schema.arrays is None else _ADVICE_FOR_ARRAYS
    return report


@contextmanager
def _found(file: Path, name: str, report: Report) -> Iterator[None]:
    """Report a LakeError as damage of the file, unless a writer has deleted it since.

    A finding about another file, which a pin has, is reported once.
    """
    try:
        yield
    except FileNotFoundError:
        if file.exists():
            raise
    except LakeError as error:
        found = error.finding if isinstance(error, DamagedFileError) else str(error)
        if file.exists() and found not in report.damaged.values():
            report.damaged[name] = found if name in found else f"{file}: {found}"


def _verify_segment(lake: Lake, file: Path, report: Report, *, decodes: bool) -> None:
    segment = read_index(file)
    check_sha256(segment)
    if read_schema(file) != lake.schema:
        raise LakeError(f"{file}: its schema is not that of lake.json; one of the two was changed")
    view = LakeView(lake.schema, [segment])
    for number in range(len(view.heads) if decodes else 0):
        view.block(number)
    report.n_segments += 1
    report.n_transitions += segment.n_transitions
    report.n_bytes += segment.n_bytes


def _torn_bytes(file: Path) -> int:
    whole = sum(len(data) for data in scan(file))
    return file.stat().st_size - whole - _header_bytes(file) if whole else file.stat().st_size


def _header_bytes(file: Path) -> int:
    with file.open("rb") as opened:
        data = opened.read(12)
    return 16 + int.from_bytes(data[8:12], "little")
