"""Speed and memory of a Pokémon Red training: the example here, and SB3's own loop.

    python -m benchmarks.pokemon [--n-envs 8] [--n-steps 256] [--updates 4] [--repeats 3]
    python -m benchmarks.pokemon --write FOLDER && game-rl preflight FOLDER/run.yaml --probe

No ROM of Pokémon Red is needed: both play `duel` in its place, which costs the emulator the same
kind of work, and read the addresses of Pokémon Red in its memory. Ours is the run of
`examples/pokemon_red_v2`; theirs is `benchmarks.trainings.pokemon_sb3`, with the same observation,
network sizes, rollout, batches and epochs. Each run is a process of its own, and each round runs
both. A speed is the median over the updates except the first; the memory is the peak of the
process tree's PSS, with start-up. `--write` only writes our example with that ROM into a new
folder, for `game-rl preflight` to forecast its hours.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.trainings.duel_env import ROM
from game_rl.config.loader import load_config
from game_rl.files.run_dir import RunDir
from game_rl.system.machine import effective_cpus
from game_rl.system.process_memory import PssSampler

_EXAMPLE = Path(__file__).parents[1] / "examples" / "pokemon_red_v2"
_OURS = "from benchmarks.pokemon import train_ours; train_ours()"
_THEIRS = ["-m", "benchmarks.trainings.pokemon_sb3"]


def train_ours() -> None:
    """Train the example with another ROM; the words of the command line are those of `main`."""
    from benchmarks.trainings.ours import train  # which imports torch

    options = _parser().parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "example"
        write_stand_in(folder)
        n_timesteps = options.updates * options.n_envs * options.n_steps
        words = [
            f"env.n_envs={options.n_envs}",
            f"algorithm.n_steps={options.n_steps}",
            f"total_timesteps={n_timesteps}",
            f"run_dir={folder / 'run'}",
            "device=cpu",
        ]
        config = load_config(folder / "run.yaml", words)
        print(train(config, RunDir(folder / "run")).to_json())


def write_stand_in(folder: Path) -> None:
    """Write the example, which plays `duel`'s ROM, into a new folder."""
    folder.mkdir(parents=True)
    for path in _EXAMPLE.glob("*.yaml"):
        shutil.copy(path, folder)
    shutil.copy(_EXAMPLE / "pokemon_red_v2.py", folder)
    lines = (_EXAMPLE / "game.yaml").read_text(encoding="utf-8").splitlines()
    text = "\n".join(_stand_in(line) for line in lines)
    (folder / "game.yaml").write_text(text, encoding="utf-8")


def _stand_in(line: str) -> str:
    if line.startswith("rom:"):
        return f"rom: {{path: {json.dumps(str(ROM))}}}"
    if line.startswith("  init:"):
        return "  init: {script: [{wait: 200}]}"
    return line


def measure(words: list[str], options: argparse.Namespace) -> tuple[float, float]:
    """Return timesteps per second and the peak of memory in bytes of one training."""
    sizes = ["--n-envs", options.n_envs, "--n-steps", options.n_steps, "--updates", options.updates]
    command = [sys.executable, *words, *map(str, sizes)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(command, stdout=output)
        with PssSampler(process.pid) as sampler:
            process.wait()
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed")
        output.seek(0)
        clock = json.loads(output.read().splitlines()[-1])
    seconds = [sum(pair) for pair in zip(clock["collect_s"], clock["update_s"], strict=True)]
    return options.n_envs * options.n_steps / median(seconds[1:]), sampler.peak_bytes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--n-steps", type=int, default=256)
    parser.add_argument("--updates", type=int, default=4, help="in a run, with the first")
    parser.add_argument("--repeats", type=int, default=3, help="rounds")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the example, and end")
    return parser


def main() -> None:
    options = _parser().parse_args()
    if options.write is not None:
        write_stand_in(options.write)
        return
    peers = {"SB3's loop": _THEIRS, "game_rl": ["-c", _OURS]}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    for _ in range(options.repeats):
        for name, words in peers.items():
            found[name].append(measure(words, options))
    print(
        f"{options.n_envs} envs, {options.n_envs * options.n_steps:,} timesteps a rollout, "
        f"24 frames a timestep, {effective_cpus()} CPUs"
    )
    theirs = found["SB3's loop"]
    for name, runs in found.items():
        speeds = [speed for speed, _ in runs]
        ratios = [run[0] / other[0] for run, other in zip(runs, theirs, strict=True)]
        memory = max(peak for _, peak in runs)
        print(
            f"{name:<11} {median(speeds):>6,.0f} timesteps/s ({min(speeds):,.0f} to "
            f"{max(speeds):,.0f}), {median(ratios):.2f} of SB3's loop ({min(ratios):.2f} to "
            f"{max(ratios):.2f}), {memory / 1e6:,.0f} MB"
        )


if __name__ == "__main__":
    main()
