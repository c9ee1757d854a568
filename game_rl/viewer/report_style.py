"""The HTML of a report: texts are escaped by construction, no scripts, nothing from other files."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from html import escape

from game_rl.look import LIGHT, stylesheet
from game_rl.statistics import percent
from game_rl.system.output import valid_text

_VOID = {"img", "meta", "br", "source"}


class Html(str):
    """Text that is HTML already; any other text is escaped by `element`."""

    __slots__ = ()


def joined(*parts: str) -> Html:
    """Return parts one after the other; those that are no HTML are escaped."""
    return Html("".join(part if isinstance(part, Html) else _escaped(part) for part in parts))


def _escaped(text: str) -> str:
    return escape(valid_text(text))


def element(tag: str, /, *content: str, **attributes: str | bool) -> Html:
    """Return an element.

    Args:
        content: its content, escaped where it is no HTML.
        attributes: by their names, where `class_` is `class`, and `_` within a name is `-`. True
            stands for an attribute without a value; one that is False is left out.
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_escaped(value)}"')
        for key, value in attributes.items()
        if value is not False
    )
    if tag in _VOID:
        return Html(f"<{tag}{shown}>")
    return Html(f"<{tag}{shown}>{joined(*content)}</{tag}>")


def table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    *,
    numbers: Collection[int] = (),
    texts: Collection[int] = (),
) -> Html:
    """Return a table that scrolls sideways where it is too wide.

    Args:
        numbers: the columns that are set flush right.
        texts: the columns whose cells may wrap.
    """
    kinds = {**dict.fromkeys(texts, "text"), **dict.fromkeys(numbers, "number")}

    def cells(kind: str, row: tuple[str, ...]) -> Html:
        return joined(
            *(element(kind, cell, class_=kinds.get(n, False)) for n, cell in enumerate(row))
        )

    body = [element("tr", cells("td", row)) for row in rows]
    return element(
        "div",
        element(
            "table", element("thead", element("tr", cells("th", head))), element("tbody", *body)
        ),
        class_="wide",
        tabindex="0",
    )


_CSS = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--background); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 36px 0 10px; }
h3 { font-size: .95rem; margin: 0 0 6px; }
p { margin: 6px 0; max-width: 78ch; overflow-wrap: anywhere; }
a { color: var(--accent); }
.muted, figcaption span, .tile small { color: var(--muted); }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 14px 0 0; font-size: .9rem; }
.tiles { display: grid; gap: 12px; margin: 20px 0 0;
  grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); }
.tile, .card, figure { background: var(--surface); border: 1px solid var(--grid);
  border-radius: 8px; }
.tile { padding: 10px 14px 12px; }
.tile b { display: block; font-size: 1.35rem; line-height: 1.35; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.tile span, .tile small { display: block; font-size: .82rem; line-height: 1.4; }
.card { padding: 12px 16px; margin: 10px 0; }
.state { display: inline-block; padding: 1px 9px; border-radius: 99px; font-size: .85rem;
  border: 1px solid currentColor; }
.good { color: var(--good); } .bad { color: var(--bad); }
.note { border-left: 3px solid var(--grid); padding-left: 12px; color: var(--muted); }
.note code { color: var(--text); }
.figures { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); }
figure { margin: 0; padding: 12px 14px 8px; break-inside: avoid; }
figcaption { font-weight: 650; margin-bottom: 4px; }
figcaption span { display: block; font-weight: 400; font-size: .82rem; min-height: 3em; }
figure > svg { display: block; width: 100%; height: auto; stroke-linejoin: round; }
figure > svg text { font-family: inherit; }
.story { font-size: 1.02rem; max-width: 92ch; margin: 12px 0 0; }
.card img, .card video { width: 100%; max-width: 480px; image-rendering: pixelated;
  border-radius: 6px; display: block; }
.card img.still { display: none; }
@media (prefers-reduced-motion: reduce) {
  .card img.moving + .still { display: block; } .card img.moving { display: none; }
}
.wide { overflow-x: auto; margin: 8px 0; }
.picture img { display: block; max-width: 100%; min-width: 540px; border-radius: 6px; }
.picture.map img { min-width: 0; }
.wide:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--muted); }
th, td { padding: 4px 18px 4px 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
td, th { white-space: nowrap; }
td.text { white-space: normal; overflow-wrap: anywhere; min-width: 11ch; }
.number { text-align: right; }
th.number { padding-left: 8px; }
pre { overflow-x: auto; background: var(--surface); border: 1px solid var(--grid);
  border-radius: 8px; padding: 12px 14px; font-size: .82rem; line-height: 1.45; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .92em; }
pre code { font-size: 1em; }
summary { cursor: pointer; color: var(--accent); margin: 8px 0; }
summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.bars { display: grid; grid-template-columns: fit-content(45%) 1fr auto; gap: 5px 12px;
  align-items: center; max-width: 560px; font-size: .88rem; font-variant-numeric: tabular-nums; }
.bars > * { min-width: 0; overflow-wrap: anywhere; }
.bars .bar { height: 11px; background: var(--grid); border-radius: 3px; overflow: hidden; }
.bars .bar i { display: block; height: 100%; background: var(--series-1); }
.bars .bar.lost i { background: var(--bad); }
.columns { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 330px), 1fr)); }
.columns > .card { margin: 0; }
.card p { font-size: .86rem; }
.columns > div > .card:first-child { margin-top: 0; }
.pair { display: grid; gap: 0 44px; align-items: start;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); }
.pair > * { min-width: 0; }
.family { display: block; }
.family path { fill: none; stroke: var(--muted); stroke-width: 1.2; opacity: .55; }
.family path.of-best { stroke: var(--accent); stroke-width: 2.6; opacity: 1; }
.family circle { fill: var(--surface); stroke: var(--muted); stroke-width: 1.4; }
.family circle.of-best { fill: var(--accent); stroke: var(--accent); }
.family text { fill: var(--muted); font-size: 12px; }
.spark { width: 120px; height: 26px; display: block; overflow: visible; }
.spark polyline { fill: none; stroke: var(--series-1); stroke-width: 1.4;
  vector-effect: non-scaling-stroke; }
footer { margin-top: 40px; font-size: .85rem; color: var(--muted); }
@media (max-width: 480px) {
  main { padding: 18px 12px 40px; }
  h1 { font-size: 1.4rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 8px; }
  .tile { padding: 8px 10px; } .tile b { font-size: 1.15rem; }
  td, th { padding-right: 12px; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  figure { padding: 10px 8px 6px; } figcaption span { min-height: 0; }
}
"""
_PRINT = """
@media print {
  html { font-size: 12px; } body { font-size: 12px; background: #ffffff; } .pair { display: block; }
  main { max-width: none; padding: 0; }
  nav { display: none; } h2 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; } .family { max-width: 100%; height: auto; }
  .columns { grid-template-columns: 1fr 1fr 1fr; }
  .card img.still { display: block; } .card .moving:has(+ .still) { display: none; }
  .tile, .card, tr, .bars { break-inside: avoid; }
  details::details-content { content-visibility: visible; height: auto; }
  details.whole { display: none; }
  .bars .bar, .bars .bar i { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; } .wide { overflow: visible; }
  details pre { columns: 2; }
}
"""


def page(title: str, *body: str) -> str:
    """Return a whole page."""
    style = f"{stylesheet()}{_CSS}@media print {{ :root {{ {LIGHT.css()} }} }}{_PRINT}"
    head = joined(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'",
        ),
        element("title", title),
        element("style", Html(style)),
    )
    html = element(
        "html", element("head", head), element("body", element("main", *body)), lang="en"
    )
    return f"<!doctype html>\n{html}\n"


def report(name: str, about: str, state: tuple[str, str], *content: str) -> str:
    """Return the page of a report.

    Args:
        about: what the report is about, in a line.
        state: its state in words, and whether that is good, bad or neither ("").
    """
    words, kind = state
    return page(
        f"{name} – report",
        element("h1", name),
        element("p", f"{about} ", element("span", words, class_=f"state {kind}")),
        *content,
        element("footer", f"Written by game-rl report at {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."),
    )


def section(title: str, name: str, *content: str) -> Html:
    """Return a section with a heading, to which `#name` leads."""
    return element("section", element("h2", title), *content, id=name)


def pair(left: Sequence[Html], right: Sequence[Html]) -> Html:
    """Return sections that stand beside each other where there is room."""
    columns = [element("div", *sections) for sections in (left, right) if sections]
    return element("div", *columns, class_="pair" if len(columns) > 1 else False)


def tile(label: str, value: str, note: str = "") -> Html:
    """Return one number with what it is; `note` is below it."""
    small = element("small", note) if note else ""
    return element("div", element("span", label), element("b", value), small, class_="tile")


def note(*content: str) -> Html:
    """Return a note that something is missing, and how it comes."""
    return element("p", *content, class_="note")


def folded(summary: str, *content: str, has_extract: bool = False) -> Html:
    """Return content that a click shows, and that is shown where the page is printed.

    Args:
        has_extract: whether a part of it stands above, which alone is printed.
    """
    kind = "whole" if has_extract else False
    return element("details", element("summary", summary), *content, class_=kind)


def bars(rows: list[tuple[str, float, str]]) -> Html:
    """Return one bar for each (name, share of the longest in -1..1, text)."""
    cells = []
    for name, share, text in rows:
        width = f"width:{percent(min(1.0, abs(share)), 1)}"
        cells += [
            element("span", name),
            element("span", element("i", style=width), class_="bar lost" if share < 0 else "bar"),
            element("span", text, class_="number"),
        ]
    return element("div", *cells, class_="bars")
