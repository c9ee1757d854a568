"""What DQN loses when it is resumed without its replay: one training, resumed with it and without.

    python -m benchmarks.resume_dip [--before 120000] [--after 60000] [--seed 0]

The training of configs/duel_dqn.yaml stops at `--before`. Its last checkpoint is resumed twice: as
it is, and after its replay was taken out, as if `save_replay_buffer` had been off. Both see the
same fights in their evaluations, of which the table has the share won.
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from game_rl.run_dir import RunDir

_CONFIG = Path(__file__).parents[1] / "configs" / "duel_dqn.yaml"
_REPLAY = "replay.safetensors"
_EVALUATIONS = 12


def game_rl(*arguments: str, **settings: object) -> None:
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "game_rl", "train", *arguments, *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def without_replay(run_dir: Path, copy: Path) -> None:
    """A copy whose checkpoints never had a replay."""
    shutil.copytree(run_dir, copy)
    for checkpoint in RunDir(copy).checkpoints_newest_first():
        manifest = checkpoint / "manifest.json"
        content = json.loads(manifest.read_text())
        if content["files"].pop(_REPLAY, None):
            (checkpoint / _REPLAY).unlink()
            manifest.write_text(json.dumps(content))


def shares_won(run_dir: Path) -> dict[int, float]:
    with RunDir(run_dir).evaluations.open() as file:
        return {int(row["timesteps"]): float(row["success_rate"]) for row in csv.DictReader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=int, default=120_000)
    parser.add_argument("--after", type=int, default=60_000)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    every = options.after // _EVALUATIONS
    settings: dict[str, object] = {
        "seed": options.seed,
        "total_timesteps": options.before,
        "checkpoints.save_replay_buffer": "true",
        "checkpoints.every_timesteps": options.before,
        "evaluation.every_timesteps": options.before,
        "evaluation.episodes": options.episodes,
        "evaluation.final_episodes": 1,
        "recording.episodes": 0,
    }
    with tempfile.TemporaryDirectory(prefix="game_rl_resume_dip_") as folder:
        full, empty = Path(folder) / "full", Path(folder) / "empty"
        game_rl("--config", str(_CONFIG), run_dir=full, **settings)
        without_replay(full, empty)
        for run_dir in (full, empty):
            total = {"total_timesteps": options.before + options.after}
            game_rl("--resume", str(run_dir), **total, **{"evaluation.every_timesteps": every})
        found = [shares_won(run_dir) for run_dir in (full, empty)]
    print(f"resumed at {options.before:,}; {options.episodes} fights each, seed {options.seed}")
    print("timestep    with replay   without")
    for timestep, share in found[0].items():
        print(f"{timestep:>8,}   {share:>11.0%}   {found[1][timestep]:>7.0%}")


if __name__ == "__main__":
    main()
