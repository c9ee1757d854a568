"""Brings a run or an experiment from storage to a folder.

A file appears under its name when it is whole and has the sha256 of the manifest. After a kill, the
next fetch keeps these files. The config is written last, and makes the directory a run.
"""

import base64
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.config.loader import dump_config
from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.errors import StorageError, UsageError
from game_rl.features.feature_table import FEATURES
from game_rl.files.durable_files import remove_directory, write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import parse_saved
from game_rl.loggers.log_files import TableSize, appended_files, cut_file, cut_table
from game_rl.storage.blobs import _PART, Tell, fetch_file, restore_tree
from game_rl.storage.claim import refuse_active
from game_rl.storage.faults import NO_PATIENCE, Patience
from game_rl.storage.inventory import (
    ExperimentAddress,
    RemoteAddress,
    StoredExperiment,
    find_manifest,
    find_stored,
)
from game_rl.storage.manifest import (
    RunFile,
    RunManifest,
    StoredVideos,
    parse_stored,
    place_of,
    run_folder,
)
from game_rl.storage.object_store import ObjectStore

_AT_ONCE = 4


@dataclass(frozen=True)
class Fetched:
    """A run that was fetched.

    Attributes:
        fetched_bytes: bytes that were fetched, without files that were here already.
    """

    run_dir: RunDir
    manifest: RunManifest
    fetched_bytes: int


def fetch_run(
    store: ObjectStore,
    address: RemoteAddress,
    root: Path,
    *,
    take_over: bool = True,
    begin: Callable[[RunManifest], None] = lambda _: None,
    tell: Tell = lambda _: None,
) -> Fetched:
    """Fetch the run at `address` to the directory `root`, which must be new or hold a part of it.

    Args:
        take_over: whether to fetch it even if another machine writes to it.
        begin: called with the manifest before anything is fetched.
        tell: called with the progress, from several threads.

    Raises:
        UsageError: `root` holds a run or other files, or the address matches no checkpoint.
        StorageError: a blob is missing or damaged, another machine writes there and `take_over` is
            False, or storage fails.
    """
    run_dir = RunDir(root)
    if run_dir.exists():
        raise UsageError(f"{root} already holds a run; name a new directory")
    manifest = find_manifest(store, address)
    if not take_over:
        refuse_active(store, manifest.run.id)
    _check_place(run_dir, manifest.run.id)
    begin(manifest)
    root.mkdir(parents=True, exist_ok=True)
    _remove_other_checkpoints(run_dir, manifest)
    files = [*manifest.files, *_videos(store, manifest, address)]
    files.sort(key=lambda file: file.path != run_dir.identity_file.name)
    fetched = fetch_file(store, files[0], root, tell)  # identity first: a kill may follow
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        fetched += sum(pool.map(lambda file: fetch_file(store, file, root, tell), files[1:]))
    checkpoint = run_dir.checkpoint(manifest.timesteps)
    _restore_reports(run_dir, checkpoint)
    paths = {file.path for file in files}
    for feature in FEATURES:
        feature.fetched(run_dir, checkpoint, paths)
    write_atomic(run_dir.config, dump_config(_config(manifest, root)))
    return Fetched(run_dir, manifest, fetched)


def _check_place(run_dir: RunDir, identity: str) -> None:
    """Raise UsageError unless the directory is new, or holds a part of what has this id."""
    root = run_dir.root
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file; name a new directory")
    found = [path for path in root.iterdir() if path.suffix != _PART] if root.is_dir() else []
    if not found:
        return
    if run_dir.identity_file.exists() and run_dir.identity().id == identity:
        return
    raise UsageError(f"{root} is not empty and holds no part of it; name a new directory")


def _remove_other_checkpoints(run_dir: RunDir, manifest: RunManifest) -> None:
    """Delete other checkpoints, which an earlier attempt may have fetched only in part."""
    paths = [Path(file.path).parts for file in manifest.files]
    wanted = {parts[1] for parts in paths if parts[0] == "checkpoints"}
    for path in run_dir.checkpoints_newest_first():
        if path.name not in wanted:
            remove_directory(path)


def _videos(
    store: ObjectStore, manifest: RunManifest, address: RemoteAddress
) -> tuple[RunFile, ...]:
    """Return the clips of the run's end, unless the address names a checkpoint."""
    name = f"{run_folder(manifest.run.id)}/videos.json"
    content = None if address.timesteps is not None else store.get(name)
    return () if content is None else parse_stored(StoredVideos, content, name).files


def _restore_reports(run_dir: RunDir, checkpoint: Path) -> None:
    """Restore the tables of evaluations, and cut curves to their length at the checkpoint."""
    play: dict[str, Any] = json.loads((checkpoint / "play.json").read_bytes())
    if play["evaluations"]:
        write_atomic(run_dir.evaluations, str(play["evaluations"]))
    if play.get("evaluation_episodes"):
        episodes = base64.b64decode(play["evaluation_episodes"])
        write_atomic(run_dir.evaluation_episodes, episodes)
    log = play["log"]
    for path in run_dir.tensorboard.glob("events.out.tfevents.*"):
        cut_file(path, log["file_bytes"].get(path.name))
    for path in appended_files(run_dir):
        cut_file(path, log.get("appended_bytes", {}).get(path.name))
    table = log.get("table")
    cut_table(run_dir.progress, None if table is None else TableSize.model_validate(table))


def _config(manifest: RunManifest, root: Path) -> RunConfig:
    """Return the run's config, with the paths of its new place."""
    document: dict[str, Any] = saved_config(manifest.config, source="the manifest").model_dump(
        mode="json"
    )
    document["run_dir"] = str(root)
    if manifest.game_file is not None:
        document["game"] = f"./{manifest.game_file}"  # relative to the config
    if manifest.has_lake and document["lake"] is not None:
        document["lake"]["path"] = None
    return parse_saved(
        RunConfig,
        json.dumps(document),
        "the stored config",
        error=StorageError,
        fault="cannot be used here",
        way_out="fetch another checkpoint",
    )


LAST_FILE = "experiment.yaml"
"""The file whose presence makes a folder an experiment, so it is fetched last."""


def fetch_experiment(
    address: ExperimentAddress,
    root: Path,
    *,
    take_over: bool = True,
    patience: Patience = NO_PATIENCE,
) -> StoredExperiment:
    """Fetch an experiment to the folder `root`, which must be new or hold a part of it.

    Args:
        take_over: whether to fetch it even if another machine writes to it.
        patience: how long to wait while storage fails.

    Raises:
        UsageError: `root` holds a whole experiment or other files, or there is no experiment at
            the address.
        StorageError: a blob is missing or damaged, another machine writes there and `take_over` is
            False, or storage fails.
    """
    found = find_stored(address, patience)
    if (root / LAST_FILE).exists():
        raise UsageError(f"{root} already holds an experiment; name a new directory")
    _check_place(RunDir(root), address.experiment)
    store = ObjectStore(f"{address.to}/{place_of(address.experiment)}", patience=patience)
    if not take_over:
        refuse_active(store, address.experiment)
    parts = sorted({file.path.split("/")[0] for file in found.tree.files})
    parts.sort(key=lambda part: (part == LAST_FILE, part != "run.json"))
    root.mkdir(parents=True, exist_ok=True)
    for folder in {file.path.split("/")[0] for file in found.tree.files if "/" in file.path}:
        (root / folder).mkdir(exist_ok=True)  # so that what has arrived stays after a kill
    restore_tree(store, found.tree, root, parts)
    return found
