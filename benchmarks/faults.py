"""What a training loses when it is killed, the disk fails or its files rot: a table.

    python -m benchmarks.faults [--kills 300] [--only kill signal ...] [--quick]

Each trial is a real `game-rl train` of the bundled game in a process of its own that meets one
fault, is resumed, and is compared with a training that met none: weights, optimiser and the states
of the emulators in every checkpoint, the table of evaluations, the best one. Trials run one a core.

* kill: SIGKILL at random moments, five times a run, then the run is finished.
* failpoint: SIGKILL before, half way in and after every write, fsync, mkdir, rename and unlink.
* signal: SIGTERM, SIGINT and SIGUSR1 at random moments.
* disk: from one operation on, every one of its kind fails with ENOSPC or EIO.
* rot: one bit of one file flips, or its end is cut off, between a kill and the resume.

A trial is good if the run can be resumed, ends as the undisturbed one did, accepted no wrong byte,
left no temporary file and no process behind, and showed nobody a traceback.
"""

import argparse
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.errors import CheckpointError
from game_rl.run_dir import RunDir

CONFIG = """\
game: duel
total_timesteps: 768
run_dir: {run_dir}
device: cpu
env: {{n_envs: 4, n_workers: 2, frame_skip: 8, max_episode_timesteps: 40}}
algorithm: {{n_steps: 8, batch_size: 32, n_epochs: 2, learning_rate: {{start: 1e-3, end: 1e-4}}}}
evaluation: {{every_timesteps: 128, episodes: 2, final_episodes: 2, deterministic: false}}
checkpoints: {{every_timesteps: 32, keep_last: {keep_last}}}
recording: {{episodes: 0}}
"""
FINAL = 768
COMPARED = ("policy.safetensors", "optimizer.safetensors", "arrays.safetensors")
HANG_S = 180.0
KILLS_A_RUN = 5
_SHOWN_PROBLEMS = 10  # of each kind
KINDS = ("kill", "failpoint", "signal", "disk", "rot")
_BEGUN = re.compile(r"^\s*[\d,]+ / 768\b")
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


class Training:
    """One process, its whole output, and when it began to train."""

    def __init__(self, run_dir: Path, cpu: int, *, plan: str = "none:0:none") -> None:
        self.begun = threading.Event()
        self.lines: list[str] = []
        arguments = ["train", "--config", str(run_dir.with_suffix(".yaml"))]
        if (run_dir / "config.yaml").exists():
            arguments = ["train", "--resume", str(run_dir)]
        self._started_s = time.monotonic()
        self.start_s = 0.0
        self.process = subprocess.Popen(
            [
                *("taskset", "--cpu-list", str(cpu)),
                *(sys.executable, "-u", "-m", "benchmarks.faulty_run", plan, str(run_dir)),
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=os.environ | {"COLUMNS": "1000", "OMP_NUM_THREADS": "1"},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip())
                if not self.begun.is_set() and _BEGUN.match(line):
                    self.start_s = time.monotonic() - self._started_s
                    self.begun.set()
        self.begun.set()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait(self) -> int:
        """The exit code; the process's children have ended, too, or are counted as orphans."""
        code = self.process.wait(HANG_S)
        self._reader.join(HANG_S)  # the pipe closes when the last of the family has ended
        return code

    def orphans(self) -> list[psutil.Process]:
        """Processes of this training that outlived it by five seconds."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            left = [p for p in psutil.process_iter() if _session(p.pid) == self.process.pid]
            if not left:
                return []
            psutil.wait_procs(left, timeout=0.1)
        return left


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


@dataclass
class Tally:
    """The trials of one kind."""

    trials: int = 0
    runs: int = 0
    problems: list[str] = field(default_factory=list)
    recoveries_s: list[float] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        self.notes[what] = self.notes.get(what, 0) + 1


class Bench:
    """Runs that meet faults, and the one that met none."""

    def __init__(self, folder: Path, jobs: int, seed: int) -> None:
        self.folder = folder
        self.jobs = jobs
        self.random = random.Random(seed)
        self.cpus = sorted(os.sched_getaffinity(0))[:jobs]
        self._free = list(self.cpus)
        self._lock = threading.Lock()
        self.whole = self.new_run("whole", keep_last=1000)
        training = Training(self.whole, self.cpus[0])
        began = time.monotonic()
        code = training.wait()
        if code != 0:
            raise SystemExit(f"the undisturbed training failed:\n{training.output}")
        self.train_s = time.monotonic() - began - training.start_s
        self.hashes = {
            int(path.name): self._hashes(path)
            for path in RunDir(self.whole).checkpoints_newest_first()
        }

    def new_run(self, name: str, *, keep_last: int = 2) -> Path:
        run_dir = self.folder / name
        run_dir.with_suffix(".yaml").write_text(CONFIG.format(run_dir=run_dir, keep_last=keep_last))
        return run_dir

    def half_run(self, name: str) -> Path:
        """The undisturbed run, as a kill just after half of it would have left it."""
        run_dir = self.folder / name
        shutil.copytree(self.whole, run_dir)
        half = FINAL // 2
        best = Checkpoint(RunDir(run_dir).checkpoint(half)).state.best
        assert best is not None
        for path in RunDir(run_dir).checkpoints_newest_first():
            if int(path.name) not in (best.timesteps, *range(half - 128, half + 1)):
                shutil.rmtree(path)
        text = (run_dir / "config.yaml").read_text()
        (run_dir / "config.yaml").write_text(text.replace(str(self.whole), str(run_dir)))
        return run_dir

    def map(self, act: Callable[[int, int], None], count: int) -> None:
        """Call `act(number, cpu)` for each number, one at a time on each core."""

        def on_a_free_core(number: int) -> None:
            with self._lock:
                cpu = self._free.pop()
            try:
                act(number, cpu)
            finally:
                with self._lock:
                    self._free.append(cpu)

        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(on_a_free_core, range(count)))

    def uniform(self, high: float) -> float:
        with self._lock:
            return self.random.uniform(0, high)

    def finish(self, run_dir: Path, cpu: int, tally: Tally, label: str) -> None:
        """Resume to the end, undisturbed, and compare."""
        training = Training(run_dir, cpu)
        code = training.wait()
        tally.recoveries_s.append(training.start_s)
        if code != 0:
            tally.problems.append(
                f"{label}: the resume ended with {code}: {training.output[-600:]}"
            )
            return
        tally.problems += [f"{label}: {p}" for p in self.differences(run_dir, training)]
        shutil.rmtree(run_dir, ignore_errors=True)

    def differences(self, run_dir: Path, training: Training) -> list[str]:
        """How a finished run is not the undisturbed one."""
        found = self.wrong_bytes(run_dir)
        final = run_dir / "checkpoints" / f"{FINAL:012d}"
        if not final.is_dir():
            return [*found, f"no final checkpoint: {training.output[-600:]}"]
        if (
            Checkpoint(final).state.best
            != Checkpoint(RunDir(self.whole).checkpoint(FINAL)).state.best
        ):
            found.append("another best evaluation")
        tables = [RunDir(root).evaluations.read_text() for root in (run_dir, self.whole)]
        if tables[0] != tables[1]:
            found.append(f"another table of evaluations:\n{tables[0]}instead of\n{tables[1]}")
        left = [p.name for p in run_dir.rglob(".*") if p.name.endswith((".tmp", ".trash"))]
        if left:
            found.append(f"left behind: {left}")
        return found + self.bad_ends(training)

    def bad_ends(self, training: Training) -> list[str]:
        """Tracebacks and processes that nobody should have left."""
        found = [f"orphan {p}" for p in training.orphans()]
        if "Traceback" in training.output:
            found.append(f"a traceback: {training.output[-1500:]}")
        return found

    def wrong_bytes(self, run_dir: Path) -> list[str]:
        """Checkpoints that verify and are not those of the undisturbed run."""
        found = []
        for path in RunDir(run_dir).checkpoints_newest_first():
            try:
                Checkpoint(path).verify()
            except CheckpointError:
                found.append(f"checkpoint {path.name} does not verify")
                continue
            if self._hashes(path) != self.hashes[int(path.name)]:
                found.append(f"checkpoint {path.name} holds other numbers")
        return found

    @staticmethod
    def _hashes(path: Path) -> dict[str, str]:
        files = json.loads((path / "manifest.json").read_text())["files"]
        return {name: files[name]["sha256"] for name in COMPARED}


def kill_trials(bench: Bench, kills: int) -> Tally:
    tally = Tally()

    def one_run(number: int, cpu: int) -> None:
        run_dir = bench.new_run(f"kill-{number}")
        reached = 0
        for kill in range(KILLS_A_RUN):
            training = Training(run_dir, cpu)
            if kill:  # anywhere, from the first import on
                moment = bench.uniform(0.3 * bench.train_s)
            else:  # not before there is a run directory to resume
                moment = bench.uniform(0.6 * bench.train_s)
            if kill % 2 == 0:
                training.begun.wait(HANG_S)
            _sleep_until(training, moment)
            training.process.kill()
            training.wait()
            tally.trials += 1
            label = f"run {number}, kill {kill}"
            tally.problems += [f"{label}: {p}" for p in bench.bad_ends(training)]
            if kill and training.begun.is_set() and training.start_s:
                tally.recoveries_s.append(training.start_s)
            saved = RunDir(run_dir).checkpoints_newest_first()
            newest = int(saved[0].name) if saved else 0
            if newest < reached:
                tally.problems.append(f"{label}: went back from {reached} to {newest}")
            reached = newest
            tally.problems += [f"{label}: {p}" for p in bench.wrong_bytes(run_dir)]
        tally.runs += 1
        bench.finish(run_dir, cpu, tally, f"run {number}")

    bench.map(one_run, -(-kills // KILLS_A_RUN))
    return tally


def _sleep_until(training: Training, moment_s: float) -> None:
    """Let the training run for so long, unless it ends before."""
    try:
        training.process.wait(moment_s)
    except subprocess.TimeoutExpired:
        return


def operation_counts(bench: Bench) -> dict[str, int]:
    """What a training from start to end does to the disk."""
    run_dir = bench.new_run("counting")
    training = Training(run_dir, bench.cpus[0])
    training.wait()
    found = re.search(r"operations (\{.*\})", training.output)
    assert found is not None, training.output
    return dict(json.loads(found[1]))


def plans(
    counts: dict[str, int], faults: Sequence[str], most: int, rng: random.Random
) -> list[str]:
    """Each fault at each operation, or `most` of these: of every kind of operation as many."""
    by_kind = {
        operation: [
            f"{operation}:{number}:{fault}"
            for number in range(1, count + 1)
            for fault in faults
            if fault != "kill-half" or operation == "write"
        ]
        for operation, count in sorted(counts.items())
    }
    for found in by_kind.values():
        rng.shuffle(found)
    in_turns = itertools.chain.from_iterable(itertools.zip_longest(*by_kind.values()))
    return [plan for plan in in_turns if plan is not None][:most]


def failpoint_trials(bench: Bench, most: int) -> Tally:
    faults = ("kill-before", "kill-half", "kill-after")

    def judge(_: Training, code: int, tally: Tally) -> None:
        tally.note("killed" if code == -signal.SIGKILL else f"ended with {code}")

    return _planned_trials(bench, faults, most, judge)


def disk_trials(bench: Bench, most: int) -> Tally:
    def judge(training: Training, code: int, tally: Tally) -> None:
        is_told = any(line.startswith("error:") for line in training.lines)
        tally.note("told and left with 1" if code == 1 and is_told else f"ended with {code}")
        if code not in (0, 1) or (code == 1 and not is_told):
            tally.problems.append(f"exit code {code}: {training.output[-600:]}")

    return _planned_trials(bench, ("ENOSPC", "EIO"), most, judge)


def _planned_trials(
    bench: Bench,
    faults: Sequence[str],
    most: int,
    judge: Callable[[Training, int, Tally], None],
) -> Tally:
    """A run for each plan: it meets the fault, is judged, and is resumed to its end."""
    tally = Tally()
    todo = plans(operation_counts(bench), faults, most, bench.random)

    def one(number: int, cpu: int) -> None:
        plan = todo[number]
        run_dir = bench.new_run(f"{faults[0]}-{number}")
        training = Training(run_dir, cpu, plan=plan)
        code = training.wait()
        tally.trials += 1
        judge(training, code, tally)
        tally.problems += [f"{plan}: {p}" for p in bench.bad_ends(training)]
        tally.problems += [f"{plan}: {p}" for p in bench.wrong_bytes(run_dir)]
        tally.runs += 1
        bench.finish(run_dir, cpu, tally, plan)

    bench.map(one, len(todo))
    return tally


def signal_trials(bench: Bench, count: int) -> Tally:
    tally = Tally()

    def one(number: int, cpu: int) -> None:
        name = _SIGNALS[number % len(_SIGNALS)]
        run_dir = bench.new_run(f"signal-{number}")
        training = Training(run_dir, cpu)
        training.begun.wait(HANG_S)
        _sleep_until(training, bench.uniform(0.8 * bench.train_s))
        before = RunDir(run_dir).checkpoints_newest_first()
        os.killpg(training.process.pid, name)  # to the workers too
        code = training.wait()
        tally.trials += 1
        label = f"{name.name} {number}"
        tally.problems += [f"{label}: {p}" for p in bench.bad_ends(training)]
        after = RunDir(run_dir).checkpoints_newest_first()
        if code == 128 + name:
            tally.note("saved and left")
            tally.problems += [f"{label}: {p}" for p in bench.wrong_bytes(run_dir)]
            if before and after[0].name < before[0].name:
                tally.problems.append(f"{label}: nothing was saved")
        elif code not in (0, -name):  # it had ended, or was already in its last evaluation
            tally.problems.append(f"{label}: exit code {code}: {training.output[-600:]}")
        else:
            tally.note(f"came after the training, ended with {code}")
        tally.runs += 1
        bench.finish(run_dir, cpu, tally, label)

    bench.map(one, count)
    return tally


def rot_trials(bench: Bench, flips: int) -> Tally:
    tally = Tally()
    newest = RunDir(bench.half_run("rot-names")).checkpoints_newest_first()[0]
    names = [f"checkpoints/{newest.name}/{path.name}" for path in sorted(newest.iterdir())]
    names += ["eval.csv", "config.yaml", "preflight.json", "footprint.json"]
    todo = [(name, n) for name in names for n in range(flips)]

    def one(number: int, cpu: int) -> None:
        name, n = todo[number]
        run_dir = bench.half_run(f"rot-{number}")
        _damage(run_dir / name, bench.uniform, cut=n == flips - 1)
        training = Training(run_dir, cpu)
        code = training.wait()
        tally.trials += 1
        label = f"{name}, {n}"
        tally.problems += [f"{label}: {p}" for p in bench.bad_ends(training)]
        told = any("damaged" in line or "changed:" in line for line in training.lines)
        if name == "config.yaml" and (code == 2 or told):
            tally.note("a config that reads otherwise: refused" if code else "told as a change")
        elif code != 0:
            tally.problems.append(f"{label}: exit code {code}: {training.output[-600:]}")
        else:
            tally.note("told, older one used" if told else "made no difference")
            if name.startswith("checkpoints") and not told:
                tally.problems.append(f"{label}: not noticed")
            tally.problems += [f"{label}: {p}" for p in bench.differences(run_dir, training)]
        tally.runs += 1
        shutil.rmtree(run_dir, ignore_errors=True)

    bench.map(one, len(todo))
    return tally


def _damage(path: Path, uniform: Callable[[float], float], *, cut: bool) -> None:
    content = bytearray(path.read_bytes())
    place = int(uniform(len(content) - 1))
    if cut:
        del content[place:]
    else:
        content[place] ^= 1 << int(uniform(7.99))
    path.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--kills", type=int, default=300, help="random SIGKILLs")
    parser.add_argument("--points", type=int, default=150, help="failing operations, of each sort")
    parser.add_argument("--signals", type=int, default=30)
    parser.add_argument("--flips", type=int, default=10, help="of each file; the last is a cut")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a few of each")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.kills, arguments.points, arguments.signals, arguments.flips = 5, 6, 3, 1
    with tempfile.TemporaryDirectory(prefix="game_rl_faults_") as folder:
        bench = Bench(Path(folder), arguments.jobs, arguments.seed)
        acts: dict[str, Callable[[], Tally]] = {
            "kill": lambda: kill_trials(bench, arguments.kills),
            "failpoint": lambda: failpoint_trials(bench, arguments.points),
            "signal": lambda: signal_trials(bench, arguments.signals),
            "disk": lambda: disk_trials(bench, arguments.points),
            "rot": lambda: rot_trials(bench, arguments.flips),
        }
        tallies = {kind: acts[kind]() for kind in arguments.only}
    print_table(tallies)
    return 1 if any(tally.problems for tally in tallies.values()) else 0


def print_table(tallies: dict[str, Tally]) -> None:
    head = f"{'fault':<10} {'trials':>6} {'runs':>5} {'bad':>4}   recovery, s: median  most"
    print(head)
    for kind, tally in tallies.items():
        times = tally.recoveries_s
        seconds = f"{median(times):>6.1f} {max(times):>5.1f}" if times else ""
        notes = ", ".join(f"{count} {what}" for what, count in sorted(tally.notes.items()))
        print(
            f"{kind:<10} {tally.trials:>6} {tally.runs:>5} {len(tally.problems):>4}"
            f"   {seconds:>19}   {notes}"
        )
    for kind, tally in tallies.items():
        for problem in tally.problems[:_SHOWN_PROBLEMS]:
            print(f"\nBAD {kind}: {problem}")


if __name__ == "__main__":
    sys.exit(main())
