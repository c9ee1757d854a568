"""The line that says how far the members of an experiment are."""

import threading
from io import StringIO

import pytest
from rich.console import Console

from game_rl.cli.experiment_console import MembersLine
from game_rl.config.experiments.experiment import dump_experiment
from game_rl.events import ExperimentEvent, StretchEnded
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import MembersProgress, generation_progress
from tests.experiments.conftest import (
    MakePopulation,
    make_population,  # noqa: F401 - a fixture
)
from tests.experiments.plans.test_population_plan import carry_out

FOUR = MembersProgress("generation 2/10", {"00": 1.0, "01": 0.58, "02": 0.4, "03": 0.0})


def terminal(width: int) -> Console:
    return Console(file=StringIO(), width=width, force_terminal=True, color_system=None)


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (200, "generation 2/10  00 done, 01 58%, 02 40%, 03 0%  about 2 min left"),
        (80, "generation 2/10  00 done, 01 58%, 02 40%, 03 0%  about 2 min left"),
        (60, "generation 2/10  1 of 4 done, 50% overall  about 2 min left"),
        (40, "generation 2/10  1 of 4 done  2 min left"),
    ],
)
def test_the_line_has_every_member_or_a_sum_and_the_time_left(width: int, text: str) -> None:
    now, seen = [0.0], [MembersProgress("", {"00": 0.0}), FOUR]
    line = MembersLine(terminal(width), lambda: seen.pop(0), clock=lambda: now[0])
    line.text()
    now[0] = 118.0
    assert line.text() == text


def test_without_a_pace_there_is_no_time_left() -> None:
    line = MembersLine(terminal(80), lambda: FOUR)
    assert line.text() == "generation 2/10  00 done, 01 58%, 02 40%, 03 0%"


def test_no_thread_outlives_the_line_and_none_starts_for_the_quiet() -> None:
    before = threading.active_count()
    for console in (terminal(80), Console(file=StringIO()), Console(file=StringIO(), quiet=True)):
        line = MembersLine(console, lambda: FOUR)
        line.start()
        assert threading.active_count() <= before + 1 - console.quiet
        line.close()
        line.close()
        assert threading.active_count() == before


def test_members_of_a_generation_are_done_one_after_the_other(
    make_population: MakePopulation,  # noqa: F811
) -> None:
    population, found = make_population(), list[MembersProgress]()

    def listen(event: ExperimentEvent) -> None:
        if isinstance(event, StretchEnded):
            found.append(generation_progress(ExperimentDir(population.config.run_dir)))

    folder = ExperimentDir(population.config.run_dir)
    folder.root.mkdir()
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    carry_out(population, listener=listen)
    n = population.config.members
    assert [each.title for each in found[::n]] == [f"generation {g}/5" for g in range(1, 6)]
    for generation in range(5):
        dones = [each.n_done for each in found[generation * n : (generation + 1) * n]]
        assert dones[-1] == n
        assert dones == sorted(dones)
        assert all(len(each.shares) == n for each in found)
