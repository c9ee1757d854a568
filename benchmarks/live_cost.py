"""CPU time that a training takes because somebody watches it, or because somebody could.

    python -m benchmarks.live_cost [--vs COMMIT] [--config FILE] [--pairs 7]

Three trainings do the same work, each in a process of its own, in turns: one that this process
watches by reading its live file, one that nobody watches, and one that cannot be watched (live.fps
0), which with --vs is the code of that commit. Evaluations, checkpoints and the search for cores
are left out. A training's figure is the CPU time of its process and its workers for a timestep.
The table has the median of the ratios to the last one, turn by turn, with the smallest and the
largest. It also says how many bytes a second of changed screens there are, as they are in the file
and deflated.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.way import ROOT, code_of
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir
from game_rl.live.live_file import LiveReader

_BARS = {"watched": 1.02, "unwatched": 1.005}
_ARMS = (*_BARS, "before")
_TRAINING = """
import json, sys
from pathlib import Path
import psutil
from benchmarks.trainings.ours import settled_session
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir

def cpu_s():
    training = psutil.Process()
    times = [process.cpu_times() for process in (training, *training.children(recursive=True))]
    return sum(each.user + each.system for each in times)

file, folder, updates, *overrides = sys.argv[1:]
config = load_config(Path(file), overrides)
with settled_session(config, RunDir(Path(folder))) as session:
    print("settled", flush=True)
    if not sys.stdin.readline():
        sys.exit("the benchmark has ended")
    first, before = session.num_timesteps, cpu_s()
    session.learn_until(first + int(updates) * config.rollout_timesteps)
    print(json.dumps([cpu_s() - before, session.num_timesteps - first]), flush=True)
"""


@dataclass(frozen=True)
class Taken:
    """What a training took.

    Attributes:
        cpu_us: CPU time of a timestep, in microseconds.
        file_bytes_per_s: bytes of changed screens as they are in the live file; 0 if not watched.
        sent_bytes_per_s: of their differences from the screen before, deflated.
    """

    cpu_us: float
    file_bytes_per_s: float = 0.0
    sent_bytes_per_s: float = 0.0


class _Bytes:
    """Counts the bytes of changed screens since it was made."""

    def __init__(self) -> None:
        self.of_file = self.sent = 0
        self._before: dict[int, tuple[int, bytes]] = {}
        self._began_s = time.monotonic()

    def add(self, reader: LiveReader) -> None:
        for screen in reader.read():
            sequence, before = self._before.get(screen.env, (0, b""))
            if screen.sequence == sequence:
                continue
            packed = screen.packed.tobytes()
            self._before[screen.env] = screen.sequence, packed
            self.of_file += len(packed)
            pairs = zip(packed, before.ljust(len(packed), b"\0"), strict=True)
            self.sent += len(zlib.compress(bytes(new ^ old for new, old in pairs), 1))

    def per_s(self) -> tuple[float, float]:
        took_s = time.monotonic() - self._began_s
        return self.of_file / took_s, self.sent / took_s


def measure(code: Path, options: argparse.Namespace, arm: str) -> Taken:
    """Train with the code at `code`, in a process of its own."""
    overrides = [*options.set, "device=cpu"]
    if code == ROOT:
        overrides.append(f"live.fps={0 if arm == 'before' else options.fps}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(options.config).resolve()
        words = [str(file), folder, str(options.updates), *overrides]
        with subprocess.Popen(
            [sys.executable, "-c", _TRAINING, *words],
            cwd=code,
            env=os.environ | {"PYTHONPATH": str(code)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        ) as training:
            assert training.stdin is not None
            assert training.stdout is not None
            if training.stdout.readline() != "settled\n":
                raise SystemExit(f"the training has failed: {words}")
            training.stdin.write("\n")
            training.stdin.flush()
            found = _Bytes()
            if arm == "watched":
                _watch(training, RunDir(Path(folder)), options.fps, found)
            cpu_s, timesteps = json.loads(training.stdout.readline())
            return Taken(1e6 * cpu_s / timesteps, *found.per_s())


def _watch(training: "subprocess.Popen[str]", run_dir: RunDir, fps: float, found: _Bytes) -> None:
    """Read the live file until the session ends, at twice its rate so that no screen is missed."""
    reader = LiveReader.open(run_dir)
    assert reader is not None
    with reader:
        while reader.is_current and training.poll() is None:
            reader.want()
            found.add(reader)
            time.sleep(1 / (2 * fps))


@contextmanager
def _code_before(commit: str | None) -> Iterator[Path]:
    if commit is None:
        yield ROOT
        return
    with code_of(commit) as code:
        yield code


def _print_table(taken: dict[str, list[Taken]], what: str) -> None:
    print(f"\nCPU time of a timestep / {what}: median (min - max)")
    before = taken["before"]
    print(f"{'before':<10} {median(each.cpu_us for each in before):,.0f} µs")
    for arm, bar in _BARS.items():
        ratios = [a.cpu_us / b.cpu_us for a, b in zip(taken[arm], before, strict=True)]
        verdict = "kept" if median(ratios) <= bar else "BROKEN"
        spread = f"({min(ratios):.3f} - {max(ratios):.3f})"
        print(f"{arm:<10} {median(ratios):.3f} {spread}; bar {bar}: {verdict}")
    of_file = median(each.file_bytes_per_s for each in taken["watched"])
    sent = median(each.sent_bytes_per_s for each in taken["watched"])
    print(f"screens: {of_file / 1e3:,.0f} kB/s in the file, {sent / 1e3:,.0f} kB/s deflated")


def _arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vs", metavar="COMMIT", help="compare with this commit's code")
    parser.add_argument("--config", default=str(ROOT / "configs/duel_ppo.yaml"))
    parser.add_argument("--fps", type=float, default=4.0)
    parser.add_argument("--updates", type=int, default=10, help="that are measured")
    parser.add_argument("--pairs", type=int, default=7, help="turns of all three")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return parser.parse_args(words)


def main() -> None:
    options = _arguments()
    load_config(Path(options.config), options.set)  # mistakes are found now
    taken: dict[str, list[Taken]] = {arm: [] for arm in _ARMS}
    with _code_before(options.vs) as before:
        for turn in range(options.pairs):
            first = turn % len(_ARMS)
            for arm in _ARMS[first:] + _ARMS[:first]:
                code = before if arm == "before" else ROOT
                taken[arm].append(measure(code, options, arm))
                load = os.getloadavg()[0]
                text = f"turn {turn + 1}, {arm}: {taken[arm][-1].cpu_us:,.1f} µs (load {load:.1f})"
                print(text, file=sys.stderr, flush=True)
    _print_table(taken, options.vs or "live.fps=0")


if __name__ == "__main__":
    main()
