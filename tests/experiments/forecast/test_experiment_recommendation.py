"""The smallest machine of an experiment against plain loops over machines."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from game_rl.config.experiments.experiment import Experiment
from game_rl.experiments.forecast.experiment_forecast import (
    ExperimentNeeds,
    ExperimentReport,
    experiment_preflight,
)
from game_rl.games.definition import load_game
from game_rl.preflight.preflight import CHECKS
from game_rl.preflight.recommendation import DISK_SIZES, RAM_SIZES
from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed
from game_rl.system.machine import Machine
from tests.experiments.conftest import MakeMixture, MakePopulation
from tests.experiments.forecast.test_experiment_forecast import forecast, machine

SPEED = MeasuredSpeed(
    inference_s=0.004,
    emulation_s=0.006,
    gradient_step_s=0.05,
    evaluation_vec_step_s=0.004,
    checkpoint_s=0.2,
    start_s=2,
)
HUGE = replace(machine(ram_gib=10**6, disk_gib=10**6), cpus=1)


@pytest.fixture(params=["population", "fixed", "two threads", "erl", "mixture", "live", "on nodes"])
def experiment(
    request: pytest.FixtureRequest,
    make_population: MakePopulation,
    make_mixture: MakeMixture,
    make_erl: MakePopulation,
) -> Experiment:
    make: dict[str, Callable[[], Experiment]] = {
        "population": make_population,
        "fixed": lambda: make_population("population", "executor.parallel=3"),
        "two threads": lambda: make_population("population", "cpus_per_member=2"),
        "erl": make_erl,
        "mixture": make_mixture,
        "live": lambda: make_mixture("live", "timesteps_per_round=512", is_live=True),
        "on nodes": lambda: make_population(
            "population", "executor={kind: ray, address: '192.168.1.10:6379'}"
        ),
    }
    return make[request.param]()


def threads(report: ExperimentReport) -> int:
    return report.runs_at_once * report.config.cpus_per_member


def fits(report: ExperimentReport, *, slots: int) -> bool:
    return report.verdict == "fits" and report.slots == slots


@pytest.mark.slow
def test_the_smallest_machine_is_the_first_of_all_that_fits(experiment: Experiment) -> None:
    found = needs(experiment, machine()).recommendation()
    apart = [
        cpus
        for cpus in range(1, 20)
        if threads(forecast(experiment, replace(HUGE, cpus=cpus))) <= cpus
    ]
    assert found.cpus == apart[0]
    for row in found.rows:
        cores = replace(HUGE, cpus=row.cpus)
        slots = forecast(experiment, cores).slots
        rams = [
            size
            for size in RAM_SIZES
            if fits(forecast(experiment, replace(cores, ram_available_bytes=size)), slots=slots)
        ]
        assert row.ram_bytes == rams[0]
    cores = replace(HUGE, cpus=found.cpus)
    disks = [
        size
        for size in DISK_SIZES
        if forecast(experiment, replace(cores, disk_free_bytes=size)).verdict == "fits"
    ]
    assert found.sizes.ram_bytes == found.rows[0].ram_bytes
    assert found.sizes.disk_bytes == disks[0]
    assert found.sizes.vram_bytes is None
    assert found.is_found
    assert found.lake_is_unknown == (experiment.run.lake is not None)


def needs(experiment: Experiment, on: Machine, *, measured: bool = False) -> ExperimentNeeds:
    speed = None
    if measured:
        speed = ExperimentSpeed(SPEED, None if experiment.learner is None else SPEED)
    game = load_game(experiment.run.game)
    return ExperimentNeeds(experiment, game, on, measured=speed)


@pytest.mark.slow
@pytest.mark.parametrize("hours", [0.02, 10])
def test_the_cores_for_a_time_are_the_fewest_of_all(experiment: Experiment, hours: float) -> None:
    here = machine(cpus=20)  # where no threads share a core
    found = needs(experiment, here, measured=True).recommendation(hours)
    speed = ExperimentSpeed(SPEED, None if experiment.learner is None else SPEED)
    in_time = []
    for cpus in range(1, 20):
        report = experiment_preflight(
            experiment, load_game("duel"), replace(HUGE, cpus=cpus), measured=speed
        )
        assert report.duration is not None
        if threads(report) <= cpus and report.duration.wall_s <= hours * 3_600:
            in_time.append(cpus)
    assert (found.cpus_in_time.cpus if found.cpus_in_time else None) == next(iter(in_time), None)
    assert found.is_found == bool(in_time)


def test_members_that_shared_cores_where_they_were_measured_are_faster_elsewhere(
    make_population: MakePopulation,
) -> None:
    population = make_population("population", "executor.parallel=4")
    rows = needs(population, machine(cpus=2), measured=True).recommendation().rows
    assert [(row.cpus, row.at_once, row.is_measured) for row in rows] == [
        (2, 4, True), (4, 4, False),
    ]  # fmt: skip
    assert [row.collecting for row in rows] == [1, 2]
    two, four = (row.wall_s for row in rows)
    assert two is not None
    assert four is not None
    assert 1.5 < two / four < 2  # what the controller does between stretches takes as long


def test_every_check_of_all_runs_and_of_each_is_listed(experiment: Experiment) -> None:
    for on in (machine(), machine(ram_gib=1, disk_gib=0.01, cpus=1)):
        report = forecast(experiment, on)
        results = report.checks
        n_runs = 1 if experiment.learner is None else 2
        assert len({result.name for result in results}) == len(results)
        assert len(results) == 4 + n_runs * len(CHECKS)
        found = [result for result in results if result.finding is not None]
        assert len(found) == len(report.findings)
        assert all(result.comparison.text for result in results)
