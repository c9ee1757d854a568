"""An exploration in report, page and status: what they show is what its files hold."""

import asyncio
import base64
import gc
import io
import json
import shutil
import weakref
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
from game_rl.viewer.watch_app import RunBoard
from game_rl.viewer.watched_place import WatchedPlace
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


def test_an_exploration_in_a_folder_is_answered_like_one_that_is_watched_alone(
    explored: Exploration, server: Watching
) -> None:
    paths = ("/api/state?run={}", "/api/places?run={}")
    alone = [server.json(path.format("")) for path in paths]
    with watching(explored.folder.root.parent) as folder:
        assert [folder.json(path.format("beacon")) for path in paths] == alone
        for path in (*paths, "/api/picture?name=best&run={}"):
            assert folder.get(path.format("none"))[0] == 404
        assert folder.get("/api/picture?name=best&run=beacon")[0] == 200


def test_an_exploration_that_cannot_be_read_has_a_row_and_no_page(
    explored: Exploration, tmp_path: Path
) -> None:
    shutil.copytree(explored.folder.root, tmp_path / "beacon")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "explore.json").write_text("{", encoding="utf-8")
    with watching(tmp_path) as server:
        rows = server.news()["overview"]["members"]
        assert {row["folder"]: row["state"] for row in rows} == {
            "beacon": "stopped",
            "broken": "unknown",
        }
        assert server.get("/api/state?run=broken")[0] == 404


def test_only_explorations_that_somebody_looks_at_are_read_and_kept(
    explored: Exploration, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        shutil.copytree(explored.folder.root, tmp_path / name)
    (tmp_path / "other" / "archive.jsonl").write_text("no archive\n", encoding="utf-8")
    seconds = [0.0]
    board = RunBoard(WatchedPlace(tmp_path), clock=lambda: seconds[0])

    async def look() -> None:
        async def cells() -> list[int]:
            overview = await board.overview("")
            assert overview is not None
            return [row["cells"] for row in overview["members"]]

        assert await cells() == 2 * [len(explored.archive.cells)]
        shown = await board.overview("one")
        assert shown is not None
        assert shown["cells"] == len(explored.archive.cells)
        assert await board.overview("other") is None  # its archive is read for its page alone
        found = await board.exploration("one")
        assert found is not None
        kept = weakref.ref(found)
        seconds[0] += 60
        assert await board.exploration("one") is found
        del found
        seconds[0] += 600
        assert await cells() == 2 * [len(explored.archive.cells)]
        gc.collect()
        assert kept() is None

    asyncio.run(look())


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


_SCREENS = """id => Array.from(document.querySelectorAll(`[aria-labelledby=${id}] li`), (item) => {
  const canvas = item.querySelector("canvas");
  const {right} = canvas.getBoundingClientRect();
  return {label: item.innerText, right, png: canvas.toDataURL("image/png").split(",")[1]};
})"""


def shown_screens(page: Any, name: str) -> list[dict[str, Any]]:
    """Return label, right edge and PNG of each screen of a picture on the page."""
    wait_until(page, f"document.querySelector('section[aria-labelledby={name}-title] canvas')")
    return list(page.evaluate(_SCREENS, f"{name}-title"))


@pytest.mark.browser
def test_the_page_cuts_pictures_into_screens_that_fill_its_width(
    explored: Exploration, server: Watching, chromium: Any
) -> None:
    opened = Opened(chromium, server, viewport={"width": 1_280, "height": 900})
    try:
        page = opened.open()
        for name, file in (
            ("best", explored.folder.best_picture),
            ("sheet", explored.folder.sheet),
        ):
            shown = shown_screens(page, name)
            with Image.open(file) as picture:
                expected = json.loads(picture.info["screens"])
                sheet = picture.convert("RGB")
            assert [each["label"] for each in shown] == [each["label"] for each in expected]
            for each, place in zip(shown, expected, strict=True):
                with Image.open(io.BytesIO(base64.b64decode(each["png"]))) as screen:
                    found = np.asarray(screen.convert("RGB"))
                right, below = place["left"] + 160, place["top"] + 144
                box = sheet.crop((place["left"], place["top"], right, below))
                np.testing.assert_array_equal(found, np.asarray(box))
        assert max(each["right"] for each in shown) > 1_200
        page.wait_for_selector(".map canvas")
        left, top, _, bottom = box_of(page, ".map")
        beside = box_of(page, "section[aria-labelledby=found-title]")
        assert beside[0] > left + 600
        assert beside[1] < bottom
        assert top < beside[3]
        assert opened.complaints == []
    finally:
        opened.close()


def box_of(page: Any, selector: str) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of an element."""
    box = page.locator(selector).bounding_box()
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


@pytest.mark.browser
def test_a_folders_page_leads_to_an_exploration_and_back_while_it_explores(
    explored: Exploration, chromium: Any, tmp_path: Path
) -> None:
    root = tmp_path / "going on"
    shutil.copytree(explored.folder.root, root)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "explore.json").write_text("{", encoding="utf-8")
    with ExploreDir(root).locked(), watching(tmp_path) as server:
        opened = Opened(chromium, server)
        try:
            page = opened.open()
            page.wait_for_selector("tr.member")
            assert page.locator("tr.member a").all_inner_texts() == ["going on"]
            assert "game-rl watch" in page.inner_text("tr.member:has-text('broken')")
            page.get_by_role("link", name="going on").click()
            page.wait_for_selector(".state.running")
            assert page.inner_text("h1") == "going on"
            shown_screens(page, "best")
            page.wait_for_selector(".map canvas")
            cells = "document.querySelector('.figure-tile b').textContent"
            assert page.evaluate(cells) == f"{len(explored.archive.cells):,}"
            more = explore_beacon(root, rounds=1)
            wait_until(page, f"{cells} === '{len(more.archive.cells):,}'")
            newest = more.folder.sheet.stat().st_mtime_ns
            assert newest > explored.folder.sheet.stat().st_mtime_ns
            with Image.open(more.folder.sheet) as picture:
                last = json.loads(picture.info["screens"])[-1]["label"]
            wait_until(page, f"document.body.innerText.includes('{last}')")
            page.get_by_role("link", name="← all runs").click()
            page.wait_for_selector("tr.member")
            assert page.inner_text("h1") == tmp_path.name
            page.go_back()
            page.wait_for_selector("h1:has-text('going on')")
            assert opened.complaints == []
        finally:
            opened.close()
