"""A table of what a run in storage loses when uploader, training or storage fail.

    python -m tests.faults.upload_faults [--kills 200] [--faults 200] [--runs 20] [--only KIND ...]

An S3 server runs on this machine, with a proxy in front of it. After each kill and each fault, all
committed data are read completely and compared: no manifest may exist before its blobs.

* journal: SIGKILL before, halfway through and after every line of the journal of a small run.
* uploader: SIGKILL at random moments of an upload, five per run.
* fault: 500, 503, 403, cut bodies, stalls, lost answers and slow links, at random requests.
* training: real trainings that upload. Training, uploader or both get SIGKILL at random moments
  while storage fails at random. Then the run's directory is deleted, fetched again, resumed to its
  end, and compared bit for bit with an undisturbed training.

The kinds `uploader` and `training` each get half of --kills.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil

from game_rl.files.run_dir import RunDir
from game_rl.storage.fetch import fetch_run
from game_rl.storage.inventory import RemoteAddress, stored_runs, verify_stored
from game_rl.storage.journal import read_upload_state
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_settings import UploadSettings
from tests.faults.proxy import FAULTS, Fault, FaultProxy
from tests.faults.training_faults import print_table
from tests.faults.trainings import HANG_S, Bench, Tally, Training
from tests.storage.runs import add_checkpoint, content_of, make_run, settings_of
from tests.storage.server import BUCKET, s3_environment, s3_server

KINDS = ("journal", "uploader", "fault", "training")
_KILLS_A_RUN = 5
_PAUSE_S, _PATIENCE_S, _STALL_S = "0.05", "2", 3.0


class Storage:
    """The server, the proxy in front of it, and the checks after each trial."""

    def __init__(self, endpoint: str, proxy: FaultProxy, seed: int) -> None:
        self.endpoint = endpoint
        self.proxy = proxy
        self.random = random.Random(seed)
        self._number = 0

    def new_address(self) -> str:
        self._number += 1
        return f"s3://{BUCKET}/{self._number:05d}"

    def fail(self, share: float, *faults: Fault) -> None:
        """From now on, let this share of requests meet one of the faults."""

        def plan(_method: str, _path: str) -> Fault | None:
            return self.random.choice(faults) if self.random.random() < share else None

        self.proxy.plan = plan

    def heal(self) -> None:
        self.proxy.plan = lambda _method, _path: None

    def problems(self, address: str) -> list[str]:
        """Return the manifests whose blobs are missing or damaged."""
        plan, self.proxy.plan = self.proxy.plan, lambda _method, _path: None
        try:
            damage = verify_stored(ObjectStore(address), RemoteAddress.parse(address)).damage
        finally:
            self.proxy.plan = plan
        return [f"{run}@{timesteps}: {fault}" for (run, timesteps), fault in damage.items()]


def _uploader(plan: str, settings: UploadSettings) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            *(sys.executable, "-W", "ignore", "-m", "tests.faults.faulty_uploader", plan),
            *(settings.model_dump_json(), _PAUSE_S, _PATIENCE_S),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def _finish(settings: UploadSettings, tally: Tally, label: str) -> str:
    """Upload undisturbed to the end, and return the output."""
    process = _uploader("none", settings)
    output, _ = process.communicate(timeout=HANG_S)
    if process.returncode != 0:
        tally.problems.append(f"{label}: the upload ended with {process.returncode}: {output}")
    return output


def _compare(
    storage: Storage, settings: UploadSettings, run_dir: RunDir, tally: Tally, label: str
) -> None:
    """Check that all checkpoints are stored, and that the newest is fetched byte for byte."""
    address = settings.upload.to
    tally.problems += [f"{label}: {problem}" for problem in storage.problems(address)]
    here = sorted(int(path.name) for path in run_dir.checkpoints_newest_first())
    there = stored_runs(ObjectStore(address)).get(settings.run, [])
    if here != there:
        tally.problems.append(f"{label}: {there} are there instead of {here}")
        return
    root = run_dir.root.with_name(f"{run_dir.root.name}-fetched")
    fetched = content_of(
        fetch_run(ObjectStore(address), RemoteAddress.parse(address), root).run_dir.root
    )
    ours = content_of(run_dir.root)
    tally.problems += [
        f"{label}: {path} is another" for path, content in fetched.items() if ours[path] != content
    ]
    tally.runs += 1
    shutil.rmtree(root)
    shutil.rmtree(run_dir.root)


def journal_trials(storage: Storage, folder: Path, most: int | None) -> Tally:
    tally = Tally()
    counted = make_run(folder / "journal-counted", 100, 200)
    output = _finish(settings_of(counted, storage.new_address()), tally, "counted")
    n_lines = int(output.split()[-1])
    plans = [
        f"{fault}:{number}"
        for number in range(1, n_lines + 1)
        for fault in ("kill-before", "kill-half", "kill-after")
    ]
    storage.random.shuffle(plans)
    for plan in plans[:most]:
        run_dir = make_run(folder / f"journal-{plan.replace(':', '-')}", 100, 200)
        settings = settings_of(run_dir, storage.new_address())
        process = _uploader(plan, settings)
        process.communicate(timeout=HANG_S)
        tally.trials += 1
        tally.note("killed" if process.returncode == -9 else f"ended with {process.returncode}")
        address = settings.upload.to
        tally.problems += [f"{plan}: {problem}" for problem in storage.problems(address)]
        _finish(settings, tally, plan)
        _compare(storage, settings, run_dir, tally, plan)
    return tally


def uploader_trials(storage: Storage, folder: Path, kills: int) -> Tally:
    tally = Tally()
    storage.fail(0.5, "slow link")
    for number in range(-(-kills // _KILLS_A_RUN)):
        run_dir = make_run(folder / f"uploader-{number}", 100, 200, weights_bytes=6 << 20)
        settings = settings_of(run_dir, storage.new_address())
        for kill in range(_KILLS_A_RUN):
            label = f"run {number}, kill {kill}"
            process = _uploader("none", settings)
            try:
                process.communicate(timeout=storage.random.uniform(0.3, 3.5))
                tally.note("ended before")
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                tally.trials += 1
            address = settings.upload.to
            tally.problems += [f"{label}: {problem}" for problem in storage.problems(address)]
            if kill == 2:
                add_checkpoint(run_dir, 300, weights_bytes=6 << 20, best=100)
        _finish(settings, tally, f"run {number}")
        _compare(storage, settings, run_dir, tally, f"run {number}")
    storage.heal()
    return tally


def fault_trials(storage: Storage, folder: Path, count: int) -> Tally:
    """Upload runs until each kind of fault has struck often enough."""
    tally = Tally()
    each = -(-count // len(FAULTS))
    for fault in FAULTS:
        struck = storage.proxy.struck.get(fault, 0)
        number = 0
        while storage.proxy.struck.get(fault, 0) - struck < each:
            number += 1
            label = f"{fault}, run {number}"
            run_dir = make_run(folder / f"fault-{fault}-{number}", 100, weights_bytes=6 << 20)
            settings = settings_of(run_dir, storage.new_address())
            storage.fail(0.25, fault)
            _finish(settings, tally, label)
            storage.heal()
            _compare(storage, settings, run_dir, tally, label)
        tally.trials += storage.proxy.struck[fault] - struck
        tally.notes[fault] = storage.proxy.struck[fault] - struck
    return tally


def training_trials(storage: Storage, folder: Path, *, runs: int, kills: int) -> Tally:
    tally = Tally()
    bench = Bench(folder / "trainings", 1, 0)
    for number in range(runs):
        address = storage.new_address()
        run_dir = bench.new_run(f"training-{number}", keep_last=2)
        config = run_dir.with_suffix(".yaml")
        config.write_text(
            f"{config.read_text(encoding='utf-8')}upload: {{to: '{address}', wait_s: 20}}\n",
            encoding="utf-8",
        )
        storage.fail(0.1, "500", "503", "cut body", "lost answer", "slow link")
        for _ in range(-(-kills // runs)):
            _kill_one(bench, run_dir, storage, tally)
            tally.problems += [f"run {number}: {problem}" for problem in storage.problems(address)]
        storage.heal()
        until = Training(run_dir, bench.cpus[0])
        until.begun.wait(HANG_S)
        _wait(until, bench.uniform(0.5 * bench.train_s))
        until.process.send_signal(signal.SIGTERM)  # it saves, uploads what it can, and exits
        until.wait()
        push = [sys.executable, "-m", "game_rl", "remote", "push", str(run_dir)]
        subprocess.run(push, stdout=subprocess.DEVNULL, check=True, timeout=HANG_S)
        _fetch_and_finish(bench, run_dir, address, tally, f"run {number}")
    return tally


def _kill_one(bench: Bench, run_dir: Path, storage: Storage, tally: Tally) -> None:
    training = Training(run_dir, bench.cpus[0])
    training.begun.wait(HANG_S)
    _wait(training, bench.uniform(0.4 * bench.train_s))
    who = storage.random.choice(["training", "uploader", "both"])
    tally.trials += 1
    tally.note(who)
    for child in _uploaders(training) if who != "training" else []:
        child.kill()
    if who == "uploader":
        _wait(training, bench.uniform(0.2 * bench.train_s))
    training.process.kill()
    training.wait()
    if "Traceback" in training.output:
        tally.problems.append(f"a traceback: {training.output[-1500:]}")


def _uploaders(training: Training) -> list[psutil.Process]:
    try:
        family = psutil.Process(training.process.pid).children(recursive=True)
        return [child for child in family if "game_rl.storage" in " ".join(child.cmdline())]
    except psutil.Error:
        return []


def _wait(training: Training, seconds: float) -> None:
    try:
        training.process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _fetch_and_finish(bench: Bench, run_dir: Path, address: str, tally: Tally, label: str) -> None:
    """Delete the run's directory, fetch the run to another place, and resume it to its end."""
    remote = RemoteAddress.parse(address)
    newest = RunDir(run_dir).checkpoints_newest_first()
    there = next(iter(stored_runs(ObjectStore(address)).values()), [])
    if not newest or not there:
        tally.note("nothing saved yet")
        return
    if int(newest[0].name) != there[-1]:
        dropped = read_upload_state(RunDir(run_dir).upload_journal).dropped
        tally.problems.append(
            f"{label}: {newest[0].name} was saved, and {there} is stored; dropped: {dropped}"
        )
    shutil.rmtree(run_dir)
    fetched = run_dir.with_name(f"{run_dir.name}-fetched")
    fetch_run(ObjectStore(address), remote, fetched)
    text = (fetched / "config.yaml").read_text(encoding="utf-8")
    (fetched / "config.yaml").write_text(
        f"{text.partition('upload:')[0]}upload: null\n", encoding="utf-8"
    )
    bench.finish(fetched, bench.cpus[0], tally, label)
    tally.runs += 1


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.upload_faults", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--runs", type=int, default=20, help="trainings that are fetched")
    parser.add_argument(
        "--points", type=int, help="lines of the journal, drawn; default: every one"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    half = -(-arguments.kills // 2)
    with (
        tempfile.TemporaryDirectory(prefix="game_rl_upload_faults_") as name,
        s3_server() as endpoint,
    ):
        folder = Path(name)
        with FaultProxy(endpoint, stall_s=_STALL_S) as proxy:
            os.environ.update(s3_environment(proxy.address))
            storage = Storage(endpoint, proxy, arguments.seed)
            acts: dict[str, Callable[[], Tally]] = {
                "journal": lambda: journal_trials(storage, folder, arguments.points),
                "uploader": lambda: uploader_trials(storage, folder, half),
                "fault": lambda: fault_trials(storage, folder, arguments.faults),
                "training": lambda: training_trials(
                    storage, folder, runs=arguments.runs, kills=half
                ),
            }
            tallies: dict[str, Tally] = {}
            for kind in arguments.only:
                tallies[kind] = acts[kind]()
                print_table({kind: tallies[kind]})
                sys.stdout.flush()
    return 1 if any(tally.problems for tally in tallies.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
