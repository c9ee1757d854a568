"""Checkpoints that need a Lake, of noise: a segment is its bytes, its own sha256, and an end."""

import hashlib
import json
from pathlib import Path

import numpy as np

from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.lake.mark import Mark, MarkedSegment
from tests.storage.runs import ROM

_END = b"the end."


def add_lake_checkpoint(
    run_dir: RunDir, timesteps: int, *, segment_bytes: int, n_bytes: int
) -> None:
    """A checkpoint whose mark names segments of so many bytes together."""
    run_dir.lake.mkdir(exist_ok=True)
    (run_dir.lake / "lake.json").write_text("{}", encoding="utf-8")
    rng = np.random.default_rng(timesteps)
    segments = []
    for number in range(-(-n_bytes // segment_bytes)):
        size = min(segment_bytes, n_bytes - number * segment_bytes)
        path = run_dir.lake / f"stream.{number:08d}-{number:08d}-{timesteps:06x}.segment"
        segments.append(_segment(path, rng.bytes(size - 40)))
    mark = Mark(tuple(segments), {"stream/0": timesteps})
    config = RunConfig(
        game="duel", total_timesteps=100_000, run_dir=run_dir.root, lake=LakeConfig()
    )
    state = {
        "num_timesteps": timesteps,
        "best": None,
        "events_bytes": 0,
        "rom_sha256": ROM,
        "config": config.model_dump(mode="json"),
    }
    play = {"log": {"file_bytes": {}}, "evaluations": "", "evaluation_episodes": ""}
    run_dir.checkpoints.mkdir(exist_ok=True)
    write_files(
        run_dir.checkpoint(timesteps),
        [
            ("state.json", [json.dumps(state).encode()]),
            ("play.json", [json.dumps(play).encode()]),
            ("lake.json", [json.dumps({"stream": "stream", "mark": mark.to_json()}).encode()]),
        ],
    )


def _segment(path: Path, content: bytes) -> MarkedSegment:
    digest = hashlib.sha256(content)
    path.write_bytes(content + digest.digest() + _END)
    return MarkedSegment(path.name, digest.hexdigest(), len(content) + 40, 1)
