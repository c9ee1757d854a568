"""Speed of DQN when half of its batches come from a Lake, compared with its own replay alone.

    python -m benchmarks.learn_from [--transitions 10_000_000] [--timesteps 6_000] [--rounds 5]
    python -m benchmarks.learn_from --draws 500 [--transitions 10_000_000]

Both train `configs/duel_dqn.yaml` in separate processes, in turns, so a slow moment of the machine
affects both. The time begins after learning has begun. The Lake is one play of `duel`, linked under
as many stream names as `--transitions` needs: its index is that of a Lake of this size, and its
reads come from the page cache. The aims are 0.9 of the timesteps/s, and memory that does not grow
while rows are drawn. With `--draws`, a process draws that many batches of 32 and does nothing else.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

from benchmarks.linked_lake import linked
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_env, make_observation_format
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.lake.lake import Lake
from game_rl.lake.lake_pool import LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.origin import origin_of, write_origin
from game_rl.lake.writer import LakeWriter
from game_rl.system.process_memory import resident_bytes
from game_rl.training.session import TrainingSession, training_process

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_dqn.yaml"
_NEVER = 10**9
_PLAYED = 20_000  # transitions of the play that the Lake is made of
_WARM_UP = 4_000  # timesteps; learning begins after half of them
_LOOKS = 5  # number of memory readings
_MIB = 2**20
_BATCH, _CACHE_BYTES = 32, 4 * _MIB  # with --draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transitions", type=int, default=10_000_000, help="of the Lake")
    parser.add_argument("--timesteps", type=int, default=6_000, help="that are timed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--own-share", type=float, default=0.5)
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="for Lake and runs"
    )
    parser.add_argument("--draws", type=int, help="only draw so many batches, without a training")
    parser.add_argument("--lake", type=Path, help=argparse.SUPPRESS)  # of a timed process
    parser.add_argument("--is-timed", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.is_timed:
        found = timed(arguments) if arguments.draws is None else drawn(arguments)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(prefix="game_rl_", dir=arguments.folder) as folder:
        lake = made_lake(Path(folder), arguments.transitions)
        print(f"a Lake of {len(lake.view()):,} transitions in {len(lake.view().streams):,} streams")
        if arguments.draws is None:
            compare(lake.path, arguments)
        else:
            _print_draws(_in_its_process(lake.path, arguments))


def made_lake(folder: Path, n_transitions: int) -> Lake:
    """Make a Lake of random play."""
    config = load_config(_CONFIG)
    game, n_actions = load_game(config.game), len(load_game(config.game).action_names)
    schema = LakeSchema.of(make_observation_format(config.env, game), n_actions=n_actions)
    base = Lake.create(folder / "base", schema)
    rng = np.random.default_rng(0)
    with closing(make_env(config.env, game)) as env, LakeWriter(base, "base", n_envs=1) as writer:
        frame, _ = env.reset(seed=0)
        for action in rng.integers(n_actions, size=min(_PLAYED, n_transitions)).tolist():
            next_frame, reward, terminated, truncated, _ = env.step(action)
            writer.append(
                frames=frame[None],
                actions=np.array([action]),
                rewards=np.array([reward]),
                next_frames=next_frame[None],
                terminated=np.array([terminated]),
                truncated=np.array([truncated]),
            )
            frame = env.reset()[0] if terminated or truncated else next_frame
    lake = linked(base, folder / "lake", n_transitions)
    for stream in lake.view().streams:
        write_origin(lake.path, stream, origin_of(config, game))
    return lake


def compare(lake: Path, arguments: argparse.Namespace) -> None:
    """Print each round, then the medians of the ratios."""
    by_wall, by_cpu = [], []
    for number in range(arguments.rounds):
        own, half = (_in_its_process(place, arguments) for place in (None, lake))
        by_wall.append(own["wall_s"] / half["wall_s"])
        by_cpu.append(own["cpu_s"] / half["cpu_s"])
        memory = ", ".join(f"{size / _MIB:.0f}" for size in half["resident_bytes"])
        print(
            f"round {number}: {arguments.timesteps / own['wall_s']:,.0f} timesteps/s from its own "
            f"replay, {arguments.timesteps / half['wall_s']:,.0f} half from the Lake "
            f"({by_wall[-1]:.3f}); CPU seconds {own['cpu_s']:.1f} and {half['cpu_s']:.1f} "
            f"({by_cpu[-1]:.3f}); the learner's memory, MiB: {memory}; at its peak "
            f"{half['peak_bytes'] / _MIB:.0f} (own replay alone {own['peak_bytes'] / _MIB:.0f})"
        )
    print(
        f"timesteps/s: {median(by_wall):.3f} ({min(by_wall):.3f} - {max(by_wall):.3f}) of learning "
        f"from its own replay (aim: 0.9); by CPU seconds of all processes {median(by_cpu):.3f} "
        f"({min(by_cpu):.3f} - {max(by_cpu):.3f})"
    )


def _in_its_process(
    lake: Path | None, arguments: argparse.Namespace
) -> dict[str, float | list[int]]:
    place = [] if lake is None else ["--lake", str(lake)]
    command = [sys.executable, "-m", "benchmarks.learn_from", "--is-timed", *place]
    numbers = ("--timesteps", str(arguments.timesteps), "--own-share", str(arguments.own_share))
    folder = ["--folder", str(arguments.folder)]
    if arguments.draws is not None:
        folder += ["--draws", str(arguments.draws)]
    run = subprocess.run(
        [*command, *numbers, *folder], stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    found: dict[str, float | list[int]] = json.loads(run.stdout.splitlines()[-1])
    return found


def timed(arguments: argparse.Namespace) -> dict[str, float | list[int]]:
    """Return wall and CPU seconds of the timesteps, and memory readings in between."""
    with tempfile.TemporaryDirectory(prefix="game_rl_", dir=arguments.folder) as folder:
        config = _config(Path(folder) / "run", arguments.lake, arguments.own_share)
        run_dir = RunDir(config.run_dir)
        run_dir.root.mkdir()
        with (
            training_process(),
            TrainingSession(config, load_game(config.game), run_dir) as session,
        ):
            session.learn_until(_WARM_UP)
            began_s, cpu_s, memory = time.perf_counter(), _cpu_s(), []
            for look in range(1, _LOOKS + 1):
                session.learn_until(_WARM_UP + arguments.timesteps * look // _LOOKS)
                memory.append(resident_bytes(os.getpid())[0])
            found: dict[str, float | list[int]] = {
                "wall_s": time.perf_counter() - began_s,
                "cpu_s": _cpu_s() - cpu_s,
                "resident_bytes": memory,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
            session.release()
        return found


def drawn(arguments: argparse.Namespace) -> dict[str, float | list[int]]:
    """Return memory before opening the Lake, after it and after the draws, and CPU seconds."""
    memory, began_s = [resident_bytes(os.getpid())[0]], time.process_time()
    reader = LakeReader(
        arguments.lake,
        table_folder=arguments.folder,
        pins="benchmark",
        n_step=3,
        gamma=0.99,
        cache_bytes=_CACHE_BYTES,
        tell=print,
    )
    pool, rng = LakePool([reader], agents=None), np.random.default_rng(0)
    pool.begin([])
    open_s = time.process_time() - began_s
    memory.append(resident_bytes(os.getpid())[0])
    for _ in range(arguments.draws):
        pool.draw(rng, _BATCH)
    memory.append(resident_bytes(os.getpid())[0])
    draws_s = time.process_time() - began_s - open_s
    pool.release()
    return {"open_s": open_s, "draws_s": draws_s / arguments.draws, "resident_bytes": memory}


def _print_draws(found: dict[str, Any]) -> None:
    before, opened, after = (size / _MIB for size in found["resident_bytes"])
    print(
        f"opened in {found['open_s']:.2f} CPU seconds, {opened - before:+.1f} MiB; {_BATCH} rows "
        f"in {1_000 * found['draws_s']:.2f} CPU milliseconds; {after - opened:+.1f} MiB by "
        f"drawing, of which blocks that are kept are up to {_CACHE_BYTES / _MIB:.0f}"
    )


def _config(run_dir: Path, lake: Path | None, own_share: float) -> RunConfig:
    overrides = [
        f"run_dir={run_dir}",
        f"total_timesteps={_NEVER}",
        f"evaluation.every_timesteps={_NEVER}",
        f"checkpoints.every_timesteps={_NEVER}",
        f"algorithm.learning_starts={_WARM_UP // 2}",
    ]
    if lake is not None:
        overrides.append(f"algorithm.learn_from={{lakes: [{lake}], own_share: {own_share}}}")
    return load_config(_CONFIG, overrides)


def _cpu_s() -> float:
    """Return the CPU seconds of this process and its workers so far."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(each.user + each.system for each in times)


if __name__ == "__main__":
    main()
