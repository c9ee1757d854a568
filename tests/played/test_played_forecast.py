"""The forecast of played episodes, beside what they take."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from game_rl.algorithms.demonstrations import Demonstrations
from game_rl.config.schema import RunConfig
from game_rl.errors import UsageError
from game_rl.files.durable_files import folder_bytes
from game_rl.files.run_dir import RunDir
from game_rl.played.played_files import PlayedFeature, copy_files, played_size
from game_rl.played.replayed_episode import ReplayedEpisode
from game_rl.preflight.footprint import estimate
from tests.played.recorded import FRAME_SKIP, GAME, record
from tests.preflight.conftest import FACTS, make_config


def run(folder: Path, run_dir: Path) -> RunConfig:
    return make_config(
        run_dir=str(run_dir),
        env={"frame_skip": FRAME_SKIP},
        algorithm={"learn_from": {"played": {"episodes": str(folder)}}},
    )


def test_memory_and_disk_are_those_of_the_packed_frames_and_the_files(tmp_path: Path) -> None:
    files = record(tmp_path / "mine", 2, most=9)
    config = run(tmp_path / "mine", tmp_path / "run")
    size = played_size(config, GAME)
    assert size.rows == 2 * 10
    assert size.file_bytes == folder_bytes(tmp_path / "mine")
    planned = replace(FACTS, played=size).planned(config)
    (memory,) = PlayedFeature().memory(planned)
    form = planned.observation_format
    episodes = [
        ReplayedEpisode(
            np.zeros((10, form.row_bytes), np.uint8),
            np.zeros(9, np.int64),
            np.zeros(9, np.float32),
            0.0,
            terminated=True,
            ending="",
            success=None,
        )
        for _ in files
    ]
    kept = Demonstrations(
        episodes, form, n_actions=planned.n_actions, gamma=0.9, n_step=1, seed=0, learned=None
    )
    assert memory.bytes == kept._store.nbytes
    parts = {p.name: p.bytes for p in estimate(config, replace(FACTS, played=size)).disk.parts}
    assert parts["played episodes"] == size.file_bytes


def test_a_run_that_has_copies_does_not_need_the_files(tmp_path: Path) -> None:
    files = record(tmp_path / "mine", 2, most=3)
    config = run(tmp_path / "mine", tmp_path / "run")
    size = played_size(config, GAME)
    (tmp_path / "run").mkdir()
    copy_files(files, RunDir(tmp_path / "run"))
    for file in files:
        file.unlink()
    assert played_size(config, GAME) == size
    with pytest.raises(UsageError, match="there is no file"):
        played_size(run(tmp_path / "mine", tmp_path / "new"), GAME)
