import sys
import textwrap
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from benchmarks.memory import WORKS, WorkerWatch, measure, scaled
from benchmarks.trainings.work import Work

MIB = 2**20
TREE = textwrap.dedent("""
    import multiprocessing
    import sys

    def hold(connection):
        data = bytearray(64 * 2**20)
        data[::4096] = bytes(len(data[::4096]))  # every page written, so that it is there
        connection.send(len(data))
        connection.recv()

    if __name__ == "__main__":
        context = multiprocessing.get_context("forkserver")
        pipes = [context.Pipe() for _ in range(3)]
        for _, theirs in pipes:
            context.Process(target=hold, args=(theirs,), daemon=True).start()
        for ours, _ in pipes:
            ours.recv()
        print("ready", flush=True)
        sys.stdin.read()
""")


def test_the_workers_of_a_tree_are_found_and_weighed(tmp_path: Path) -> None:
    script = tmp_path / "tree.py"
    script.write_text(TREE, encoding="utf-8")
    command = [sys.executable, str(script)]
    with Popen(command, stdin=PIPE, stdout=PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        watch = WorkerWatch(process.pid)
        watch.look()
    assert watch.count == 3
    assert 64 * MIB < watch.pss_bytes <= watch.rss_bytes < 128 * MIB


def test_a_training_that_fails_is_told_with_what_it_said() -> None:
    with pytest.raises(SystemExit, match="no such game"):
        measure([sys.executable, "-c", "raise SystemExit('no such game')"])


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0])
def test_a_scaled_rollout_is_of_whole_batches(work: Work, scale: float) -> None:
    small = scaled(work, scale)
    assert small.rollout_timesteps % small.batch_size == 0
    assert small.n_steps >= 1
    assert scale < 1 or small == work
