"""What a study of runs and experiments takes, against the forecast of each by itself."""

from dataclasses import replace
from pathlib import Path

from game_rl.config.experiments.study_config import ExperimentArm
from game_rl.experiments.forecast.experiment_forecast import experiment_preflight
from game_rl.experiments.study.study_forecast import study_preflight
from game_rl.games.definition import load_game
from game_rl.preflight.facts import MeasuredLake
from game_rl.system.machine import detect_machine, parse_machine
from game_rl.system.units import GIB
from tests.experiments.study.conftest import MakeStudy


def test_an_experiment_takes_one_member_and_a_controller_in_the_place_of_a_run(
    make_study_of_experiments: MakeStudy,
) -> None:
    study = make_study_of_experiments()
    machine = parse_machine("ram=16GiB,vram=0,disk=50GiB,cpus=4", here=detect_machine(Path()))
    report, peaks, disk = study_preflight(study, machine), [], 0
    for arm in study.arms.values():
        if isinstance(arm, ExperimentArm):
            alone = experiment_preflight(
                arm.experiment, load_game("duel"), replace(machine, cpus=1)
            )
            assert alone.slots == 1
            peaks.append(alone.ram_bytes)
            disk += alone.disk_bytes + alone.momentary_bytes
        else:
            (run,) = report.arms["alone"].at_work
            peaks.append(run.footprint.ram.peak.bytes)
            disk += run.footprint.disk.bytes
    assert (report.verdict, report.slots, report.runs) == ("fits", 2, 6)
    controller = 70_000_000
    assert report.ram_bytes == 2 * max(peaks) + controller
    assert report.disk_bytes == 2 * disk
    assert report.arms["mixed"].ram_bytes > report.arms["four"].ram_bytes  # the learner's replay


def test_lakes_count_once_they_are_measured_and_are_named_before(
    make_study_of_experiments: MakeStudy,
) -> None:
    study = make_study_of_experiments()
    machine = parse_machine("ram=16GiB,vram=0,disk=50GiB,cpus=4", here=detect_machine(Path()))
    without = study_preflight(study, machine)
    assert without.unmeasured_lakes == ("mixed",)
    lakes = {"mixed": MeasuredLake(timesteps=1_000, bytes_per_timestep=1e6)}
    report = study_preflight(study, machine, lakes=lakes)
    assert report.unmeasured_lakes == ()
    of_members = 2 * 2 * 32 * 10**6  # members, rounds, timesteps; the learner writes nothing
    seeds = 2
    assert report.disk_bytes == without.disk_bytes + seeds * of_members
    assert (without.verdict, report.verdict) == ("fits", "fits")
    small = replace(machine, disk_free_bytes=GIB, installation_bytes=0)
    large = {"mixed": MeasuredLake(timesteps=1_000, bytes_per_timestep=1e7)}
    assert study_preflight(study, small).verdict != "does_not_fit"
    assert study_preflight(study, small, lakes=large).verdict == "does_not_fit"
