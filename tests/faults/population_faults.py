"""A table of what a population loses when its controller, its members or both are killed.

    python -m tests.faults.population_faults [--kills 100]
                                     [--only controller member both signal fork_server]
    python -m tests.faults.population_faults --kills 20 --only ray_worker ray_node ray_driver
    python -m tests.faults.population_faults --kills 20 --only ray_node --without-shared-files
    python -m tests.faults.population_faults --kills 60 --kind mixture --only controller member both
    python -m tests.faults.population_faults --kills 20 --kind live --only controller member both
    python -m tests.faults.population_faults --kills 60 --kind erl
    python -m tests.faults.population_faults --kills 20 --kind memory --only controller both signal

Each run is a real `game-rl train` of a tiny population in processes of its own. It is killed at
random moments, resumed each time, and compared with an undisturbed one: every record byte for byte,
the champion's record, and the weights, optimiser and replay of each kept checkpoint. No process may
be left running, no temporary file may remain, and no traceback may appear.

A live mixture is not reproducible. Its members and its Lake are compared, and the learner's
accounts are checked.

With the kinds of Ray, members run on a cluster of two nodes. What is killed is the process of a
task, all processes of a node, or the controller. The result is compared with the same population in
local processes. Without shared files, members use a folder as storage, and only the controller sees
the experiment's folder.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

import psutil

from tests.faults.erl_files import write_erl
from tests.faults.live_books import live_differences
from tests.faults.mixture_files import write_live_mixture, write_mixture
from tests.faults.private_folder import alone, content_of, make_private
from tests.faults.ray_nodes import RayNodes
from tests.faults.trainings import Tally

KINDS = ("controller", "member", "both", "signal", "fork_server")
RAY_KINDS = ("ray_worker", "ray_node", "ray_driver")
_CONTROLLER_LIVES = ("member", "fork_server", "ray_worker", "ray_node")
_KILLS_A_RUN = 5
_FORK_SERVER = "game_rl.system.fork_server"
HANG_S = 900.0
_RUN = """\
game: duel
total_timesteps: 1000
run_dir: x
device: cpu
env: {n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}
algorithm:
  {n_steps: 16, batch_size: 16, n_epochs: 1, learning_rate: {start: 1.0e-3, end: 0}, ent_coef: 0.01}
evaluation: {n_envs: 2}
checkpoints: {every_timesteps: 32, keep_last: 1}
"""
_POPULATION = """\
kind: population
run_dir: PLACE
member: {config: run.yaml}
members: 3
generations: 3
timesteps_per_generation: 64
fitness: {episodes: 2, metric: mean_reward}
selection: {share: 0.34}
mutation:
  algorithm.learning_rate: {factor: [0.8, 1.25], bounds: [1.0e-5, 1.0e-2]}
  algorithm.ent_coef: {factor: [0.8, 1.25], bounds: [1.0e-4, 0.1]}
champion: {candidates: 2, episodes: 2}
keep_generations: {last: 2}
"""
_COMPARED = (
    "policy.safetensors",
    "optimizer.safetensors",
    "arrays.safetensors",
    "replay.safetensors",
)


class Controller:
    """A `game-rl train` of a population, in a session of its own.

    Args:
        folder: directory of the population.
        nodes: Ray cluster on which its members run, or None for local processes.
    """

    def __init__(self, folder: Path, nodes: RayNodes | None = None) -> None:
        self._nodes = nodes
        arguments = ["--config", str(folder.with_suffix(".yaml"))]
        if (content_of(folder) / "experiment.yaml").exists():
            arguments = ["--resume", str(folder)]
        self._output = folder.with_suffix(".log")
        self._from = self._output.stat().st_size if self._output.exists() else 0
        with self._output.open("ab") as file:
            self.process = subprocess.Popen(
                alone(folder, [sys.executable, "-m", "game_rl", "train", *arguments]),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._family: dict[int, psutil.Process] = {}
        self.has_seen_node_members = False

    @property
    def output(self) -> str:
        return self._output.read_bytes()[self._from :].decode()

    def run_for(self, seconds: float) -> bool:
        """Wait and note its child processes; return whether it still runs after the seconds."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            self.note_family()
            time.sleep(0.1)
        return self.process.poll() is None

    def note_family(self) -> None:
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                self._family[process.pid] = process
        for process in self._nodes.members() if self._nodes is not None else ():
            self._family[process.pid] = process
            self.has_seen_node_members = True

    def members(self) -> list[psutil.Process]:
        """Return processes of jobs and of the jobs they started; each of them leads a session."""
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            family = psutil.Process(self.process.pid).children(recursive=True)
            return [process for process in family if os.getsid(process.pid) == process.pid]
        return []

    def fork_servers(self) -> list[psutil.Process]:
        """Return the fork servers, which fork the jobs and are in the controller's session."""
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            family = psutil.Process(self.process.pid).children()
            return [process for process in family if _FORK_SERVER in process.cmdline()]
        return []

    def orphans(self) -> list[str]:
        """Return the processes that outlived the controller by ten seconds."""
        _, left = psutil.wait_procs(list(self._family.values()), timeout=10)
        return [f"{p.pid} {' '.join(p.cmdline()[:6])}" for p in left if p.is_running()]


class Bench(Protocol):
    """Experiments that are killed, and an undisturbed one for comparison."""

    nodes: RayNodes | None
    random: random.Random
    seconds: float
    """Duration of the undisturbed experiment."""

    def new(self, name: str, *, on_ray: bool = False) -> Path: ...
    def is_complete(self, folder: Path) -> bool: ...
    def differences(self, folder: Path) -> list[str]: ...


class PopulationBench:
    """Populations that are killed, and an undisturbed one for comparison."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        nodes: RayNodes | None = None,
        *,
        kind: str = "population",
        has_shared_files: bool = True,
    ) -> None:
        self.folder, self.nodes = folder, nodes
        self.kind, self.write = kind, WRITERS[kind]
        self._has_shared_files = has_shared_files
        self.random = random.Random(seed)
        self.whole = self.new("whole")
        began = time.monotonic()
        controller = Controller(self.whole)
        if controller.process.wait(HANG_S) != 0:
            raise SystemExit(f"the undisturbed population failed:\n{controller.output}")
        self.seconds = time.monotonic() - began

    def new(self, name: str, *, on_ray: bool = False) -> Path:
        path = self.folder / name
        file = self.write(self.folder, path)
        if on_ray:
            assert self.nodes is not None
            executor = f"{{kind: ray, address: '{self.nodes.address}'"
            if not self._has_shared_files:
                (self.folder / "storage").mkdir(exist_ok=True)
                executor += f", storage: 'file://{self.folder / 'storage'}'"
                make_private(path)
            file.write_text(
                f"{file.read_text(encoding='utf-8')}executor: {executor}}}\n", encoding="utf-8"
            )
        return path

    def is_complete(self, folder: Path) -> bool:
        return (content_of(folder) / "champion").exists()

    def differences(self, folder: Path) -> list[str]:
        """Return the differences of a finished population from the undisturbed one."""
        found = []
        if content_of(folder) != folder:
            found = [f"written by somebody else: {path}" for path in folder.rglob("*")]
            found += [f"left in storage: {p}" for p in self._left_in_storage()]
            folder = content_of(folder)
        left = [str(p) for p in folder.rglob(".*") if p.name.endswith((".tmp", ".trash", ".fork"))]
        found += [f"left behind: {path}" for path in left]
        if self.kind == "live":
            return found + live_differences(folder, self.whole)
        here, there = records_of(folder), records_of(self.whole)
        found += [f"another {name}" for name in there if here.get(name) != there[name]]
        found += [f"{name} too many" for name in here if name not in there]
        if hashes_of(folder) != hashes_of(self.whole):
            found.append("other weights")
        return found

    def _left_in_storage(self) -> list[Path]:
        return [path for path in (self.folder / "storage").rglob("*") if path.is_file()]


def write_population(folder: Path, root: Path) -> Path:
    """Write the file of a tiny population in `root`, and its member's config next to it."""
    (folder / "run.yaml").write_text(_RUN, encoding="utf-8")
    file = root.with_suffix(".yaml")
    file.write_text(_POPULATION.replace("PLACE", str(root)), encoding="utf-8")
    return file


def write_population_with_lakes(folder: Path, root: Path) -> Path:
    """Write a population like `write_population`, whose members each have a Lake."""
    file = write_population(folder, root)
    (folder / "run.yaml").write_text(f"{_RUN}lake: {{}}\n", encoding="utf-8")
    return file


def write_pair(folder: Path, root: Path) -> Path:
    """Write a population of two members and two generations, for processes that start slowly.

    It is the same on all systems: its precision does not depend on what a system tells of its CPU.
    """
    file = write_population_with_lakes(folder, root)
    run = folder / "run.yaml"
    text = run.read_text(encoding="utf-8")
    run.write_text(
        text.replace("ent_coef: 0.01", "ent_coef: 0.01, precision: float32"), encoding="utf-8"
    )
    text = file.read_text(encoding="utf-8")
    for old, new in {
        "members: 3": "members: 2",
        "generations: 3": "generations: 2",
        "{last: 2}": "{last: 1}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return file


def write_pair_with_memories(folder: Path, root: Path) -> Path:
    """Write a population like `write_pair`, whose members each have a recurrent network."""
    file = write_pair(folder, root)
    run = folder / "run.yaml"
    text = run.read_text(encoding="utf-8")
    assert "ent_coef: 0.01" in text
    text = text.replace("ent_coef: 0.01", "ent_coef: 0.01, memory: {size: 16, sequence: 8}")
    run.write_text(text, encoding="utf-8")
    return file


WRITERS = {
    "population": write_population_with_lakes,
    "pair": write_pair,
    "memory": write_pair_with_memories,
    "mixture": write_mixture,
    "live": write_live_mixture,
    "erl": write_erl,
}
"""Writers by kind; "live" is a live mixture, and "erl" is a population with a learner."""


def records_of(folder: Path) -> dict[str, str]:
    """Return the texts that must be the same to the byte, without the folder's name."""
    files = [*folder.glob("generations/*/record.json"), folder / "champion.json"]
    files += [folder / "state.json", *folder.glob("members/*/eval.csv")]
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8").replace(str(folder), "")
        for path in files
        if path.exists()
    }


def hashes_of(folder: Path) -> dict[str, dict[str, str]]:
    """Return the hashes of weights, optimiser, arrays and replay of each kept checkpoint."""
    found = {}
    for path in folder.rglob("manifest.json"):
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        found[str(path.parent.relative_to(folder))] = {
            name: files[name]["sha256"] for name in _COMPARED if name in files
        }
    return found


def strike(kind: str, controller: Controller, bench: Bench) -> bool:
    """Kill the processes of this kind; return False if there are none at the moment."""
    if kind in RAY_KINDS:
        return strike_on_ray(kind, controller, bench)
    members, rng = controller.members(), bench.random
    if kind in ("member", "both"):
        if not members:
            return False
        with suppress(psutil.NoSuchProcess):
            rng.choice(members).send_signal(signal.SIGKILL)
    if kind == "fork_server":
        for server in (fork_servers := controller.fork_servers()):
            server.kill()
        return bool(fork_servers)
    if kind in ("controller", "both"):
        controller.process.kill()
    if kind == "signal":
        controller.process.send_signal(rng.choice([signal.SIGTERM, signal.SIGINT]))
    return True


def strike_on_ray(kind: str, controller: Controller, bench: Bench) -> bool:
    assert bench.nodes is not None
    tasks = bench.nodes.tasks()
    if not tasks:
        return False
    if kind == "ray_worker":
        with suppress(psutil.NoSuchProcess):
            bench.random.choice(tasks).send_signal(signal.SIGKILL)
    if kind == "ray_node":
        bench.nodes.lose_node()
    if kind == "ray_driver":
        controller.process.kill()
    return True


def trials(bench: Bench, kind: str, kills: int) -> Tally:
    """Do runs with a few kills each, and bring each of them to its end."""
    tally = Tally()
    while tally.trials < kills:
        nodes = bench.nodes if kind in RAY_KINDS else None
        folder = bench.new(f"{kind}-{tally.runs}", on_ray=nodes is not None)
        label = f"{kind} {tally.runs}"
        before = tally.trials
        while tally.trials < min(before + _KILLS_A_RUN, kills):
            controller = Controller(folder, nodes)
            while controller.run_for(bench.random.uniform(0.5, bench.seconds / _KILLS_A_RUN)):
                controller.note_family()
                if not strike(kind, controller, bench):
                    continue
                tally.trials += 1
                if kind not in _CONTROLLER_LIVES or tally.trials >= before + _KILLS_A_RUN:
                    break
            controller.process.wait(HANG_S)
            tally.problems += judge(kind, controller, f"{label}, kill {tally.trials - before}")
            if bench.is_complete(folder):
                break
        tally.runs += 1
        finish(bench, folder, tally, label)
        if tally.trials == before:
            tally.problems.append(f"{label}: it came to its end, and nobody was found to kill")
            break
    return tally


def judge(kind: str, controller: Controller, label: str) -> list[str]:
    found = [f"{label}: orphan {orphan}" for orphan in controller.orphans()]
    if kind in RAY_KINDS and not controller.has_seen_node_members:
        found.append(f"{label}: no member was found on a node")
    if "Traceback" in controller.output:
        found.append(f"{label}: a traceback: {controller.output[-1500:]}")
    code = controller.process.returncode
    allowed = {0, -signal.SIGKILL}
    if kind == "signal":
        allowed |= {128 + signal.SIGTERM, 128 + signal.SIGINT, -signal.SIGTERM, -signal.SIGINT}
    if code not in allowed:
        found.append(f"{label}: exit code {code}: {controller.output[-1500:]}")
    return found


def finish(bench: Bench, folder: Path, tally: Tally, label: str) -> None:
    """Resume undisturbed to the end, and compare."""
    if not bench.is_complete(folder):
        controller = Controller(folder)
        if controller.process.wait(HANG_S) != 0:
            tally.problems.append(f"{label}: the resume failed: {controller.output[-1500:]}")
            return
    tally.problems += [f"{label}: {p}" for p in bench.differences(folder)]
    shutil.rmtree(content_of(folder), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.population_faults", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--only", nargs="+", choices=KINDS + RAY_KINDS, default=list(KINDS))
    parser.add_argument("--kind", choices=tuple(WRITERS), default="population")
    parser.add_argument("--kills", type=int, default=100, help="in all")
    parser.add_argument("--without-shared-files", action="store_true", help="the kinds of Ray")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for what is compared")
    arguments = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path.cwd()))
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="game_rl_population_faults_"))
    folder.mkdir(exist_ok=True)
    share = -(-arguments.kills // len(arguments.only))
    with ExitStack() as stack:
        nodes = None
        if set(arguments.only) & set(RAY_KINDS):
            nodes = stack.enter_context(RayNodes(2, seed=arguments.seed))
        bench = PopulationBench(
            folder,
            arguments.seed,
            nodes,
            kind=arguments.kind,
            has_shared_files=not arguments.without_shared_files,
        )
        print(f"{'killed':<12} {'kills':>6} {'runs':>5} {'bad':>4}")
        are_well = [print_row(kind, trials(bench, kind, share)) for kind in arguments.only]
    if arguments.keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(are_well) else 1


def print_row(kind: str, tally: Tally) -> bool:
    """Print the row of a finished kind; return whether it had no problems."""
    print(f"{kind:<12} {tally.trials:>6} {tally.runs:>5} {len(tally.problems):>4}", flush=True)
    for problem in tally.problems[:20]:
        print(f"\nBAD {problem}", flush=True)
    return not tally.problems


if __name__ == "__main__":
    sys.exit(main())
