"""A table of what a Lake loses when its writer is killed or its files are damaged.

    python -m tests.faults.lake_faults [--kills 200] [--flips 100] [--seed 0]

* kill: a process appends to a Lake as fast as it can and seals now and then. It gets SIGKILL at a
  random moment, which may be during the recovery of its predecessor's files. Then the next process
  starts. After each kill, all newly visible data are compared bit for bit with what was played.
* kill at pace: the same, with as many timesteps a second as in a training.
* rot: one bit of a file is flipped, or its end is cut off, for every kind of file.

A kill is good if nothing wrong is served, nothing is duplicated or missing in between, all data
that a `seal` had confirmed are there, and the loss is at most the block that an env had begun and
the blocks that were waiting for the writer thread. A flip is good if it is reported and nothing
wrong is served.
"""

import argparse
import mmap
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from game_rl.errors import LakeError
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.segment import OPEN, SEALED, SHELVED, SealedSegment
from game_rl.lake.upkeep import verify_lake
from game_rl.lake.view import LakeView
from game_rl.lake.writer import LakeWriter
from tests.faults.known_play import SCHEMA, KnownPlay

N_ENVS = 2
WAITING_BLOCKS = 2 * N_ENVS  # the same number as in LakeWriter
_SEGMENT_BYTES = 20_000
_LIVES = 20  # writer processes of one Lake
_LONGEST_S = 0.12
_PAUSE_S = N_ENVS / 3_000  # between two vec steps
_HEADER = f"{'fault':<16} {'trials':>6} {'bad':>4} {'transitions checked':>20}   notes"


@dataclass
class Tally:
    """The trials of one kind."""

    trials: int = 0
    checked: int = 0
    problems: list[str] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        self.notes[what] = self.notes.get(what, 0) + 1


class Journal:
    """Numbers in a mapped file, which outlive the process that writes them.

    Attributes:
        is_started: whether the writer has finished its recovery.
        began, appended, sealed: for each env, the next timestep at the start, after the last
            `append` that returned, and after the last `seal` that returned.
    """

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(8 * (1 + 3 * N_ENVS)))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        numbers = np.frombuffer(self._map, np.int64)
        self.is_started = numbers[:1]
        self.began, self.appended, self.sealed = numbers[1:].reshape(3, N_ENVS)


def write_until_killed(
    path: Path, play: KnownPlay, journal: Journal, chance: random.Random, pause_s: float
) -> None:
    lake = Lake.create(path, SCHEMA)
    writer = LakeWriter(lake, "w", n_envs=N_ENVS, segment_bytes=_SEGMENT_BYTES)
    sequences = lake.view().sequences
    at = np.array([sequences.get(f"w/{env}", 0) for env in range(N_ENVS)])
    journal.began[:] = journal.appended[:] = journal.sealed[:] = at
    journal.is_started[0] = 1
    while True:
        play.write(writer, at)
        journal.appended[:] = at
        time.sleep(pause_s)
        if chance.random() < 0.02:
            writer.seal()
            journal.sealed[:] = at


def in_a_process(act: Callable[[], None]) -> int:
    """Run `act` in a forked process and return its id; exceptions are printed."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - a fork must not continue the parent's code
            traceback.print_exc()
        os._exit(1)
    return pid


def killed_after(pid: int, seconds: float, *, of_work: bool) -> bool:
    """Send SIGKILL after the seconds; return False if the process had already ended.

    Args:
        of_work: whether they are the process's CPU seconds, which pass as it gets something done,
            however busy the machine is.
    """
    process = os.pidfd_open(pid)
    cpu_clock = (~pid << 3) | 2  # as clock_getcpuclockid(3) makes it
    is_alive = not select.select([process], [], [], 0.0 if of_work else seconds)[0]
    while of_work and is_alive and time.clock_gettime(cpu_clock) < seconds:
        is_alive = not select.select([process], [], [], 0.0002)[0]
    os.close(process)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return is_alive


class Life:
    """A Lake that survives many kills, with the facts that must hold for it."""

    def __init__(self, folder: Path, seed: int, tally: Tally, pause_s: float) -> None:
        self._pause_s = pause_s
        self.path = folder / f"lake-{seed}"
        self.path.mkdir()
        self.play = KnownPlay(seed)
        self.tally = tally
        self.starts: dict[int, set[int]] = {env: set() for env in range(N_ENVS)}
        self._checked: set[str] = set()
        self._appended = np.zeros(N_ENVS, np.int64)
        self._sealed = np.zeros(N_ENVS, np.int64)

    def kill(self, journal: Journal, chance: random.Random) -> None:
        """Start a writer process and kill it at a random moment."""
        journal.is_started[0] = 0
        own = random.Random(chance.random())
        pid = in_a_process(
            lambda: write_until_killed(self.path, self.play, journal, own, self._pause_s)
        )
        self.tally.trials += 1
        if not killed_after(pid, chance.uniform(0, _LONGEST_S), of_work=not self._pause_s):
            self.tally.problems.append(f"{self.path.name}: the writer ended by itself")
        if journal.is_started[0]:
            self.told(journal.began.copy())
            self._appended, self._sealed = journal.appended.copy(), journal.sealed.copy()
        else:
            self.tally.note("before or in the recovery")
        self.check()

    def told(self, began: NDArray[np.int64]) -> None:
        """Take in where the next process began: all later timesteps are lost."""
        for env in range(N_ENVS):
            self.starts[env].add(int(began[env]))
        self.tally.lost += (self._appended - began).tolist()
        bound = SCHEMA.block_frames * (1 + WAITING_BLOCKS + 2)  # one more at each end of the queue
        if (self._appended - began > bound).any():
            self.tally.problems.append(f"{self._appended - began} lost, more than {bound}")
        if (began < self._sealed).any():
            self.tally.problems.append(f"sealed {self._sealed}, found {began}")

    def check(self) -> None:
        """Check all segments that no earlier check has seen, and the continuity of sequences."""
        if not (self.path / "lake.json").exists():
            return
        lake = Lake.open(self.path)
        view = lake.view()
        new = [s for s in view.segments if s.path.name not in self._checked]
        self._checked.update(segment.path.name for segment in new)
        self._compare(lake, new)
        for sequence in np.unique(view.block_sequences):
            if not view.continued[np.flatnonzero(view.block_sequences == sequence)[:-1]].all():
                self.tally.problems.append(f"{self.path.name}: a gap in sequence {sequence}")

    def _compare(self, lake: Lake, segments: list[SealedSegment]) -> None:
        served, wrong = self.play.wrong(LakeView(lake.schema, segments), self.starts)
        self.tally.checked += served
        if wrong:
            self.tally.problems.append(f"{self.path.name}: {wrong} of {served} wrong")

    def finish(self) -> None:
        """Recover the Lake, check what this found, and verify every byte."""
        lake = Lake.open(self.path)
        LakeWriter(lake, "w", n_envs=N_ENVS).close()
        sequences = lake.view().sequences
        self.told(np.array([sequences.get(f"w/{env}", 0) for env in range(N_ENVS)]))
        self.check()
        self.tally.problems += verify_lake(self.path).damaged.values()
        left = {path.suffix for path in self.path.iterdir()} - {SEALED, ".json"}
        if left:
            self.tally.problems.append(f"{self.path.name}: files of {left} are left")


def kill_trials(folder: Path, kills: int, chance: random.Random, *, pause_s: float = 0.0) -> Tally:
    tally = Tally()
    journal = Journal(folder / "journal")
    while tally.trials < kills:
        life = Life(folder, tally.trials, tally, pause_s)
        for _ in range(min(_LIVES, kills - tally.trials)):
            life.kill(journal, chance)
        if (life.path / "lake.json").exists():
            life.finish()
        shutil.rmtree(life.path, ignore_errors=True)
    return tally


# ---------------------------------------------------------------------- rot


def make_lake_of_every_kind(path: Path, play: KnownPlay) -> None:
    """Make a Lake with two sealed segments, a shelved one, a pin, and a torn open file."""
    lake = Lake.create(path, SCHEMA)
    at = np.zeros(N_ENVS, np.int64)
    with LakeWriter(lake, "w", n_envs=N_ENVS) as writer:
        for number in range(3):
            for _ in range(40):
                play.write(writer, at)
            writer.seal()
            if number == 0:
                lake.pin("first")
        lake._shelve(lake.files(SEALED)[0])
        sealed = set(path.iterdir())
        for _ in range(100):
            play.write(writer, at)
        writer.seal()
        (last,) = set(path.iterdir()) - sealed
        data = last.read_bytes()
    last.unlink()
    last.with_suffix(OPEN).write_bytes(data[: len(data) * 3 // 4])


def changed(content: bytes, chance: random.Random, *, cut: bool) -> bytes:
    place = chance.randrange(len(content))
    if cut:
        return content[:place]
    copy = bytearray(content)
    copy[place] ^= 1 << chance.randrange(8)
    return bytes(copy)


def is_told(path: Path, name: str, torn: int) -> bool:
    try:
        report = verify_lake(path)
    except LakeError as error:
        return name in str(error)
    return name in report.damaged or report.open_files.get(name, torn) != torn


def served(path: Path, play: KnownPlay) -> tuple[int, int]:
    """Check what a reader gets from the view, the pinned mark and a recovery.

    Returns:
        (number of transitions checked, number of wrong ones).
    """
    checked = wrong = 0

    def look(view: Callable[[Lake], LakeView]) -> None:
        nonlocal checked, wrong
        try:
            lake = Lake.open(path)
            found = view(lake)
        except LakeError:
            return
        for segment in found.segments:
            try:
                more = play.wrong(LakeView(lake.schema, [segment]), {})
            except LakeError:
                continue
            checked, wrong = checked + more[0], wrong + more[1]

    def at_the_pin(lake: Lake) -> LakeView:
        pin = path / "pins" / "first.json"
        return lake.view(
            Mark.from_json(pin.read_text(errors="replace", encoding="utf-8"), source=pin)
        )

    def recovered(lake: Lake) -> LakeView:
        return LakeView(lake.schema, lake.recover("w"))

    for view in (Lake.view, at_the_pin, recovered):
        look(view)
    return checked, wrong


def rot_trials(folder: Path, flips: int, chance: random.Random) -> dict[str, Tally]:
    """Return a tally for each kind of file."""
    path, play = folder / "whole", KnownPlay(99)
    path.mkdir()
    make_lake_of_every_kind(path, play)
    torn = next(iter(verify_lake(path).open_files.values()))
    kinds = {kind: next(path.glob(f"*{kind}")) for kind in (SEALED, SHELVED, OPEN)}
    kinds |= {"lake.json": path / "lake.json", "pin": path / "pins" / "first.json"}
    tallies = {kind: Tally() for kind in kinds}
    for kind, file in kinds.items():
        for number in range(flips):
            tally = tallies[kind]
            tally.trials += 1
            copy = folder / "copy"
            shutil.copytree(path, copy)
            name = str(file.relative_to(path))
            content = file.read_bytes()
            data = changed(content, chance, cut=number % 5 == 4)
            (copy / name).write_bytes(data)
            whole = len(content) - torn
            if kind == OPEN and content[:whole].startswith(data[:whole]):
                tally.note("only of a torn end, which is cut off")
            elif not is_told(copy, name, torn):
                tally.problems.append(f"{name}: a change was not told")
            checked, wrong = served(copy, play)
            tally.checked += checked
            if wrong:
                tally.problems.append(f"{name}: {wrong} of {checked} wrong")
            shutil.rmtree(copy)
    return tallies


def print_table(tallies: dict[str, Tally]) -> None:
    print(_HEADER)
    for kind, tally in tallies.items():
        notes = [f"{count} {what}" for what, count in sorted(tally.notes.items())]
        if tally.lost:
            block = SCHEMA.block_frames
            within = sum(lost < block for lost in tally.lost) / len(tally.lost)
            notes.insert(
                0,
                f"lost of an env: median {median(tally.lost):.0f}, most {max(tally.lost)} "
                f"(a block: {block}; less in {within:.0%})",
            )
        print(
            f"{kind:<16} {tally.trials:>6} {len(tally.problems):>4} {tally.checked:>20,}   "
            + "; ".join(notes)
        )
    for kind, tally in tallies.items():
        for problem in tally.problems:
            print(f"\nBAD {kind}: {problem}")


def all_trials(*, kills: int, flips: int, seed: int) -> dict[str, Tally]:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="game_rl_lake_faults_") as folder:
        tallies = {
            "kill": kill_trials(Path(folder), kills, chance),
            "kill at pace": kill_trials(Path(folder), kills, chance, pause_s=_PAUSE_S),
        }
        rotten = rot_trials(Path(folder), flips, chance)
    return tallies | {f"rot of {kind}": tally for kind, tally in rotten.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--flips", type=int, default=100, help="of each kind; every fifth is a cut")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tallies = all_trials(kills=options.kills, flips=options.flips, seed=options.seed)
    print_table(tallies)
    return 1 if any(tally.problems for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
