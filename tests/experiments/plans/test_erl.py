"""A population with a learner, with members and a learner that train on paper."""

import json
import math
from typing import Any

import pytest
import yaml

from game_rl.config.experiments.experiment import Experiment, dump_experiment
from game_rl.errors import NobodyLeftError
from game_rl.events.event_log import EventFile, ExperimentEventLog
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.experiments.controller import ExperimentRun
from game_rl.experiments.descent import descent
from game_rl.experiments.experiment_dir import ExperimentDir, folder_of
from game_rl.experiments.experiment_status import experiment_status
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import read_records
from game_rl.system.stop_request import StopRequest
from tests.experiments.broken_off import Killed, account_of, killed_at, record
from tests.experiments.compare.paper_accounts import write_accounts
from tests.experiments.conftest import MakePopulation
from tests.experiments.paper_executor import PaperExecutor

LEARNER = 4
LEARNS = "member.algorithm.n_epochs=1"


def carry_out(population: Experiment, executor: PaperExecutor | None = None) -> ExperimentDir:
    folder = ExperimentDir(population.config.run_dir)
    folder.root.mkdir(exist_ok=True)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    with EventFile(folder.events) as file:
        account = ExperimentEventLog(file)
        plan = Plan(folder, population)
        ExperimentRun(plan, executor or PaperExecutor(), account, StopRequest(math.inf)).run()
    return folder


def saved_config(folder: ExperimentDir, name: str) -> Any:
    return yaml.safe_load(folder.member(name).config.read_text(encoding="utf-8"))


@pytest.mark.slow  # the controller's loop in test_population.py runs with the fast ones
def test_killed_at_any_moment_it_becomes_the_population_that_was_not(
    make_erl: MakePopulation,
) -> None:
    whole = account_of(carry_out(make_erl("whole", "generations=3")))
    kills = 0
    for operation in range(40, 5_000, 113):
        population = make_erl(f"killed_{operation}", "generations=3")
        try:
            with killed_at(operation):
                carry_out(population)
            break  # it has so few operations
        except Killed:
            kills += 1
        assert account_of(carry_out(population)) == whole, f"killed at operation {operation}"
    assert kills > 3


def test_each_second_generation_the_worst_goes_on_with_the_weights_of_the_learner(
    make_erl: MakePopulation,
) -> None:
    folder = carry_out(make_erl())
    for generation in range(1, 6):
        found = record(folder, generation)
        injected = [copy for copy in found.copies if copy.reason == "injected"]
        assert len(injected) == (generation in (2, 4))
        for copy in injected:
            assert copy.number == [number for number in found.ranking if number != LEARNER][-1]
            assert copy.parent_folder == f"learner.g{generation:04d}"
            learner = next(m for m in found.members if m.number == LEARNER)
            then = record(folder, generation + 1).members[copy.number]
            assert (then.folder, then.weights_sha256) == (copy.folder, learner.weights_sha256)
            assert (then.timesteps, then.counts_from) == (128, generation)
            assert saved_config(folder, copy.folder)["total_timesteps"] == (5 - generation) * 128


def test_a_copy_of_a_member_that_only_plays_has_noise_on_its_weights(
    make_erl: MakePopulation,
) -> None:
    folder = carry_out(make_erl())
    copies = 0
    for generation in range(1, 5):
        now, then = record(folder, generation), record(folder, generation + 1)
        weights = {m.folder: m.weights_sha256 for m in now.members}
        copied = {copy.folder: copy for copy in now.copies}
        for member in then.members[:LEARNER]:
            copy = copied.get(member.folder)
            if copy is None:
                assert member.weights_sha256 == weights[member.folder]
            elif copy.reason == "worse":
                copies += 1
                assert copy.weight_noise == 0.02
                assert member.weights_sha256 != weights[copy.parent_folder]
    assert copies


def test_a_control_is_never_replaced_by_the_learner(make_erl: MakePopulation) -> None:
    overrides = (LEARNS, "control=3", "learner.inject_every=1")
    folder = carry_out(make_erl("erl", *overrides))
    copies = [copy for number in range(1, 5) for copy in record(folder, number).copies]
    assert {copy.number for copy in copies} == {3}
    bests = [record(folder, number).ranking for number in range(1, 5)]
    assert sum(copy.reason == "injected" for copy in copies) == sum(
        next(n for n in ranking if n != LEARNER) != 3 for ranking in bests
    )


def test_the_schedules_of_an_injected_member_and_of_its_copies_go_on(
    make_erl: MakePopulation,
) -> None:
    mutation = "mutation={algorithm.learning_rate: {factor: [1.0, 1.0], bounds: [1.0e-5, 1.0]}}"
    exploration = "member.algorithm.exploration={start: 1.0, end: 0.0, fraction: 0.8}"
    often = ("learner.inject_every=1", "selection.share=0.5", "seed=2")
    folder = carry_out(make_erl("erl", LEARNS, mutation, exploration, *often))
    names = {m.folder: m for g in range(1, 6) for m in record(folder, g).members[:LEARNER]}
    later = [member for member in names.values() if member.counts_from]
    assert any(not member.folder.endswith(f"{member.counts_from:04d}") for member in later)
    for member in later:
        config, left = saved_config(folder, member.folder), 1 - member.counts_from / 5
        assert config["total_timesteps"] == round(left * 5 * 128)
        assert config["algorithm"]["learning_rate"]["start"] == pytest.approx(1e-3 * left)
        explored = config["algorithm"]["exploration"]
        assert explored["start"] == pytest.approx(1 - member.counts_from / 4)
        assert member.values == {"algorithm.learning_rate": {"start": 1e-3, "end": 0.0}}


def test_everybodys_timesteps_are_counted(make_erl: MakePopulation) -> None:
    folder = carry_out(make_erl())
    for generation in range(1, 6):
        found = record(folder, generation)
        assert found.timesteps_of_all == generation * (4 * 128 + 64)
        assert [m.played_timesteps for m in found.members] == [128] * 4 + [64]
    assert json.loads(folder.champion_record.read_text(encoding="utf-8"))[
        "timesteps_of_all"
    ] == 5 * (4 * 128 + 64)
    status = experiment_status(folder)
    assert status.timesteps_of_all == 5 * (4 * 128 + 64)
    assert [m.folder for m in status.members][-1] == "learner.g0005"

    def played(branches: Any) -> int:
        return sum(branch.played_timesteps + played(branch.children) for branch in branches)

    assert played(descent(read_records(folder))) == status.timesteps_of_all


def test_two_seeds_are_one_arm_in_a_comparison(
    make_erl: MakePopulation,
) -> None:
    one, two = (make_erl(f"seed_{n}", f"seed={n}", "generations=2") for n in (1, 2))
    found = [read_folder(carry_out(each).root) for each in (one, two)]
    assert found[0].settings == found[1].settings
    assert found[0].settings["learner.inject_every"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("learner.inject_every=1", "learner.inject_every"),
        ("learner.teacher=best_member", "learner.teacher"),
        ("learner.member_shares={best_member: 3}", "learner.member_shares"),
        ("learner.algorithm.batch_size=4", "learner.algorithm.batch_size"),
    ],
)
def test_another_learner_is_another_arm(make_erl: MakePopulation, override: str, key: str) -> None:
    both = make_erl("one", "generations=2"), make_erl("two", "generations=2", override)
    one, two = (read_folder(carry_out(each).root).settings for each in both)
    different = {k for k in {**one, **two} if one.get(k) != two.get(k)}
    assert different
    assert all(f"{each}.".startswith(f"{key}.") for each in different)


def test_everybody_plays_as_much_as_a_study_reckons(make_erl: MakePopulation) -> None:
    population = make_erl("erl", "learner.inject_every=1", LEARNS)
    folder = carry_out(population)
    write_accounts(folder)
    planned, found = population.budget, read_folder(folder.root)
    assert sum(share.timesteps for share in planned) == 5 * (4 * 128 + 64)
    assert found.total_frames == found.total_timesteps * population.run.env.frame_skip
    assert found.timesteps == found.total_timesteps == record(folder, 5).timesteps_of_all
    assert found.timesteps == sum(share.timesteps for share in planned)
    assert found.curve[-1].total_timesteps in (5 * (4 * 128 + 64) - 64, 5 * (4 * 128 + 64))


def test_without_finite_weights_nobody_is_left(make_erl: MakePopulation) -> None:
    broken = [(folder_of(number), 128) for number in range(4)]
    with pytest.raises(NobodyLeftError, match="in generation 1; start another"):
        carry_out(make_erl(), PaperExecutor(non_finite=broken))


def test_the_learner_goes_on_from_its_own_end_and_trains_after_the_members(
    make_erl: MakePopulation,
) -> None:
    executor = PaperExecutor(4)
    folder = carry_out(make_erl(), executor)
    trained = executor.trained()
    assert ["learner" in name for name in trained] == [False, False, False, False, True] * 5
    for generation in range(1, 6):
        learner = record(folder, generation).learner
        assert learner is not None
        before = f"learner.g{generation - 1:04d}" if generation > 1 else None
        assert (learner.parent_folder, learner.teacher) == (before, None)


def test_a_learner_that_is_not_finite_replaces_nobody(make_erl: MakePopulation) -> None:
    executor = PaperExecutor(non_finite=[("learner.g0002", 64)])
    folder = carry_out(make_erl(), executor)
    assert {copy.reason for copy in record(folder, 2).copies} == {"worse"}
    third = record(folder, 3).learner
    assert third is not None
    assert third.parent_folder is None  # it begins anew


def test_each_generation_s_record_says_how_far_actions_differ(make_erl: MakePopulation) -> None:
    folder = carry_out(make_erl())
    for number in range(1, 6):
        found = record(folder, number)
        assert found.differences is not None
        assert found.differences.runs[LEARNER] == f"learner.g{number:04d}"
        assert found.differing_members is not None
        assert found.differing_learner is not None


def test_without_a_learner_there_is_no_lake_and_nobody_is_asked(
    make_population: MakePopulation,
) -> None:
    executor = PaperExecutor()
    folder = carry_out(make_population(), executor)
    assert record(folder, 1).differences is None
    assert "compare_actions" not in [request.job for request in executor.requests]
