"""What a command prints: its result to standard output, progress to standard error."""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from game_rl.events.slow_work import telling_if_slow
from game_rl.system.output import as_printed, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from game_rl.preflight.rendering import Forecast


class SafeConsole(Console):
    """A console in which no text, such as the name of a folder, can command the terminal."""

    def render(
        self,
        renderable: RenderableType,
        options: ConsoleOptions | None = None,
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)


PROGRESS = SafeConsole(stderr=True)
"""The console for progress, which the main program silences with -q."""

_WORD = re.compile(r"\s*\S+\s*")
_LEAST_WIDTH = 20
"""Cells beside an indent below which lines begin at the left edge."""


def print_words(console: Console, text: str | Text, *, indent: int = 0, style: str = "") -> None:
    """Print a line, on a terminal as several that break between words.

    A word that is longer than the terminal is wide, such as a path, stays whole. Elsewhere it stays
    one line, so that programs such as `grep` find it.

    Args:
        indent: cells before each line but the first.
    """
    line = text
    if isinstance(line, str):
        line = console.render_str(line, style=style, markup=False, emoji=False, highlight=not style)
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        return
    before = indent if console.width - indent >= _LEAST_WIDTH else 0
    first, *rest = line.divide(_breaks(line.plain, console.width, before))
    first.rstrip()
    console.print(first, soft_wrap=True)
    for each in rest:
        each.rstrip()
        console.print(Text(" " * before) + each, soft_wrap=True)


_NUMBER = re.compile(r"[-+]?[\d,.]+( / [\d,.]+)?( ?%| points| [KMG]iB| B)?|")
_GAP = 2  # cells between two columns
_UNLIMITED = 10_000  # cells of a line that no terminal shows


def print_table(
    console: Console,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    first_apart: bool = False,
) -> None:
    """Print a table; on a terminal where its words do not fit, each row as lines of name and cell.

    Columns of numbers are flush right.

    Args:
        first_apart: whether the first cell of each row, such as a path, gets a line of its own
            where only the others fit.
    """
    header, *rows = ([*map(as_printed, row)] for row in (header, *rows))
    columns = [_Column(name, cells) for name, *cells in zip(header, *rows, strict=True)]
    room = console.width if console.is_terminal else _UNLIMITED
    if (spare := room - _least_width(columns)) >= 0:
        for line in _table_lines(columns, rows, spare):
            console.print(Text(line), soft_wrap=True)
        return
    if first_apart and (spare := room - _GAP - _least_width(columns[1:])) >= 0:
        lines = _table_lines(columns[1:], [row[1:] for row in rows], spare)
        for (first, *_), line in zip((header, *rows), lines, strict=True):
            console.print(Text(f"{first}\n{' ' * _GAP}{line}"), soft_wrap=True)
        return
    width = max(map(cell_len, header))
    for row in rows:
        for name, cell in zip(header, row, strict=True):
            print_words(console, Text(f"{name:<{width}}  {cell}"), indent=width + 2)
        console.print()


def _least_width(columns: "Sequence[_Column]") -> int:
    return sum(column.least for column in columns) + _GAP * (len(columns) - 1)


def _table_lines(
    columns: "Sequence[_Column]", rows: Sequence[Sequence[str]], spare: int
) -> Iterator[str]:
    """Yield the lines of a table.

    Args:
        spare: cells beyond the least widths of the columns, which they share.
    """
    for n, column in enumerate(sorted(columns, key=lambda each: each.most - each.least)):
        column.width = min(column.most, column.least + spare // (len(columns) - n))
        spare -= column.width - column.least
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="")
    for column in columns:
        side: JustifyMethod = "right" if column.is_number else "left"
        table.add_column(Text(column.name), justify=side, width=column.width)
    for row in rows:
        table.add_row(*map(Text, row))
    console = SafeConsole(width=_UNLIMITED, color_system=None)
    with console.capture() as printed:
        console.print(table)
    yield from (line.rstrip() for line in printed.get().splitlines())


class _Column:
    """A column of a table, and how wide it may be so that its words are whole."""

    def __init__(self, name: str, cells: Sequence[str]) -> None:
        self.name = name
        self.is_number = all(_NUMBER.fullmatch(cell) for cell in cells)
        whole = [*name.split(), *(cells if self.is_number else " ".join(cells).split())]
        self.least = max(map(cell_len, whole), default=0)
        self.most = max(map(cell_len, (name, *cells)))
        self.width = self.least


def _breaks(text: str, width: int, indent: int) -> list[int]:
    """Return where lines begin, other than the first, so that each is at most `width` cells wide.

    Args:
        indent: cells before each line but the first.
    """
    found = list[int]()
    used = 0
    for word in _WORD.finditer(text):
        if used + cell_len(word[0].rstrip()) > width and word.start():
            found.append(word.start())
            used = indent
        used += cell_len(word[0])
    return found


def numbers(*names: str, no_wrap: bool = False) -> list[Column]:
    """Return columns of a rich table that are flush right."""
    return [Column(name, justify="right", no_wrap=no_wrap) for name in names]


def add_json(parser: argparse.ArgumentParser, what: Literal["object", "list"] = "object") -> None:
    parser.add_argument("--json", action="store_true", help=f"print one JSON {what}")


def print_facts(facts: object) -> None:
    print(json.dumps(facts, indent=2))


def print_result(arguments: argparse.Namespace, facts: object, text: str, hint: str = "") -> None:
    """Print what a command has done, as JSON or as text.

    Args:
        hint: what may be done next; left out by -q.
    """
    if arguments.json:
        print_facts(facts)
    else:
        print(visible("\n".join(filter(None, (text, "" if arguments.quiet else hint)))))


def from_here(path: Path) -> str:
    """Return a file as a user would type it: relative, if it is below the current folder."""
    with suppress(ValueError):
        return str(path.absolute().relative_to(Path.cwd()))
    return str(path)


def print_notes(notes: Iterable[str]) -> None:
    """Print what a person should know besides the result, as progress."""
    for note in notes:
        print_words(PROGRESS, f"note: {note}")


@contextmanager
def working(text: str) -> Iterator[None]:
    """Print what is going on, as progress, if the block takes more than two seconds."""
    is_shown = False

    def show(_: float) -> None:
        nonlocal is_shown
        if not is_shown:
            PROGRESS.print(f"{text} …", markup=False, highlight=False)
        is_shown = True

    with telling_if_slow(show):
        yield


def forecast_shown(console: Console, *, is_verbose: bool) -> "Callable[[Forecast], None]":
    """Return a function that prints a forecast before a training: briefly, if all fits.

    A forecast that does not fit is never kept quiet: the error that follows refers to it.

    Args:
        is_verbose: whether to print the whole forecast.
    """
    from game_rl.preflight.rendering import brief

    def show(forecast: "Forecast") -> None:
        is_needed = console.quiet and forecast.verdict == "does_not_fit"
        output = SafeConsole(stderr=True) if is_needed else console
        output.print(forecast.table() if is_verbose else brief(forecast), crop=False)

    return show
