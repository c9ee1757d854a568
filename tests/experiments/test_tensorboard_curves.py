from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from game_rl.experiments.tensorboard_curves import crc32c, event_file


def test_the_checksum_is_that_of_the_standard() -> None:
    """RFC 3720, B.4: 32 bytes of zeros, of ones, ascending; and the usual check string."""
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    values = {"population/best": 0.75, "algorithm.learning_rate/03": 2.5e-4}
    for step in (16_384, 300_000_000):
        path = tmp_path / f"events.out.tfevents.{step:010d}.population"
        path.write_bytes(event_file(values, step=step, wall_time_s=1_000.5))
    found = EventAccumulator(str(tmp_path))
    found.Reload()
    assert set(found.Tags()["scalars"]) == set(values)
    for tag, value in values.items():
        points = found.Scalars(tag)
        assert [p.step for p in points] == [16_384, 300_000_000]
        assert {p.wall_time for p in points} == {1_000.5}
        assert points[0].value == pytest.approx(value, rel=1e-7)
