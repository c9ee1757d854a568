from pathlib import Path

import numpy as np
import pytest

from game_rl.lake.lake import Lake
from game_rl.lake.writer import LakeWriter
from tests.faults.known_play import SCHEMA, KnownPlay
from tests.faults.lake_faults import N_ENVS, all_trials


@pytest.mark.slow
def test_a_lake_whose_writer_is_killed_or_whose_files_rot_serves_nothing_wrong() -> None:
    tallies = all_trials(kills=8, flips=5, seed=1)
    assert [tally.problems for tally in tallies.values()] == [[]] * 7
    assert tallies["kill"].checked > 100
    assert [tally.trials for tally in tallies.values()] == [8, 8, 5, 5, 5, 5, 5]


def test_a_transition_of_another_play_is_called_wrong(tmp_path: Path) -> None:
    lake, play = Lake.create(tmp_path, SCHEMA), KnownPlay(1)
    at = np.zeros(N_ENVS, np.int64)
    with LakeWriter(lake, "w", n_envs=N_ENVS) as writer:
        for _ in range(60):
            play.write(writer, at)
    n = 60 * N_ENVS
    assert play.wrong(lake.view(), {}) == (n, 0)
    assert KnownPlay(2).wrong(lake.view(), {}) == (n, n)
    # an episode that began at 30 has no earlier frames, so the 3 stacks after its first are wrong
    starts = next(i for i in range(30, 60) if all(not play.ending(0, i + j) for j in range(-3, 3)))
    assert play.wrong(lake.view(), {0: {starts}}) == (n, SCHEMA.frame_stack - 1)
