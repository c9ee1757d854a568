"""Plot curves of several arms to a PNG: each seed as a thin line, their mean as a thick one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

_COLOURS = ("#777777", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_SIZE_INCHES, _DPI = (9, 4.5), 110

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Line:
    """An arm with one curve for each seed, x ascending."""

    name: str
    curves: tuple[Points, ...]

    @property
    def mean(self) -> Points:
        """The mean curve, as far as all seeds have points; x and y are averaged point by point."""
        columns = zip(*self.curves, strict=False)
        n = len(self.curves)
        return tuple((sum(x for x, _ in c) / n, sum(y for _, y in c) / n) for c in columns)


def draw_rates(lines: Sequence[Line], path: Path, *, x: str, y: str) -> None:
    """Write a plot of rates, 0..1, unless there is nothing to draw."""
    if not any(line.curves for line in lines):
        return
    figure = Figure(figsize=_SIZE_INCHES, dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        for curve in line.curves:
            axes.plot(*zip(*curve, strict=True), color=colour, alpha=0.35, linewidth=0.8)
        mean = tuple(zip(*line.mean, strict=True))
        axes.plot(*mean, color=colour, linewidth=2.5, label=line.name)
    axes.set(xlabel=x, ylabel=y)
    axes.set_ylim(top=1.01)
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(path, metadata={"Software": None})
