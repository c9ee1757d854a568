"""Many processes write one Lake while others read it, and are killed."""

import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.upkeep import compact
from game_rl.lake.view import EvictedError
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds

ROOT = Path(__file__).parents[2]

# What a writer of seed s writes is known to who knows s. A line is printed for every seal.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
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
    return started(WRITER, path, seed, steps, capacity)


# The machine may hold a creator up just before it writes.
CREATOR = """
import io, sys
from dataclasses import replace
from pathlib import Path
from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from tests.lake.plays import SCHEMA
path, level, is_held = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "held"
real = io.open
def held_open(file, mode="r", *arguments, **keywords):
    if "w" in mode:
        print("held", flush=True)
        sys.stdin.readline()
    return real(file, mode, *arguments, **keywords)
io.open = held_open if is_held else real
try:
    print(Lake.create(path, replace(SCHEMA, level=level)).schema.level, flush=True)
except LakeError:
    print("refused", flush=True)
"""


def started(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


class Nowhere:
    """A writer that keeps nothing."""

    def append(self, **_: object) -> None: ...


def what_a_writer_writes(seed: int, steps: int) -> dict[str, list]:
    play = Play(SCHEMA, np.random.default_rng(seed), 2)
    play.steps(Nowhere(), steps)  # type: ignore[arg-type]
    return {f"w{seed}/{env}": rows for env, rows in enumerate(play.stored)}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_one_of_two_creators_decides_what_the_rows_look_like(tmp_path: Path) -> None:
    first = started(CREATOR, tmp_path, 1, "held")
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"
    second = started(CREATOR, tmp_path, 2, "free")
    select.select([second.stdout], [], [], 2)  # it either waits for the first one or has created
    told = [first.communicate("\n")[0].split()[-1], second.communicate()[0].split()[-1]]
    decided = str(Lake.open(tmp_path).schema.level)
    assert sorted(told) == sorted([decided, "refused"])
    assert [path.name for path in tmp_path.iterdir()] == ["lake.json"]


@pytest.mark.slow
def test_many_creators_at_once_agree(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    creators = [started(CREATOR, folder, level, "free") for level in range(1, 5)]
    told = [creator.communicate()[0].strip() for creator in creators]
    decided = str(Lake.open(folder).schema.level)
    assert sorted(told) == sorted([decided, *["refused"] * 3])


def test_nothing_is_compacted_while_a_process_writes_and_nothing_written_meanwhile(
    tmp_path: Path,
) -> None:
    writer = start(tmp_path, 1, 100_000)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "20\n"
    lake = Lake.open(tmp_path)
    with pytest.raises(LakeError, match="is being written or compacted by another process"):
        compact(lake)
    with LakeWriter(lake, "other", n_envs=1):  # writers stand beside each other
        pass
    mark = lake.pin("kept", "w1")
    writer.send_signal(signal.SIGKILL)  # the kernel lets go of what it held
    writer.communicate()
    before = lake.view(mark)
    with LakeWriter(lake, "w1", n_envs=2):
        pass
    n = len(lake.view())
    compact(lake)
    assert len(lake.view()) == n
    assert len(lake.view(mark)) == len(before)


def test_while_a_process_compacts_nobody_begins_to_write(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    with LakeWriter(lake, "w", n_envs=1) as writer:
        Play(SCHEMA, np.random.default_rng(0)).steps(writer, 9)
    mark = lake.pin("before")
    compacting = started(
        "import sys; from pathlib import Path; from game_rl.lake.lake import exclusive_lock\n"
        "with exclusive_lock(Path(sys.argv[1])): print('alone', flush=True); sys.stdin.readline()",
        tmp_path,
    )
    assert compacting.stdout is not None
    assert compacting.stdout.readline() == "alone\n"
    for act in (
        lambda: LakeWriter(lake, "w", n_envs=1),
        lambda: lake.resume(mark),
        lambda: lake.pin("now"),
        lambda: lake.delete_stream("w"),
        lambda: compact(lake),
    ):
        with pytest.raises(LakeError, match=r"is being (written or )?compacted"):
            act()
    assert len(lake.view()) == 9  # readers are not disturbed
    compacting.communicate("\n")
    lake.resume(mark)
    LakeWriter(lake, "w", n_envs=1).close()
    assert len(lake.view()) == 9


def test_rows_are_seen_by_others_after_so_many_without_waiting_for_a_checkpoint(
    tmp_path: Path,
) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    reader = started(
        "import sys; from pathlib import Path; from game_rl.lake.lake import Lake\n"
        "for line in sys.stdin: print(len(Lake.open(Path(sys.argv[1])).view()), flush=True)",
        tmp_path,
    )
    assert reader.stdin is not None
    assert reader.stdout is not None
    play, seen = Play(SCHEMA, np.random.default_rng(0), 2), []
    with LakeWriter(lake, "w", n_envs=2, seal_every_transitions=10) as writer:
        for _ in range(12):
            play.step(writer)
            writer._waiting.join()  # the thread has sealed, if it was asked to
            reader.stdin.write("\n")
            reader.stdin.flush()
            seen.append(int(reader.stdout.readline()))
    reader.communicate()
    assert seen == [0, 0, 0, 0, 10, 10, 10, 10, 10, 20, 20, 20]
