"""The cost of Ray for a population, compared with processes of this machine.

    python -m benchmarks.executors [stretch] [waits] [--repeats 3] [--nodes 4] [--slots 16]
                                   [--waits 64] [--wait-s 20]

`stretch`: the same stretch of a member, run in turns by local processes and by a Ray cluster on
this machine. Prints the seconds from start to end, the time that Ray takes to start, and the
memory (PSS) of Ray's processes.
`waits`: jobs that only wait, on a cluster of test nodes with `--slots` slots in all. Prints the
ratio of the ideal time to the real one, and the controller's CPU and memory meanwhile.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil

from game_rl.config.experiments.executor_config import (
    ExecutorConfig,
    LocalExecutorConfig,
    RayExecutorConfig,
)
from game_rl.config.loader import dump_config, load_config
from game_rl.experiments.executors.executor import Demand, Executor, Job, make_executor
from game_rl.experiments.jobs.job_files import StretchRequest, request_file, write_request
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.system.units import MIB
from tests.faults.ray_nodes import RayNodes

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_ppo.yaml"
_TIMESTEPS = 2_048
_MEMBER_BYTES = 500 * MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=["stretch", "waits"], default=["stretch"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--waits", type=int, default=64)
    parser.add_argument("--wait-s", type=float, default=20.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="game_rl_", dir=".") as folder:  # a disk, not a tmpfs
        if "stretch" in arguments.what:
            compare_stretches(Path(folder), arguments.repeats)
        if "waits" in arguments.what:
            with RayNodes(arguments.nodes, cpus=arguments.slots // arguments.nodes) as nodes:
                wait_on(nodes, Path(folder), arguments.waits, arguments.wait_s, arguments.slots)


# ---------------------------------------------------------------------- a stretch


def compare_stretches(folder: Path, repeats: int) -> None:
    seconds: dict[str, list[float]] = {"local": [], "ray": []}
    began = time.monotonic()
    with _opened(RayExecutorConfig(kind="ray"), folder) as on_ray:
        ray_began_s = time.monotonic() - began
        with _opened(LocalExecutorConfig(), folder) as local:
            for number in range(repeats):
                for name, executor in (("local", local), ("ray", on_ray)):
                    job = _stretch(folder / f"{name}-{number}")
                    seconds[name].append(_timed(executor, job))
        ray_bytes, worker_bytes = _ray_memory()
    print(f"a stretch of {_TIMESTEPS:,} timesteps, {repeats} in turns: median, slowest")
    for name, found in seconds.items():
        print(f"  {name:<6} {median(found):>6.2f} s {max(found):>6.2f} s")
    print(f"  Ray takes {median(seconds['ray']) - median(seconds['local']):+.2f} s")
    print(f"Ray's cluster is there after {ray_began_s:.1f} s")
    print(f"  it takes {ray_bytes / 1e6:.0f} MB, and {worker_bytes / 1e6:.0f} MB a member at once")
    print(f"  this process has {_rss_mb():.0f} MB")


@contextmanager
def _opened(config: ExecutorConfig, folder: Path, members: int = 1) -> Iterator[Executor]:
    demand = Demand(
        slots=members,
        members=members,
        cpus=1,
        ram_bytes=_MEMBER_BYTES if members == 1 else MIB,
        gpus=0,
        patience_s=60,
        folder=folder,
        warn=print,
    )
    with make_executor(config, demand) as executor:
        yield executor


def _stretch(root: Path) -> Job:
    """Make a new run, and return the job of its first stretch."""
    overrides = [f"run_dir={root}", "env.n_envs=8", "recording.episodes=0", "device=cpu"]
    overrides += [
        "stop_when=null",
        f"evaluation.every_timesteps={_TIMESTEPS}",
        "evaluation.episodes=8",
    ]
    run_dir = RunDir(root)
    root.mkdir()
    write_atomic(run_dir.config, dump_config(load_config(_CONFIG, overrides)))
    result = root.with_suffix(".json")
    request = StretchRequest(root=root.parent, run=root, until=_TIMESTEPS, seed=1, result=result)
    write_request(request_file(result), request)
    return Job(root.name, request_file(result), root.with_suffix(".log"))


def _timed(executor: Executor, job: Job) -> float:
    began = time.monotonic()
    executor.start(job)
    while not (ended := executor.wait(0.2)):
        pass
    if ended[0].code != 0:
        raise SystemExit(f"{job.name}: {ended[0].text or ended[0].cause}")
    return time.monotonic() - began


def _ray_memory() -> tuple[int, int]:
    """Return bytes (PSS) of the processes of Ray except its workers, and of the largest worker."""
    fixed, workers = 0, []
    for process in psutil.Process().children(recursive=True):
        n_bytes = process.memory_full_info().pss
        name = "".join(process.cmdline()[:1])
        if name == "ray::IDLE":
            workers.append(n_bytes)
        else:
            fixed += n_bytes
    return fixed, max(workers, default=0)


# ---------------------------------------------------------------------- waits


def wait_on(nodes: RayNodes, folder: Path, waits: int, wait_s: float, slots: int) -> None:
    config = RayExecutorConfig(kind="ray", address=nodes.address)
    with _opened(config, folder, waits) as executor:
        began_s = _waited(executor, folder / "first", slots, 0.0)
        print(f"{slots} processes of Ray are there after {began_s:.1f} s")
        memory_mb, cpu_s = [_rss_mb()], time.process_time()
        elapsed_s = _waited(executor, folder / "timed", waits, wait_s, memory_mb)
        cpu_s = time.process_time() - cpu_s
    ideal_s = wait_s * -(-waits // slots)
    print(f"{waits} waits of {wait_s:g} s on {slots} slots took {elapsed_s:.1f} s")
    print(f"  {ideal_s / elapsed_s:.1%} of ideal, {ideal_s / (elapsed_s + began_s):.1%} with that")
    print(
        f"  controller: {100 * cpu_s / elapsed_s:.2f} % of a core; memory {memory_mb[0]:.0f} MB at "
        f"first, {memory_mb[len(memory_mb) // 3]:.0f} after a third, {memory_mb[-1]:.0f} at the end"
    )


def _waited(
    executor: Executor,
    log: Path,
    waits: int,
    wait_s: float,
    memory_mb: list[float] | None = None,
) -> float:
    """Return the seconds that the waits take; append this process's memory to `memory_mb`."""
    began, ended = time.monotonic(), 0
    for number in range(waits):
        executor.start(Job(f"wait {number}", Path(f"{wait_s}"), log, module="benchmarks.wait"))
    while ended < waits:
        ended += len(executor.wait(0.2))
        if memory_mb is not None:
            memory_mb.append(_rss_mb())
    return time.monotonic() - began


def _rss_mb() -> float:
    return psutil.Process().memory_info().rss / 1e6


if __name__ == "__main__":
    main()
