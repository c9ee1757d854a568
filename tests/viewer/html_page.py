"""Reads a page as a browser would, and finds what a self-contained page must not have."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"img", "meta", "br", "source", "path", "use", "polyline", "rect"}


@dataclass
class ReadPage(HTMLParser):
    """Tags, ids, links and texts of a page; raises AssertionError if a tag is not closed."""

    tags: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    text: str = ""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.ids, self.links, self.text = [], [], [], ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "poster", "data", "action"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open, tag
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data


def read_page(page: str) -> ReadPage:
    """Read a page that must be complete in itself."""
    found = ReadPage(page)
    assert "script" not in found.tags
    assert "link" not in found.tags
    assert "@import" not in page
    assert "url(http" not in page
    for link in found.links:
        assert link.startswith(("#", "data:")), link
    for link in found.links:
        assert not link.startswith("#") or link[1:] in found.ids, link
    assert len(found.ids) == len(set(found.ids)), [i for i in found.ids if found.ids.count(i) > 1]
    return found
