"""The plan of an experiment's disk, against a plain simulation of what is written and deleted."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from game_rl.checkpoints.checkpoint_files import OVERHEAD_BYTES, STOP_MARGIN_BYTES
from game_rl.config.experiments.experiment import Experiment
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.experiments.forecast.experiment_disk import ExperimentDisk
from game_rl.experiments.forecast.experiment_forecast import ExperimentReport, experiment_preflight
from game_rl.games.definition import load_game
from game_rl.preflight.calibration import DISK_MARGIN_BYTES
from game_rl.preflight.facts import MeasuredLake
from game_rl.preflight.footprint import disk_bytes_verdict
from game_rl.system.machine import Machine
from game_rl.system.units import GIB
from tests.examples import examples
from tests.experiments.conftest import MakePopulation

MEASURED = MeasuredLake(timesteps=100, bytes_per_timestep=4_000.0)


def machine(disk_bytes: int = 100 * GIB) -> Machine:
    return Machine(
        ram_bytes=32 * GIB,
        ram_available_bytes=32 * GIB,
        gpus=(),
        disk_free_bytes=disk_bytes,
        cpus=8,
        cpu_has_bf16=False,
    )


def forecast(
    population: Experiment,
    on: Machine | None = None,
    *,
    lake: MeasuredLake | None = MEASURED,
    superseded_bytes: int = 0,
) -> ExperimentReport:
    return experiment_preflight(
        population,
        load_game(population.run.game),
        on or machine(),
        lake=lake,
        superseded_bytes=superseded_bytes,
    )


def simulated_full_at(disk: ExperimentDisk, keep: KeepGenerationsConfig, free: int) -> int | None:
    """Write one checkpoint after the other, as members do, and prune as the controller does."""
    files = 10 * 4096  # each file, and the folder, takes whole blocks
    one, members = disk.member.footprint.disk.checkpoint_bytes + files, disk.config.members
    generations: dict[int, int] = {}  # number: checkpoints
    for number in range(1, disk.config.generations + 1):
        logs = disk.rows[number - 1].logs
        generations[number] = 0
        for _ in range(members):
            used = sum(generations.values()) * one + logs + 2 * OVERHEAD_BYTES  # two copies
            used += members * (20 + 4 * number) * 4096
            used += disk.slots * disk.member.footprint.disk.removed_bytes
            if used + one + STOP_MARGIN_BYTES > free:  # a member looks before it saves
                return number
            generations[number] += 1
        for old in list(generations):
            if not keep.keeps(old, newest=number):
                del generations[old]
    return None


@pytest.fixture
def population_disk(make_population: MakePopulation) -> ExperimentDisk:
    return forecast(make_population()).disk


def test_each_member_that_trains_has_a_file_for_whoever_watches(
    make_population: MakePopulation, population_disk: ExperimentDisk
) -> None:
    without = forecast(make_population("unwatched", "member.live={fps: 0}")).disk
    live = population_disk.member.footprint.disk.removed_bytes
    assert live > 0
    assert population_disk.minimum_bytes == without.minimum_bytes + without.slots * live
    assert population_disk.rows[-1].total == without.rows[-1].total


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(last=1, every=1, free=16.1875)
@given(last=st.integers(1, 4), every=st.none() | st.integers(1, 4), free=st.floats(0, 30))
def test_the_disk_is_full_in_the_generation_in_which_a_plain_simulation_fills_it(
    population_disk: ExperimentDisk, last: int, every: int | None, free: float
) -> None:
    keep = KeepGenerationsConfig(last=last, every=every)
    disk = population_disk.keeping(keep)
    free_bytes = int(free * disk.member.footprint.disk.checkpoint_bytes) + STOP_MARGIN_BYTES
    assert disk.full_at(free_bytes) == simulated_full_at(disk, keep, free_bytes)
    assert (disk.full_at(free_bytes) is None) == (disk.minimum_bytes <= free_bytes)


def test_a_smaller_disk_is_an_error_that_says_when_it_is_full(
    make_population: MakePopulation,
) -> None:
    population = make_population("x", "keep_generations={last: 5}")
    plan = forecast(population).plan
    sizes = (plan.recommended_bytes, plan.minimum_bytes)
    verdicts = [
        disk_bytes_verdict(plan.minimum_bytes, plan.recommended_bytes, machine(size))
        for size in sizes
    ]
    assert verdicts == ["fits", "tight"]
    assert plan.recommended_bytes == plan.minimum_bytes + DISK_MARGIN_BYTES
    report = forecast(population, machine(plan.rows[2].needed))
    assert report.verdict == "does_not_fit"
    (finding,) = (f for f in report.findings if f.code == "generations_do_not_fit")
    assert "the disk is full in generation 4" in finding.message
    assert plan.comfortable_bytes == plan.recommended_bytes  # all generations are kept


def test_lakes_count_and_those_of_replaced_runs_stay(make_population: MakePopulation) -> None:
    population = make_population("x", "member.lake={}")
    report = forecast(population)
    played = 4 * population.config.total_timesteps * 4_000
    assert report.growth[-1].lake == played
    plain = forecast(population, lake=None)
    assert plain.growth[-1].lake is None
    assert report.plan.minimum_bytes > plain.plan.minimum_bytes + played
    limited = forecast(make_population("y", "member.lake={capacity_gb: 0.01}"))
    each = min(5 * population.config.timesteps_per_generation * 4_000, 10**7)
    assert limited.growth[-1].lake == min(
        played, (4 + 4 * 2) * each
    )  # two a generation, of replaced runs


def test_lakes_that_do_not_fit_get_a_capacity_that_does(make_population: MakePopulation) -> None:
    large = MeasuredLake(timesteps=100, bytes_per_timestep=10**6)
    population = make_population("x", "member.lake={}", "keep_generations={last: 1}")
    whole, without = forecast(population, lake=large), forecast(population, lake=None)
    small = machine((whole.plan.minimum_bytes + without.plan.minimum_bytes) // 2)
    report = forecast(population, small, lake=large)
    (finding,) = (f for f in report.findings if f.code == "lakes_do_not_fit")
    assert report.verdict == "does_not_fit"
    assert finding in [check.finding for check in report.checks]
    assert finding.key == "member.lake.capacity_gb"
    assert finding.fix is not None
    fixed = make_population(
        "y", f"member.lake={{capacity_gb: {finding.fix.value}}}", "keep_generations={last: 1}"
    )
    assert forecast(fixed, small, lake=large).verdict != "does_not_fit"


def test_what_was_set_aside_and_what_must_be_installed_count(
    make_population: MakePopulation,
) -> None:
    population = make_population()
    plain, aside = forecast(population).plan, forecast(population, superseded_bytes=10**6).plan
    other = replace(machine(), installation_bytes=10**9)
    installed = forecast(population, other).plan
    for plan, more in ((aside, 10**6), (installed, 10**9)):
        assert plan.total_bytes == plain.total_bytes + more
        assert plan.minimum_bytes == plain.minimum_bytes + more
    assert {"superseded/"} == {p.name for p in aside.parts} - {p.name for p in plain.parts}
