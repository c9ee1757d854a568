"""Many processes write one Lake while others read it, and are killed."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.view import EvictedError
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds

ROOT = Path(__file__).parents[2]

# What a writer of seed s writes is known to who knows s. A line is printed for every seal.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from game_rl.lake.lake import Capacity, Lake
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play
path, seed, steps, capacity = sys.argv[1], *map(int, sys.argv[2:])
lake = Lake.create(Path(path), SCHEMA, capacity=Capacity(transitions=capacity))
play = Play(SCHEMA, np.random.default_rng(seed), 2)
writer = LakeWriter(lake, f"w{seed}", n_envs=2, segment_bytes=700)
for step in range(1, steps + 1):
    play.step(writer)
    if step % 20 == 0:
        assert writer.seal()
        print(step, flush=True)
writer.close()
"""


def start(path: Path, seed: int, steps: int, capacity: int = 10**9) -> subprocess.Popen[str]:
    arguments = [str(path), str(seed), str(steps), str(capacity)]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


class Nowhere:
    """A writer that keeps nothing."""

    def begin(self, *_: object) -> None: ...

    def append(self, **_: object) -> None: ...


def what_a_writer_writes(seed: int, steps: int) -> dict[str, list]:
    play = Play(SCHEMA, np.random.default_rng(seed), 2)
    play.steps(Nowhere(), steps)  # type: ignore[arg-type]
    return {f"w{seed}/{env}": rows for env, rows in enumerate(play.stored)}


def test_writers_in_many_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    writers = [start(tmp_path, seed, 60) for seed in range(3)]
    for writer in writers:
        assert writer.communicate()[0].split() == ["20", "40", "60"]
        assert writer.returncode == 0
    sequences: dict[str, list] = {}
    for seed in range(3):
        sequences |= what_a_writer_writes(seed, 60)
    found = assert_view_holds(Lake.open(tmp_path).view(), sequences, n_step=3)
    assert found == {(sequence, at) for sequence in sequences for at in range(60)}


def test_a_reader_beside_a_writer_that_evicts_sees_only_what_was_written(tmp_path: Path) -> None:
    writer = start(tmp_path, 1, 600, capacity=100)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "20\n"
    sequences = what_a_writer_writes(1, 600)
    stacks = {row.stack.tobytes() for rows in sequences.values() for row in rows}
    rng = np.random.default_rng(0)
    lake = Lake.open(tmp_path)
    n_views = 0
    while writer.poll() is None or n_views < 3:
        n_views += 1
        try:
            batch = Sampler(lake.view(), n_step=3).sample(rng, 16)
        except EvictedError:
            continue
        assert {stack.tobytes() for stack in batch.stacks} <= stacks
    writer.communicate()
    assert writer.returncode == 0
    found = assert_view_holds(lake.view(), sequences)
    assert found <= {(sequence, at) for sequence in sequences for at in range(500, 600)}
    assert len(found) > 0


def test_a_killed_writer_loses_nothing_that_it_had_sealed(tmp_path: Path) -> None:
    chance = random.Random(0)
    for seed in range(5):
        path = tmp_path / f"{seed}"
        writer = start(path, seed, 100_000)
        assert writer.stdout is not None
        sealed = [writer.stdout.readline() for _ in range(chance.randint(1, 12))]
        writer.send_signal(signal.SIGKILL)
        sealed += writer.communicate()[0].splitlines()
        steps = int(sealed[-1])
        lake = Lake.open(path)
        sequences = what_a_writer_writes(seed, steps + 1_000)
        with LakeWriter(lake, f"w{seed}", n_envs=2):
            found = assert_view_holds(lake.view(), sequences)
        assert {(sequence, at) for sequence in sequences for at in range(steps)} <= found
        assert {file.suffix for file in path.iterdir()} == {".json", ".segment"}
