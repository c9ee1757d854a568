"""Every run, experiment and exploration below a folder: state, progress, size, what can be deleted.

Nothing is written but by `delete_spare`, and torch is not loaded.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from game_rl.checkpoints.checkpoint_folder import CheckpointFolder, best_checkpoint, best_of
from game_rl.checkpoints.named import saved_state
from game_rl.config.loader import load_config
from game_rl.errors import CheckpointError, GameRLError, UsageError, system_fault
from game_rl.events import Evaluated
from game_rl.events.run_view import read_view
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import experiment_status
from game_rl.experiments.records import ChampionRecord, read_record
from game_rl.explore.explore_dir import ExploreDir, read_progress
from game_rl.files.durable_files import remove_directory
from game_rl.files.run_dir import RunDir
from game_rl.storage.journal import read_upload_state


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run, an experiment or an exploration, as a line of a list.

    Attributes:
        kind: name of the algorithm, kind of the experiment, or `exploration`; `run`, `experiment`
            or `folder` if that cannot be read.
        state: as `RunView.state`; an experiment's also says its generation, unless it is complete.
            An exploration is `exploring` or `stopped`, and the number of its cells follows.
        timesteps: that it has played; an experiment's are those of all its runs. None if unknown.
        total_timesteps: at which it ends; None if only a run has that.
        success_rate: of its newest evaluation, or of the experiment's champion; None without one.
        mean_reward: likewise.
        n_bytes: size of all its files, with its Lake; a file with two names counts once.
        spare: folders that nothing needs any more, see `delete_spare`.
        spare_bytes: their size.
        fault: why it cannot be read; empty if it can.
        link_to: its own path, if a link in the folder leads to it; nothing is then deleted of it.
    """

    root: Path
    kind: str
    state: str
    n_bytes: int
    timesteps: int | None = None
    total_timesteps: int | None = None
    success_rate: float | None = None
    mean_reward: float | None = None
    spare: tuple[Path, ...] = ()
    spare_bytes: int = 0
    fault: str = ""
    link_to: Path | None = None

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {
            "root": str(self.root),
            "spare": [str(path) for path in self.spare],
            "link_to": None if self.link_to is None else str(self.link_to),
        }


def runs_below(folder: Path) -> list[ListedRun]:
    """Return the runs, experiments and explorations in `folder` or below it, by path.

    The runs of an experiment are not listed apart from it. Folders that this user may not read are
    listed too, since they may be runs.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is not a folder; name one that has run directories in it, such as runs"
        )
    return [_listed(root, folder) for root in _roots(folder)]


def _roots(folder: Path) -> list[Path]:
    """Return the folders of what is listed in `folder` or below it, by path.

    Folders that cannot be read are among them.
    Links are followed after everything else, so that what has several paths is listed once, under
    its own if that is below `folder`. A loop of links ends where it began.
    """
    found: list[Path] = []
    seen: set[tuple[int, int]] = set()
    folders = [folder]
    links = list[Path]()
    while folders or links:
        place = folders.pop() if folders else links.pop(0)
        try:
            identity = place.stat()
            is_new = (identity.st_dev, identity.st_ino) not in seen
            seen.add((identity.st_dev, identity.st_ino))
            if not is_new:
                continue
            run_dir = RunDir(place)
            is_run = run_dir.exists() and run_dir.identity_file.exists()
            if is_run or ExperimentDir(place).exists() or ExploreDir(place).exists():
                found.append(place)
                continue
            inside = [path for path in place.iterdir() if not path.name.startswith(".")]
            folders += [path for path in inside if path.is_dir() and not path.is_symlink()]
            links += [path for path in inside if path.is_symlink() and path.is_dir()]
        except FileNotFoundError:  # deleted meanwhile
            continue
        except OSError:  # such as a folder of another user
            found.append(place)
    return sorted(found)


def _listed(root: Path, folder: Path) -> ListedRun:
    kind = "folder"
    try:
        kind = _kind(root)
        listed = {"experiment": _listed_experiment, "exploration": _listed_exploration}
        found = listed.get(kind, _listed_run)(root)
    except (GameRLError, OSError) as error:
        text = system_fault(error) if isinstance(error, OSError) else str(error)
        found = ListedRun(root=root, kind=kind, state="unreadable", n_bytes=_size(root), fault=text)
    real = root.resolve()
    is_inside = real == folder.resolve() / root.relative_to(folder)
    return found if is_inside else replace(found, link_to=real)


def _kind(root: Path) -> str:
    """Return `experiment`, `exploration` or `run`.

    Raises:
        OSError: the folder cannot be read.
    """
    if ExperimentDir(root).exists():
        return "experiment"
    if ExploreDir(root).exists():
        return "exploration"
    if not RunDir(root).exists():
        next(root.iterdir(), None)
    return "run"


def _listed_run(root: Path) -> ListedRun:
    run_dir = RunDir(root)
    view = read_view(run_dir)
    config = load_config(run_dir.config, is_saved=True)
    spare = tuple(_spare_of_run(run_dir)) if view.is_training is False else ()
    evaluation = view.newest(Evaluated)
    return ListedRun(
        root=root,
        kind=config.algorithm.name,
        state=view.state,
        timesteps=view.timesteps,
        total_timesteps=view.total_timesteps,
        success_rate=None if evaluation is None else evaluation.success_rate,
        mean_reward=None if evaluation is None else evaluation.mean_reward,
        n_bytes=_size(root),
        spare=spare,
        spare_bytes=_size(*spare),
    )


def _spare_of_run(run_dir: RunDir) -> Iterator[Path]:
    """Yield the checkpoints that are neither the best nor the newest, and what was set aside.

    Checkpoints that wait for their upload stay.
    """
    aside = (run_dir.damaged, run_dir.set_aside)
    yield from (path for path in aside if path.is_dir() and not path.is_symlink())
    saved = run_dir.checkpoints_newest_first()
    found = saved_state(run_dir) if saved else None
    if found is None:
        return
    newest = CheckpointFolder(found[0])
    best = best_of(run_dir, newest)
    kept = {newest.path, *([] if best is None else [best_checkpoint(run_dir, best)])}
    kept |= {run_dir.checkpoint(timesteps) for timesteps in _waiting(run_dir)}
    yield from (path for path in saved if path not in kept and not path.is_symlink())


def _waiting(run_dir: RunDir) -> set[int]:
    return set(read_upload_state(run_dir.upload_journal).waiting)


def _listed_experiment(root: Path) -> ListedRun:
    folder = ExperimentDir(root)
    status = experiment_status(folder)
    champion = read_record(folder.champion_record, ChampionRecord)
    state: str = status.state
    if state != "completed" and not status.is_live:
        state = f"{state}, {status.generation} of {status.generations}"
    is_idle = status.state not in ("training", "unknown")
    can_go = is_idle and folder.superseded.is_dir() and not folder.superseded.is_symlink()
    spare = (folder.superseded,) if can_go else ()
    return ListedRun(
        root=root,
        kind=status.kind,
        state=state,
        timesteps=status.timesteps_of_all,
        success_rate=None if champion is None else champion.final.success_rate,
        mean_reward=None if champion is None else champion.final.mean_reward,
        n_bytes=_size(root),
        spare=spare,
        spare_bytes=_size(*spare),
    )


def _listed_exploration(root: Path) -> ListedRun:
    folder = ExploreDir(root)
    folder.read()
    rounds = list(read_progress(folder))
    state = folder.state
    if rounds:
        state = f"{state}, {rounds[-1].cells:,} cells"
    return ListedRun(
        root=root,
        kind="exploration",
        state=state,
        timesteps=rounds[-1].timesteps if rounds else 0,
        n_bytes=_size(root),
    )


def _size(*roots: Path) -> int:
    """Return the bytes of all files below these folders; one with several names counts once."""
    found: dict[tuple[int, int], int] = {}
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                try:
                    stat = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - many files
                except OSError:
                    continue  # deleted meanwhile
                found[stat.st_dev, stat.st_ino] = stat.st_size
    return sum(found.values())


def delete_spare(run: ListedRun) -> None:
    """Delete the spare folders of a run or an experiment, once what stays is verified.

    Raises:
        UsageError: a training has begun to write there.
        CheckpointError: a checkpoint that would stay is damaged; nothing is deleted.
    """
    folder = ExperimentDir(run.root)
    run_dir = RunDir(run.root)
    with folder.locked() if folder.exists() else run_dir.locked():
        for path in set(run_dir.checkpoints_newest_first()) - set(run.spare):
            try:
                CheckpointFolder(path).verify()
            except CheckpointError as error:
                raise CheckpointError(f"nothing of {run.root} was deleted: {error}") from None
        for path in run.spare:
            if path.is_dir():
                remove_directory(path)
