"""An exploration in report, page and status: what they show is what its files hold."""

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from game_rl.cli.main import main
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_dir import ExploreDir
from game_rl.games.definition import load_game
from game_rl.playback.clip import write_gif, write_mp4
from game_rl.viewer.exploration_report import exploration_report
from game_rl.viewer.report_clips import still_of
from tests.explore.explored_beacon import explore_beacon
from tests.viewer.html_page import ReadPage, read_page
from tests.viewer.live_run import Watching, watching
from tests.viewer.test_page_browser import _ROLES, Opened, wait_until
from tests.viewer.test_page_browser import chromium as chromium


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Exploration:
    return explore_beacon(tmp_path_factory.mktemp("explored") / "beacon", rounds=3)


@pytest.fixture
def server(explored: Exploration) -> Iterator[Watching]:
    with watching(explored.folder.root) as server:
        yield server


def test_the_report_has_everything_in_one_file(explored: Exploration, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert main(["report", str(explored.folder.root), "--output", str(file)]) == 0
    page = ReadPage(file.read_text(encoding="utf-8"))
    archive = explored.archive
    assert f"{len(archive.cells):,}" in page.text
    assert f"{archive.timesteps:,}" in page.text
    assert "--route key" in page.text
    assert page.tags.count("svg") == 3  # cells and places, maps, best reward
    assert page.tags.count("img") == 3  # the best way, the map, the sheet
    assert all(link.startswith(("#", "data:")) for link in page.links)


@pytest.mark.parametrize(("name", "write"), [("best.mp4", write_mp4), ("best.gif", write_gif)])
def test_the_report_has_the_recorded_route_and_its_last_picture_for_paper(
    explored: Exploration, tmp_path: Path, name: str, write: Any
) -> None:
    clip = shutil.copytree(explored.folder.root, tmp_path / "explored") / name
    write([np.full((144, 160, 3), 90, np.uint8)], 0.1, clip)
    page = read_page(exploration_report(ExploreDir(clip.parent)))
    is_video = clip.suffix == ".mp4"
    assert page.tags.count("video") == is_video
    still = base64.b64encode(still_of(clip.read_bytes(), clip.suffix)).decode()
    assert page.links.count(f"data:image/png;base64,{still}") == 1 + is_video  # the poster


def test_the_map_alone_is_a_picture_with_or_without_screens(
    explored: Exploration, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(explored.folder.root)
    colours = []
    for options in ([], ["--plain"]):
        assert main(["places", root, "--output", str(tmp_path / "map.png"), *options]) == 0
        with Image.open(tmp_path / "map.png") as picture:
            colours.append(len(picture.getcolors(2**24)))
    assert colours[0] > colours[1]
    capsys.readouterr()
    assert main(["places", root, "--output", str(tmp_path / "map.gif")]) == 2
    assert "name a .png" in capsys.readouterr().err


@pytest.mark.parametrize("axis", ["frames", "hours"])
def test_the_report_has_other_axes(explored: Exploration, tmp_path: Path, axis: str) -> None:
    file = tmp_path / "report.html"
    words = ["report", str(explored.folder.root), "--x", axis, "--output", str(file)]
    assert main(words) == 0
    assert axis in ReadPage(file.read_text(encoding="utf-8")).text


def test_status_says_how_far_it_is(
    explored: Exploration, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(explored.folder.root)
    assert main(["status", root, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    archive = explored.archive
    assert (facts["rounds"], facts["timesteps"]) == (archive.rounds, archive.timesteps)
    assert (facts["cells"], facts["is_exploring"]) == (len(archive.cells), False)
    assert facts["earned"]["key"]["most"] == archive.earned["key"]
    assert main(["status", root]) == 0
    assert f"key after {facts['earned']['key']['timesteps']:,} timesteps" in capsys.readouterr().out


def test_the_page_gets_what_the_files_hold(explored: Exploration, server: Watching) -> None:
    found = server.json("/api/state?run=")["overview"]
    archive = explored.archive
    assert (found["kind"], found["state"]) == ("exploration", "stopped")
    assert (found["cells"], found["timesteps"]) == (len(archive.cells), archive.timesteps)
    assert found["curves"]["cells"][-1] == len(archive.cells)
    assert [term["name"] for term in found["terms"]] == ["key"]
    assert set(found["pictures"]) == {"sheet", "best"}
    places = server.json("/api/places?run=")
    assert places["n_places"] == found["places"]
    (world,) = places["layers"]
    assert (world["name"], world["cell_side"]) == ("world", 16)
    rooms = {(each["map"][0], each["x"], each["y"]) for each in places["screens"]["maps"]}
    assert rooms == {(record.cell[0], 0, 16) for record in archive.cells}
    assert places["offsets"]["1"] == list(load_game("beacon").map_offsets()[1])
    status, _, picture = server.get("/api/picture?name=sheet")
    assert (status, picture) == (200, explored.folder.sheet.read_bytes())
    assert server.get("/api/picture?name=../explore")[0] == 404


def test_a_folder_shows_its_explorations_as_tiles(explored: Exploration) -> None:
    with watching(explored.folder.root.parent) as server:
        (tile,) = server.json("/api/state?run=")["overview"]["members"]
    assert (tile["kind"], tile["folder"]) == ("exploration", "beacon")
    assert tile["cells"] == len(explored.archive.cells)


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1_280])
def test_the_page_shows_an_exploration_without_faults(
    explored: Exploration,
    server: Watching,
    chromium: Any,
    width: int,
) -> None:
    opened = Opened(chromium, server, viewport={"width": width, "height": 900})
    try:
        page = opened.open()
        page.wait_for_selector(".map canvas")
        page.wait_for_timeout(500)
        text = page.inner_text("main")
        assert f"{len(explored.archive.cells):,}" in text
        assert "key" in text
        widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert widths[0] <= widths[1]
        assert page.evaluate(_ROLES) == []
        assert opened.complaints == []
    finally:
        opened.close()


@pytest.mark.browser
def test_the_map_of_places_shrinks_with_the_window(chromium: Any, server: Watching) -> None:
    found = Opened(chromium, server)
    try:
        page = found.open()
        page.wait_for_selector(".map canvas")
        wait_until(page, "document.querySelector('.map canvas').clientWidth > 400")
        page.set_viewport_size({"width": 400, "height": 800})
        wait_until(page, "document.querySelector('.map canvas').clientWidth < 400")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        found.close()
