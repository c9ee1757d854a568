"""`game-rl remote` of experiments in object storage, or on a mounted disk."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from game_rl.errors import StorageError, UsageError
from game_rl.system.units import format_bytes

if TYPE_CHECKING:
    from game_rl.storage.experiments import StoredExperiment

_PATIENCE_S = 60.0


def print_experiments(experiments: "list[StoredExperiment]") -> None:
    for one in experiments:
        print(
            f"experiment {one.experiment}: generation {one.generation}, {format_bytes(one.n_bytes)}"
        )


def fetch_to(found: tuple[str, str], folder: Path, *, take_over: bool) -> int:
    """Bring the experiment, an address and an id, to a folder that is new."""
    from game_rl.storage.experiments import fetch_experiment

    to, experiment = found
    stored = fetch_experiment(to, experiment, folder, take_over=take_over)
    print(
        f"{folder}: the experiment {experiment} after generation {stored.generation}, "
        f"{format_bytes(stored.n_bytes)} fetched and verified"
    )
    return 0


def verify_experiments(url: str) -> int:
    """Read all that the experiments at an address need; how many there are.

    Raises:
        StorageError: a blob is missing or damaged.
    """
    from game_rl.storage.experiments import damaged_blobs, experiment_at, stored_experiments
    from game_rl.storage.object_store import ObjectStore

    to, wanted = experiment_at(url) or (url.partition("/runs/")[0], None)
    if wanted is None and "/runs/" in url:
        return 0
    store = ObjectStore(to)
    found = [one for one in stored_experiments(store) if wanted in (None, one.experiment)]
    columns = (TextColumn("reading"), BarColumn(), MofNCompleteColumn())
    for one in found:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("", total=len(one.tree.blobs()))
            damage = damaged_blobs(store, one, lambda: progress.advance(task))  # noqa: B023 - now
        if damage:
            raise StorageError(
                f"{to}/experiments/{one.experiment} cannot be fetched: {'; '.join(damage)}; where "
                "the experiment is still here, delete those blobs and push it again"
            )
        print(f"experiment {one.experiment}: every byte is as it was written")
    return len(found)


def push_population(root: Path, *, to: str | None, take_over: bool) -> int:
    """Send all of a population that nobody trains just now."""
    from game_rl.config.experiments import load_population
    from game_rl.config.safe_copy import PopulationUploadConfig
    from game_rl.experiments.controller import read_state
    from game_rl.experiments.experiment_dir import find_experiment
    from game_rl.experiments.make_plan import make_plan
    from game_rl.experiments.safe_copy import own_state, push_settings, take_picture, write_state
    from game_rl.storage.experiments import push_experiment
    from game_rl.storage.patience import patiently

    folder = find_experiment(root)
    population = load_population(folder.config, is_saved=True)
    upload = population.config.upload if to is None else PopulationUploadConfig(to=to)
    if upload is None:
        raise UsageError(f"{root} has no upload.to in its config; add --to URL")
    with folder.locked():
        state = own_state(folder, upload)
        generation = read_state(make_plan(folder, population)).generation
        take_picture(folder)
        settings = push_settings(folder, upload, state, generation=generation)
        settings = settings.model_copy(update={"take_over": take_over, "is_last": True})
        write_state(folder, state)
        sent = patiently(lambda: push_experiment(settings), _PATIENCE_S)
        write_state(folder, state.model_copy(update={"generation": generation}))
    print(f"generation {generation} is at {upload.to}/{settings.place}; {format_bytes(sent)} sent")
    return 0
