"""A population whose members see storage alone, on paper: the same as one with shared files."""

import itertools
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import Experiment
from game_rl.experiments.executors.executor import CompletedJob, Job
from game_rl.experiments.executors.staging import NodeStaging, StagedJob, StorageStaging
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.kept_generations import go_back
from game_rl.storage.object_store import ObjectStore
from tests.experiments.broken_off import Killed, account_of, killed_at
from tests.experiments.conftest import MakePopulation
from tests.experiments.paper_executor import PaperExecutor
from tests.experiments.plans.test_population_plan import carry_out

_COUNT = itertools.count()
_SMALL = ("members=3", "generations=3", "selection.share=0.34", "champion.candidates=1")


class DistantPaperExecutor(PaperExecutor):
    """Each job runs in a folder of its own, while the experiment's is where nobody finds it.

    Args:
        lost: in how many of the first attempts the node is lost once it has trained.
    """

    def __init__(self, root: Path, place: Path, *, lost: int = 0) -> None:
        super().__init__()
        self._root, self._place, self._lost = root, place, lost
        store = ObjectStore.below(f"file://{place}", f"errands/{root.name}")
        self.storage = StorageStaging(root, store, lambda _: None)
        self.storage.take_back()
        self._staged: dict[str, StagedJob] = {}

    def start(self, job: Job) -> None:
        self._staged[job.name] = self.storage.begin(job)
        super().start(job)

    def wait(self, timeout_s: float) -> list[CompletedJob]:
        if not self._running:
            return []
        ended = self._carried_out(self._running[0], timeout_s)
        self.storage.end(ended.job)
        return [ended]

    def _carried_out(self, job: Job, timeout_s: float) -> CompletedJob:
        staged = self._staged.pop(job.name)
        folder = self._place / f"node-{next(_COUNT)}"
        staging = NodeStaging(staged, folder)
        staging.fetch()
        self._running[0] = replace(staged.job, request=folder / staged.job.request)
        with hidden(self._root):
            (ended,) = super().wait(timeout_s)
        self._lost -= 1
        if self._lost >= 0:
            staging.save()
            ended = replace(ended, code=-9)
        else:
            staging.deliver(ended.code)
        shutil.rmtree(folder)
        return replace(ended, job=job)


@contextmanager
def hidden(folder: Path) -> Iterator[None]:
    away = folder.with_name(f"{folder.name} away")
    Path.rename(folder, away)
    try:
        yield
    finally:
        Path.rename(away, folder)


def by_storage(population: Experiment, tmp_path: Path, *, lost: int = 0) -> ExperimentDir:
    root = population.config.run_dir
    root.mkdir(exist_ok=True)
    executor = DistantPaperExecutor(root, tmp_path, lost=lost)
    folder = carry_out(population, executor)
    executor.storage.close()
    return folder


def test_it_is_the_population_with_shared_files_and_leaves_nothing_in_storage(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    whole = account_of(carry_out(make_population("whole", *_SMALL)))
    folder = by_storage(make_population("distant", *_SMALL), tmp_path)
    assert account_of(folder) == whole
    assert not [p for p in (tmp_path / "errands").rglob("*") if p.is_file()]
    assert not folder.staging.exists()
    assert not list(tmp_path.glob("node-*"))


def test_nodes_that_are_lost_change_nothing(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    whole = account_of(carry_out(make_population("whole", *_SMALL)))
    assert account_of(by_storage(make_population("lost", *_SMALL), tmp_path, lost=6)) == whole


@pytest.mark.slow  # the controller's loop in test_population.py runs with the fast ones
def test_its_controller_killed_at_any_moment_it_becomes_the_same(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    whole = account_of(carry_out(make_population("whole", *_SMALL)))
    for operation in random.Random(0).sample(range(1, 500), 3):
        population = make_population(f"killed_{operation}", *_SMALL)
        with pytest.raises(Killed), killed_at(operation):
            by_storage(population, tmp_path)
        away = population.config.run_dir.with_name(f"{population.config.run_dir.name} away")
        if away.exists():  # hidden, as this node is no process of its own
            Path.rename(away, population.config.run_dir)
        assert account_of(by_storage(population, tmp_path)) == whole, f"killed at {operation}"


def test_going_back_takes_nothing_from_storage_that_came_later(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    whole = account_of(carry_out(make_population("whole", *_SMALL)))
    population = make_population("back", *_SMALL)
    with pytest.raises(Killed), killed_at(650):
        by_storage(population, tmp_path)
    folder = ExperimentDir(population.config.run_dir)
    away = folder.root.with_name("back away")
    if away.exists():
        Path.rename(away, folder.root)
    go_back(folder, folder.kept_generations()[-2])
    assert not folder.staging.exists()
    assert account_of(by_storage(population, tmp_path)) == whole
