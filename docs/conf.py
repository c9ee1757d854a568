"""How Sphinx builds the docs: `make docs`."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "game_rl"
author = "the authors of game_rl"
release = version = metadata.version("game_rl")

extensions = ["myst_parser", "generated"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4  # links such as page.md#a-heading work as on a code host

html_theme = "furo"
html_title = "game_rl"
html_copy_source = False
