"""The page of an experiment in a real browser: who trains, and the champion with its clip."""

from pathlib import Path
from typing import Any

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
from tests.viewer.test_page_browser import Opened, chromium, make_clip, wait_until

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
