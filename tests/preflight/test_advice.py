"""Each piece of advice is given where it helps and nowhere else, and following it helps."""

from dataclasses import replace

from game_rl.preflight.fixes import Fix
from game_rl.preflight.footprint import ram_verdict
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB
from tests.preflight.test_findings import FIGHTER, LONG, Make, by_code, dqn, mended


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
    case = situation(algorithm=dqn(50_000_000))
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
