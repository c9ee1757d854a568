"""An experiment's TensorBoard curves, written without TensorBoard.

A file is a sequence of records: length (uint64), its checksum, the data, its checksum; little
endian.
The data is a protocol buffer `Event` (tensorboard/compat/proto/event.proto, summary.proto); the
checksum is CRC-32C (RFC 3720), rotated right by 15 bits, plus 0xa282ead8 (TensorFlow's
tsl/lib/io/record_writer.cc).
"""

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, median, pstdev

from game_rl.config.experiments.experiment import ExperimentConfig
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import GenerationRecord
from game_rl.files.durable_files import write_atomic


def write_curves(plan: Plan, record: GenerationRecord) -> None:
    """Write two files for the generation.

    The step of one is a member's timesteps. The step of the other, in `over_frames`, is the
    emulator frames of all runs.
    """
    folder = plan.folder.curves
    config = plan.config
    values = _fitness(record, config)
    for member in record.members:
        for key, value in member.values.items():  # of a schedule, its start
            number = value["start"] if isinstance(value, dict) else value
            values[f"{key}/{member.number:02d}"] = number
    steps = {folder: record.timesteps}
    frames = plan.frames_of(record.timesteps_of_all, record.waited_frames_of_all)
    if frames is not None:
        steps[folder / "over_frames"] = frames
    for place, step in steps.items():
        place.mkdir(exist_ok=True)
        path = place / f"events.out.tfevents.{record.generation:010d}.population"
        write_atomic(path, event_file(values, step=step, wall_time_s=time.time()))


def remove_curves(folder: Path, *, after: int) -> None:
    """Remove the curves of the generations after `after`."""
    for path in folder.rglob("events.out.tfevents.*.population"):
        if int(path.name.split(".")[3]) > after:
            path.unlink()


def _fitness(record: GenerationRecord, config: ExperimentConfig) -> dict[str, float]:
    """Return best, median and spread (standard deviation) over members with finite weights."""
    found = [m.fitness for m in record.members if m.fitness is not None]
    values = [fitness.value for fitness in found]
    place = config.kind
    metric = config.fitness.metric
    extra = record.extra_run
    own = {}
    if extra is not None and extra.fitness is not None:  # such as `learner` of `learner.g0002`
        own[f"{place}/{metric}_{extra.folder.partition('.')[0]}"] = extra.fitness.value
    # the shares of the same observations on which two runs act differently, means over pairs
    differing = {"members": record.differing_members, "learner": record.differing_learner}
    return {
        **own,
        f"{place}/{metric}_best": max(values),
        f"{place}/{metric}_median": median(values),
        f"{place}/{metric}_spread": pstdev(values),
        f"{place}/mean_reward": fmean(fitness.mean_reward for fitness in found),
        f"{place}/copies": len(record.copies),
        f"{place}/timesteps_of_all": record.timesteps_of_all or 0,
        **{f"{place}/differing_actions_{k}": v for k, v in differing.items() if v is not None},
    }


_POLYNOMIAL = 0x82F63B78  # CRC-32C, its bits reversed
_MASK_DELTA = 0xA282EAD8


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)  # noqa: PLW2901
        table.append(byte)
    return table


_TABLE = _table()


def event_file(values: Mapping[str, float], *, step: int, wall_time_s: float) -> bytes:
    """Return a complete file with one number for each tag at one step."""
    header = _double(1, wall_time_s) + _bytes(3, b"brain.Event:2")
    summary = b"".join(
        _bytes(1, _bytes(1, tag.encode()) + _key(2, 5) + struct.pack("<f", value))
        for tag, value in values.items()
    )
    event = _double(1, wall_time_s) + _key(2, 0) + _varint(step) + _bytes(5, summary)
    return _record(header) + _record(event)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _double(number: int, value: float) -> bytes:
    return _key(number, 1) + struct.pack("<d", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, 2) + _varint(len(value)) + value
