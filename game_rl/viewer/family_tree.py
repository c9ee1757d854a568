"""A picture of who descends from whom: the runs of an experiment, generation by generation."""

import itertools
from collections.abc import Collection, Iterator, Sequence

from game_rl.experiments.records import GenerationRecord, parents_of
from game_rl.viewer.report_style import Html, element, joined

_COLUMN = 44  # pixels between two generations
_ROW = 30
_LEFT = 96  # of the names
_TOP = 14
_RADIUS = 5
_Edge = tuple[int, int, int, int, bool]
_MOST_COLUMN = 1000  # pixels of all columns, where fewer than the usual ones have room


def family_tree(
    records: Sequence[GenerationRecord], ancestors: Collection[tuple[int, str]], stage: str
) -> Html:
    """Return an SVG with a dot for each run in each generation and a line from each parent.

    Args:
        ancestors: generation and folder of those that stand out.
        stage: word for a generation.
    """
    column = min(_COLUMN, max(14.0, _MOST_COLUMN / max(1, len(records))))
    rows = sorted({member.number for record in records for member in record.members})
    height = _TOP + _ROW * len(rows) + 16
    width = _LEFT + column * len(records)
    x_of = {record.generation: _LEFT + column * n for n, record in enumerate(records)}
    y_of = {number: _TOP + _ROW * n for n, number in enumerate(rows)}
    lines = [
        element(
            "path",
            d=_curve(x_of[before], y_of[origin], x_of[now], y_of[number]),
            class_="of-best" if is_best else False,
        )
        for before, origin, now, number, is_best in _edges(records, ancestors)
    ]
    dots = []
    for record in records:
        for member in record.members:
            result = "" if member.fitness is None else f", fitness {member.fitness.value:.3g}"
            what = f"{stage} {record.generation}, {member.folder}{result}"
            is_best = (record.generation, member.folder) in ancestors
            dots.append(
                element(
                    "circle",
                    element("title", what),
                    cx=f"{x_of[record.generation]:g}",
                    cy=f"{y_of[member.number]:g}",
                    r=f"{_RADIUS}",
                    class_="of-best" if is_best else False,
                )
            )
    names = [element("text", f"member {n}", x="0", y=f"{y_of[n] + 4:g}") for n in rows]
    every = max(1, round(_COLUMN / column))
    numbers = [
        element(
            "text", f"{r.generation}", x=f"{x_of[r.generation]:g}", y=f"{height - 2:g}",
            text_anchor="middle",
        )
        for n, r in enumerate(records) if n % every == 0
    ]  # fmt: skip
    picture = joined(
        Html(
            f'<svg class="family" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'role="img" aria-label="Which member descends from which, by {stage}">'
        ),
        *(lines + dots + names + numbers),
        Html("</svg>"),
    )
    return element("div", picture, class_="wide", tabindex="0")


def _edges(
    records: Sequence[GenerationRecord], ancestors: Collection[tuple[int, str]]
) -> Iterator[_Edge]:
    """Yield generation and number of each parent and of its child, those that stand out last."""
    parents = parents_of(records)
    plain = list[_Edge]()
    best = list[_Edge]()
    for before, now in itertools.pairwise(records):
        numbers = {member.folder: member.number for member in before.members}
        for member in now.members:
            origin = member.folder if member.folder in numbers else parents.get(member.folder)
            if origin is None or origin not in numbers:
                continue
            is_best = {(before.generation, origin), (now.generation, member.folder)} <= {*ancestors}
            edge = (before.generation, numbers[origin], now.generation, member.number, is_best)
            (best if is_best else plain).append(edge)
    yield from plain
    yield from best


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    middle = (x0 + x1) / 2
    return f"M{x0:g},{y0:g} C{middle:g},{y0:g} {middle:g},{y1:g} {x1:g},{y1:g}"
