"""The controller, with members that train on paper: what it decides, keeps, and comes back to."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from game_rl.config.experiments.experiment import Experiment
from game_rl.errors import ExperimentError, Interrupted, UsageError
from game_rl.events import ExperimentEvent, ExperimentWarned, GenerationEnded, MemberDied
from game_rl.events.event_log import EventFile, ExperimentEventLog, read_experiment_events
from game_rl.experiments import tasks
from game_rl.experiments.controller import ExperimentRun
from game_rl.experiments.descent import descent
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.kept_generations import finish_going_back, go_back, superseded_bytes
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import ExperimentState, read_record, read_records
from game_rl.experiments.tasks import MOST_DEATHS
from game_rl.system.stop_request import StopRequest
from tests.experiments.broken_off import Killed, account_of, killed_at, record
from tests.experiments.conftest import MakePopulation
from tests.experiments.paper_executor import PaperExecutor

_SMALL = ("members=2", "generations=3", "control=0")


def carry_out(
    population: Experiment,
    executor: PaperExecutor | None = None,
    listener: Any = None,
    stop: StopRequest | None = None,
) -> ExperimentDir:
    folder = ExperimentDir(population.config.run_dir)
    folder.root.mkdir(exist_ok=True)
    executor, stop = executor or PaperExecutor(), stop or StopRequest(math.inf)
    with EventFile(folder.events) as file:
        account = ExperimentEventLog(file, [listener] if listener else [])
        finish_going_back(folder)
        plan = Plan(folder, population)
        ExperimentRun(plan, executor, account, stop).run()
    return folder


@pytest.mark.parametrize(
    ("size", "stride", "fewest_kills"),
    [
        (_SMALL, 23, 10),
        pytest.param((), 29, 20, marks=pytest.mark.slow),
        pytest.param((), 7, 50, marks=pytest.mark.soak),
    ],
)
def test_killed_at_any_moment_it_becomes_the_population_that_was_not(
    make_population: MakePopulation, size: tuple[str, ...], stride: int, fewest_kills: int
) -> None:
    whole = account_of(carry_out(make_population("whole", *size)))
    kills = 0
    for operation in range(1, 5_000, stride):
        population = make_population(f"killed_{operation}", *size)
        try:
            with killed_at(operation):
                carry_out(population)
            break  # it has so few operations
        except Killed:
            kills += 1
        folder = carry_out(population)
        assert account_of(folder) == whole, f"killed at operation {operation}"
    assert kills > fewest_kills


def test_killed_again_and_again_it_becomes_the_same(make_population: MakePopulation) -> None:
    whole = account_of(carry_out(make_population("whole")))
    population = make_population("killed")
    for operation in (40, 90, 15, 60, 33, 77, 50):
        with pytest.raises(Killed), killed_at(operation):
            carry_out(population)
    assert account_of(carry_out(population)) == whole


def test_it_does_not_matter_how_many_members_train_at_once(make_population: MakePopulation) -> None:
    one, four = make_population("one"), make_population("four")
    first, second = carry_out(one, PaperExecutor(1)), carry_out(four, PaperExecutor(4))
    assert account_of(first) == account_of(second)


def test_copies_are_of_the_better_half_and_go_on_with_mutated_values(
    make_population: MakePopulation,
) -> None:
    folder = carry_out(make_population())
    for generation in range(1, 5):
        now, then = record(folder, generation), record(folder, generation + 1)
        assert now.copies
        for copy in now.copies:
            assert copy.number in now.ranking[2:]
            assert copy.parent in now.ranking[:2]
            child = next(m for m in then.members if m.number == copy.number)
            assert (child.folder, child.values) == (copy.folder, copy.new_values)
            assert copy.folder == f"{copy.number:02d}.g{generation:04d}"
        assert 0 not in {copy.number for copy in now.copies}  # the control member
    assert record(folder, 5).copies == ()


def test_the_control_member_keeps_the_values_of_the_config_and_others_do_not(
    make_population: MakePopulation,
) -> None:
    folder = carry_out(make_population())
    values = [m.values["algorithm.learning_rate"] for m in record(folder, 1).members]
    assert values[0] == {"start": 1e-3, "end": 1e-4}
    assert all(value != values[0] for value in values[1:])
    assert record(folder, 5).members[0].values["algorithm.learning_rate"] == values[0]


def test_all_members_play_the_same_new_games_in_each_generation(
    make_population: MakePopulation,
) -> None:
    folder = carry_out(make_population())
    seeds = []
    for generation in range(1, 6):
        found = {m.fitness.seed for m in record(folder, generation).members if m.fitness}
        assert len(found) == 1
        seeds.append(found.pop())
    champion = json.loads(folder.champion_record.read_text(encoding="utf-8"))
    validation = {each["validation"]["seed"] for each in champion["candidates"]}
    assert len(validation) == 1
    assert len({*seeds, *validation, champion["final"]["seed"]}) == 7


def test_the_champion_is_the_best_candidate_on_the_validation_games_and_is_saved(
    make_population: MakePopulation,
) -> None:
    folder = carry_out(make_population())
    champion = json.loads(folder.champion_record.read_text(encoding="utf-8"))
    figures = {each["number"]: each["validation"]["value"] for each in champion["candidates"]}
    assert champion["number"] == max(figures, key=lambda number: figures[number])
    assert list(figures) == list(record(folder, 5).ranking[:2])
    (saved,) = (folder.champion / "checkpoints").iterdir()
    trained = next(m for m in record(folder, 5).members if m.number == champion["number"])
    manifest = json.loads((saved / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"]["policy.safetensors"]["sha256"] == trained.weights_sha256


def test_kept_are_the_newest_generations_and_each_second_one(
    make_population: MakePopulation,
) -> None:
    folder = carry_out(make_population())
    kept = [
        generation
        for generation in range(1, 6)
        if any(p.is_dir() for p in folder.generation(generation).root.iterdir())
    ]
    assert kept == [2, 4, 5]
    assert folder.kept_generations() == [1, 2, 3, 4, 5]  # records stay


def test_a_checkpoint_in_several_places_is_one_file(make_population: MakePopulation) -> None:
    folder = carry_out(make_population())
    last = record(folder, 5)
    for member in last.members:
        assert member.checkpoint is not None
        name = "policy.safetensors"
        own = folder.member(member.folder).checkpoints / member.checkpoint / name
        assert own.samefile(folder.generation(5).checkpoint(member.number) / name)


@pytest.mark.parametrize("generation", [2, 4])
def test_going_back_repeats_what_came_after(
    make_population: MakePopulation, generation: int
) -> None:
    population = make_population()
    before = account_of(folder := carry_out(population))
    expected = superseded_bytes(folder, going_back_to=generation)
    aside = go_back(folder, generation)
    assert superseded_bytes(folder) == expected > 0
    assert (aside / "generations" / f"{generation + 1:04d}" / "record.json").exists()
    state = read_record(folder.state, ExperimentState)
    assert state is not None
    assert state.generation == generation - 1
    assert not folder.champion.exists()
    carry_out(population)
    assert account_of(folder) == before


def test_going_back_is_finished_by_whoever_comes_next(make_population: MakePopulation) -> None:
    whole = account_of(carry_out(make_population("whole", *_SMALL)))
    for operation in range(1, 400, 7):
        population = make_population(f"back_{operation}", *_SMALL)
        folder = carry_out(population)
        try:
            with killed_at(operation):
                go_back(folder, 2)
        except Killed:
            carry_out(population)
            assert account_of(folder) == whole, f"killed at operation {operation}"
        else:
            return
    raise AssertionError("going back has no end")


def test_a_generation_that_is_not_kept_is_refused_with_those_that_are(
    make_population: MakePopulation,
) -> None:
    folder = carry_out(make_population())
    with pytest.raises(UsageError, match=r"generation 3; it keeps 2, 4, 5"):
        go_back(folder, 3)


def test_a_member_that_is_not_finite_is_replaced_and_reported(
    make_population: MakePopulation,
) -> None:
    heard: list[ExperimentEvent] = []
    broken = record(carry_out(make_population("whole")), 2).members[2].folder
    executor = PaperExecutor(non_finite=[(broken, 200)])
    folder = carry_out(make_population(), executor, heard.append)
    (copy,) = (c for c in record(folder, 2).copies if c.reason == "non_finite")
    assert (copy.number, copy.folder) == (2, "02.g0002")
    assert record(folder, 2).ranking[-1] == 2
    (warned,) = (event for event in heard if isinstance(event, ExperimentWarned))
    assert "NaN" in warned.text
    assert copy.parent_folder in warned.text


def test_without_a_finite_member_the_experiment_ends(make_population: MakePopulation) -> None:
    executor = PaperExecutor(non_finite=[(f"{n:02d}", 100) for n in range(4)])
    with pytest.raises(ExperimentError, match="all members became non-finite in generation 1"):
        carry_out(make_population(), executor)


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_FIRST_PAUSE_S", 0.0)


@pytest.mark.usefixtures("without_pauses")
def test_a_member_that_is_killed_is_started_again(make_population: MakePopulation) -> None:
    heard: list[ExperimentEvent] = []
    whole = account_of(carry_out(make_population("whole")))
    codes = {"member 01 in generation 1": [-9, 143, -11]}
    folder = carry_out(make_population(), PaperExecutor(exit_codes=codes), heard.append)
    assert account_of(folder) == whole
    died = [event for event in heard if isinstance(event, MemberDied)]
    assert [(event.code, event.deaths) for event in died] == [(-9, 1), (143, 2), (-11, 3)]


@pytest.mark.usefixtures("without_pauses")
def test_ten_deaths_without_a_checkpoint_end_the_experiment_which_can_go_on(
    make_population: MakePopulation,
) -> None:
    population = make_population()
    codes = {"member 00 in generation 2": [-9] * MOST_DEATHS}
    with pytest.raises(ExperimentError, match=r"member 00 in generation 2 was killed 10 times"):
        carry_out(population, PaperExecutor(exit_codes=codes))
    whole = account_of(carry_out(make_population("whole")))
    assert account_of(carry_out(population)) == whole


def test_a_member_that_fails_is_not_started_again(make_population: MakePopulation) -> None:
    executor = PaperExecutor(exit_codes={"member 01 in generation 1": [1]})
    population = make_population()
    with pytest.raises(ExperimentError, match=r"exit code 1 on paper: what it printed") as raised:
        carry_out(population, executor)
    assert str(raised.value).endswith(
        f"; continue with game-rl train --resume {population.config.run_dir}"
    )
    assert sum("member 01" in job.name for job in executor.started) == 1


def test_a_job_without_a_result_is_an_error_and_not_an_endless_loop(
    make_population: MakePopulation,
) -> None:
    executor = PaperExecutor(exit_codes={"member 00": [0]})
    with pytest.raises(ExperimentError, match="left no result"):
        carry_out(make_population(), executor)


def test_a_stop_ends_it_and_the_next_controller_goes_on(make_population: MakePopulation) -> None:
    whole = account_of(carry_out(make_population("whole")))
    population, stop = make_population(), StopRequest(math.inf)

    def stop_in_the_third(event: ExperimentEvent) -> None:
        if isinstance(event, GenerationEnded) and event.generation == 2:
            stop.reason = Interrupted("stopped", exit_code=130)

    with pytest.raises(Interrupted):
        carry_out(population, None, stop_in_the_third, stop)
    folder = ExperimentDir(population.config.run_dir)
    assert folder.kept_generations() == [1, 2]
    assert account_of(carry_out(population)) == whole


def test_nothing_is_done_twice(make_population: MakePopulation) -> None:
    population = make_population()
    carry_out(population)
    executor = PaperExecutor()
    carry_out(population, executor)
    assert executor.started == []


def test_every_member_gets_the_cpus_of_the_plan(make_population: MakePopulation) -> None:
    executor = PaperExecutor()
    carry_out(make_population("population", "cpus_per_member=3"), executor)
    assert {job.cpus for job in executor.started} == {3}


def test_two_controllers_do_not_share_a_folder(make_population: MakePopulation) -> None:
    folder = carry_out(make_population())
    refused = pytest.raises(UsageError, match="another experiment is running")
    with folder.locked(), refused, folder.locked():
        pass


def test_descent_agrees_with_the_records(make_population: MakePopulation) -> None:
    folder = carry_out(make_population())
    records = read_records(folder)
    parents = {copy.folder: copy.parent_folder for r in records for copy in r.copies}
    seen: dict[str, str | None] = {}

    def walk(branches: Any, parent: str | None) -> None:
        for branch in branches:
            seen[branch.folder] = parent
            walk(branch.children, branch.folder)

    walk(descent(records), None)
    assert seen == {m.folder: parents.get(m.folder) for r in records for m in r.members}


def test_the_account_has_every_generation_once_after_going_back(
    make_population: MakePopulation,
) -> None:
    population = make_population()
    folder = carry_out(population)
    ended = [
        e.generation
        for e in read_experiment_events(folder.events)
        if isinstance(e, GenerationEnded)
    ]
    assert ended == [1, 2, 3, 4, 5]


def test_the_curves_are_those_of_the_records(make_population: MakePopulation) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder = carry_out(make_population())
    curves = EventAccumulator(str(folder.curves))
    curves.Reload()
    best = curves.Scalars("population/mean_reward_best")
    assert [point.step for point in best] == [100, 200, 300, 400, 500]
    for point, generation in zip(best, range(1, 6), strict=True):
        values = [m.fitness.value for m in record(folder, generation).members if m.fitness]
        assert point.value == pytest.approx(max(values), rel=1e-6)
    rates = curves.Scalars("algorithm.learning_rate/00")
    assert {round(point.value, 9) for point in rates} == {1e-3}


def test_hidden_files_of_a_kill_do_not_count_as_members(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population()
    (tmp_path / "population" / "members" / ".03.g0001.fork").mkdir(parents=True)
    whole = account_of(carry_out(make_population("whole")))
    assert account_of(carry_out(population)) == whole
