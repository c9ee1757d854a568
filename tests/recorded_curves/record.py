"""Curves and evaluations of trainings, to try the hints on.

`python -m tests.recorded_curves.record RUN NAME COMMAND` writes those of a run directory to
NAME.json beside this file. COMMAND is what made the run, with a change of game.yaml after `#`.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from game_rl.events import Evaluated, Event
from game_rl.events.event_log import read_events
from game_rl.events.run_view import Curve, read_curves
from game_rl.events.training_hints import HintSettings

FOLDER = Path(__file__).parent
_READ = ("rollout/", "train/", "game/reward/", "game/looped/", "game/stuck/")


@dataclass(frozen=True)
class Recording:
    """A training as the hints see it.

    Attributes:
        command: what made it.
    """

    command: str
    settings: HintSettings
    curves: dict[str, Curve]
    evaluations: list[Evaluated]


def recorded(name: str) -> Recording:
    found = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Recording(
        found["command"],
        HintSettings(**found["settings"]),
        {
            n: Curve(np.array(timesteps, np.int64), np.array(values, np.float64))
            for n, (timesteps, values) in found["curves"].items()
        },
        [Evaluated.model_validate(event) for event in found["evaluations"]],
    )


def recorded_names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def write_recording(
    name: str,
    command: str,
    settings: HintSettings,
    curves: dict[str, Curve],
    events: Sequence[Event],
) -> None:
    kept = {n: curve for n, curve in sorted(curves.items()) if n.startswith(_READ)}
    played = [e for e in events if isinstance(e, Evaluated) and not e.is_final]
    lines = [
        f'"command": {json.dumps(command)}',
        f'"settings": {json.dumps(asdict(settings))}',
        '"evaluations": [\n'
        + ",\n".join(e.model_dump_json(exclude={"time"}, exclude_none=True) for e in played)
        + "\n]",
        '"curves": {\n'
        + ",\n".join(f"{json.dumps(n)}: {_points(c)}" for n, c in kept.items())
        + "\n}",
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    json.loads(text)
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def _points(curve: Curve) -> str:
    values: list[Any] = [float(f"{value:.4g}") for value in curve.values]
    return json.dumps([curve.timesteps.tolist(), values], separators=(",", ":"))


def main(root: str, name: str, command: str) -> None:
    from game_rl.callbacks.hints import hint_settings
    from game_rl.config.loader import load_config
    from game_rl.files.run_dir import RunDir
    from game_rl.games.definition import load_game

    run_dir = RunDir(Path(root))
    config = load_config(run_dir.config, is_saved=True)
    events = read_events(run_dir)
    settings = hint_settings(config, load_game(config.game))
    write_recording(name, command, settings, read_curves(events), events)


if __name__ == "__main__":
    main(*sys.argv[1:])
