"""The report and the plot of experiments that have trained on paper."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from game_rl.cli.picture_commands import plotted_panels
from game_rl.config.experiments.experiment import dump_experiment
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import ChampionRecord, read_record, read_records
from game_rl.viewer.experiment_report import experiment_report
from game_rl.viewer.family_tree import family_tree
from game_rl.viewer.report_clips import ReportClip
from game_rl.viewer.run_panels import fitness_panel
from game_rl.viewer.shown_runs import shown_experiment
from tests.experiments.compare.paper_accounts import write_accounts
from tests.experiments.conftest import MakeMixture, MakePopulation
from tests.experiments.plans.test_mixture_plan import carry_out_mixture
from tests.experiments.plans.test_population_plan import carry_out
from tests.viewer.html_page import read_page


@pytest.fixture
def population(make_population: MakePopulation) -> ExperimentDir:
    experiment = make_population()
    folder = carry_out(experiment)
    folder.config.write_text(dump_experiment(experiment), encoding="utf-8")
    write_accounts(folder)
    return folder


@pytest.fixture
def mixture(make_mixture: MakeMixture) -> ExperimentDir:
    experiment = make_mixture()
    folder = carry_out_mixture(experiment)
    folder.config.write_text(dump_experiment(experiment), encoding="utf-8")
    write_accounts(folder)
    return folder


def test_the_fitness_of_all_members_is_that_of_the_records(population: ExperimentDir) -> None:
    shown, records = shown_experiment(population.root), read_records(population)
    panel = fitness_panel(shown, "timesteps")
    assert panel is not None
    lineage, dots = panel.lines
    expected = [
        (record.timesteps, member.fitness.value)
        for record in records
        for member in record.members
        if member.fitness is not None
    ]
    assert list(zip(dots.x.tolist(), dots.y.tolist(), strict=True)) == expected
    assert lineage.interval is None  # Wilson's is of success, and these are rewards
    champion = read_record(population.champion_record, ChampionRecord)
    assert champion is not None
    last = next(m for m in records[-1].members if m.folder == champion.folder)
    assert last.fitness is not None
    assert (lineage.x[-1], lineage.y[-1]) == (records[-1].timesteps, last.fitness.value)
    copies = {copy.folder: copy.parent_folder for r in records for copy in r.copies}
    names = [member.folder for _, member in shown.lineage]
    assert len(names) == len(records)
    for before, after in itertools.pairwise(names):
        assert after in (before, *(child for child, parent in copies.items() if parent == before))


def test_hours_and_frames_of_a_generation(population: ExperimentDir) -> None:
    shown = shown_experiment(population.root)
    timesteps, frames, hours = (
        fitness_panel(shown, axis) for axis in ("timesteps", "frames", "hours")
    )
    assert timesteps is not None
    assert frames is not None
    assert hours is not None
    skip = shown.experiment.run.env.frame_skip
    np.testing.assert_array_equal(frames.lines[0].x, timesteps.lines[0].x * skip)
    assert np.all(np.diff(hours.lines[0].x) >= 0)


@pytest.mark.parametrize("kind", ["population", "mixture"])
def test_its_report_has_champion_generations_members_and_config(
    kind: str, request: pytest.FixtureRequest
) -> None:
    folder: ExperimentDir = request.getfixturevalue(kind)
    shown = shown_experiment(folder.root)
    found = read_page(experiment_report(shown))
    champion = read_record(folder.champion_record, ChampionRecord)
    assert champion is not None
    stage = "Generations" if kind == "population" else "Rounds"
    for part in (f"were held out{champion.folder}", stage, "Members", "complete", "How to"):
        assert part in found.text
    for record in read_records(folder):
        assert f"{record.generation}{record.timesteps:,}" in found.text
    names = [run.run_dir.root.name for run in shown.members]
    assert names
    assert all(name in found.text for name in names)
    assert ("(learner)" in found.text) == (kind == "mixture")


def test_one_that_has_only_begun_says_what_is_missing(make_population: MakePopulation) -> None:
    experiment = make_population()
    folder = ExperimentDir(experiment.config.run_dir)
    folder.root.mkdir()
    folder.config.write_text(dump_experiment(experiment), encoding="utf-8")
    text = read_page(experiment_report(shown_experiment(folder.root))).text
    for part in (
        "No generation is complete yet.",
        "There is none yet: it is chosen after generation 5",
        "No member has started.",
        "not begun",
    ):
        assert part in text


def test_the_family_tree_has_a_line_for_each_child_and_marks_the_champions_ancestors(
    population: ExperimentDir,
) -> None:
    shown = shown_experiment(population.root)
    records = shown.records
    parents = {copy.folder: copy.parent_folder for r in records for copy in r.copies}
    assert parents
    expected = 0
    for before, now in itertools.pairwise(records):
        known = {member.folder for member in before.members}
        expected += sum(m.folder in known or parents.get(m.folder) in known for m in now.members)
    ancestors = {(record.generation, member.folder) for record, member in shown.lineage}
    picture = family_tree(records, ancestors, "generation")
    assert picture.count("<path ") == expected
    assert picture.count("<circle ") == sum(len(record.members) for record in records)
    assert picture.count('class="of-best"') == 2 * len(records) - 1
    champion = shown.champion
    assert champion is not None
    assert f"<title>generation {records[-1].generation}, {champion.folder}, " in picture


def test_a_report_tells_how_the_experiment_went_and_shows_the_champion(
    population: ExperimentDir,
) -> None:
    shown = shown_experiment(population.root)
    champion = shown.champion
    assert champion is not None
    clip = ReportClip("The champion", "", b"", "its ROM is gone")
    text = read_page(experiment_report(shown, clips=(clip,))).text
    assert f"The champion is {champion.folder}" in text
    assert f"a mean reward of {champion.final.mean_reward:.2f}" in text
    assert "The champion: its ROM is gone" in text


def test_a_plot_of_an_experiment_begins_with_its_fitness(population: ExperimentDir) -> None:
    panels = plotted_panels([population.root], "timesteps")
    assert panels[0].name == "fitness"


def test_a_name_is_escaped(population: ExperimentDir, tmp_path: Path) -> None:
    renamed = tmp_path / "<img src=x onerror=alert(1)>"
    population.root.rename(renamed)
    page = experiment_report(shown_experiment(renamed))
    assert "<img src=x" not in page
    read_page(page)
