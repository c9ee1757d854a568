"""Lets pages be written for a code host's view, and gives Sphinx what it needs beyond that.

`<a id="NAME"></a>` becomes a target of links. Keys and commands become entries that the search of
the site finds first. The links of an index page become its table of contents.
"""

import re
from posixpath import dirname, join, normpath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains import ObjType
from sphinx.domains.std import StandardDomain
from sphinx.transforms import SphinxTransform

_ANCHOR = re.compile(r'<a id="([\w-]+)">')
_LINK = re.compile(r"\]\(((?!https?:)[^)#\s]+)\.md\)")
_KINDS = {
    "reference/run": "key of a run",
    "reference/game": "key of a game file",
    "reference/populations": "key of a population",
    "reference/mixtures": "key of a mixture",
    "reference/studies": "key of a study",
    "reference/commands": "command",
    "reference/events": "event",
    "reference/glossary": "word",
}
"""What each page of the reference has entries of."""


class Anchors(SphinxTransform):
    """Makes targets of anchors, before the domains note what a page has."""

    default_priority = 400

    def apply(self) -> None:
        slugs = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
        for raw in list(self.document.findall(nodes.raw)):
            if not (found := _ANCHOR.fullmatch(raw.astext())):
                continue
            name = found[1]
            target = nodes.target("", "", ids=[name], names=[name])
            self.document.note_explicit_target(target)
            slugs[name] = (raw.line or 0, name, name)
            raw.parent.replace(raw, target)
        if kind := _KINDS.get(self.env.docname):
            self._note_entries(kind)

    def _note_entries(self, kind: str) -> None:
        """Note what stands in bold behind an anchor, and headings that are one literal."""
        domain = self.env.domains.standard_domain
        for target in self.document.findall(nodes.target):
            following = target.next_node(nodes.strong, siblings=True)
            if target.get("names") and following is not None:
                section = _section_of(target)
                literals = list(section[0].findall(nodes.literal))
                chooser = literals[1].astext().partition(": ")[2] if len(literals) > 1 else ""
                name = f"{chooser}: {following.astext()}" if chooser else following.astext()
                domain.note_object(kind, name, target["ids"][0], location=target)
        for section in self.document.findall(nodes.section):
            title = section[0]
            if len(title.children) == 1 and isinstance(title[0], nodes.literal):
                name = title.astext()
                if (
                    kind,
                    name,
                ) not in domain.objects:  # events of runs and of experiments share some
                    domain.note_object(kind, name, section["ids"][0], location=section)


def _section_of(node: nodes.Element) -> nodes.Element:
    while not isinstance(node, nodes.section):
        node = node.parent
    return node


def add_contents(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the pages that an index links, section by section, as hidden tables of contents."""
    if docname.rpartition("/")[2] != "index":
        return
    folder, seen, blocks = dirname(docname), {docname}, []
    for section in re.split(r"^## ", source[0], flags=re.MULTILINE):
        linked = dict.fromkeys(normpath(join(folder, link)) for link in _LINK.findall(section))
        pages = [page for page in linked if page not in seen and not page.startswith("../")]
        seen.update(pages)
        if pages:
            caption = section.partition("\n")[0].removeprefix("# ")
            lines = "\n".join(f"/{page}" for page in pages)
            blocks.append(f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{lines}\n```\n")
    source[0] += "".join(blocks)


def setup(app: Sphinx) -> dict[str, bool]:
    for kind in _KINDS.values():
        priority = 1 if kind == "word" else 0  # the reference of a key is found before its word
        StandardDomain.object_types[kind] = ObjType(kind, searchprio=priority)
    app.add_transform(Anchors)
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
