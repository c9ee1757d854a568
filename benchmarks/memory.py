"""Peak memory of whole trainings: a plain SB3 script and ours with the same settings.

    python -m benchmarks.memory [--only forerunner-rgb ...] [--peers plain ours] [--scale 0.1]

The figure is the peak PSS (proportional set size: a page that n processes share counts 1/n in each)
of a training's whole process tree. It is observed from outside, so no peer needs code for it. Ours
is the complete `game-rl train`, with its evaluation emulator, TensorBoard and checkpoint, which the
peer does not have. `ours` has the defaults: it processes a large batch in parts, in bfloat16 if the
processor has it. `ours-float32` uses float32, and `ours-whole` also processes the batch at once.

One thing is cut: a training makes one update of one epoch. Memory peaks in a rollout's first `get`,
which copies it, and in the first gradient steps, and a second update would do the same again. Pages
of libraries count in full, also where other programs map them (another torch, say).
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from benchmarks.trainings.work import Work, set_words
from game_rl.system.process_memory import PssSampler

_CONFIG = Path(__file__).parent / "trainings" / "duel.yaml"
_WORKERS_EVERY_S = 2.0
_FORERUNNER = Work(n_envs=2, n_steps=8192, batch_size=2048, n_epochs=1, size="full", updates=1)
_HALF = Work(n_envs=8, n_steps=128, batch_size=256, n_epochs=1, updates=2)
WORKS = {
    "forerunner-rgb": replace(_FORERUNNER, colour="rgb"),
    "forerunner-grey": _FORERUNNER,
    "8-envs": _HALF,
    "64-envs": replace(_HALF, n_envs=64),
}
PEERS = ("plain", "ours", "ours-float32", "ours-whole")
_OVERRIDES = {
    "ours": (),
    "ours-float32": ("algorithm.precision=float32",),
    "ours-whole": ("algorithm.precision=float32", "algorithm.micro_batch_size=null"),
}
_HEADER = (
    f"{'':<15} {'':<12} | {'peak PSS':>11} {'plain / it':>10} | "
    f"{'workers':>7} {'most PSS':>9} {'most RSS':>9} | minutes"
)


@dataclass(frozen=True)
class Memory:
    """The memory and time that a training took.

    Attributes:
        peak_bytes: highest PSS of the process tree.
        workers: number of processes with emulators.
        worker_pss_bytes, worker_rss_bytes: highest values of any worker.
    """

    peak_bytes: int
    workers: int
    worker_pss_bytes: int
    worker_rss_bytes: int
    minutes: float


class WorkerWatch:
    """A watch on the memory of the workers, which a forkserver of the process tree started."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self.count = 0
        self.pss_bytes = 0
        self.rss_bytes = 0

    def look(self) -> None:
        with suppress(psutil.Error):  # processes may end meanwhile
            found = [worker.memory_full_info() for worker in self._workers()]
            self.count = max(self.count, len(found))
            self.pss_bytes = max(self.pss_bytes, *(memory.pss for memory in found), 0)
            self.rss_bytes = max(self.rss_bytes, *(memory.rss for memory in found), 0)

    def _workers(self) -> list[psutil.Process]:
        return [
            worker
            for server in self._root.children(recursive=False)
            if "multiprocessing.forkserver" in " ".join(server.cmdline())
            for worker in server.children(recursive=False)
        ]


def measure(command: Sequence[str]) -> Memory:
    """Run `command` and watch the memory of its process tree."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        workers = WorkerWatch(process.pid)
        with PssSampler(process.pid) as sampler:
            while not _ended(process):
                workers.look()
        if process.returncode:
            output.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{output.read()}")
    minutes = (time.monotonic() - began) / 60
    peak = sampler.peak_bytes
    return Memory(peak, workers.count, workers.pss_bytes, workers.rss_bytes, minutes)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_WORKERS_EVERY_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def plain_command(work: Work) -> list[str]:
    return [sys.executable, "-m", "benchmarks.trainings.plain_sb3", *work.arguments()]


def our_command(work: Work, overrides: Sequence[str], run_dir: Path) -> list[str]:
    words = [*work.overrides(), f"run_dir={run_dir}", *overrides]
    train = [sys.executable, "-m", "game_rl", "train", "--force", "--config", str(_CONFIG)]
    return [*train, *set_words(words)]


def command_of(peer: str, work: Work, run_dir: Path) -> list[str]:
    if peer == "plain":
        return plain_command(work)
    return our_command(work, _OVERRIDES[peer], run_dir)


def scaled(work: Work, scale: float) -> Work:
    """Return the work with a shorter rollout of whole batches."""
    batches = max(1, round(scale * work.rollout_timesteps / work.batch_size))
    return replace(work, n_steps=batches * work.batch_size // work.n_envs)


def line(name: str, peer: str, found: Memory, plain: Memory | None) -> str:
    ratio = "" if plain is None else f"{plain.peak_bytes / found.peak_bytes:.1f}"
    return (
        f"{name:<15} {peer:<12} | {found.peak_bytes / 1e6:>8,.0f} MB {ratio:>10} | "
        f"{found.workers:>7} {found.worker_pss_bytes / 1e6:>6,.0f} MB "
        f"{found.worker_rss_bytes / 1e6:>6,.0f} MB | {found.minutes:>7.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--scale", type=float, default=1.0, help="of the rollouts, for a look")
    options = parser.parse_args()
    print(_HEADER)
    for name in options.only:
        work = scaled(WORKS[name], options.scale)
        plain = None
        for peer in (peer for peer in PEERS if peer in options.peers):
            with tempfile.TemporaryDirectory() as folder:
                found = measure(command_of(peer, work, Path(folder) / "run"))
            plain = found if peer == "plain" else plain
            print(line(name, peer, found, plain), flush=True)


if __name__ == "__main__":
    main()
