"""The best member of a population trains on alone, on paper."""

from pathlib import Path

import pytest
import yaml

from game_rl.config.experiments.experiment import dump_experiment, load_experiment
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.experiments.descent import descent
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import experiment_status
from game_rl.experiments.jobs.job_files import CopyRequest, JobResult, StretchResult
from game_rl.experiments.kept_generations import go_back
from game_rl.experiments.records import (
    ChampionRecord,
    ExperimentState,
    Member,
    read_record,
    read_records,
)
from game_rl.files.durable_files import write_saved
from tests.experiments.broken_off import Killed, account_of, killed_at, record
from tests.experiments.compare.paper_accounts import write_accounts
from tests.experiments.conftest import MakePopulation
from tests.experiments.paper_executor import PaperExecutor
from tests.experiments.plans.test_population_plan import carry_out

TRAIN_ON = "train_on={timesteps: 60}"
NAME = "trained_on.g0005"


def trained(
    make_population: MakePopulation, executor: PaperExecutor | None = None
) -> ExperimentDir:
    population = make_population("population", TRAIN_ON)
    folder = carry_out(population, executor)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    return folder


@pytest.mark.slow  # the controller's loop in test_population.py runs with the fast ones
def test_killed_at_any_moment_it_becomes_the_same(make_population: MakePopulation) -> None:
    small = (TRAIN_ON, "generations=2", "members=2", "control=0")
    whole = account_of(carry_out(make_population("whole", *small)))
    assert [name for name in whole if "trained_on.g0002" in name]
    kills = 0
    for operation in range(1, 5_000, 31):
        population = make_population(f"killed_{operation}", *small)
        try:
            with killed_at(operation):
                carry_out(population)
            break  # it has so few operations
        except Killed:
            kills += 1
        assert account_of(carry_out(population)) == whole, f"killed at operation {operation}"
    assert kills > 3


def test_it_goes_on_from_the_best_of_the_last_generation_on_games_that_selected_nobody(
    make_population: MakePopulation,
) -> None:
    executor = PaperExecutor()
    folder = trained(make_population, executor)
    last = record(folder, 5)
    members, (own,) = last.members[:4], last.members[4:]
    best = max(members, key=lambda m: m.fitness.mean_reward if m.fitness else -9.0)
    assert last.learner is not None
    assert (last.learner.parent_folder, last.learner.teacher) == (best.folder, None)
    assert (own.folder, own.timesteps, own.values) == (NAME, 560, best.values)
    assert own.fitness is not None
    assert own.fitness.seed not in {record(folder, g).seed for g in range(1, 6)}
    copies = [r for r in executor.requests if isinstance(r, CopyRequest) and r.to.name == NAME]
    assert len(copies) == 1
    assert copies[0].fork == {}  # optimiser and counters are the member's
    theirs, ours = (
        yaml.safe_load(folder.member(name).config.read_text(encoding="utf-8"))
        for name in (best.folder, NAME)
    )
    assert theirs["evaluation"].pop("every_timesteps") == 100
    assert ours["evaluation"].pop("every_timesteps") == 560
    assert ours == theirs  # also the seed


def test_it_is_a_candidate_whatever_it_reaches(make_population: MakePopulation) -> None:
    for seed in range(2):
        small = (TRAIN_ON, "generations=1", "champion.candidates=1", f"seed={seed}")
        population = make_population(f"p{seed}", *small)
        folder = carry_out(population)
        found = read_record(folder.champion_record, ChampionRecord)
        assert found is not None
        ranking = [n for n in record(folder, 1).ranking if n != 4]
        assert [each.number for each in found.candidates] == [ranking[0], 4]
        best = max(found.candidates, key=lambda each: each.validation.mean_reward)
        assert found.number == best.number


def test_one_with_broken_weights_is_left_out(make_population: MakePopulation) -> None:
    folder = trained(make_population, PaperExecutor(non_finite=[(NAME, 560)]))
    found = read_record(folder.champion_record, ChampionRecord)
    assert found is not None
    assert 4 not in [each.number for each in found.candidates]


def test_status_lineage_and_state_know_it(make_population: MakePopulation) -> None:
    folder = trained(make_population)
    status = experiment_status(folder)
    assert [(m.folder, m.until) for m in status.members if m.number == 4] == [(NAME, 560)]
    assert len(status.members) == 5
    last = record(folder, 5)
    assert last.learner is not None
    branches = list(descent(read_records(folder)))
    children = {}
    while branches:
        branch = branches.pop()
        children[branch.folder] = [child.folder for child in branch.children]
        branches += branch.children
    assert NAME in children[last.learner.parent_folder or ""]
    state = read_record(folder.state, ExperimentState)
    assert state is not None
    assert [m.number for m in state.members] == [0, 1, 2, 3]


@pytest.mark.parametrize("generation", [5, 4])
def test_going_back_comes_to_the_same(make_population: MakePopulation, generation: int) -> None:
    population = make_population("population", TRAIN_ON)
    folder = carry_out(population)
    whole = account_of(folder)
    go_back(folder, generation)
    assert folder.member(NAME).root.exists() == (generation == 5)
    assert account_of(carry_out(population)) == whole


def test_what_it_has_from_its_parent_is_not_counted_again(make_population: MakePopulation) -> None:
    folder = trained(make_population)
    last = record(folder, 5)
    assert [m.played_timesteps for m in last.members] == [100] * 4 + [60]
    assert last.timesteps_of_all == 4 * 5 * 100 + 60
    found = read_record(folder.champion_record, ChampionRecord)
    assert found is not None
    assert found.timesteps_of_all == last.timesteps_of_all


class WaitingExecutor(PaperExecutor):
    """A paper executor of a game whose timesteps have three frames more than `frame_skip`."""

    def _leave(self, path: Path, made: JobResult) -> None:
        if isinstance(made, StretchResult):
            made = made.model_copy(update={"waited_frames": 3 * made.timesteps})
        super()._leave(path, made)  # type: ignore[arg-type]


def test_waited_frames_of_all_runs_are_counted_once(make_population: MakePopulation) -> None:
    folder = trained(make_population, WaitingExecutor())
    for generation in range(1, 6):
        found = record(folder, generation)
        assert found.timesteps_of_all is not None
        assert found.waited_frames_of_all == 3 * found.timesteps_of_all
    champion = read_record(folder.champion_record, ChampionRecord)
    assert champion is not None
    frame_skip = load_experiment(folder.config, is_saved=True).run.env.frame_skip
    assert champion.frames_of_all == (frame_skip + 3) * (4 * 5 * 100 + 60)
    assert experiment_status(folder).frames_of_all == champion.frames_of_all


def test_status_counts_what_it_has_played_while_it_trains(make_population: MakePopulation) -> None:
    folder = trained(make_population)
    last, state = record(folder, 5), read_record(folder.state, ExperimentState)
    assert last.learner is not None
    assert state is not None
    # as it was before the decision: in the last generation, with runs that tell how far they are
    members = [Member(number=m.number, folder=m.folder, values={}) for m in last.members[:4]]
    before = {"generation": 4, "members": tuple(members), "complete": False}
    write_saved(folder.state, state.model_copy(update=before))
    write_accounts(folder)
    assert experiment_status(folder).timesteps_of_all == 4 * 5 * 100 + 60


def test_its_timesteps_count_and_the_curve_goes_from_its_ancestors_to_the_champion(
    make_population: MakePopulation,
) -> None:
    folder = trained(make_population)
    write_accounts(folder)
    found = read_folder(folder.root)
    assert found.timesteps == found.total_timesteps == 4 * 5 * 100 + 60
    assert found.total_frames == found.total_timesteps * 4
    x = [point.total_timesteps for point in found.curve]
    assert x[:5] == [400, 800, 1200, 1600, 2000]
    champion = read_record(folder.champion_record, ChampionRecord)
    assert champion is not None
    assert x[5:] == ([2060] if champion.number == 4 else [])
    selected = next(c.selection for c in champion.candidates if c.number == champion.number)
    assert found.curve[-1].mean_reward == selected.mean_reward
