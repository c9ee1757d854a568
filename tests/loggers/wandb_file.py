"""Reading the file of wandb's offline mode, without wandb's own writer.

Its frame is LevelDB's log format (github.com/google/leveldb, doc/log_format.md) after a header of
seven bytes; each record is a protocol buffer of wandb's.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_BLOCK, _HEAD, _FULL, _FIRST, _LAST = 32_768, 7, 1, 2, 4


def record_bytes(path: Path) -> Iterator[bytes]:
    data, at, joined = path.read_bytes(), _HEAD, b""
    assert data[:4] == b":W&B"
    while at + _HEAD <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEAD:
            at += left
            continue
        checksum, length, kind = struct.unpack_from("<IHB", data, at)
        piece = data[at + _HEAD : at + _HEAD + length]
        assert zlib.crc32(bytes([kind]) + piece) == checksum
        at += _HEAD + length
        joined = piece if kind in (_FULL, _FIRST) else joined + piece
        if kind in (_FULL, _LAST):
            yield joined


@dataclass
class WandbFile:
    """Attributes:
    run: record of the run.
    rows: each step's values, without those that begin with `_`.
    metrics: x axis of each metric.
    """

    run: Any = None
    rows: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    metrics: dict[str, str] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)


def read_wandb_file(path: Path) -> WandbFile:
    from wandb.proto.wandb_internal_pb2 import Record

    found = WandbFile()
    for data in record_bytes(path):
        record = Record.FromString(data)
        match record.WhichOneof("record_type"):
            case "run":
                found.run = record.run
            case "history":
                items = _items(record.history.item)
                values = {k: v for k, v in items.items() if not k.startswith("_")}
                found.rows.append((record.history.step.num, values))
            case "metric":
                metric = record.metric
                found.metrics[metric.name or metric.glob_name] = metric.step_metric
            case "summary":
                found.summary |= _items(record.summary.update)
    return found


def _items(items: Any) -> dict[str, Any]:
    return {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


def offline_files(run_dir: Path) -> list[Path]:
    """The files of all sessions, oldest first."""
    return sorted(run_dir.glob("wandb/offline-run-*/run-*.wandb"), key=lambda p: p.stat().st_mtime)
