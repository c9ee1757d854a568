"""The pictures of docs/how-to/parts.md are what docs/draw_parts.py draws."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from game_rl.games.definition import load_game

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "parts.md"
FOLDER = PAGE.with_suffix("")
MOST_BYTES = 60_000
HANG_GUARD_S = 60
SCREEN = (slice(29, 173), slice(12, 172))  # rows and columns of the first moment's


@pytest.mark.slow
def test_every_part_of_the_page_has_a_small_picture_that_can_be_made_again(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "docs" / "draw_parts.py"), str(tmp_path)],
        check=True,
        timeout=HANG_GUARD_S,
    )
    definition = load_game(str(FOLDER / "game.yaml")).definition
    assert {part.kind for part in definition.parts.values()} == {
        *("vector", "categories", "tiles", "visited", "actions", "recent", "own")
    }
    page = PAGE.read_text(encoding="utf-8")
    for name in definition.parts:
        kept, made = FOLDER / f"{name}.png", tmp_path / f"{name}.png"
        assert f"](parts/{name}.png)" in page
        assert kept.stat().st_size < MOST_BYTES
        # words look different where Pillow has another font
        one, other = (np.array(Image.open(path))[SCREEN] for path in (kept, made))
        np.testing.assert_array_equal(one, other)
