"""The one palette of the page, the plots, the reports and the maps, light and dark.

Each meaning has one name and one colour. Two meanings share one only if they are never seen
together. Text, muted text, accent, good and bad have a contrast of at least 4.5:1 on background and
surface, series colours of at least 3:1. The series can be told apart with each kind of colour
blindness, and so can the agents on a map from the visits below them.
"""

from dataclasses import dataclass, fields

EVALUATION, STOCHASTIC_EVALUATION, TRAINING, BASELINES = range(4)
"""The series colours of one run's curves, on the page as in plots and reports."""
BEST = EVALUATION
"""The best member of an experiment, or route of an exploration."""
MEMBERS = 5
"""The members of an experiment, or their mean."""
WORST = 7
CELLS = 5
"""What an exploration has found, as PLACES and MAPS."""
PLACES = 6
MAPS = 7
_MEANINGS = {
    "evaluation": EVALUATION,
    "stochastic-evaluation": STOCHASTIC_EVALUATION,
    "training": TRAINING,
    "baseline": BASELINES,
    "best": BEST,
    "members": MEMBERS,
    "worst": WORST,
    "cells": CELLS,
    "places": PLACES,
    "maps": MAPS,
}
"""The same by the names that the page uses, so that it knows a colour by its meaning alone."""

FLAG = "#ff5d73"
"""A milestone on a map. Maps have the same colours in both themes."""
AGENT = "#7fd8ff"
SHOWN_AGENT = "#ffffff"
"""An agent on a map, and the one that is shown large or whose way is drawn."""
VISITS = ("#544096", "#366494", "#248e8e", "#35b779", "#96d942", "#fde739")
"""How often a place was visited, rarely to often, told apart by brightness alone, too."""
_MAP = {"flag": FLAG, "agent": AGENT, "shown-agent": SHOWN_AGENT} | {
    f"visits-{number}": colour for number, colour in enumerate(VISITS, start=1)
}


def rgb(colour: str) -> tuple[int, int, int]:
    """Return the parts of `#rrggbb`."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


@dataclass(frozen=True)
class Look:
    """The colours of one theme, as `#rrggbb`.

    Attributes:
        background: of the page or figure.
        surface: of a panel on it.
        muted: labels and what is less important.
        grid: lines of a grid and borders, which carry no meaning.
        accent: links, the focus, the main curve.
        series: colours of curves, in the order in which they are used.
    """

    background: str
    surface: str
    text: str
    muted: str
    grid: str
    accent: str
    good: str
    bad: str
    series: tuple[str, ...]

    def css(self) -> str:
        """Return the colours as CSS custom properties: `--text`, `--series-1`, `--training`."""
        plain = [f.name for f in fields(self) if f.name != "series"]
        pairs = [(name, getattr(self, name)) for name in plain]
        pairs += [(f"series-{n}", colour) for n, colour in enumerate(self.series, start=1)]
        pairs += [(name, self.series[at]) for name, at in _MEANINGS.items()]
        return " ".join(f"--{name}: {colour};" for name, colour in pairs)


LIGHT = Look(
    background="#f4f5f2",
    surface="#ffffff",
    text="#191c20",
    muted="#596069",
    grid="#dde0db",
    accent="#0b6b4f",
    good="#1a7043",
    bad="#b3261e",
    series=("#0b6b4f", "#2f7fe0", "#c96a0a", "#6d1fa0", "#6a1b12", "#cc4fb0", "#16324f", "#7a7f83"),
)
DARK = Look(
    background="#14171a",
    surface="#1d2125",
    text="#eceeea",
    muted="#a3abb3",
    grid="#343a40",
    accent="#6fd3a8",
    good="#6fcf97",
    bad="#ff8a80",
    series=("#5fd6ab", "#6f9dff", "#ffc46b", "#8a5cf0", "#2f8f66", "#e86a8f", "#eef59a", "#b9c2cc"),
)


def stylesheet() -> str:
    """Return both themes as CSS; dark where the reader's system asks for it."""
    of_maps = " ".join(f"--{name}: {colour};" for name, colour in _MAP.items())
    return (
        f":root {{ color-scheme: light dark; {of_maps} {LIGHT.css()} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {DARK.css()} }} }}\n"
    )
