"""Errands between a controller's folder and a node's, each of which sees storage alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.experiments.executors.executor import Job
from game_rl.experiments.executors.staging import (
    GivenUpError,
    NodeStaging,
    StagedJob,
    StorageStaging,
)
from game_rl.experiments.jobs.job_files import request_file
from game_rl.files.run_dir import RunDir, take_claim
from game_rl.storage.object_store import ObjectStore
from tests.storage.conftest import disk_address as disk_address  # fixtures
from tests.storage.runs import add_checkpoint, make_run
from tests.storage.test_blobs import content_of

UNTIL, RESULT = 200, "generations/0001/03.json"


class Node:
    """A place that knows a staged job and storage, and a job that trains there."""

    def __init__(self, staged: StagedJob, folder: Path) -> None:
        self.staged, self.folder = staged, folder
        self.staging = NodeStaging(staged, folder)

    @property
    def run_dir(self) -> RunDir:
        assert self.staged.run is not None
        return RunDir(self.folder / self.staged.run)

    def fetch(self) -> "Node":
        self.staging.fetch()
        return self

    def train(self, *, until: int = UNTIL) -> "Node":
        add_checkpoint(self.run_dir, until)
        return self

    def finish(self) -> None:
        path = self.folder / RESULT
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("done", encoding="utf-8")
        self.staging.deliver(0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_run(tmp_path / "here" / "members" / "03", 100)
    return tmp_path / "here"


@pytest.fixture
def store(disk_address: str) -> ObjectStore:
    return ObjectStore.below(disk_address, "errands/x")


@pytest.fixture
def storage(root: Path, store: ObjectStore) -> StorageStaging:
    return StorageStaging(root, store, lambda _: None)


def job_of(root: Path) -> Job:
    run_dir, result = RunDir(root / "members" / "03"), root / RESULT
    request = request_file(result)
    request.parent.mkdir(parents=True, exist_ok=True)
    request.write_text("train", encoding="utf-8")
    job = Job("member 03", request, root / "03.log")
    return replace(
        job, claim=take_claim(run_dir), reads=(run_dir.root,), writes=(run_dir.root, result)
    )


Begin = Callable[[], Node]


@pytest.fixture
def begin(root: Path, storage: StorageStaging, tmp_path: Path) -> Begin:
    """Starts another attempt at the job, on a disk of its own."""
    count = iter(range(100))
    return lambda: Node(storage.begin(job_of(root)), tmp_path / f"node-{next(count)}")


@contextmanager
def away(folder: Path) -> Iterator[None]:
    """Inside, the folder is nowhere that anybody knows."""
    hidden = folder.with_name("away")
    folder.rename(hidden)
    try:
        yield
    finally:
        hidden.rename(folder)


def test_a_job_gets_what_it_reads_and_what_it_leaves_comes_home(
    begin: Begin, root: Path, storage: StorageStaging
) -> None:
    node, before = begin(), content_of(root / "members")
    with away(root):
        node.fetch()
        fetched = content_of(node.folder / "members")
        assert fetched == {n: c for n, c in before.items() if n != "03/claim"}
        node.train().finish()
        made = content_of(node.run_dir.root)
    assert node.staged.job.request == request_file(Path(RESULT))
    assert (node.folder / node.staged.job.request).read_text(encoding="utf-8") == "train"
    assert node.staged.job.claim is None
    storage.end(node.staged.job)
    found = content_of(root / "members" / "03")
    assert found.pop("claim") == before["03/claim"]
    assert f"run_dir: {root / 'members' / '03'}".encode() in found.pop("config.yaml")
    assert found == {n: c for n, c in made.items() if n != "config.yaml"}
    assert (root / RESULT).read_text(encoding="utf-8") == "done"


def test_an_attempt_that_was_given_up_delivers_nothing_and_its_checkpoint_is_gone_on_with(
    begin: Begin, root: Path, storage: StorageStaging
) -> None:
    lost = begin().fetch().train(until=150)
    lost.staging.save()
    storage.end(lost.staged.job)
    assert [p.name for p in RunDir(root / "members/03").checkpoints_newest_first()] == [
        f"{150:012d}",
        f"{100:012d}",
    ]
    second = begin().fetch()
    lost.train()
    for late in (lost.staging.save, lost.finish):
        with pytest.raises(GivenUpError):
            late()
    assert not (root / RESULT).exists()
    second.train().finish()
    storage.end(second.staged.job)
    assert (root / RESULT).read_text(encoding="utf-8") == "done"


def test_delivering_twice_is_delivering_once(
    begin: Begin, root: Path, storage: StorageStaging
) -> None:
    node = begin().fetch().train()
    node.finish()
    node.staging.deliver(0)  # as if the answer had been lost
    storage.end(node.staged.job)
    assert (root / RESULT).exists()


def test_the_next_controller_brings_home_what_a_killed_one_had_on_its_way(
    begin: Begin, root: Path, store: ObjectStore
) -> None:
    done = begin().fetch().train()
    done.finish()
    storage = StorageStaging(root, store, lambda _: None)
    storage.take_back()
    assert (root / RESULT).read_text(encoding="utf-8") == "done"
    assert list((root / "errands").iterdir()) == []
    storage.take_back()
    storage.close()
    assert not (root / "errands").exists()


def test_what_another_executor_has_trained_meanwhile_stays(
    begin: Begin, root: Path, store: ObjectStore
) -> None:
    node = begin().fetch().train()
    node.staging.save()
    run_dir = RunDir(root / "members" / "03")
    take_claim(run_dir)
    add_checkpoint(run_dir, 180)
    before = content_of(run_dir.root)
    StorageStaging(root, store, lambda _: None).take_back()
    assert content_of(run_dir.root) == before


def test_storage_is_empty_when_nothing_is_on_its_way(
    begin: Begin, root: Path, storage: StorageStaging, disk_address: str
) -> None:
    node = begin().fetch().train()
    storage.close()
    node.finish()  # nothing was taken from it
    storage.end(node.staged.job)
    stored = {s.name for s in ObjectStore.below(disk_address, "errands/x").list("blobs")}
    files = {p for p in RunDir(root / "members/03").root.rglob("*") if p.is_file()}
    assert len(stored) <= len(files)
    storage.close()
    assert list(ObjectStore.below(disk_address, "errands/x").list("")) == []
