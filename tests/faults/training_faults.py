"""A table of what a training loses when it is killed, the disk fails or files are damaged.

    python -m tests.faults [--kills 300] [--only kill ...] [--algorithm dqn] [--fork] [--quick]
    python -m tests.faults --game seasons --colour rgb    # pictures of a colour game
    python -m tests.faults --algorithm pqn --parts status # observations with a part
    python -m tests.faults --quick --warm                 # without the imports of each training

Each trial is a real `game-rl train` of a bundled game in a process of its own. It meets one fault,
is resumed, and is compared with an undisturbed training: weights, optimiser and emulator states in
every checkpoint, the table of evaluations, and the best one. Each core runs one trial at a time.

* kill: SIGKILL at random moments, five times a run, then the run is finished.
* failpoint: SIGKILL before, halfway through and after every write, fsync, mkdir, rename and unlink.
* signal: SIGTERM, SIGINT and SIGUSR1 at random moments.
* disk: from one operation on, all operations of its kind fail with ENOSPC or EIO.
* rot: one bit of a file is flipped, or its end is cut off, between a kill and the resume.

With --fork, the trainings are forks of an undisturbed training, from half of it.

With --warm, the trainings are forked from one process that has imported what they need. No kill
comes during imports then, and a trial takes a fraction of the processor time.

A trial is good if the run can be resumed, ends like the undisturbed one, accepted no wrong byte,
left no temporary file and no process behind, and showed no traceback.
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
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from game_rl.files.run_dir import RunDir
from tests.faults.configs import ALGORITHMS, GAMES, LONG, SHORT, Length, Setting
from tests.faults.trainings import HANG_S, Bench, Tally, Training, WarmStarts

KINDS = ("kill", "failpoint", "signal", "disk", "rot")
KILLS_A_RUN = 5
_SHOWN_PROBLEMS = 10  # of each kind
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


def kill_trials(bench: Bench, kills: int) -> Tally:
    tally = Tally()

    def one_run(number: int, cpu: int) -> None:
        run_dir = bench.new_run(f"kill-{number}")
        reached = 0
        for kill in range(KILLS_A_RUN):
            training = bench.train(run_dir, cpu)
            if kill:  # at any moment, from the first import on
                moment = bench.uniform(0.3 * bench.train_s)
            elif bench.forks:  # while the fork is made, which must be atomic
                moment = bench.uniform(1.2 * bench.start_s)
            else:  # after there is a run directory to resume
                moment = bench.uniform(0.6 * bench.train_s)
            if kill % 2 == 0 and (kill or not bench.forks):
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
    """Sleep for the seconds, or until the training ends."""
    try:
        training.process.wait(moment_s)
    except subprocess.TimeoutExpired:
        return


def operation_counts(bench: Bench, name: str) -> dict[str, int]:
    """Count the disk operations of an undisturbed training, a new run called `name`."""
    run_dir = bench.new_run(name)
    training = bench.train(run_dir, bench.cpus[0])
    training.wait()
    found = re.search(r"operations (\{.*\})", training.output)
    assert found is not None, training.output
    return dict(json.loads(found[1]))


def plans(
    counts: dict[str, int], faults: Sequence[str], most: int | None, rng: random.Random
) -> list[str]:
    """Return each fault at each operation, or `most` of them, equally many of each operation."""
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


def failpoint_trials(bench: Bench, most: int | None) -> Tally:
    faults = ("kill-before", "kill-half", "kill-after")

    def judge(training: Training, code: int, tally: Tally) -> None:
        if code != -signal.SIGKILL and "the fault never came" not in training.lines:
            tally.problems.append(f"exit code {code}: {training.output[-600:]}")
        tally.note("killed" if code == -signal.SIGKILL else f"never came, ended with {code}")

    return _planned_trials(bench, faults, most, judge)


def disk_trials(bench: Bench, most: int | None) -> Tally:
    def judge(training: Training, code: int, tally: Tally) -> None:
        is_told = any(line.startswith("error:") for line in training.lines)
        if code == 1 and is_told:
            tally.note("told and left with 1")
        elif code == 0 and "the fault never came" in training.lines:
            tally.note("never came")
        else:
            tally.problems.append(f"not told, exit code {code}: {training.output[-600:]}")

    return _planned_trials(bench, ("ENOSPC", "EIO"), most, judge)


def _planned_trials(
    bench: Bench,
    faults: Sequence[str],
    most: int | None,
    judge: Callable[[Training, int, Tally], None],
) -> Tally:
    """Do a short run for each plan: inject the fault, judge it, and resume the run to its end."""
    tally = Tally()
    todo = plans(operation_counts(bench, f"counted-{faults[0]}"), faults, most, bench.random)

    def one(number: int, cpu: int) -> None:
        plan = todo[number]
        run_dir = bench.new_run(f"{faults[0]}-{number}")
        training = bench.train(run_dir, cpu, plan=plan)
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
        training = bench.train(run_dir, cpu)
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
        elif code not in (0, -name):  # it had ended, or was in its last evaluation
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
        training = bench.train(run_dir, cpu)
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


def main(starts: WarmStarts | None = None) -> int:
    """Print the table; `starts` forks the trainings, as --warm does with a process of its own."""
    arguments = _arguments()
    kinds: list[str] = arguments.only
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="game_rl_faults_"))
        if arguments.warm and starts is None:
            starts = stack.enter_context(closing(WarmStarts()))
        benches = {
            length: _bench(arguments, Path(folder) / name, length, starts)
            for name, length in (("long", LONG), ("short", SHORT))
            if any(_length(kind) == length for kind in kinds)
        }
        tallies = {}
        for kind in kinds:
            bench = benches[_length(kind)]
            tally = tallies[kind] = _trials(kind, bench, arguments)
            tally.problems += bench.changed_parent()
    print_table(tallies)
    return 1 if any(tally.problems for tally in tallies.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="ppo")
    parser.add_argument("--game", choices=GAMES, default="duel")
    parser.add_argument("--colour", choices=("grey", "rgb"), default="grey", help="of pictures")
    parser.add_argument("--parts", nargs="+", default=[], help="of observations, beside pictures")
    parser.add_argument("--normalize", action="store_true", help="learn from normalised rewards")
    parser.add_argument("--fork", action="store_true", help="the trainings are forks; no rot")
    parser.add_argument("--kills", type=int, default=300, help="random SIGKILLs")
    parser.add_argument("--points", type=int, help="failing operations, drawn; default: every one")
    parser.add_argument("--signals", type=int, default=30)
    parser.add_argument("--flips", type=int, default=10, help="of each file; the last is a cut")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm", action="store_true", help="fork the trainings' processes")
    parser.add_argument("--quick", action="store_true", help="a few of each")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.kills, arguments.points, arguments.signals, arguments.flips = 5, 6, 3, 1
    if arguments.fork:
        arguments.only = [kind for kind in arguments.only if kind != "rot"]
    return arguments


def _length(kind: str) -> Length:
    return SHORT if kind in ("failpoint", "disk") else LONG


def _bench(
    arguments: argparse.Namespace, folder: Path, length: Length, starts: WarmStarts | None
) -> Bench:
    return Bench(
        folder,
        arguments.jobs,
        arguments.seed,
        setting=Setting(
            arguments.algorithm,
            arguments.game,
            arguments.colour,
            tuple(arguments.parts),
            arguments.normalize,
        ),
        length=length,
        forks=arguments.fork,
        starts=starts,
    )


def _trials(kind: str, bench: Bench, arguments: argparse.Namespace) -> Tally:
    if kind == "kill":
        return kill_trials(bench, arguments.kills)
    if kind == "failpoint":
        return failpoint_trials(bench, arguments.points)
    if kind == "signal":
        return signal_trials(bench, arguments.signals)
    if kind == "disk":
        return disk_trials(bench, arguments.points)
    return rot_trials(bench, arguments.flips)


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
