"""The directive `generated`, which stands for a part of the reference that the code decides."""

from docutils import nodes
from docutils.statemachine import StringList
from reference_text import TEXTS
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Generated(SphinxDirective):
    """Puts Markdown in its place that is made from the code, such as `run keys`."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        text = TEXTS[self.arguments[0]]()
        lines = StringList(text.splitlines(), source=self.get_source_info()[0])
        place = nodes.Element()
        place.document = self.state.document
        self.state.nested_parse(lines, self.content_offset, place, match_titles=True)
        return place.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
