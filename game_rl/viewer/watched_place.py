"""What `game-rl watch` was asked to show: a run, an experiment, or a folder of runs."""

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from game_rl.event_log import read_events
from game_rl.run_dir import RunDir
from game_rl.viewer.run_summary import run_summary

Kind = Literal["run", "experiment", "folder"]

MOST_RUNS = 64
"""Runs of a folder that the page shows, the newest ones."""
_EXPERIMENT_FILE = "experiment.yaml"


@dataclass(frozen=True)
class WatchedPlace:
    """The folder that the page shows."""

    root: Path

    @property
    def kind(self) -> Kind | None:
        """None if there is nothing to show."""
        if RunDir(self.root).exists():
            return "run"
        if self._is_experiment:
            return "experiment"
        return "folder" if self.runs() else None

    def runs(self) -> dict[str, RunDir]:
        """Return the runs by the names that addresses of the page give them; "" is the only one."""
        if RunDir(self.root).exists():
            return {"": RunDir(self.root)}
        if self._is_experiment:
            found = _runs_in(self.root / "members")
            champion = RunDir(self.root / "champion")
            return found | ({"champion": champion} if champion.exists() else {})
        return _runs_in(self.root)

    def overview(self, runs: Mapping[str, RunDir]) -> dict[str, Any]:
        """Return the numbers of the experiment, or of the runs of the folder."""
        if not self._is_experiment:
            return {"kind": "folder", "members": [_brief_now(*each) for each in runs.items()]}
        # modules that the page of a run does not need, and which would take a fifth of its memory
        module = importlib.import_module("game_rl.viewer.experiment_summary")
        return {"name": self.root.name, **module.experiment_summary(self.root)}

    @property
    def _is_experiment(self) -> bool:
        return (self.root / _EXPERIMENT_FILE).is_file()


def _brief_now(name: str, run_dir: RunDir) -> dict[str, Any]:
    file = run_dir.events
    size = file.stat().st_size if file.exists() else 0
    return _brief(name, run_dir, size, is_training=run_dir.is_locked)


@functools.lru_cache(maxsize=2 * MOST_RUNS)
def _brief(name: str, run_dir: RunDir, n_bytes: int, *, is_training: bool | None) -> dict[str, Any]:
    """Return the numbers of a run of a folder, read again once its events have grown."""
    assert n_bytes >= 0
    summary = run_summary(read_events(run_dir), is_training=is_training)
    keys = ("state", "algorithm", "timesteps", "total_timesteps", "timesteps_per_s", "seconds_left")
    shown = {key: summary[key] for key in (*keys, "mean_reward", "success_rate", "evaluation")}
    return {"folder": name, **shown}


def _runs_in(folder: Path) -> dict[str, RunDir]:
    if not folder.is_dir():
        return {}
    found = [RunDir(path) for path in folder.iterdir() if RunDir(path).exists()]
    newest = sorted(found, key=lambda run: run.config.stat().st_mtime, reverse=True)[:MOST_RUNS]
    return {run.root.name: run for run in sorted(newest, key=lambda run: run.root.name)}
