"""How Sphinx builds the docs: `make docs`."""

import re
import sys
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "game_rl"
author = "the authors of game_rl"
release = version = metadata.version("game_rl")

extensions = ["myst_parser", "repository_view"]
exclude_patterns = ["_build", "changelog"]  # read in the repository
nitpicky = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "html_image"]
myst_heading_anchors = 4  # links such as page.md#a-heading work as on a code host

smartquotes = False  # options such as --at keep their hyphens
html_theme = "furo"
html_title = "game_rl"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False


def mark_files_outside(app: Sphinx, _name: str, source: list[str]) -> None:
    """Make links to Markdown files outside of the docs downloads; they are no pages of the site."""
    page = Path(app.env.doc2path(app.env.docname)).parent

    def marked(link: re.Match[str]) -> str:
        is_page = (page / link[1]).resolve().is_relative_to(app.srcdir)
        return link[0] if is_page else f"](path:{link[1]})"

    source[0] = re.sub(r"\]\((\.\./[^)#\s]*\.md)\)", marked, source[0])


def keep_percent_signs(_app: Sphinx, doctree: nodes.document) -> None:
    """Let no line break separate a number from its percent sign."""
    for text in list(doctree.findall(nodes.Text)):
        joined = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", text)
        if joined != text and not isinstance(text.parent, nodes.literal | nodes.literal_block):
            text.parent.replace(text, nodes.Text(joined))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", keep_percent_signs)
    app.connect("source-read", mark_files_outside)
