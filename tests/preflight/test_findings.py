"""Each finding fires where it should, stays silent elsewhere, and its fix really mends it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from game_rl.games.parts.part_format import PartFormat, Stretch
from game_rl.preflight.facts import EpisodeLengths
from game_rl.preflight.findings import Finding
from game_rl.preflight.fixes import (
    Fix,
    apply_fix,
    smaller_capacities,
    smaller_micro_batch_sizes,
    smaller_n_steps,
)
from game_rl.preflight.footprint import Situation, disk_verdict, ram_verdict, vram_verdict
from game_rl.preflight.memory import together
from game_rl.preflight.preflight import CHECKS
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB, MIB, format_bytes
from tests.preflight.conftest import check

Make = Callable[..., Situation]

FIGHTER = {
    "env__n_envs": 2,
    "env__observation": {"size": "full", "colour": "rgb"},
    "algorithm": {"n_steps": 8192, "batch_size": 2048, "n_epochs": 10, "micro_batch_size": None},
}
AUTO = FIGHTER | {"algorithm": {"n_steps": 8192, "batch_size": 2048, "n_epochs": 10}}
LONG = EpisodeLengths(timesteps=(150, 180, 400))


def by_code(situation: Situation) -> dict[str, Finding]:
    return {finding.code: finding for finding in check(situation)}


def mended(situation: Situation, finding: Finding) -> Situation:
    assert finding.fix is not None
    config = apply_fix(situation.config, finding.fix)
    assert config is not None
    return replace(situation, config=config, footprint=situation.footprint_of(config))


def test_a_run_that_fits_and_is_well_made_has_no_findings(situation: Make) -> None:
    assert check(situation()) == ()


def test_a_wait_that_may_outlast_the_workers_is_named_and_its_fix_mends_it(situation: Make) -> None:
    quick = situation(facts__longest_wait_frames=600)
    assert "step_may_outlast_workers" not in by_code(quick)
    slow = situation(facts__longest_wait_frames=36_000, env__n_envs=64, env__n_workers=4)
    finding = by_code(slow)["step_may_outlast_workers"]
    assert "`step.at_most_frames`, 36,000 frames, in each of the 16 envs" in finding.message
    assert "step_may_outlast_workers" not in by_code(mended(slow, finding))


def test_findings_come_worst_first(situation: Make) -> None:
    found = check(situation(**FIGHTER, facts__four_shades=True, machine__ram_available_bytes=GIB))
    order = [{"error": 0, "warning": 1, "info": 2}[finding.severity] for finding in found]
    assert order == sorted(order)
    assert order[0] == 0
    assert len({finding.code for finding in found}) == len(found) > 2


@pytest.mark.parametrize("available", [2, 3, 4, 5])
def test_the_first_fix_for_a_gradient_step_changes_nothing_of_the_learning(
    situation: Make, available: int
) -> None:
    case = situation(
        **FIGHTER, facts__four_shades=True, machine__ram_available_bytes=available * GIB
    )
    before = ram_verdict(case.footprint, case.machine)
    finding = by_code(case)[f"ram_{before}"]
    assert finding.fix is not None
    assert finding.key == finding.fix.key == "algorithm.micro_batch_size"
    assert "learn the same" in finding.message
    automatic = apply_fix(case.config, Fix("algorithm.micro_batch_size", "auto"))
    assert automatic is not None
    smaller = smaller_micro_batch_sizes(case.config, together(automatic, case.facts))
    assert_smallest(case, finding.fix, ["auto", *smaller])


def test_a_batch_in_the_parts_that_auto_chooses_is_mended_by_smaller_ones(situation: Make) -> None:
    peak = situation(**AUTO).footprint.ram.peak.bytes
    finding = by_code(case := situation(**AUTO, machine__ram_available_bytes=peak))["ram_tight"]
    assert finding.fix is not None
    assert finding.fix.key == "algorithm.micro_batch_size"
    sizes = smaller_micro_batch_sizes(case.config, together(case.config, case.facts))
    assert_smallest(case, finding.fix, sizes)


def test_nobody_is_advised_to_do_what_is_done_already(situation: Make) -> None:
    fixes = {
        finding.fix
        for available in range(1, 8)
        for finding in check(situation(**AUTO, machine__ram_available_bytes=available * GIB))
    }
    assert Fix("algorithm.micro_batch_size", "auto") not in fixes


def assert_smallest(case: Situation, fix: Fix, values: Sequence[int | str]) -> None:
    """After it the run fits, and after no earlier one of `values`."""
    verdicts = []
    for value in values[: values.index(fix.value) + 1]:
        config = apply_fix(case.config, Fix(fix.key, value))
        if config is not None:
            verdicts.append(ram_verdict(case.footprint_of(config), case.machine) == "fits")
    assert verdicts == [False] * (len(verdicts) - 1) + [True]


def test_a_batch_in_the_smallest_parts_is_mended_by_other_means(situation: Make) -> None:
    algorithm = {"n_steps": 16_384, "batch_size": 2048, "micro_batch_size": 16}
    case = situation(
        **FIGHTER | {"algorithm": algorithm}, machine__ram_available_bytes=11 * GIB // 4
    )
    finding = by_code(case)["ram_does_not_fit"]
    assert finding.fix is not None
    assert finding.fix.key == "algorithm.n_steps"
    assert "learn the same" not in finding.message
    assert_smallest(case, finding.fix, smaller_n_steps(case.config))


def test_ram_that_nothing_can_mend_has_no_fix_and_says_what_is_large(situation: Make) -> None:
    finding = by_code(situation(machine__ram_available_bytes=100 * MIB))["ram_does_not_fit"]
    assert finding.fix is None
    assert finding.severity == "error"
    assert "Python, torch, SB3" in finding.message
    assert "100 MiB" in finding.message


def test_memory_in_the_margin_is_tight_and_only_a_warning(situation: Make) -> None:
    peak = situation().footprint.ram.peak.bytes
    finding = by_code(situation(machine__ram_available_bytes=peak))["ram_tight"]
    assert finding.severity == "warning"
    one_less = situation(machine__ram_available_bytes=peak - 1)
    assert "ram_does_not_fit" in by_code(one_less)


def test_gpu_memory_is_mended_by_the_largest_parts_of_a_batch_that_fit(situation: Make) -> None:
    case = situation(
        **FIGHTER,
        facts__uses_gpu=True,
        machine__gpus=(Gpu(4 * GIB, 4 * GIB),),
    )
    finding = by_code(case)["vram_does_not_fit"]
    after = mended(case, finding)
    assert vram_verdict(after.footprint, after.machine) == "fits"
    assert finding.fix is not None
    assert finding.key == finding.fix.key == "algorithm.micro_batch_size"
    assert finding.fix.value == 512
    assert "learn the same" in finding.message


def test_a_gpu_that_is_not_there_is_an_error_unless_it_may_be_left_out(situation: Make) -> None:
    finding = by_code(situation(device="cuda", facts__uses_gpu=True))["gpu_missing"]
    assert finding.severity == "error"
    assert "gpu_missing" not in by_code(situation(device="auto"))
    with_gpu = situation(
        device="cuda",
        facts__uses_gpu=True,
        machine__gpus=(Gpu(16 * GIB, 16 * GIB),),
    )
    assert "gpu_missing" not in by_code(with_gpu)


def test_a_disk_that_fills_says_when_and_keeping_fewer_checkpoints_mends_it(
    situation: Make,
) -> None:
    values = {
        "checkpoints": {"every_timesteps": 100_000, "keep_last": 500},
        "total_timesteps": 10_000_000,
        "machine__disk_free_bytes": 3000 * MIB,
    }
    case = situation(**values)
    checkpoint = case.footprint.disk.checkpoint_bytes
    assert "disk_tight" in by_code(case)
    values["machine__disk_free_bytes"] = (307 + 64) * MIB  # a run stops while 64 MiB are free
    case = situation(**values)
    finding = by_code(case)["disk_does_not_fit"]
    assert 307 * MIB // checkpoint == 24  # if each evaluation, of 50,000, is the best so far
    assert "full at timestep 1,202,176" in finding.message  # after the 24th
    after = mended(case, finding)
    assert disk_verdict(after.footprint, after.machine) == "tight"  # they leave no margin
    assert finding.fix is not None
    assert finding.fix.key == "checkpoints.keep_last"


def test_every_fix_of_every_finding_is_a_valid_config(situation: Make) -> None:
    cases = [
        situation(**FIGHTER, facts__four_shades=grey, machine__ram_available_bytes=ram)
        for grey in (True, False)
        for ram in (GIB, 8 * GIB, 64 * GIB)
    ]
    for case in cases:
        for find in CHECKS:
            finding = find(case).finding
            if finding is not None and finding.fix is not None:
                assert apply_fix(case.config, finding.fix) is not None


REMEMBERS = [
    (8, {"n_steps": 256, "batch_size": 1024, "memory": {"size": 64, "sequence": 256}}),
    (8, {"n_steps": 384, "batch_size": 192, "memory": {"size": 64, "sequence": 96}}),
    (6, {"n_steps": 500, "batch_size": 300, "memory": {"kind": "gru", "sequence": 100}}),
    (3, {"n_steps": 8192, "batch_size": 2048, "memory": {"size": 1024, "sequence": 64}}),
    (
        4,
        {
            "n_steps": 4096,
            "batch_size": 2048,
            "micro_batch_size": None,
            "memory": {"size": 512, "sequence": 512},
        },
    ),
]


@pytest.mark.parametrize(("n_envs", "algorithm"), REMEMBERS)
def test_all_that_is_proposed_to_a_run_with_a_memory_is_a_valid_config(
    situation: Make, n_envs: int, algorithm: dict[str, Any]
) -> None:
    values = {"env__n_envs": n_envs, "algorithm": algorithm, "probe": LONG}
    peak = situation(**values).footprint.ram.peak.bytes
    gpus = (Gpu(GIB, GIB),)
    machines: list[dict[str, Any]] = [
        *({"machine__ram_available_bytes": peak * tenths // 10} for tenths in range(4, 17)),
        *({"machine__cpus": cpus, "facts__cpus": cpus} for cpus in (12, 16, 24, 64)),
        {"device": "cuda", "facts__uses_gpu": True, "machine__gpus": gpus},
    ]
    n_fixes = 0
    for machine in machines:
        case = situation(**values, **machine)
        for finding in check(case):
            if finding.fix is None:
                continue
            n_fixes += 1
            changed = mended(case, finding).config
            as_well = re.search(
                r"algorithm\.n_steps=(\d+) as well, .* has ([\d,]+)", finding.message
            )
            if as_well is not None:
                n_steps, rollout = (number.replace(",", "") for number in as_well.groups())
                both = apply_fix(changed, Fix("algorithm.n_steps", int(n_steps)))
                assert both is not None, finding.message
                assert both.rollout_timesteps == int(rollout)
    assert n_fixes > 5


def test_envs_are_proposed_without_a_rollout_that_cuts_a_sequence(situation: Make) -> None:
    n_envs, algorithm = REMEMBERS[0]
    case = situation(env__n_envs=n_envs, algorithm=algorithm, machine__cpus=16, facts__cpus=16)
    finding = by_code(case)["machine_under_used"]
    assert finding.fix == Fix("env.n_envs", 16)
    assert finding.message == "8 envs keep 8 of 16 CPUs busy; 16 envs fit"


def test_a_stack_beside_a_memory_is_named_by_what_is_stacked(situation: Make) -> None:
    remembers = {"algorithm": {"n_steps": 256, "memory": {}}, "env__frame_stack": 4}
    parts = {
        "view": PartFormat("vector", (4,), 0, (Stretch(4, 32),)),
        "map": PartFormat.of_indices("grid", (1, 18, 20), 256, is_stacked=True),
    }

    def found(**observation: object) -> Finding | None:
        case = situation(**remembers, facts__part_formats=parts, env__observation=observation)
        finding = by_code(case).get("stack_beside_memory")
        assert finding is None or "stack_beside_memory" not in by_code(mended(case, finding))
        return finding

    seen = found()
    assert seen is not None
    assert "sees 4 screens at once" in seen.message
    assert found(screen=False, parts=["view"]) is None
    stacked = found(screen=False, parts=["map", "view"])
    assert stacked is not None
    assert "sees map of 4 timesteps at once" in stacked.message


def dqn(capacity: int, device: str = "cpu") -> dict[str, object]:
    return {"name": "dqn", "replay": {"capacity": capacity, "device": device}}


def test_a_replay_that_is_too_large_is_made_just_small_enough(situation: Make) -> None:
    case = situation(
        algorithm=dqn(5_000_000),
        total_timesteps=6_000_000,
        machine__ram_available_bytes=6 * GIB,
    )
    finding = by_code(case)["ram_does_not_fit"]
    assert finding.fix is not None
    assert finding.key == finding.fix.key == "algorithm.replay.capacity"
    after = mended(case, finding)
    assert ram_verdict(after.footprint, after.machine) == "fits"
    larger = [n for n in smaller_capacities(case.config) if n > int(finding.fix.value)]
    config = apply_fix(case.config, Fix(finding.fix.key, larger[-1]))
    assert config is not None
    assert ram_verdict(case.footprint_of(config), case.machine) != "fits"


def test_a_replay_that_a_gpu_has_no_room_for_goes_to_ram(situation: Make) -> None:
    case = situation(
        algorithm=dqn(2_000_000, "cuda"),
        device="cuda",
        facts__uses_gpu=True,
        machine__gpus=(Gpu(4 * GIB, 4 * GIB),),
    )
    finding = by_code(case)["vram_does_not_fit"]
    assert finding.fix == Fix("algorithm.replay.device", "cpu")
    after = mended(case, finding)
    assert vram_verdict(after.footprint, after.machine) == "fits"


@pytest.mark.parametrize(
    ("capacity", "timesteps", "enough"),
    [(5_000_000, 1_000_192, 1_100_000), (5_000, 1_024, 1_100), (1_000_192, 1_000_192, None)],
)
def test_a_lake_that_is_never_full_is_told_with_the_number_that_would_do(
    situation: Make, capacity: int, timesteps: int, enough: int | None
) -> None:
    lake = {"capacity_transitions": capacity}
    case = situation(algorithm=PQN, lake=lake, total_timesteps=timesteps)
    finding = by_code(case).get("lake_is_never_full")
    if enough is None:
        assert finding is None
        return
    assert finding is not None
    assert finding.fix == Fix("lake.capacity_transitions", enough)
    assert "lake_is_never_full" not in by_code(mended(case, finding))
    shared = {**lake, "path": "runs/shared"}  # others may write there, too
    assert "lake_is_never_full" not in by_code(
        situation(algorithm=PQN, lake=shared, total_timesteps=timesteps)
    )


def test_smaller_capacities_are_round_and_go_down(situation: Make) -> None:
    found = smaller_capacities(situation(algorithm=dqn(250_000)).config)
    assert found[:4] == [200_000, 100_000, 90_000, 80_000]
    assert list(found) == sorted(found, reverse=True)
    assert smaller_capacities(situation().config) == ()


def test_a_replay_on_a_gpu_that_is_not_there_goes_to_ram(situation: Make) -> None:
    case = situation(algorithm=dqn(100_000, "cuda"))
    finding = by_code(case)["replay_gpu_missing"]
    assert finding.severity == "error"
    assert "replay_gpu_missing" not in by_code(mended(case, finding))


def test_idle_cpus_are_told_with_the_envs_that_fit(situation: Make) -> None:
    case = situation(**FIGHTER, facts__uses_gpu=True, device="auto")
    gpu = replace(case.machine, gpus=(Gpu(16 * GIB, 16 * GIB),))
    case = replace(case, machine=gpu)
    finding = by_code(case)["machine_under_used"]
    assert finding.severity == "info"
    assert finding.fix is not None
    assert (finding.fix.key, finding.fix.value) == ("env.n_envs", 6)  # 8 would need 36 GB
    after = mended(case, finding)
    assert ram_verdict(after.footprint, after.machine) == "fits"
    assert "n_steps=2048 as well, a rollout has 12,288" in finding.message


def test_too_few_workers_are_told_as_workers(situation: Make) -> None:
    finding = by_code(situation(env={"n_envs": 8, "n_workers": 2}))["machine_under_used"]
    assert finding.fix is not None
    assert (finding.fix.key, finding.fix.value) == ("env.n_workers", 8)


def test_a_busy_machine_is_not_told_to_do_more(situation: Make) -> None:
    assert "machine_under_used" not in by_code(situation(env={"n_envs": 8}))
    assert "machine_under_used" not in by_code(situation(env={"n_envs": 20}))


def test_a_rollout_longer_than_any_episode_is_told(situation: Make) -> None:
    finding = by_code(situation(algorithm={"n_steps": 4096, "batch_size": 256}))[
        "n_steps_is_no_episode_length"
    ]
    assert finding.severity == "warning"
    assert "1,000" in finding.message
    assert finding.fix is not None
    assert finding.fix.value == 512


def test_a_probe_compares_with_real_episodes(situation: Make) -> None:
    short = {"algorithm": {"n_steps": 512, "batch_size": 256}}
    long = {"algorithm": {"n_steps": 1024, "batch_size": 256}}
    code = "n_steps_is_no_episode_length"
    assert code not in by_code(situation(**short, probe=LONG))
    finding = by_code(situation(**long, probe=LONG))[code]
    assert "150 to 400" in finding.message
    assert "180" in finding.message
    assert code not in by_code(mended(situation(**long, probe=LONG), finding))


def test_colour_of_a_grey_game_is_told_and_of_a_colour_game_is_not(situation: Make) -> None:
    rgb = {"env__observation": {"colour": "rgb"}}
    finding = by_code(situation(**rgb, facts__four_shades=True))["colour_of_four_shades"]
    assert "three times: a gradient step takes 131 MiB where grey takes 81.3 MiB" in finding.message
    assert "colour_of_four_shades" not in by_code(situation(**rgb))
    assert "colour_of_four_shades" not in by_code(situation(facts__four_shades=True))


def test_nothing_is_said_of_rollouts_where_there_are_none(situation: Make) -> None:
    case = situation(algorithm=dqn(100_000), probe=LONG, env__n_envs=4)
    assert set(by_code(case)) == {"machine_under_used"}
    finding = by_code(case)["machine_under_used"]
    assert finding.fix == Fix("env.n_envs", 8)
    assert "rollout" not in finding.message


def test_a_replay_that_is_never_full_gets_a_capacity_that_the_run_just_fills(
    situation: Make,
) -> None:
    assert "replay_is_never_full" not in by_code(situation(algorithm=dqn(1_000_000)))
    case = situation(algorithm=dqn(50_000_000), machine__ram_bytes=900 * GIB)
    finding = by_code(case)["replay_is_never_full"]
    assert finding.severity == "info"
    assert finding.fix == Fix("algorithm.replay.capacity", 1_100_000)  # 200 timesteps an episode
    assert "GPU" not in finding.message
    after = mended(case, finding)
    assert "replay_is_never_full" not in by_code(after)
    assert after.footprint.ram == case.footprint.ram  # what is not written to is not taken
    on_gpu = situation(
        algorithm=dqn(50_000_000, "cuda"),
        facts__uses_gpu=True,
        machine__gpus=(Gpu(900 * GIB, 900 * GIB),),
    )
    finding = by_code(on_gpu)["replay_is_never_full"]
    assert "of GPU memory free" in finding.message
    assert on_gpu.footprint.vram is not None
    after = mended(on_gpu, finding)
    assert after.footprint.vram is not None
    assert after.footprint.vram.peak.bytes < on_gpu.footprint.vram.peak.bytes / 20


def test_a_replay_that_is_never_full_must_still_be_reserved(situation: Make) -> None:
    reserved = situation(algorithm=dqn(50_000_000)).machine.ram_bytes
    finding = by_code(situation(algorithm=dqn(50_000_000)))["replay_is_never_full"]
    assert finding.severity == "error"
    assert f"where memory and swap have {format_bytes(reserved)}" in finding.message
    assert finding.fix == Fix("algorithm.replay.capacity", 1_100_000)
    in_a_container = situation(algorithm=dqn(50_000_000), machine__reservable_bytes=900 * GIB)
    assert by_code(in_a_container)["replay_is_never_full"].severity == "info"


CODE = "restart_without_effect"
PQN = {"name": "pqn", "n_steps": 32, "batch_size": 128}  # a rollout of 256, a run of a million
DQN = {"name": "dqn", "learning_starts": 50_000}


@pytest.mark.parametrize(
    ("algorithm", "restart", "cause"),
    [
        (PQN, {"at": 50_000, "start": 0.5, "over": 1_000}, "the usual exploration rate is 0.5"),
        (PQN, {"at": 500_000, "start": 0.5, "over": 255}, "less than one rollout of 256"),
        (PQN, {"at": 900_000, "start": 0.5, "over": 100_001}, "until timestep 1,000,001"),
        (DQN, {"at": 49_999, "start": 1.0, "over": 1_000}, "before learning_starts, 50,000"),
    ],
)
def test_a_restart_that_does_less_than_it_says_is_told(
    algorithm: dict[str, Any], restart: dict[str, Any], cause: str, situation: Make
) -> None:
    exploration = {"restarts": [restart], "end": 0.0}
    finding = by_code(situation(algorithm=algorithm | {"exploration": exploration}))[CODE]
    assert finding.severity == "warning"
    assert finding.key == "algorithm.exploration.restarts.0"
    assert cause in finding.message


def test_a_restart_that_has_an_effect_is_not(situation: Make) -> None:
    good = {"restarts": [{"at": 500_000, "start": 0.5, "over": 256}]}
    for algorithm in (PQN | {"exploration": good}, DQN | {"exploration": good}):
        assert CODE not in by_code(situation(algorithm=algorithm))
    assert CODE not in by_code(situation())


def test_a_changed_game_is_named(situation: Callable[..., Situation]) -> None:
    assert "game_is_changed" not in by_code(situation())
    changes = ("start state caves: repel is held at 255", "start state sea: money begins as 9")
    finding = by_code(situation(facts__game_changes=changes))["game_is_changed"]
    assert finding.severity == "info"
    assert all(change in finding.message for change in changes)


def test_the_most_that_a_growing_limit_can_become_is_forecast(
    situation: Callable[..., Situation],
) -> None:
    grows = {"start": 50, "add": 10, "per": "level", "most": 2_000}
    growing, fixed, short = (
        situation(env__max_episode_timesteps=limit) for limit in (grows, 2_000, 50)
    )
    disks = (growing.footprint.disk, fixed.footprint.disk)
    for name in ("parts", "checkpoint_bytes", "momentary_bytes", "removed_bytes", "lake_bytes"):
        assert len({getattr(disk, name) for disk in disks}) == 1
    for name in ("log_bytes_per_update", "lake_needed_bytes", "minimum_bytes", "recommended_bytes"):
        assert len({getattr(disk, name) for disk in disks}) == 1
    assert growing.footprint.disk.bytes > short.footprint.disk.bytes
    assert "n_steps_is_no_episode_length" not in by_code(growing)
    assert "n_steps_is_no_episode_length" in by_code(short)
