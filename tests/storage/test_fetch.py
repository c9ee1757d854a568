import os
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.errors import StorageError, UsageError
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.storage.fetch import fetch_run
from game_rl.storage.inventory import RemoteAddress, find_manifest, stored_runs, verify_stored
from game_rl.storage.manifest import RunManifest, blob_name
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_process import push
from tests.storage.lakes import add_lake_checkpoint
from tests.storage.runs import add_checkpoint, content_of, make_run, settings_of


def stored(tmp_path: Path, address: str, *timesteps: int, weights_bytes: int = 20_000) -> RunDir:
    run_dir = make_run(tmp_path / "run", *timesteps, weights_bytes=weights_bytes)
    push(settings_of(run_dir, address), lambda _: None, most_failures=1)
    return run_dir


def folder_of(address: str) -> Path:
    return Path(address.removeprefix("file://").replace("%20", " "))


def test_an_address_may_name_a_run_and_a_checkpoint() -> None:
    run = "0123456789abcdef" * 2
    there = RemoteAddress("s3://b/x@y")
    assert RemoteAddress.parse("s3://b/x@y") == there
    assert RemoteAddress.parse(f"s3://b/x@y/runs/{run}/") == RemoteAddress("s3://b/x@y", run)
    named = RemoteAddress("s3://b/x@y", run, 250_000)
    assert RemoteAddress.parse(f"s3://b/x@y/runs/{run}@250,000") == named


def test_an_older_checkpoint_has_the_events_and_curves_of_its_time(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = stored(tmp_path, disk_address, 100, 200, 300)
    address = RemoteAddress.parse(f"{disk_address}@200")
    fetched = fetch_run(ObjectStore(disk_address), address, tmp_path / "fetched").run_dir
    assert [int(path.name) for path in fetched.checkpoints_newest_first()] == [200, 100]
    assert [event.timesteps for event in read_events(fetched)] == [100]  # its own comes after it
    (curves,) = run_dir.tensorboard.iterdir()
    assert (fetched.tensorboard / curves.name).read_bytes() == curves.read_bytes()[:6_000]
    assert fetched.monitor.read_text(encoding="utf-8") == "1.5,100,2.25\n1.5,200,2.25\n"
    assert fetched.progress.read_text(encoding="utf-8") == "x,c100,c200\n100,1,\n200,1,1\n"
    assert fetched.evaluations.read_text(encoding="utf-8") == "timesteps\n200\n"
    assert fetched.places.read_bytes() == b"200"
    assert load_config(fetched.config, is_saved=True).run_dir == fetched.root


def test_a_fetch_that_was_killed_goes_on_with_what_is_missing(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = stored(tmp_path, disk_address, 100, weights_bytes=5 << 20)
    root = tmp_path / "fetched"
    process = subprocess.Popen(
        [sys.executable, "-m", "game_rl", "remote", "fetch", disk_address, str(root)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not (root / "run.json").exists():
        pass
    process.kill()
    process.wait()
    (root / "config.yaml").unlink(missing_ok=True)
    torn = root / "checkpoints" / "000000000100" / "policy.safetensors.part"
    torn.parent.mkdir(parents=True, exist_ok=True)
    torn.with_suffix("").unlink(missing_ok=True)  # it may have arrived before the kill
    torn.write_bytes(b"half")
    fetch_run(ObjectStore(disk_address), RemoteAddress.parse(disk_address), root)
    assert content_of(root) == content_of(run_dir.root)
    (root / "config.yaml").unlink()
    again = fetch_run(ObjectStore(disk_address), RemoteAddress.parse(disk_address), root)
    assert again.fetched_bytes == 0


def test_a_place_that_has_something_else_is_refused(tmp_path: Path, disk_address: str) -> None:
    run_dir = stored(tmp_path, disk_address, 100)
    store, address = ObjectStore(disk_address), RemoteAddress.parse(disk_address)
    with pytest.raises(UsageError, match="already holds a run"):
        fetch_run(store, address, run_dir.root)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="is not empty"):
        fetch_run(store, address, tmp_path / "other")
    (tmp_path / "other" / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match=r"run\.json does not identify a run"):
        fetch_run(store, address, tmp_path / "other")


@pytest.mark.parametrize("damage", ["missing", "flipped", "cut"])
def test_a_damaged_blob_is_never_accepted(tmp_path: Path, disk_address: str, damage: str) -> None:
    stored(tmp_path, disk_address, 100)
    store, address = ObjectStore(disk_address), RemoteAddress.parse(disk_address)
    manifest = find_manifest(store, address)
    policy = next(f for f in manifest.files if f.path.endswith("policy.safetensors"))
    path = folder_of(disk_address) / blob_name(policy.pieces[0].sha256)
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:-1] + (b"" if damage == "cut" else b"\0"))
    with pytest.raises(StorageError, match=r"missing|damaged"):
        fetch_run(store, address, tmp_path / "fetched")
    assert not (tmp_path / "fetched" / "config.yaml").exists()
    assert verify_stored(store, address).damage.keys() == {(manifest.run.id, 100)}


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "checkpoints/../../x", "config.yaml", ".hidden", "lake\\x"]
)
def test_a_manifest_cannot_name_a_file_outside_the_run(
    tmp_path: Path, disk_address: str, path: str
) -> None:
    stored(tmp_path, disk_address, 100)
    manifest = find_manifest(ObjectStore(disk_address), RemoteAddress.parse(disk_address))
    content = manifest.model_dump_json().replace('"run.json"', f'"{path}"'.replace("\\", "\\\\"))
    with pytest.raises(ValueError, match="names no file of a run"):
        RunManifest.model_validate_json(content)


def test_what_a_checkpoint_needs_of_a_lake_comes_with_it(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run")
    add_lake_checkpoint(run_dir, 100, segment_bytes=6 << 20, n_bytes=20 << 20)
    settings = settings_of(run_dir, address).model_copy(update={"lake": run_dir.lake})
    push(settings, lambda _: None, most_failures=1)
    fetched = fetch_run(ObjectStore(address), RemoteAddress.parse(address), tmp_path / "fetched")
    ours = {k: v for k, v in content_of(run_dir.root).items() if k.startswith("lake/")}
    theirs = {k: v for k, v in content_of(fetched.run_dir.root).items() if k.startswith("lake/")}
    pin = theirs.pop("lake/pins/stream.000000000100.json")
    assert theirs == ours
    assert b"lanes" in pin


def test_several_runs_at_one_address_share_equal_blobs_and_must_be_named(
    tmp_path: Path, disk_address: str
) -> None:
    one, other = make_run(tmp_path / "one", 100), make_run(tmp_path / "other", 100)
    for run_dir in (one, other):
        push(settings_of(run_dir, disk_address), lambda _: None, most_failures=1)
    store = ObjectStore(disk_address)
    assert stored_runs(store).keys() == {one.identity().id, other.identity().id}
    with pytest.raises(UsageError, match="has 2 runs; name one"):
        fetch_run(store, RemoteAddress.parse(disk_address), tmp_path / "fetched")
    weights = [blob for blob in store.list("blobs") if blob.n_bytes == 20_000]
    assert len(weights) == 1


def test_an_unmounted_disk_is_an_error_and_not_a_new_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="mount the disk"):
        ObjectStore(f"file://{tmp_path}/nothing")
    assert not os.listdir(tmp_path)  # noqa: PTH208 - of the folder itself


def test_a_checkpoint_that_is_added_later_is_stored_with_few_new_bytes(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = stored(tmp_path, disk_address, 100)
    before = {blob.name for blob in ObjectStore(disk_address).list("blobs")}
    add_checkpoint(run_dir, 200, best=100)
    push(settings_of(run_dir, disk_address, begins_at=100), lambda _: None, most_failures=1)
    after = {blob.name for blob in ObjectStore(disk_address).list("blobs")}
    assert before < after
