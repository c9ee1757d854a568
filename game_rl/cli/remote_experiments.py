"""`game-rl remote` for experiments in object storage, or on a mounted disk."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from game_rl.errors import StorageError, UsageError
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.config.upload import UploadConfig
    from game_rl.storage.faults import Patience
    from game_rl.storage.inventory import ExperimentAddress, StoredExperiment
    from game_rl.storage.object_store import ObjectStore

_LOCK_WAIT_S = 5.0


def fetch_to(
    address: "ExperimentAddress", folder: Path, patience: "Patience", *, take_over: bool
) -> int:
    """Fetch the experiment to a new folder."""
    from game_rl.storage.fetch import fetch_experiment

    stored = fetch_experiment(address, folder, take_over=take_over, patience=patience)
    print(
        f"{folder}: the {stored.tree.kind} {stored.experiment} after generation "
        f"{stored.generation}, {format_bytes(stored.n_bytes)} fetched and verified"
    )
    return 0


def verify_experiments(url: str, patience: "Patience") -> int:
    """Verify all blobs that the experiments at an address need, and return their number.

    Raises:
        StorageError: a blob is missing or damaged.
    """
    from game_rl.storage.inventory import (
        ExperimentAddress,
        RemoteAddress,
        find_stored,
        stored_experiments,
    )
    from game_rl.storage.object_store import ObjectStore

    one = ExperimentAddress.parse(url)
    if one is not None:
        store = ObjectStore(one.to, patience=patience)
        found = [find_stored(one, patience)]
    else:
        address = RemoteAddress.parse(url)
        if address.run is not None or address.timesteps is not None:
            return 0
        store = ObjectStore(address.to, patience=patience)
        found = stored_experiments(store)
    only = () if one is None or one.generation is None else (one.generation,)
    for stored in found:
        _verify(store, stored, only)
    return len(found)


def _verify(store: "ObjectStore", stored: "StoredExperiment", only: tuple[int, ...]) -> None:
    from game_rl.storage.inventory import damaged_blobs, needed_blobs

    blobs, kind = needed_blobs(store, stored, *only), stored.tree.kind
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(blobs))
        damage = damaged_blobs(store, stored, blobs, lambda: progress.advance(task))
    if damage:
        raise StorageError(
            f"the {kind} {stored.experiment} at {store.address} cannot be fetched whole: "
            f"{'; '.join(damage)}; if this machine has it, delete those blobs and push it again"
        )
    count = len(only or stored.generations)
    print(
        f"{kind} {stored.experiment}: {count} generation{'' if count == 1 else 's'}, "
        f"{len(blobs):,} blobs, {format_bytes(sum(blobs.values()))}: every byte is as it was "
        "written"
    )


def push_experiment_folder(
    root: Path, to: "UploadConfig | None", patience: "Patience", *, take_over: bool
) -> int:
    """Upload an experiment that is not training now."""
    from game_rl.config.experiments.experiment import load_experiment
    from game_rl.experiments.backup import (
        forget_picture,
        own_state,
        push_settings,
        take_picture,
        uploaded_to,
        write_state,
    )
    from game_rl.experiments.controller import read_state
    from game_rl.experiments.experiment_dir import find_experiment
    from game_rl.experiments.plans.make_plan import make_plan
    from game_rl.run_dir import alone
    from game_rl.storage.uploader import push_experiment

    folder = find_experiment(root)
    experiment = uploaded_to(load_experiment(folder.config, is_saved=True), to)
    upload = experiment.config.upload
    if upload is None:
        raise UsageError(f"{root} has no upload.to in its config; add --to URL")
    with folder.locked(), alone(root, wait_s=_LOCK_WAIT_S) as is_alone:
        if not is_alone:
            raise UsageError(f"{root} is being uploaded by another process; wait until it ends")
        state = own_state(folder, upload)
        generation = read_state(make_plan(folder, experiment)).generation
        take_picture(folder, upload.what)
        settings = push_settings(folder, experiment, state, generation=generation)
        settings = settings.model_copy(update={"take_over": take_over, "is_last": True})
        write_state(folder, state)
        try:
            sent = push_experiment(settings, patience)
        finally:
            forget_picture(folder)
        write_state(folder, state.model_copy(update={"generation": generation}))
    print(f"generation {generation} is at {upload.to}/{settings.place}; {format_bytes(sent)} sent")
    return 0
