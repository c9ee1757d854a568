"""The page of a folder: rows show what the files of runs, experiments and explorations hold."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.events import RolloutEnded
from game_rl.events.event_log import EventFile
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.explore.exploration import Exploration
from game_rl.explore.explore_dir import read_progress
from game_rl.files.run_dir import RunDir
from tests.experiments.broken_off import Killed
from tests.experiments.conftest import MakePopulation
from tests.experiments.plans.test_population_plan import carry_out
from tests.explore.explored_beacon import explore_beacon
from tests.viewer.live_run import LiveGame, make_run, watching
from tests.viewer.test_experiment_page import end_with_a_generation
from tests.viewer.test_page_browser import (
    _ROLES,
    Opened,
    chromium,
    make_clip,
    pixels_of,
    wait_until,
)

__all__ = ["chromium"]  # a fixture

Row = dict[str, Any]


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Exploration:
    return explore_beacon(tmp_path_factory.mktemp("folder") / "explored", rounds=3)


def population_of(make_population: MakePopulation, *, is_broken_off: bool) -> ExperimentDir:
    """Train on paper: all generations, or the first one alone."""
    population = make_population("population")
    if is_broken_off:
        with pytest.raises(Killed):
            carry_out(population, listener=end_with_a_generation)
    else:
        carry_out(population)
    folder = ExperimentDir(population.config.run_dir)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    return folder


def write_speed(run: RunDir, timesteps_per_s: float) -> None:
    with EventFile(run.events) as file:
        file.add(RolloutEnded(timesteps=150, timesteps_per_s=timesteps_per_s))


def row_of(root: Path, name: str) -> Row:
    with watching(root) as server:
        members = server.news()["overview"]["members"]
    (found,) = (member for member in members if member["folder"] == name)
    return dict(found)


def members_of(folder: ExperimentDir) -> list[str]:
    """Return the folders of the members that train next."""
    state = json.loads(folder.state.read_text(encoding="utf-8"))
    return [member["folder"] for member in state["members"]]


def fittest(folder: ExperimentDir, generation: int) -> Row:
    """Return the best member, from the text of the record."""
    record = json.loads(folder.generation(generation).record.read_text(encoding="utf-8"))
    best = max(record["members"], key=lambda member: member["fitness"]["value"])
    return dict(best)


def test_an_experiment_has_the_fitness_of_its_best_member_and_the_speed_of_those_that_train(
    make_population: MakePopulation,
) -> None:
    folder = population_of(make_population, is_broken_off=True)
    names = members_of(folder)
    for name, speed in zip(names, (500.0, 800.0, 250.0), strict=False):
        write_speed(folder.member(name), speed)
    with folder.locked(), folder.member(names[0]).locked(), folder.member(names[2]).locked():
        row = row_of(folder.root.parent, "population")
    best = fittest(folder, 1)
    assert row["best_member"]["folder"] == best["folder"]
    assert row["best_member"]["fitness"]["mean_reward"] == best["fitness"]["mean_reward"]
    assert (row["training"], row["timesteps_per_s"]) == ([names[0], names[2]], 750.0)
    assert row["champion"] is None
    assert row_of(folder.root.parent, "population")["training"] == []


def test_an_experiment_has_the_result_and_the_clip_of_its_champion(
    make_population: MakePopulation,
) -> None:
    folder = population_of(make_population, is_broken_off=False)
    record = json.loads(folder.champion_record.read_text(encoding="utf-8"))
    best = fittest(folder, 5)
    make_clip(folder.member(best["folder"]))
    row = row_of(folder.root.parent, "population")
    assert row["champion"]["final"] == record["final"]
    assert (row["clip_of"], row["clip"]) == (best["folder"], "best.gif")
    make_clip(RunDir(folder.champion))
    row = row_of(folder.root.parent, "population")
    assert (row["clip_of"], row["clip"]) == ("champion", "best.gif")


def test_the_runs_of_an_experiment_are_found_in_its_folder_and_are_no_rows(
    make_population: MakePopulation,
) -> None:
    folder = population_of(make_population, is_broken_off=False)
    make_run(folder.root.parent / "alone")
    make_run(folder.root.parent / "other")
    best = fittest(folder, 5)["folder"]
    with watching(folder.root.parent) as server:
        rows = [each["folder"] for each in server.news()["overview"]["members"]]
        assert rows == ["alone", "other", "population"]
        found = server.news(f"population/{best}")
        assert found["state"]["name"] == f"population, member {best}"
        inside = {path.name for path in folder.members.iterdir()} | {"champion"}
        assert set(found["others"]) == {f"population/{name}" for name in inside - {best}}
        assert set(server.news("alone")["others"]) == {"other", "population/champion"}
        assert server.get("/api/state?run=population/none")[0] == 404
        inside = server.news("population")["overview"]
        assert (inside["kind"], inside["name"]) == ("population", "population")
        assert [member["folder"] for member in inside["members"]] == members_of(folder)
    with watching(folder.root) as server:
        assert server.news()["overview"] == inside


@pytest.mark.browser
def test_the_curves_of_an_experiments_champion_are_drawn_beside_those_of_runs(
    chromium: Any, make_population: MakePopulation
) -> None:
    folder = population_of(make_population, is_broken_off=False)
    root = folder.root.parent
    make_run(root / "run")
    champion = RunDir(folder.champion)
    shutil.copy(root / "run" / "events.jsonl", champion.events)
    with watching(root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            wait_until(page, "document.querySelectorAll('.charts .legend li').length === 4")
            legend = page.locator(".charts .legend").first.inner_text().replace("\u00a0", " ")
            assert "population, champion 40 %" in legend
            page.get_by_label("Draw the curves of population").uncheck()
            assert "population" not in page.locator(".charts .legend").first.inner_text()
            assert found.complaints == []
        finally:
            found.close()


def test_an_exploration_has_its_counts_and_its_best_picture(explored: Exploration) -> None:
    folder = explored.folder
    row = row_of(folder.root.parent, "explored")
    archive = explored.archive
    assert (row["cells"], row["timesteps"]) == (len(archive.cells), archive.timesteps)
    assert row["best_reward"] == max(record.score.reward for record in archive.cells)
    lines = list(read_progress(folder))
    assert row["timesteps_per_s"] == pytest.approx(lines[-1].timesteps / lines[-1].seconds)
    at = datetime.fromisoformat(row["last_event"])
    assert at == datetime.fromtimestamp(folder.progress.stat().st_mtime, UTC)
    assert row["picture"] == {"name": "best", "at": folder.best_picture.stat().st_mtime_ns}
    with watching(folder.root.parent) as server:
        for name, file in (("best", folder.best_picture), ("sheet", folder.sheet)):
            found = server.get(f"/api/picture?run=explored&name={name}")
            assert (found[0], found[2]) == (200, file.read_bytes())
        for address in ("run=&name=best", "run=explored&name=../explore", "run=..&name=best"):
            assert server.get(f"/api/picture?{address}")[0] == 404


def column(page: Any, name: str) -> list[str]:
    """Return a column's texts, with the notes, from the top."""
    heads = page.locator("thead .sorter").all_inner_texts()
    cells = page.locator(f"tr.member > :nth-child({3 + heads.index(name)})").all_inner_texts()
    return [" ".join(text.replace("\u00a0", " ").split()) for text in cells]


def names_by(page: Any, name: str) -> list[str]:
    """Sort by a column, and return the rows' names from the top."""
    page.get_by_role("button", name=name, exact=True).click()
    return [text.split()[0] for text in column(page, "Run")]


def canvas_of(page: Any, name: str) -> np.ndarray:
    page.evaluate(
        """name => document.querySelectorAll("tr.member").forEach((row) => {
          const isAsked = row.querySelector("th").textContent.startsWith(name);
          row.querySelector("canvas").classList.toggle("asked", isAsked);
        })""",
        name,
    )
    return pixels_of(page, ".asked")


def until(page: Any, is_so: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_so():
            return
        page.wait_for_timeout(100)
    pytest.fail("it never holds")


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1_280])
def test_each_row_shows_its_newest_screen_its_score_and_its_speed_and_sorts(
    chromium: Any, make_population: MakePopulation, explored: Exploration, width: int
) -> None:
    folder = population_of(make_population, is_broken_off=True)
    root = folder.root.parent
    explored.folder.root.rename(root / "explored")
    make_run(root / "run")  # at 512 timesteps/s, and its best evaluation earned 1.5
    name = members_of(folder)[1]
    member = folder.member(name)
    write_speed(member, 1e6)
    game = LiveGame(member)
    with folder.locked(), member.locked(), watching(root) as server:
        found = Opened(chromium, server, viewport={"width": width, "height": 900})
        try:
            page = found.open()
            page.wait_for_selector("tr.member")

            def is_shown() -> bool:
                game.step()  # which is drawn once somebody watches
                page.wait_for_timeout(400)
                if not page.locator("tr.member:has-text('population') canvas.drawn").count():
                    return False
                return np.array_equal(canvas_of(page, "population"), game.screens[0])

            until(page, is_shown)
            best = fittest(folder, 1)
            names = names_by(page, "Reward")
            earned = column(page, "Reward")[names.index("population")]
            assert float(earned.split()[0]) == pytest.approx(best["fitness"]["mean_reward"], 0.01)
            assert earned.endswith(f"member {best['folder']}")
            assert names_by(page, "Timesteps/s")[0] == "population"
            assert column(page, "Timesteps/s")[0] == f"1,000,000 member {name}"
            timesteps = {"run": 2_048, "explored": explored.archive.timesteps}
            by_timesteps = [name for name in names_by(page, "Timesteps") if name in timesteps]
            assert by_timesteps == sorted(timesteps, key=lambda name: -timesteps[name])
            cells = column(page, "Timesteps")[names_by(page, "Run").index("explored")]
            assert f"{len(explored.archive.cells):,} cells" in cells
            with Image.open(root / "explored" / "best.png") as picture:
                sheet = np.asarray(picture.convert("L"))
            columns = (sheet.shape[1] - 8) // 168
            lefts = [8 + 168 * k for k in range(columns)]
            tiles = [sheet[-152:-8, left : left + 160] for left in lefts]
            last = next(tile for tile in tiles[::-1] if tile.std() > 0)
            until(page, lambda: page.locator("canvas.drawn").count() >= 2)
            assert np.array_equal(canvas_of(page, "explored"), last)
            for place in ("document.documentElement", "document.querySelector('.runs')"):
                assert page.evaluate(f"{place}.scrollWidth <= {place}.clientWidth"), place
            assert page.evaluate(_ROLES) == []
            page.get_by_role("link", name=f"best member {best['folder']}").click()
            page.wait_for_selector("text=← population")
            assert page.inner_text("h1") == f"population, member {best['folder']}"
            page.get_by_role("link", name="← population").click()
            page.wait_for_selector("a.member")
            assert page.inner_text("h1") == "population"
            assert page.inner_text(".up") == "← all runs"
            game.step()
            page.wait_for_selector(f"li.live:has-text('{name}')")
            assert page.evaluate(_ROLES) == []
            page.locator("a.member", has_text=name).click()
            page.wait_for_selector("text=← population")
            assert page.inner_text("h1") == f"population, member {name}"
            assert found.complaints == []
        finally:
            found.close()
            game.close()
            (root / "explored").rename(explored.folder.root)
