"""What the last release wrote of evaluations is read as it meant it."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from game_rl.checkpoints.checkpoint import Checkpoint, save_checkpoint
from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.checkpoints.checkpoint_folder import best_of
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState, TrainingState
from game_rl.checkpoints.evaluation_files import (
    EpisodeLists,
    append_row,
    read_episodes,
    restore_evaluations,
    was_deterministic,
    with_ways,
    write_episodes,
)
from game_rl.files.run_dir import RunDir
from tests.callbacks.conftest import FIXED_STATE
from tests.checkpoints.test_checkpoint import tiny_ppo

OLD_TABLE = """\
timesteps,episodes,mean_reward,std_reward,success_rate,mean_length,is_best
64,2,1.5,0.5,0.5,25.0,True
128,2,2.5,0.5,,25.0,True
"""
OLD_CONFIGS = [({"evaluation": {"deterministic": way}}, way) for way in (True, False)]


@pytest.mark.parametrize(("config", "way"), [*OLD_CONFIGS, ({}, True)])
def test_an_old_table_gets_the_way_of_its_config(config: dict[str, object], way: bool) -> None:
    table = with_ways(OLD_TABLE, deterministic=was_deterministic(config))
    old = list(csv.DictReader(io.StringIO(OLD_TABLE)))
    found = list(csv.DictReader(io.StringIO(table)))
    assert found == [row | {"deterministic": str(way)} for row in old]
    assert with_ways(table, deterministic=not way) == table
    assert with_ways("", deterministic=way) == ""


def test_new_rows_follow_those_of_an_old_table(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    table = with_ways(OLD_TABLE, deterministic=False)
    restore_evaluations(run_dir, table, b"")
    row = dict.fromkeys(table.splitlines()[0].split(","), "7")
    append_row(run_dir, row)
    with run_dir.evaluations.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [found["deterministic"] for found in rows] == ["False", "False", "7"]


@pytest.mark.parametrize(("config", "way"), OLD_CONFIGS)
def test_an_old_best_played_as_its_config_says(config: dict[str, object], way: bool) -> None:
    state = FIXED_STATE.model_copy(update={"config": config})
    document = json.loads(state.model_dump_json()) | {"best": {"timesteps": 8, "mean_reward": 1.0}}
    found = CheckpointState.model_validate_json(json.dumps(document))
    assert found.best == Best(timesteps=8, mean_reward=1.0, deterministic=way)
    assert CheckpointState.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("way", [True, False])
def test_the_best_of_a_run_that_ended_with_a_due_evaluation_is_in_the_table(
    tmp_path: Path, way: bool
) -> None:
    run_dir = RunDir(tmp_path)
    state = FIXED_STATE.model_copy(
        update={
            "num_timesteps": 128,
            "evaluation_due": True,
            "config": {"evaluation": {"deterministic": "auto"}},
        }
    )
    run_dir.checkpoints.mkdir()
    files = iter([("state.json", (state.model_dump_json().encode(),))])
    write_files(run_dir.checkpoint(128), files)
    for each in (True, False):
        row = {"timesteps": 128, "mean_reward": 2.5, "is_best": each == way, "deterministic": each}
        append_row(run_dir, row)
    newest = Checkpoint(run_dir.checkpoint(128))
    assert best_of(run_dir, newest) == Best(timesteps=128, mean_reward=2.5, deterministic=way)


def test_the_state_of_an_old_checkpoint_has_no_episodes(tmp_path: Path) -> None:
    run_dir, model = RunDir(tmp_path), tiny_ppo()
    model.learn(8)
    run_dir.evaluation_episodes.write_bytes(b"not in an old one")
    save_checkpoint(tmp_path / "checkpoint", model, FIXED_STATE, None, run_dir)
    document = json.loads((tmp_path / "checkpoint" / "play.json").read_text(encoding="utf-8"))
    assert document.pop("evaluation_episodes")
    assert TrainingState.model_validate_json(json.dumps(document)).evaluation_episodes == b""


@pytest.mark.parametrize("knows_success", [True, False])
def test_a_file_that_is_read_and_written_again_has_the_same_bytes(
    tmp_path: Path, knows_success: bool
) -> None:
    run_dir, rng = RunDir(tmp_path), np.random.default_rng(0)
    lists = EpisodeLists(
        timesteps=[64, 128],
        results=[list(rng.random(3, np.float32)) for _ in range(2)],
        lengths=[list(rng.integers(1, 9, 3, np.int32)) for _ in range(2)],
        successes=[[True, False, True]] * 2 if knows_success else [],
    )
    write_episodes(run_dir, lists)
    before = run_dir.evaluation_episodes.read_bytes()
    write_episodes(run_dir, read_episodes(run_dir))
    assert run_dir.evaluation_episodes.read_bytes() == before
    restore_evaluations(run_dir, "", b"")
    assert read_episodes(run_dir) == EpisodeLists()
    restore_evaluations(run_dir, "", before)
    assert run_dir.evaluation_episodes.read_bytes() == before


def test_successes_that_are_not_those_of_all_episodes_are_left_out(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    write_episodes(run_dir, EpisodeLists([8], [[1.0, 2.0]], [[5, 5]], [[True]]))
    with np.load(run_dir.evaluation_episodes) as found:
        assert sorted(found) == ["ep_lengths", "results", "timesteps"]
