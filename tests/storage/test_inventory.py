from pathlib import Path

import pytest

from game_rl.errors import UsageError
from game_rl.storage.fetch import fetch_experiment
from game_rl.storage.inventory import (
    ExperimentAddress,
    damaged_blobs,
    find_stored,
    needed_blobs,
    stored_experiments,
)
from game_rl.storage.manifest import FolderTree, GenerationManifest, parse_stored
from game_rl.storage.object_store import ObjectStore
from tests.storage.experiments import ID, push_files, read_files


@pytest.mark.parametrize(
    ("url", "found"),
    [
        (f"s3://b/x/experiments/{ID}", ExperimentAddress("s3://b/x", ID)),
        (f"s3://b/x/experiments/{ID}/", ExperimentAddress("s3://b/x", ID)),
        (f"file:///d/experiments/{ID}@12", ExperimentAddress("file:///d", ID, 12)),
        (f"s3://b/x/experiments/{ID}@", None),
        (f"s3://b/x/experiments/{ID}1", None),
        (f"s3://b/x/runs/{ID}", None),
        ("s3://b/x", None),
    ],
)
def test_addresses_of_experiments(url: str, found: ExperimentAddress | None) -> None:
    assert ExperimentAddress.parse(url) == found


def test_any_generation_that_is_there_can_be_fetched(tmp_path: Path, address: str) -> None:
    for number in (1, 2, 5):
        push_files(tmp_path / "folder", address, number, {"a": b"%d" % number, "same": b"s"})
    fetch_experiment(ExperimentAddress(address, ID, 2), tmp_path / "second")
    fetch_experiment(ExperimentAddress(address, ID), tmp_path / "newest")
    assert read_files(tmp_path / "second") == {"a": b"2", "same": b"s"}
    assert read_files(tmp_path / "newest") == {"a": b"5", "same": b"s"}
    with pytest.raises(UsageError, match="no generation 3 there; it has 1, 2, 5"):
        fetch_experiment(ExperimentAddress(address, ID, 3), tmp_path / "third")
    with pytest.raises(UsageError, match="remote list"):
        fetch_experiment(ExperimentAddress(address, ID[::-1]), tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_what_is_listed(tmp_path: Path, address: str) -> None:
    assert stored_experiments(ObjectStore(address)) == []
    for number in (1, 2):
        push_files(tmp_path / "folder", address, number, {"a": b"%d" % number})
    (one,) = stored_experiments(ObjectStore(address))
    listed = one.to_json()
    assert listed.pop("newest_saved")
    assert listed.pop("writer_host")
    assert listed == {
        "kind": "population",
        "experiment": ID,
        "game": "duel",
        "generations": (1, 2),
        "newest_bytes": len(b"kind" + b"{}" + b"2"),
        "is_active": True,
    }


def test_damage_of_an_older_generation_is_found(tmp_path: Path, disk_address: str) -> None:
    for number in (1, 2):
        push_files(tmp_path / "folder", disk_address, number, {"a": b"%d" % number})
    store = ObjectStore(disk_address)
    stored = find_stored(ExperimentAddress(disk_address, ID))
    old, new = (needed_blobs(store, stored, number) for number in (1, 2))
    (lost,) = old.keys() - new.keys()
    blob = tmp_path / "mounted disk" / "experiments" / ID / "blobs" / lost[:2] / lost
    blob.unlink()
    assert damaged_blobs(store, stored, needed_blobs(store, stored)) == [f"blob {lost} is missing"]
    assert damaged_blobs(store, stored, new) == []


def test_a_manifest_without_the_kind_is_read() -> None:
    found = parse_stored(GenerationManifest, FolderTree(files=()).model_dump_json().encode(), "x")
    assert (found.kind, found.game, found.saved) == ("population", None, None)
