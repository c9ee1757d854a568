"""What a run keeps on disk, against counting it by hand and against a real Lake."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from game_rl.buffers.layout import pond_layout, total_bytes
from game_rl.config.loader import load_config
from game_rl.games.definition import load_game
from game_rl.measure.random_play import probe_lake
from game_rl.preflight.disk import GrowthRow, growth_rows, lake_bytes
from game_rl.preflight.estimate import Situation, estimate
from game_rl.preflight.findings import lake_outgrows_disk
from game_rl.preflight.preflight import preflight
from game_rl.preflight.preflight_report import render_report
from game_rl.system.machine import Machine
from game_rl.system.units import GIB
from tests.preflight.conftest import FACTS, MACHINE, make_config
from tests.preflight.test_report import text_of

PQN = {"name": "pqn", "n_steps": 32, "batch_size": 128}
DUEL = Path(__file__).parents[2] / "configs" / "duel_pqn_lake.yaml"
MEASURED = replace(FACTS, four_shades=True, lake_bytes_per_timestep=240.0)


def rows(facts: object = MEASURED, **values: object) -> tuple[GrowthRow, ...]:
    config = make_config(**values)
    assert isinstance(facts, type(MEASURED))
    return growth_rows(config, facts, estimate(config, facts).training)


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
    pond = pond_layout(capacity=80_000, n_envs=8, frame_bytes=2880, frame_stack=4, n_actions=9)
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
    assert lake_outgrows_disk(situation(**values, machine__disk_free_bytes=100 * GIB)) is None
    finding = lake_outgrows_disk(situation(**values, machine__disk_free_bytes=10 * GIB))
    assert finding is not None
    assert finding.severity == "warning"
    assert finding.fix is not None
    assert finding.key == "lake.capacity_gb"
    values["lake"] = {"capacity_gb": finding.fix.value}
    assert lake_outgrows_disk(situation(**values, machine__disk_free_bytes=10 * GIB)) is None


def test_the_writer_of_a_lake_is_a_part_of_ram() -> None:
    without, with_lake = (
        estimate(make_config(algorithm=PQN, lake=lake), FACTS).ram.peak for lake in (None, {})
    )
    parts = {part.name: part.bytes for part in with_lake.parts}
    assert with_lake.bytes - without.bytes == parts["Lake's writer"]


def test_the_probe_is_repeatable_and_says_what_a_lake_of_this_game_takes() -> None:
    config, game = load_config(DUEL), load_game("duel")
    first, second = (probe_lake(config, game, most_frames=8 * 400) for _ in range(2))
    assert first == second
    assert first.timesteps == 400
    assert 50 < first.bytes_per_timestep < 600  # 2,880 packed; docs/replay.md measured 237


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
    assert render_report(report) is not None
