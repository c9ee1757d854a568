"""What learning from others' Lakes adds to a forecast."""

from dataclasses import replace
from typing import Any

from game_rl.lake.lake_reader import TABLE_BYTES
from game_rl.lake.origin import LakeRows
from game_rl.preflight.footprint import estimate
from tests.preflight.conftest import FACTS, make_config

LEARNER: dict[str, Any] = {"name": "dqn", "learn_from": {"lakes": ["others"], "cache_mb": 1}}


def test_a_lake_of_ten_times_the_rows_takes_disk_and_no_memory() -> None:
    config = make_config(algorithm=LEARNER)
    small, large = (
        estimate(config, replace(FACTS, learned_lakes=LakeRows(60 * n, n)))
        for n in (100_000, 1_000_000)
    )
    assert large.ram.peak.bytes == small.ram.peak.bytes
    assert large.disk.bytes == small.disk.bytes  # what is left when the run has ended
    assert large.disk.momentary_bytes - small.disk.momentary_bytes == 3 * 900_000 * TABLE_BYTES
