"""A report on paper: what Chromium puts into the PDF of a page with a clip."""

import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from game_rl.playback.clip import write_gif, write_mp4
from game_rl.viewer.run_report import run_report
from game_rl.viewer.shown_runs import read_run
from tests.experiments.compare.fake_runs import write_run
from tests.viewer.test_page_browser import chromium as chromium

COLOURS = np.array([[200, 30, 40], [30, 160, 60], [60, 90, 220]], np.uint8)
_IMAGE = re.compile(
    rb"/Subtype /Image\n/Width (\d+)\n/Height (\d+)\n[^>]*/FlateDecode\n/Length (\d+)>> stream\n"
)

pytestmark = pytest.mark.browser


def pictures_of(pdf: bytes) -> list[NDArray[np.uint8]]:
    """The pictures of a PDF without losses, uint8 [h, w, 3]."""
    found = []
    for match in _IMAGE.finditer(pdf):
        width, height, length = map(int, match.groups())
        content = zlib.decompress(pdf[match.end() : match.end() + length])
        found.append(np.frombuffer(content, np.uint8).reshape(height, width, 3))
    return found


@pytest.mark.parametrize(("name", "write"), [("best.mp4", write_mp4), ("best.gif", write_gif)])
def test_a_clip_is_its_last_picture(chromium: Any, tmp_path: Path, name: str, write: Any) -> None:
    run_dir = write_run(tmp_path / "run", seed=0, final=0.9)
    run_dir.videos.mkdir()
    pictures = [np.broadcast_to(colour, (144, 160, 3)) for colour in COLOURS]
    write(pictures, 0.5, run_dir.videos / name)
    report = tmp_path / "report.html"
    report.write_text(run_report(read_run(run_dir.root)), encoding="utf-8")
    page = chromium.new_page()
    try:
        page.goto(report.as_uri())
        (printed,) = pictures_of(page.pdf())
        assert printed.shape == (288, 320, 3)
        assert np.abs(printed.astype(int) - COLOURS[-1]).mean() < 8
        page.emulate_media(media="print")
        shown = page.locator(".card :is(img, video):visible")  # no player, which may be black
        assert [each.get_attribute("class") for each in shown.all()] == ["still"]
    finally:
        page.close()
