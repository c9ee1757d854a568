"""The run directory: against files that torch writes, and against filling it write by write."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.policies import ActorCriticCnnPolicy

from game_rl.buffers.layout import pond_layout, total_bytes
from game_rl.checkpoints import checkpoint_files
from game_rl.checkpoints.checkpoint_store import kept_checkpoints
from game_rl.config.loader import load_config
from game_rl.config.output_config import UploadConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError, UsageError
from game_rl.games.definition import load_game
from game_rl.lake.lake import Lake
from game_rl.preflight import calibration
from game_rl.preflight.disk import (
    GrowthRow,
    RunDisk,
    lake_bytes,
    predicted_checkpoint_bytes,
)
from game_rl.preflight.fit_checks import lake_outgrows_disk
from game_rl.preflight.footprint import Situation, disk_verdict, estimate
from game_rl.preflight.memory import network_of
from game_rl.preflight.preflight import PreflightReport, preflight
from game_rl.preflight.random_play import measured_lake, probe_lake, write_random_play
from game_rl.system.machine import Machine, is_same_disk
from game_rl.system.units import GIB
from game_rl.training.admission import check_fit, check_new_run
from tests.examples import examples
from tests.preflight.conftest import FACTS, MACHINE, make_config
from tests.preflight.test_memory import FIGHTER
from tests.preflight.test_preflight_report import text_of


def test_a_checkpoint_has_the_size_of_what_torch_writes(tmp_path: Path) -> None:
    space = spaces.Box(0, 255, (4, 72, 80), np.uint8)
    policy = ActorCriticCnnPolicy(space, spaces.Discrete(9), lambda _: 1e-3)
    for parameter in policy.parameters():
        parameter.grad = torch.zeros_like(parameter)
    policy.optimizer.step()
    torch.save(policy.state_dict(), tmp_path / "policy.pt")
    torch.save(policy.optimizer.state_dict(), tmp_path / "optimizer.pt")
    written = sum(file.stat().st_size for file in tmp_path.iterdir())
    one, many = (predicted_checkpoint_bytes(make_config(env__n_envs=n), FACTS) for n in (1, 9))
    env = 4 * 72 * 80 + checkpoint_files.EMULATOR_STATE_BYTES  # its last observation is saved, too
    assert many - one == 8 * env
    network = one - env - checkpoint_files.OVERHEAD_BYTES
    assert network == pytest.approx(written, rel=0.002)


def test_the_worked_example_keeps_four_checkpoints_of_90_megabytes() -> None:
    """Three and the best."""
    disk = estimate(FIGHTER, FACTS).disk
    assert disk.checkpoint_bytes == pytest.approx(89.9e6, rel=0.005)
    sizes = {part.name: part.bytes for part in disk.parts}
    assert sizes["4 checkpoints"] == 4 * disk.checkpoint_bytes
    assert disk.momentary_bytes == disk.checkpoint_bytes + disk.removed_bytes
    assert disk.bytes == sum(sizes.values())


@pytest.mark.parametrize("capacity", [3_000, 10_000, 100_000])
def test_each_checkpoint_has_the_replay_and_moments_of_its_own_moment(capacity: int) -> None:
    """As a run that ends there has; before learning starts there are no moments."""

    def saving(total_timesteps: int, learning_starts: int) -> RunConfig:
        return make_config(
            total_timesteps=total_timesteps,
            env={"n_envs": 4},
            algorithm={
                "name": "dqn", "replay": {"capacity": capacity}, "train_freq": 2,
                "learning_starts": learning_starts,
            },
            evaluation={"every_timesteps": 4_000},
            checkpoints={"every_timesteps": 2_000, "keep_last": 4, "save_replay_buffer": True},
        )  # fmt: skip

    moments = 2 * network_of(saving(10_000, 0), FACTS).weights_bytes
    alone = {
        n: estimate(saving(n, 0), FACTS).disk.checkpoint_bytes for n in range(2_000, 10_001, 2_000)
    }
    expected = sum(alone[n] for n in (2_000, 4_000, 6_000, 8_000, 10_000))
    for learning_starts, without in ((0, 0), (2_000, 1), (5_999, 2), (6_000, 3)):
        (part, *_) = estimate(saving(10_000, learning_starts), FACTS).disk.parts
        assert part.name == "5 checkpoints"
        assert part.bytes == expected - without * moments


def test_what_is_being_uploaded_stays_a_while_up_to_the_backlog() -> None:
    plain = estimate(FIGHTER, FACTS).disk
    for backlog_gb, held in ((5, 2 * plain.checkpoint_bytes), (0.1, 100_000_000)):
        upload: dict[str, Any] = {"to": "s3://bucket/x", "backlog_gb": backlog_gb}
        config = FIGHTER.model_copy(update={"upload": UploadConfig(**upload)})
        found = estimate(config, FACTS).disk
        assert found.momentary_bytes == plain.momentary_bytes + held


def test_a_run_with_fewer_checkpoints_than_it_may_keep_counts_those_it_makes() -> None:
    config = make_config(total_timesteps=2048, checkpoints={"keep_last": 10})
    assert estimate(config, FACTS).disk.parts[0].name == "1 checkpoint"


def test_without_a_clip_there_is_no_clip() -> None:
    disk = estimate(make_config(recording={"episodes": 0}), FACTS).disk
    assert {part.name: part.bytes for part in disk.parts}["clip"] == 0


def test_the_live_file_takes_room_while_it_trains_but_not_at_the_end() -> None:
    unwatched = make_config(live={"fps": 0})
    without, disk = (estimate(each, FACTS).disk for each in (unwatched, make_config()))
    assert disk.bytes == without.bytes
    size = disk.minimum_bytes - without.minimum_bytes
    assert size == disk.momentary_bytes - without.momentary_bytes
    assert size >= make_config().env.n_envs * 160 * 144 // 4  # a screen of four shades for each env


@settings(max_examples=examples(100))
@given(
    every=st.integers(1, 4),
    evaluate_every=st.integers(1, 5),
    keep_last=st.integers(1, 4),
    keep_every=st.none() | st.integers(1, 5),
    free_checkpoints=st.floats(0, 9),
)
def test_the_disk_is_full_when_a_dumb_replay_of_the_writes_says_so(
    every: int, evaluate_every: int, keep_last: int, keep_every: int | None, free_checkpoints: float
) -> None:
    config = make_config(
        total_timesteps=8 * 2048,
        checkpoints={
            "every_timesteps": every * 2048,
            "keep_last": keep_last,
            "keep_every_timesteps": None if keep_every is None else keep_every * 2048,
        },
        evaluation={"every_timesteps": evaluate_every * 2048},
        recording={"episodes": 0},
    )
    footprint = estimate(config, FACTS)
    one = footprint.disk.checkpoint_bytes
    free = checkpoint_files.STOP_MARGIN_BYTES + int(free_checkpoints * one)
    forecast = footprint.disk.full_at_timestep(free)
    full_at = earliest_full_disk(config, footprint.disk, free)
    if keep_every is None:
        assert forecast == full_at
    else:  # it may count one checkpoint too many
        earlier = earliest_full_disk(config, footprint.disk, free - one - 10 * 4096)
        assert (earlier or math.inf) <= (forecast or math.inf) <= (full_at or math.inf)
    assert (forecast is None) == (footprint.disk.minimum_bytes <= free)


def earliest_full_disk(config: RunConfig, disk: RunDisk, free: int) -> int | None:
    """Of eight updates, over every choice of evaluations that are the best."""
    kept, end = config.checkpoints, 8 * 2048
    evaluated = sorted({*range(e := config.evaluation.every_timesteps, end + 1, e), end})
    due = {*range(kept.every_timesteps, end + 1, kept.every_timesteps), end}
    earliest = math.inf
    for is_best in itertools.product((False, True), repeat=len(evaluated) - 1):
        bests = {evaluated[0], *itertools.compress(evaluated[1:], is_best)}
        folder: list[int] = []
        best = None
        for timesteps in range(2048, end + 1, 2048):
            files = calibration.RUN_FILES_BYTES + timesteps // 2048 * disk.log_bytes_per_update
            one = disk.checkpoint_bytes + 10 * 4096  # each file takes whole blocks
            used = len(folder) * one + files + disk.removed_bytes + 20 * 4096
            needed = one + checkpoint_files.STOP_MARGIN_BYTES
            if timesteps == end:  # it saves without a look at the disk
                needed = one
            if used + needed > free:
                earliest = min(earliest, timesteps)
                break
            if timesteps in due | bests:
                folder.append(timesteps)
                best = timesteps if timesteps in bests else best
                left = kept_checkpoints(
                    folder,
                    best=best,
                    keep_last=kept.keep_last,
                    keep_every=kept.keep_every_timesteps,
                )
                folder = sorted(left)
    return None if earliest == math.inf else int(earliest)


def test_an_upload_holds_checkpoints_only_once_some_are_pruned() -> None:
    config = make_config(
        total_timesteps=8 * 2048,
        checkpoints={"every_timesteps": 2048, "keep_last": 3},
        upload={"to": "s3://bucket/x"},
        recording={"episodes": 0},
    )
    plain = config.model_copy(update={"upload": None})
    one = estimate(plain, FACTS).disk.checkpoint_bytes
    disks = [estimate(each, FACTS).disk for each in (config, plain)]
    rows, without = (disk.plan_at_speed(0, None).rows for disk in disks)
    more = [a.others - b.others for a, b in zip(rows, without, strict=True)]
    assert [round(size / one) for size in more] == [0, 0, 1, 2]


@pytest.mark.parametrize("on_full", ["pause", "evict"])
def test_a_lake_counts_in_the_verdict_unless_it_evicts_and_its_limit_bounds_it(
    on_full: str,
) -> None:
    sizes = {}
    for name, lake in {
        "none": None,
        "all": {"on_full": on_full},
        "limited": {"on_full": on_full, "capacity_gb": 0.024},
    }.items():
        config = make_config(algorithm=PQN, lake=lake, total_timesteps=1_000_192)
        sizes[name] = estimate(config, MEASURED).disk
    none, whole, limited = (sizes[name] for name in ("none", "all", "limited"))
    assert whole.lake_bytes == 240 * 1_000_192
    assert limited.lake_bytes == 24_000_000
    assert whole.recommended_bytes - limited.recommended_bytes == pytest.approx(
        240 * 1_000_192 * 1.2 - 24_000_000,
        abs=240 * 256 + 2,  # what the last update adds
    )
    if on_full == "evict":
        assert none.minimum_bytes == whole.minimum_bytes == limited.minimum_bytes
    else:
        margin = checkpoint_files.LAKE_MARGIN_BYTES - checkpoint_files.STOP_MARGIN_BYTES
        for disk in (whole, limited):
            assert disk.minimum_bytes == none.minimum_bytes + disk.lake_needed_bytes
            assert disk.lake_bytes is not None
            assert 0 <= disk.lake_bytes + margin - disk.lake_needed_bytes <= 240 * 256


def test_a_lake_on_another_disk_is_not_in_the_plan(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")  # noqa: S108 - nothing is written there
    if not elsewhere.is_dir() or is_same_disk(elsewhere, tmp_path):
        pytest.skip("there is no other disk")
    lake = {"path": str(elsewhere / "lake")}
    config = make_config(algorithm=PQN, lake=lake, run_dir=str(tmp_path))
    assert estimate(config, MEASURED).disk.lake_bytes == 0


def test_a_plan_says_what_each_size_buys_and_when_a_smaller_disk_is_full() -> None:
    config = make_config(
        total_timesteps=100 * 2048,
        checkpoints={"every_timesteps": 2048, "keep_last": 3, "keep_every_timesteps": 4096},
    )
    footprint = estimate(config, FACTS)
    plan = footprint.disk.plan_at_speed(10**9, 2048 / 60)
    assert plan.total_bytes == footprint.disk.bytes + 10**9
    assert plan.minimum_bytes == footprint.disk.minimum_bytes + 10**9 == plan.rows[-1].needed
    assert plan.total_bytes <= plan.minimum_bytes
    assert plan.recommended_bytes == plan.minimum_bytes + calibration.DISK_MARGIN_BYTES
    one = footprint.disk.checkpoint_bytes
    kept = int(footprint.disk.parts[0].name.split()[0])
    assert plan.comfortable_bytes == plan.recommended_bytes + (100 - kept) * one
    assert [row.needed for row in plan.rows] == sorted(row.needed for row in plan.rows)
    tenth_less = plan.smaller[0]
    assert tenth_less.bytes - 10**9 == int(0.9 * footprint.disk.minimum_bytes)
    full_at = footprint.disk.full_at_timestep(tenth_less.bytes - 10**9)
    assert tenth_less.full_at == full_at
    assert full_at is not None
    assert tenth_less.after_s == pytest.approx(full_at / 2048 * 60)
    installed = replace(MACHINE, installation_bytes=10**9)

    def verdict(free: int) -> str:
        return disk_verdict(footprint, replace(installed, disk_free_bytes=free))

    assert [verdict(plan.recommended_bytes - i) for i in (0, 1)] == ["fits", "tight"]
    assert [verdict(plan.minimum_bytes - i) for i in (0, 1)] == ["tight", "does_not_fit"]


def test_logs_alone_can_fill_a_disk_late_in_a_long_run() -> None:
    config = make_config(total_timesteps=10**9)
    footprint = estimate(config, FACTS)
    free = 5 * footprint.disk.checkpoint_bytes + 10**8
    full_at = footprint.disk.full_at_timestep(free)
    assert full_at is not None
    assert 10**7 < full_at < 10**9


def test_a_large_disk_is_never_full() -> None:
    assert estimate(FIGHTER, FACTS).disk.full_at_timestep(10**12) is None


def test_events_with_curves_are_counted_up_to_a_thousand() -> None:
    """Each counts as many bytes as one event of this run: one more, then none more."""
    numbers = calibration.UPDATE_NUMBERS + FACTS.n_game_curves
    each = numbers * calibration.EVENT_NUMBER_BYTES
    sizes = []
    for updates in (998, 999, 1_000, 1_001, 1_002):
        config = make_config(
            total_timesteps=updates * 2048,
            episodes=None,
            logging={"monitor": False},
            recording={"episodes": 0},
            evaluation={"every_timesteps": 10**7},
            checkpoints={"every_timesteps": 10**7},
        )
        sizes.append(estimate(config, FACTS).disk.bytes)
    steps = [after - before for before, after in itertools.pairwise(sizes)]
    assert steps[0] == steps[1] == steps[2] + each
    assert steps[2] == steps[3]


PQN = {"name": "pqn", "n_steps": 32, "batch_size": 128}
DUEL = Path(__file__).parents[2] / "configs" / "duel_pqn_lake.yaml"
MEASURED = replace(FACTS, four_shades=True, lake_bytes_per_timestep=240.0)


def rows(facts: object = MEASURED, **values: object) -> tuple[GrowthRow, ...]:
    config = make_config(**values)
    assert isinstance(facts, type(MEASURED))
    return estimate(config, facts).disk.growth()


def test_a_run_that_keeps_no_timesteps_has_no_rows() -> None:
    assert rows() == ()
    assert rows(algorithm=PQN) == ()


def test_rows_ascend_to_the_end_of_the_run_and_grow_in_proportion() -> None:
    found = rows(algorithm=PQN, lake={}, total_timesteps=1_000_000)
    assert found[-1].timesteps >= 1_000_000
    assert [row.timesteps for row in found] == sorted(row.timesteps for row in found)
    for row in found:
        assert row.kept == row.timesteps
        assert row.on_disk == 240 * row.timesteps
        stack = np.zeros((4, 72, 80), np.uint8)  # and the next one; action, reward, done, timeout
        assert row.raw == row.kept * (2 * stack.nbytes + 8 + 3 * 4)


def test_without_a_measurement_nothing_is_said_of_the_disk() -> None:
    found = rows(FACTS, algorithm=PQN, lake={})
    assert {row.on_disk for row in found} == {None}


@pytest.mark.parametrize(
    ("limits", "kept", "on_disk"),
    [
        ({}, 1_000_000, 1_000_000),
        ({"capacity_transitions": 320_000}, 320_000, 400_000),  # two files of an eighth besides
        ({"capacity_gb": 0.024}, 100_000, 100_000),
        ({"capacity_transitions": 48_000, "capacity_gb": 0.024}, 48_000, 60_000),
        ({"capacity_transitions": 96_000, "capacity_gb": 0.024}, 96_000, 100_000),
    ],
)
def test_a_lake_grows_to_its_capacity_and_no_further(
    limits: dict[str, float], kept: int, on_disk: int
) -> None:
    values = {"algorithm": PQN, "lake": limits}
    last = rows(total_timesteps=1_000_192, **values)[-1]
    assert last.kept == pytest.approx(kept, rel=0.001)
    assert last.on_disk == pytest.approx(240 * on_disk, rel=0.001)
    config = make_config(total_timesteps=1_000_192, **values)
    assert lake_bytes(config, MEASURED, 1_000_192) == last.on_disk


def test_a_saved_replay_is_in_every_checkpoint_and_packed_as_the_pond_has_it() -> None:
    dqn = {"name": "dqn", "replay": {"capacity": 80_000}}
    saved = rows(algorithm=dqn, checkpoints={"save_replay_buffer": True})[-1]
    marked = rows(algorithm=dqn, lake={})[-1]
    half_grey = ObservationFormat(FramePacking((1, 72, 80), bits=4), 4)
    pond = pond_layout(half_grey, capacity=80_000, n_envs=8, n_actions=9)
    assert saved.kept == 80_000
    assert saved.packed == pytest.approx(total_bytes(pond), rel=0.001)
    assert saved.checkpoints == pytest.approx(marked.checkpoints + 4 * total_bytes(pond))
    assert saved.on_disk == 0


def test_a_lake_that_outgrows_the_disk_is_told_and_the_fix_makes_it_fit(
    situation: Callable[..., Situation],
) -> None:
    values = {
        "algorithm": PQN,
        "lake": {},
        "total_timesteps": 100_000_000,
        "facts__lake_bytes_per_timestep": 240.0,
    }
    assert (
        lake_outgrows_disk(situation(**values, machine__disk_free_bytes=100 * GIB)).finding is None
    )
    finding = lake_outgrows_disk(situation(**values, machine__disk_free_bytes=10 * GIB)).finding
    assert finding is not None
    assert finding.severity == "error"
    assert finding.fix is not None
    assert finding.key == "lake.capacity_gb"
    values["lake"] = {"capacity_gb": finding.fix.value}
    assert (
        lake_outgrows_disk(situation(**values, machine__disk_free_bytes=10 * GIB)).finding is None
    )


def test_the_writer_of_a_lake_is_a_part_of_ram() -> None:
    without = estimate(make_config(algorithm=PQN, lake=None), FACTS).ram.peak
    with_lake = estimate(make_config(algorithm=PQN, lake={}), FACTS).ram.peak
    parts = {part.name: part.bytes for part in with_lake.parts}
    assert with_lake.bytes - without.bytes == parts["Lake's writer"]


def test_the_probe_is_repeatable_and_says_what_a_lake_of_this_game_takes() -> None:
    config, game = load_config(DUEL), load_game("duel")
    first, second = (probe_lake(config, game, most_frames=8 * 400) for _ in range(2))
    assert first == second
    assert first.timesteps == 400
    assert 50 < first.bytes_per_timestep < 600  # 2,880 packed; docs/research/replay.md measured 237


def test_each_compression_level_is_measured_on_the_same_timesteps() -> None:
    config, game = load_config(DUEL), load_game("duel")
    levels = probe_lake(config, game, most_frames=8 * 200, levels=(1, 9, 15)).levels
    assert [cost.level for cost in levels] == [1, 9, 15]
    sizes = [cost.bytes_per_timestep for cost in levels]
    assert sizes[0] > sizes[2]
    assert sizes[1] == pytest.approx(
        probe_lake(config, game, most_frames=8 * 200).bytes_per_timestep, rel=0.1
    )
    assert all(cost.seconds_per_million > 0 for cost in levels)


@pytest.mark.slow
def test_the_size_of_a_timestep_is_that_of_the_lake_that_exists(tmp_path: Path) -> None:
    game = load_game("duel")
    config = load_config(DUEL, [f"run_dir={tmp_path / 'run'}"])
    before = measured_lake(config, game)
    assert before is not None
    assert before == probe_lake(config, game, most_frames=8_000)
    write_random_play(config, game, tmp_path / "run" / "lake", most_frames=8 * 300)
    found = measured_lake(config, game)
    assert found is not None
    assert found.timesteps == 300
    files = list((tmp_path / "run" / "lake").glob("*.seg*"))
    assert 300 * found.bytes_per_timestep == pytest.approx(sum(f.stat().st_size for f in files))
    assert measured_lake(load_config(DUEL, ["lake=null"]), game) is None


def test_another_compression_level_is_an_error_where_a_lake_exists(tmp_path: Path) -> None:
    game = load_game("duel")
    here = f"run_dir={tmp_path / 'run'}"
    three = load_config(DUEL, [here, "lake.compression_level=3"])
    lake = write_random_play(three, game, tmp_path / "run" / "lake", most_frames=8 * 200)
    assert lake.schema.level == 3
    preflight(three, game, MACHINE)
    nine = load_config(DUEL, [here])
    with pytest.raises(
        UsageError, match=r"compression_level: found 9, but .* with level 3"
    ) as error:
        preflight(nine, game, MACHINE)
    assert "write 3, or name another folder with lake.path" in str(error.value)
    with pytest.raises(LakeError, match=r"compression_level: found 9, but .* with level 3"):
        Lake.create(lake.path, replace(lake.schema, level=9))


def test_the_training_measures_the_lake_that_it_is_going_to_write(tmp_path: Path) -> None:
    config, reports = load_config(DUEL, [f"run_dir={tmp_path / 'run'}"]), list[PreflightReport]()
    check_new_run(config, force=True, show=reports.append)
    check_fit(config, load_game(config.game), force=True, show=reports.append)
    measured, without = (report.footprint.disk.lake_bytes for report in reports)
    assert measured is not None
    assert measured > 0
    assert without is None
    assert reports[0].plan.compression_saved is not None
    assert 0.9 < reports[0].plan.compression_saved < 1
    assert "less than whole frame stacks" in text_of(reports[0])


def test_the_table_is_printed_with_and_without_a_measurement() -> None:
    config, game = load_config(DUEL), load_game("duel")
    machine = Machine(**vars(MACHINE))
    assert "not measured" in text_of(preflight(config, game, machine))
    probe = probe_lake(config, game, most_frames=8 * 200)
    report = preflight(config, game, machine, lake=probe)
    text = text_of(report)
    assert "as SB3 holds them" in text
    assert "not measured" not in text
    assert len(report.to_json()["growth"]) == len(report.growth) == 5
    assert report.table() is not None


def test_the_plan_counts_the_logs_that_are_turned_on() -> None:
    def logs(**logging: Any) -> int:
        config = make_config(logging={"tensorboard": False, "monitor": False, **logging})
        return next(p.bytes for p in estimate(config, FACTS).disk.parts if "events" in p.name)

    none, updates, evaluations = logs(), 489, 20  # of a million timesteps
    numbers = updates * (21 + FACTS.n_game_curves)
    assert logs(tensorboard=True) - none == pytest.approx(57 * numbers, rel=0.02)
    assert logs(csv=True) - none == pytest.approx(10 * (numbers + evaluations * 40), rel=0.15)
    assert logs(wandb={"project": "x"}) - none > 85 * numbers
    episodes = updates * 2048 // FACTS.episode_timesteps
    assert logs(monitor=True) - none == 60 * episodes
