"""Recommended machines against plain loops over all sizes and all numbers of cores."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from game_rl.preflight.footprint import Situation, estimate, verdict
from game_rl.preflight.recommendation import (
    DISK_SIZES,
    RAM_SIZES,
    VRAM_SIZES,
    Recommendation,
    RunNeeds,
    RunOnCores,
    machine_option,
    render_recommendation,
)
from game_rl.preflight.workload import MeasuredSpeed, forecast_speed
from game_rl.system.machine import Machine, parse_machine, without_installation
from game_rl.system.placement import Gpu
from tests.preflight.conftest import FACTS, MACHINE, make_config

Make = Callable[..., Situation]
PLENTY = 2**60
SPEED = MeasuredSpeed(
    inference_s=0.004,
    emulation_s=0.006,
    gradient_step_s=0.05,
    evaluation_vec_step_s=0.004,
    checkpoint_s=0.2,
    start_s=2,
)
COLOUR = {"env__observation": {"size": "full", "colour": "rgb"}}
REPLAY = {"algorithm": {"name": "dqn", "replay": {"capacity": 2_000_000}}}
CASES: dict[str, dict[str, Any]] = {
    "small": {},
    "large batches": COLOUR | {"algorithm": {"n_steps": 2048, "batch_size": 2048}},
    "replay": REPLAY | {"total_timesteps": 3_000_000},
    "many checkpoints": {
        "checkpoints": {"every_timesteps": 10_000, "keep_last": 5_000},
        "total_timesteps": 60_000_000,
    },
    "on a GPU": COLOUR | {"device": "cuda:1", "facts__uses_gpu": True},
    "replay on another GPU": {
        "algorithm": {"name": "dqn", "replay": {"capacity": 1_500_000, "device": "cuda:1"}},
        "device": "cuda",
        "facts__uses_gpu": True,
    },
}


def recommended(
    case: Situation, *, measured: MeasuredSpeed | None = None, hours: float | None = None
) -> Recommendation:
    needs = RunNeeds(case.config, case.facts, case.machine, measured=measured)
    return needs.recommendation(hours)


def fits(case: Situation, machine: Machine) -> bool:
    facts = replace(case.facts, cpus=machine.cpus)
    return verdict(estimate(case.config, facts), machine) == "fits"


@pytest.mark.parametrize("values", CASES.values(), ids=CASES)
def test_the_sizes_are_the_first_of_all_that_fit(values: dict[str, Any], situation: Make) -> None:
    case = situation(**values)
    found = recommended(case)
    plenty = replace(
        case.machine,
        cpus=1,
        ram_bytes=PLENTY,
        ram_available_bytes=PLENTY,
        disk_free_bytes=PLENTY,
        gpus=(Gpu(PLENTY, PLENTY),) * 2,
    )
    rams = [s for s in RAM_SIZES if fits(case, replace(plenty, ram_available_bytes=s))]
    disks = [s for s in DISK_SIZES if fits(case, replace(plenty, disk_free_bytes=s))]
    vrams = [s for s in VRAM_SIZES if fits(case, replace(plenty, gpus=(Gpu(s, s),) * 2))]
    assert (found.sizes.ram_bytes, found.sizes.disk_bytes) == (rams[0], disks[0])
    assert found.n_gpus == (2 if "facts__uses_gpu" in values else 0)
    assert found.sizes.vram_bytes == (vrams[0] if found.n_gpus else None)
    assert found.is_found
    for row in found.rows:
        cores = replace(plenty, cpus=row.cpus)
        assert row.ram_bytes == next(
            s for s in RAM_SIZES if fits(case, replace(cores, ram_available_bytes=s))
        )


@pytest.mark.parametrize("name", ["small", "large batches", "replay", "many checkpoints"])
def test_the_machine_as_an_option_fits(name: str, situation: Make) -> None:
    case = situation(**CASES[name])
    case = replace(case, machine=without_installation(MACHINE))
    option = machine_option(recommended(case))
    assert fits(case, parse_machine(option, here=MACHINE))
    assert option.startswith("ram=")
    assert "vram=0" in option


def test_what_no_machine_has_is_named(situation: Make) -> None:
    case = situation(
        algorithm={"name": "dqn", "replay": {"capacity": 10**10}}, total_timesteps=10**11
    )
    found = recommended(case)
    assert found.sizes.ram_bytes is None
    assert not found.is_found
    console = Console(width=200, record=True, file=StringIO())
    console.print(render_recommendation(found, unmeasured="it is a test"))
    assert "has so much RAM" in console.export_text()


@pytest.mark.slow
@pytest.mark.parametrize("hours", [0.5, 1, 2, 3.7, 5, 24])
def test_the_cores_for_a_time_are_the_fewest_of_all(hours: float, situation: Make) -> None:
    case = situation(facts__cpus=2, total_timesteps=3_000_000)
    found = recommended(case, measured=SPEED, hours=hours)
    model = RunOnCores(case.config, case.facts)
    in_time = [
        cpus
        for cpus in range(1, 200)
        if forecast_speed(
            case.config,
            case.footprint.training,
            model.speed(SPEED, cpus),
            episode_timesteps=case.facts.episode_timesteps,
        ).wall_s
        <= hours * 3_600
    ]
    assert found.is_found == bool(in_time)
    assert (found.cpus_in_time.cpus if found.cpus_in_time else None) == next(iter(in_time), None)


def test_without_a_measurement_no_time_is_named(situation: Make) -> None:
    found = recommended(situation(), hours=1000)
    assert found.cpus_in_time is None
    assert not found.is_measured
    assert not found.is_found
    assert all(row.wall_s is None for row in found.rows)


def test_only_the_row_of_this_machines_cores_is_measured(situation: Make) -> None:
    case = situation(facts__cpus=5)
    rows = recommended(case, measured=SPEED).rows
    assert [row.cpus for row in rows if row.is_measured] == [5]
    forecast = forecast_speed(
        case.config, case.footprint.training, SPEED, episode_timesteps=case.facts.episode_timesteps
    )
    assert next(row.wall_s for row in rows if row.is_measured) == forecast.wall_s


def test_rows_end_where_nothing_is_gained(situation: Make) -> None:
    case = situation(env__n_envs=4, algorithm={"n_steps": 64, "batch_size": 64})
    rows = recommended(case).rows
    assert [row.cpus for row in rows] == [1, 2, 3, 4]
    assert [row.collecting for row in rows] == [1, 2, 3, 4]
    assert [row.updating for row in rows] == [1, 2, 2, 2]  # 32 samples are the smallest part


def test_a_run_that_ends_by_the_clock_takes_no_longer(situation: Make) -> None:
    case = situation(stop_when={"hours": 0.25}, facts__cpus=2)
    found = recommended(case, measured=SPEED, hours=0.25)
    assert found.cpus_in_time is not None
    assert found.cpus_in_time.cpus == 1


times = st.floats(0.0001, 1.0)


@given(times, times, st.integers(1, 12), st.integers(1, 24), st.integers(1, 12))
def test_times_on_other_cores_are_those_of_a_simulation(
    network_s: float, emulators_s: float, cpus: int, n_envs: int, other: int
) -> None:
    config = make_config(env__n_envs=n_envs, algorithm={"n_steps": 64, "batch_size": n_envs * 16})
    model = RunOnCores(config, replace(FACTS, cpus=cpus))

    def took(cpus: int) -> float:
        return simulated(network_s, emulators_s, cpus=cpus, workers=model.workers(cpus))

    here, there = took(cpus), took(other)
    measured = replace(SPEED, inference_s=network_s, emulation_s=here - network_s)
    found = model.speed(measured, other)
    # where the network is the bottleneck, it hides how long the emulators take, at most so long
    longest = there if here > network_s * 1.000001 else float("inf")
    assert there * 0.999999 <= found.inference_s + found.emulation_s <= longest * 1.000001
    again = model.speed(measured, cpus)
    assert again == measured


def simulated(network_s: float, emulators_s: float, *, cpus: int, workers: int) -> float:
    """Return the time of a vec step, found from which of three things never rests."""
    if workers == 1:
        return network_s + emulators_s
    halves = [0.0, 0.0]  # when the workers of each half are done
    network_free = cores_free = 0.0
    rounds = 400
    begun = []
    for turn in range(2 * rounds):
        half = turn % 2
        start = max(halves[half], network_free)
        network_free = start + network_s / 2
        halves[half] = network_free + emulators_s / workers
        cores_free = max(cores_free, start)
        begun.append(start)
    alone = (begun[-1] - begun[-1 - 2 * (rounds // 2)]) / (rounds // 2)
    return max(alone, (network_s + emulators_s) / cpus)  # no more work than the cores can do


def test_more_cores_never_take_longer(situation: Make) -> None:
    rows = recommended(situation(facts__cpus=2, env__n_envs=64), measured=SPEED).rows
    found = [row.wall_s for row in rows if row.wall_s is not None]
    assert len(found) == len(rows) > 5
    assert all(later <= earlier for earlier, later in pairwise(found))
