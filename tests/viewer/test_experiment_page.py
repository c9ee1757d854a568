"""The page of an experiment in a real browser: who trains, and the champion with its clip."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.experiments.experiment import Experiment, dump_experiment
from game_rl.events import GenerationEnded, RolloutEnded
from game_rl.events.event_log import EventFile
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import ChampionRecord, read_record
from game_rl.files.run_dir import RunDir
from tests.experiments.broken_off import Killed
from tests.experiments.conftest import MakePopulation
from tests.experiments.plans.test_population_plan import carry_out
from tests.viewer.live_run import LiveGame, watching
from tests.viewer.test_page_browser import Opened, chromium, make_clip, pixels_of, wait_until

__all__ = ["chromium"]  # a fixture

pytestmark = pytest.mark.browser


def end_with_a_generation(event: Any) -> None:
    if isinstance(event, GenerationEnded):
        raise Killed


def as_written(population: Experiment, folder: ExperimentDir) -> Path:
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    return folder.root


def test_the_headline_says_which_member_trains_and_only_its_screen_is_awaited(
    chromium: Any, make_population: MakePopulation
) -> None:
    population = make_population("population")
    folder = ExperimentDir(population.config.run_dir)
    with pytest.raises(Killed):
        carry_out(population, listener=end_with_a_generation)
    root = as_written(population, folder)
    member = folder.member("00")
    with EventFile(member.events) as file:
        file.add(RolloutEnded(timesteps=150, timesteps_per_s=500.0))
    game = LiveGame(member)
    with folder.locked(), member.locked(), watching(root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".trains canvas")
            assert "Member 00 trains now, at 150 of 200 timesteps." in page.inner_text(".sentence")
            assert page.locator("a.member").count() == 4
            assert page.locator("a.member canvas:visible").count() == 1
            game.step()
            page.wait_for_selector(".live.trains")
            assert "trains now, 500 timesteps/s" in page.locator("li.trains").inner_text()
            assert found.complaints == []
        finally:
            found.close()
            game.close()


_DRAWN = """() => {
  window.drawn = 0;
  const {putImageData} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.putImageData = function (...words) {
    putImageData.apply(this, words);
    window.drawn += 1;
  };
}"""


def _wait_until_nothing_is_drawn(page: Any) -> None:
    """Wait until the page has drawn nothing between four answers of the server in a row."""
    drawn = page.evaluate("window.drawn")
    in_a_row = 0
    for _ in range(60):
        with page.expect_response("**/api/state?*"):
            pass
        before = drawn
        drawn = page.evaluate("window.drawn")
        in_a_row = in_a_row + 1 if drawn == before else 0
        if in_a_row == 3:
            return
    pytest.fail("the screens play on")


@pytest.mark.parametrize("place", ["the experiment", "its folder"])
def test_the_screen_of_a_member_plays_on_while_it_trains_and_no_longer(
    chromium: Any, make_population: MakePopulation, place: str
) -> None:
    population = make_population("population")
    folder = ExperimentDir(population.config.run_dir)
    with pytest.raises(Killed):
        carry_out(population, listener=end_with_a_generation)
    root = as_written(population, folder)
    member = folder.member("00")
    game = LiveGame(member)
    shown = root if place == "the experiment" else root.parent
    canvas = ".trains canvas" if place == "the experiment" else "tr.member canvas"
    with folder.locked(), watching(shown) as server:
        found = Opened(chromium, server)
        try:
            with member.locked():
                page = found.open()
                page.wait_for_selector(canvas, state="attached")
                page.evaluate(_DRAWN)
                for count in range(1, 5):
                    game.step()
                    wait_until(page, f"window.drawn >= {count}")
                drawn = page.evaluate("window.drawn")
                wait_until(page, f"window.drawn > {drawn + 8}")
            _wait_until_nothing_is_drawn(page)
            canvas = canvas.replace(".trains", "li.live")
            np.testing.assert_array_equal(pixels_of(page, canvas), game.screens[0])
            assert found.complaints == []
        finally:
            found.close()
            game.close()


def test_the_champion_is_in_the_headline_and_its_clip_beside_its_result(
    chromium: Any, make_population: MakePopulation
) -> None:
    population = make_population("population")
    folder = carry_out(population)
    root = as_written(population, folder)
    champion = read_record(folder.champion_record, ChampionRecord)
    make_clip(RunDir(root / "champion"))
    with watching(root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".champion-row .clip img")
            said = page.inner_text(".sentence").replace("\u00a0", " ")
            assert f"The champion, member {champion.folder}, " in said
            assert f"of {champion.final.episodes} held-out episodes" in said
            assert f"{champion.final.success_rate:.0%}".replace("%", " %") in said
            wait_until(page, "document.querySelector('.clip img').naturalWidth === 160")
            page.get_by_role("link", name="The champion's page").click()
            page.wait_for_selector(".up a")
            assert page.inner_text(".up") == "← population"
            assert page.inner_text("h1") == "population, champion"
            assert found.complaints == []
        finally:
            found.close()
