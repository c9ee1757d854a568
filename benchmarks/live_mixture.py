"""How much a live mixture's learner slows the members, and how new the rows are that it draws.

    python -m benchmarks.live_mixture [--members 4] [--timesteps 32768] [--turns 3]

Runs in turns the members of duel_mixture_live with the learner, and the same members with one more
member in the learner's place. The ratios compare the members' timesteps/s. The age is that of the
newest row that the learner could draw, as the median of each thousand draws while members played.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import yaml

_CONFIGS = Path(__file__).parents[1] / "configs"
_SEAL_EVERY = 1_024  # timesteps, as a live mixture seals its Lake
_TOLD_EVERY = 2_048  # timesteps between checkpoints, at which the learner reports the age of rows


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live_mixture", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--timesteps", type=int, default=32_768, help="of each member")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    ratios, ages = [], []
    with tempfile.TemporaryDirectory(prefix="game_rl_live_") as name:
        for turn in range(arguments.turns):
            folder = Path(name) / str(turn)
            folder.mkdir()
            live = _train(folder, _live(folder, arguments.members, arguments.timesteps))
            others = _train(folder, _members(folder, arguments.members + 1, arguments.timesteps))
            speed, beside = _speed(live), _speed(others)
            ratios.append(speed / beside)
            ages += _ages(live)
            print(
                f"turn {turn}: {speed:.0f} timesteps/s beside the learner, {beside:.0f} beside "
                f"another member; {_own_share(live):.1%} of the learner's rows are its own",
                flush=True,
            )
    if not ages:
        raise SystemExit("the members ended before the learner had begun; give more --timesteps")
    print(f"members' speed: {median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})")
    print(f"age of the newest row: median {median(ages):.1f} s, at most {max(ages):.1f} s")


def _live(folder: Path, members: int, timesteps: int) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(
        (_CONFIGS / "duel_mixture_live.yaml").read_text(encoding="utf-8")
    )
    learner = config["learner"] | {"checkpoints": {"every_timesteps": _TOLD_EVERY}}
    return config | {
        "learner": learner,
        "run_dir": str(folder / "live"),
        "members": members,
        "rounds": 1,
        "timesteps_per_round": timesteps,
        "learner_per_round": {"timesteps": timesteps},  # the members end before the learner
        "fitness": {"episodes": 1},
        "champion": {"candidates": 1, "episodes": 1},
    }


def _members(folder: Path, members: int, timesteps: int) -> dict[str, Any]:
    live = _live(folder, members, timesteps)
    return {
        "kind": "population",
        "run_dir": str(folder / "members"),
        "member": live["member"] | {"lake": {"seal_every_timesteps": _SEAL_EVERY}},
        "members": members,
        "control": members,
        "generations": 1,
        "timesteps_per_generation": timesteps,
        "fitness": live["fitness"],
        "champion": live["champion"],
        "executor": {"kind": "local", "parallel": members},
    }


def _train(folder: Path, config: dict[str, Any]) -> Path:
    config["member"] |= {"config": str(_CONFIGS / config["member"]["config"])}
    if "learner" in config:
        config["learner"] |= {"config": str(_CONFIGS / config["learner"]["config"])}
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "game_rl", "train", "--config", str(file)],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return Path(config["run_dir"])


def _ended(run_dir: Path) -> list[dict[str, Any]]:
    """Return the `stretch_ended` event of each member, without the learner's."""
    ended = _events(run_dir, "stretch_ended")
    return [event for event in ended if event["folder"] != "learner"]


def _events(run_dir: Path, name: str) -> list[dict[str, Any]]:
    events = map(json.loads, (run_dir / "events.jsonl").read_text(encoding="utf-8").splitlines())
    return [event for event in events if event["event"] == name]


def _speed(run_dir: Path) -> float:
    return median(float(event["timesteps_per_s"]) for event in _ended(run_dir))


def _followed(run_dir: Path) -> list[dict[str, Any]]:
    return _events(run_dir / "members" / "learner", "lakes_followed")


def _ages(run_dir: Path) -> list[float]:
    first_end = min(datetime.fromisoformat(event["time"]) for event in _ended(run_dir))
    return [
        event["newest_age_s"]
        for event in _followed(run_dir)
        if event["newest_age_s"] is not None and datetime.fromisoformat(event["time"]) < first_end
    ]


def _own_share(run_dir: Path) -> float:
    newest = _followed(run_dir)[-1]
    return float(newest["own_drawn"] / newest["drawn"])


if __name__ == "__main__":
    main()
