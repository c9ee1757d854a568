"""What `game-rl watch` was asked to show: a run, an experiment, an exploration, or a folder."""

import functools
import importlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from game_rl.errors import GameRLError
from game_rl.events.event_log import read_events
from game_rl.events.run_view import RunView
from game_rl.files.run_dir import RunDir
from game_rl.system.output import valid_text
from game_rl.viewer.followed_run import clips_of, run_summary

if TYPE_CHECKING:
    from game_rl.viewer.followed_exploration import FollowedExploration

Kind = Literal["run", "experiment", "exploration", "folder"]

MOST_RUNS = 64
"""Runs of a folder that the page shows, the newest ones."""
_EXPERIMENT_FILE = "experiment.yaml"
_EXPLORATION_FILE = "explore.json"


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
        if self.is_exploration:
            return "exploration"
        others = _experiments_in(self.root) or _explorations_in(self.root)
        return "folder" if self.runs() or others else None

    def runs(self) -> dict[str, RunDir]:
        """Return the runs by the names that addresses of the page give them; "" is the only one.

        A folder's runs include those of each of its experiments, as `NAME/champion` and `NAME/03`.
        """
        if RunDir(self.root).exists():
            return {"": RunDir(self.root)}
        if self._is_experiment:
            return _runs_of_experiment(self.root)
        found = _runs_in(self.root)
        for path in _experiments_in(self.root):
            own = valid_text(path.name)
            found |= {f"{own}/{name}": run for name, run in _runs_of_experiment(path).items()}
        return found

    def inside(self) -> dict[str, "WatchedPlace"]:
        """Return a folder's experiments and explorations by name, which have pages of their own."""
        if RunDir(self.root).exists() or self._is_experiment or self.is_exploration:
            return {}
        found = [*_explorations_in(self.root), *_experiments_in(self.root)]
        return {valid_text(path.name): WatchedPlace(path) for path in found}

    def live_runs(self, runs: Mapping[str, RunDir]) -> dict[str, RunDir]:
        """Return those of the runs whose screens the place's own page shows.

        Of an experiment in a folder, it is the first run that trains now.
        """
        if self._is_experiment:
            return dict(runs)
        found = {name: run for name, run in runs.items() if "/" not in name}
        for path in _experiments_in(self.root):
            if RunDir(path).is_locked is False:
                continue
            own = f"{valid_text(path.name)}/"
            members = [(name, run) for name, run in runs.items() if name.startswith(own)]
            found |= dict([each for each in members if each[1].is_locked][:1])
        return found

    def title_of(self, name: str) -> str:
        """Return what the page of a run calls it."""
        run = self.runs().get(name)
        experiment = None if run is None else owning_experiment(run)
        if run is None or experiment is None:
            return name or self.root.absolute().name
        own = run.root.absolute().name
        of = f"member {own}" if run.root.absolute().parent.name == "members" else own
        return f"{experiment.name}, {of}"

    def overview(self, runs: Mapping[str, RunDir]) -> dict[str, Any]:
        """Return the numbers of the experiment, or of all that is in the folder."""
        name = self.root.absolute().name
        if self._is_experiment:
            own = {"name": name, "path": str(self.root)}
            return {**own, **_experiment_summary().experiment_summary(self.root)}
        explorations = [_exploration_now(path) for path in _explorations_in(self.root)]
        experiments = [_experiment_now(path) for path in _experiments_in(self.root)]
        return {
            "kind": "folder",
            "name": name,
            "is_there": self.root.is_dir(),
            "members": [
                *(_brief_now(name, run) for name, run in runs.items() if "/" not in name),
                *experiments,
                *explorations,
            ],
        }

    @property
    def is_exploration(self) -> bool:
        return (self.root / _EXPLORATION_FILE).is_file()

    def exploration(self) -> "FollowedExploration":
        """Return the exploration, of whose archive nothing was read yet.

        Raises:
            GameRLError: what is explored cannot be read.
        """
        found: FollowedExploration = _explorations().FollowedExploration(self.root)
        return found

    def picture(self, name: str) -> Path | None:
        """Return a picture of the exploration by its name; None if there is none."""
        if not self.is_exploration:
            return None
        found = {path.stem: path for path in _explorations().exploration_pictures(self.root)}
        return found.get(name)

    @property
    def _is_experiment(self) -> bool:
        return (self.root / _EXPERIMENT_FILE).is_file()


def owning_experiment(run_dir: RunDir) -> Path | None:
    """Return the experiment of which the run is a member, the learner or the champion, if any."""
    above = list(run_dir.root.absolute().parents)[:2]  # champion/ and learner/, members/00
    return next((folder for folder in above if (folder / _EXPERIMENT_FILE).is_file()), None)


def _experiment_summary() -> ModuleType:
    """Return modules that the page of a run does not need: they take a fifth of its memory."""
    return importlib.import_module("game_rl.viewer.experiment_summary")


def _explorations() -> ModuleType:
    """Return modules that no other page needs."""
    return importlib.import_module("game_rl.viewer.followed_exploration")


def _exploration_now(root: Path) -> dict[str, Any]:
    """Return what a row shows of an exploration, which has a page of its own."""
    try:
        found: dict[str, Any] = _explorations().exploration_brief(root)
    except (GameRLError, OSError) as error:
        found = {"kind": "exploration", "state": "unknown", "text": str(error)}
    return {"folder": root.name, "path": str(root), "is_experiment": True, **found}


def _experiment_now(root: Path) -> dict[str, Any]:
    """Return what a row shows of an experiment, which has a page of its own."""
    try:
        found: dict[str, Any] = _experiment_summary().experiment_brief(root)
    except (GameRLError, OSError) as error:
        found = {"kind": "experiment", "state": "unknown", "text": str(error)}
    return {"folder": root.name, "path": str(root), "is_experiment": True, **found}


def _brief_now(name: str, run_dir: RunDir) -> dict[str, Any]:
    try:
        found = run_dir.events.stat()
        file = (found.st_ino, found.st_size, found.st_mtime_ns)
    except OSError:
        file = (0, 0, 0)
    return _brief(name, run_dir, file, is_training=run_dir.is_locked)


@functools.lru_cache(maxsize=2 * MOST_RUNS)
def _brief(
    name: str, run_dir: RunDir, file: tuple[int, int, int], *, is_training: bool | None
) -> dict[str, Any]:
    """Return the numbers of a run of a folder, read again once its file of events is another."""
    assert len(file) == 3
    summary = run_summary(RunView(read_events(run_dir), is_training))
    clips = [clip.name for clip in clips_of(run_dir)]
    return {
        "folder": name,
        "clip": next(iter(clips), None),
        **{key: summary[key] for key in _BRIEF},
    }


_BRIEF = (
    "state",
    "algorithm",
    "timesteps",
    "total_timesteps",
    "timesteps_per_s",
    "mean_reward",
    "success_rate",
    "evaluation",
    "best_evaluation",
    "final_evaluation",
    "last_event",
)


def _runs_in(folder: Path) -> dict[str, RunDir]:
    """Return the newest runs of a folder, by names that are valid text."""
    newest = sorted(_subfolders(folder), key=_changed_s, reverse=True)
    runs = [RunDir(path) for path in newest if _has(path, RunDir(path).config.name)][:MOST_RUNS]
    found = {valid_text(run.root.name): run for run in runs}
    return dict(sorted(found.items()))


def _runs_of_experiment(experiment: Path) -> dict[str, RunDir]:
    """Return the members of an experiment, and its champion, if it has one."""
    found = _runs_in(experiment / "members")
    champion = RunDir(experiment / "champion")
    if _has(champion.root, champion.config.name):
        found["champion"] = champion
    return found


def _experiments_in(folder: Path) -> list[Path]:
    found = [path for path in _subfolders(folder) if _has(path, _EXPERIMENT_FILE)]
    return sorted(sorted(found, key=_changed_s, reverse=True)[:MOST_RUNS])


def _explorations_in(folder: Path) -> list[Path]:
    found = [path for path in _subfolders(folder) if _has(path, _EXPLORATION_FILE)]
    return sorted(sorted(found, key=_changed_s, reverse=True)[:MOST_RUNS])


def _has(folder: Path, name: str) -> bool:
    """Whether there is such a file in a folder; False if this user may not enter the folder."""
    try:
        return (folder / name).is_file()
    except OSError:
        return False


def _subfolders(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _changed_s(folder: Path) -> float:
    """Return when the folder's config was written, or -inf if it has gone."""
    for name in ("config.yaml", _EXPERIMENT_FILE, _EXPLORATION_FILE):
        with suppress(OSError):
            return (folder / name).stat().st_mtime
    return float("-inf")
