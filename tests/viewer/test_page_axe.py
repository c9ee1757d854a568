"""The page as axe-core sees it, the checker of accessibility that browsers' tools use.

Its rules are more than those of `page_faults.js`, and somebody else's.
"""

import importlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.files.run_dir import RunDir, locked
from tests.experiments.conftest import MakePopulation
from tests.experiments.plans.test_population_plan import carry_out
from tests.explore.explored_beacon import explore_beacon
from tests.viewer.live_run import LiveGame, Watching, make_run, watching
from tests.viewer.test_page_browser import Opened, chromium, finished_events, make_clip

__all__ = ["chromium"]  # a fixture

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WIDTHS = (1_280, 400)
SCHEMES = ("light", "dark")


def violations(chromium: Any, server: Watching, place: str, selector: str) -> list[str]:
    """Return what axe-core finds at a place of the page, once an element is there, all unfolded.

    It looks at a large and a small window, each light and dark.
    """
    axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()
    found = Opened(chromium, server)
    reports = []
    try:
        page = found.open(place)
        page.wait_for_selector(selector)
        page.evaluate("document.querySelectorAll('details').forEach(box => box.open = true)")
        for width, scheme in itertools.product(WIDTHS, SCHEMES):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(1_000)  # what was unfolded is drawn
            report = axe.run(page)
            if report.violations_count:
                reports.append(f"{width} {scheme}: {report.generate_report()}")
        assert found.complaints == []
        return reports
    finally:
        found.close()


def finished_run(root: Path) -> RunDir:
    run = make_run(root, finished_events(success=0.96))
    make_clip(run)
    return run


def population_on_paper(make_population: MakePopulation) -> ExperimentDir:
    population = make_population("population")
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    return folder


def test_a_folder_has_no_violation(
    chromium: Any, make_population: MakePopulation, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        finished_run(tmp_path / name)
    population_on_paper(make_population)
    with watching(tmp_path) as server:
        assert violations(chromium, server, "", ".charts .legend li") == []


def test_a_population_and_its_members_have_no_violation(
    chromium: Any, make_population: MakePopulation
) -> None:
    folder = population_on_paper(make_population)
    with watching(folder.root) as server:
        assert violations(chromium, server, "", ".lineage rect") == []
        assert violations(chromium, server, "run=00", ".up a") == []


def test_an_exploration_in_a_folder_has_no_violation(chromium: Any, tmp_path: Path) -> None:
    explore_beacon(tmp_path / "explored", rounds=3)
    with watching(tmp_path) as server:
        assert violations(chromium, server, "", "canvas.drawn") == []
        assert violations(chromium, server, "run=explored", ".sheet canvas") == []


@contextmanager
def training(root: Path) -> Iterator[Watching]:
    run = make_run(root)
    game = LiveGame(run)
    with locked(run.root / "lock", busy="busy"), watching(run.root) as server, game.playing(4.0):
        yield server
    game.close()


def test_a_run_that_trains_has_no_violation(chromium: Any, tmp_path: Path) -> None:
    with training(tmp_path / "run") as server:
        assert violations(chromium, server, "", ".screen.live") == []


def test_a_run_that_is_over_has_no_violation(chromium: Any, tmp_path: Path) -> None:
    with watching(finished_run(tmp_path / "run").root) as server:
        assert violations(chromium, server, "", ".ended .clip img") == []
