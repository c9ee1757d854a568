"""HTML whose texts are escaped by construction."""

from collections.abc import Collection, Sequence
from html import escape

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
            "table",
            element("thead", element("tr", cells("th", head))),
            element("tbody", *body),
        ),
        class_="wide",
        tabindex="0",
    )
