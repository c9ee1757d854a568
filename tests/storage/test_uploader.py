import hashlib
import json
import shutil
from pathlib import Path

import pytest

from game_rl.events import Event, Uploaded, UploadQueued, Warned
from game_rl.files.durable_files import remove_directory
from game_rl.storage.faults import SecondWriterError, StoreFault
from game_rl.storage.fetch import fetch_run
from game_rl.storage.inventory import RemoteAddress, stored_checkpoints, stored_runs, verify_stored
from game_rl.storage.journal import Journal, read_upload_state
from game_rl.storage.manifest import RunManifest, blob_name, parse_stored
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.upload_process import push
from game_rl.storage.upload_settings import UploadSettings
from game_rl.storage.uploader import Uploader
from tests.storage.runs import add_checkpoint, content_of, flip_a_bit, make_run, settings_of


def send(settings: UploadSettings) -> list[Event]:
    """What the uploader says while it sends everything."""
    told: list[Event] = []
    push(settings, told.append, most_failures=1)
    return told


def sent_bytes(told: list[Event]) -> int:
    return sum(event.sent_bytes for event in told if isinstance(event, Uploaded))


def test_what_is_uploaded_is_fetched_byte_for_byte(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300, weights_bytes=7 << 20)
    (run_dir.videos).mkdir()
    (run_dir.videos / "best.gif").write_bytes(b"GIF89a")
    send(settings_of(run_dir, address))

    store = ObjectStore(address)
    fetched = fetch_run(store, RemoteAddress.parse(address), tmp_path / "fetched")

    theirs, ours = content_of(fetched.run_dir.root), content_of(run_dir.root)
    newest_and_best = ("000000000300", "000000000100")
    wanted = {
        path: content
        for path, content in ours.items()
        if not path.startswith("checkpoints") or path.split("/")[1] in newest_and_best
    }
    assert theirs == wanted
    assert verify_stored(store, RemoteAddress.parse(address)).damage == {}


def test_each_blob_is_named_by_its_sha256(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    send(settings_of(make_run(tmp_path / "run", 100), f"file://{folder}"))
    blobs = [path for path in (folder / "blobs").rglob("*") if path.is_file()]
    assert blobs
    for path in blobs:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        assert path.parent.name == path.name[:2]


def test_the_newest_checkpoint_goes_first_and_each_is_announced(
    tmp_path: Path, disk_address: str
) -> None:
    told = send(settings_of(make_run(tmp_path / "run", 100, 200, 300), disk_address))
    assert [e.timesteps for e in told if isinstance(e, Uploaded)] == [300, 200, 100]
    assert [e.timesteps for e in told if isinstance(e, UploadQueued)] == [100, 200, 300]


def test_a_checkpoint_that_was_deleted_unsent_is_dropped(tmp_path: Path, disk_address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    folder = tmp_path / "mounted disk"
    folder.rename(tmp_path / "unmounted")
    with pytest.raises(StoreFault, match="is not there"):
        send(settings_of(run_dir, disk_address))
    assert not folder.exists()
    remove_directory(run_dir.checkpoint(100))
    (tmp_path / "unmounted").rename(folder)
    told = send(settings_of(run_dir, disk_address))
    assert read_upload_state(run_dir.upload_journal).dropped.keys() == {100}
    assert [e.timesteps for e in told if isinstance(e, Uploaded)] == [200]


def test_a_checkpoint_whose_best_is_replaced_while_it_is_sent_is_sent_without_it(
    tmp_path: Path, disk_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    original = ObjectStore.put

    def put(store: ObjectStore, name: str, content: bytes, *, is_new: bool = False) -> None:
        if name.startswith("blobs") and run_dir.checkpoint(100).exists():
            remove_directory(run_dir.checkpoint(100))
        original(store, name, content, is_new=is_new)

    monkeypatch.setattr(ObjectStore, "put", put)
    told = send(settings_of(run_dir, disk_address))
    assert [e.timesteps for e in told if isinstance(e, Uploaded)] == [200]
    assert verify_stored(ObjectStore(disk_address), RemoteAddress.parse(disk_address)).damage == {}


def test_a_checkpoint_that_was_given_up_is_tried_again_by_the_next_upload(
    tmp_path: Path, disk_address: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    policy = run_dir.checkpoint(100) / "policy.safetensors"
    content = policy.read_bytes()
    flip_a_bit(policy)
    told = send(settings_of(run_dir, disk_address))
    assert len([event for event in told if isinstance(event, Warned)]) == 1
    policy.write_bytes(content)
    told = send(settings_of(run_dir, disk_address))
    assert [e.timesteps for e in told if isinstance(e, Uploaded)] == [100]


def test_a_second_upload_sends_almost_nothing(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, weights_bytes=2 << 20)
    first = sent_bytes(send(settings_of(run_dir, address)))
    run_dir.upload_journal.unlink()  # as if nobody knew
    again = sent_bytes(send(settings_of(run_dir, address, take_over=True)))
    assert first > 4 << 20
    assert again < first / 100


def test_a_file_that_is_damaged_here_is_never_stored_under_its_name(
    tmp_path: Path, address: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100, weights_bytes=6 << 20)
    flip_a_bit(run_dir.checkpoint(100) / "policy.safetensors")
    told = send(settings_of(run_dir, address))
    store = ObjectStore(address)
    assert not [event for event in told if isinstance(event, Uploaded)]
    assert [event for event in told if isinstance(event, Warned) and "damaged" in event.text]
    assert stored_runs(store) == {}
    files = json.loads((run_dir.checkpoint(100) / "manifest.json").read_bytes())["files"]
    assert store.find(blob_name(files["policy.safetensors"]["sha256"])) is None


def test_a_manifest_that_stands_already_with_the_same_checkpoint_is_success(
    tmp_path: Path, address: str
) -> None:
    """The answer to its writing was lost."""
    run_dir = make_run(tmp_path / "run", 100)
    send(settings_of(run_dir, address))
    lines = run_dir.upload_journal.read_bytes().splitlines(keepends=True)
    run_dir.upload_journal.write_bytes(
        b"".join(line for line in lines if b'"committed"' not in line)
    )
    with (run_dir.events).open("ab") as events:
        events.write(b"{}\n")
    told = send(settings_of(run_dir, address, begins_at=100))
    assert [event.timesteps for event in told if isinstance(event, Uploaded)] == [100]


def test_another_copy_of_the_run_is_refused_and_may_take_over(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    send(settings_of(run_dir, address))
    claim = f"runs/{run_dir.identity().id}/writer.json"
    store = ObjectStore(address)
    content = store.get(claim)
    assert content is not None
    active = json.loads(content) | {"is_active": True, "host": "first-machine"}
    store.put(claim, json.dumps(active).encode())

    copy = fetch_run(store, RemoteAddress.parse(address), tmp_path / "copy").run_dir
    add_checkpoint(copy, 200)
    with pytest.raises(SecondWriterError, match=r"first-machine.*--take-over"):
        send(settings_of(copy, address, begins_at=100))
    send(settings_of(copy, address, begins_at=100, take_over=True))
    assert stored_runs(store) == {run_dir.identity().id: [100, 200]}

    add_checkpoint(run_dir, 300)
    active = json.loads(store.get(claim) or b"") | {"is_active": True}
    store.put(claim, json.dumps(active).encode())
    with pytest.raises(SecondWriterError):
        send(settings_of(run_dir, address, begins_at=100))


def test_a_future_that_is_trained_again_is_set_aside(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    send(settings_of(run_dir, address))
    store, run = ObjectStore(address), run_dir.identity().id
    remote = RemoteAddress.parse(f"{address}/runs/{run}@100")
    again = fetch_run(store, remote, tmp_path / "again").run_dir
    add_checkpoint(again, 200, weights_bytes=30_000)
    send(settings_of(again, address, begins_at=100))
    stored = store.get(stored_checkpoints(store, run).name(200))
    assert stored is not None
    files = {f.path: f.n_bytes for f in parse_stored(RunManifest, stored, "").files}
    assert files["checkpoints/000000000200/policy.safetensors"] == 30_000
    assert [s.name for s in store.list(f"runs/{run}/superseded")] == [
        f"runs/{run}/superseded/000000000200.1.json"
    ]


def test_an_upload_that_was_killed_between_two_checkpoints_keeps_the_one_that_it_has_sent(
    tmp_path: Path, address: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    settings, store = settings_of(run_dir, address, begins_at=0), ObjectStore(address)
    for _ in range(2):  # the same process, started again
        with Journal(run_dir.upload_journal) as journal:
            uploader = Uploader(settings, journal, lambda _: None)
            uploader.send_checkpoint(store, uploader.scan()[0])
    assert stored_runs(store) == {run_dir.identity().id: [100, 200]}
    assert list(store.list(f"runs/{run_dir.identity().id}/superseded")) == []


def test_a_checkpoint_that_was_damaged_here_and_trained_again_replaces_the_stored_one(
    tmp_path: Path, address: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    send(settings_of(run_dir, address))
    shutil.rmtree(run_dir.checkpoint(200))
    add_checkpoint(run_dir, 200, weights_bytes=30_000)
    told = send(settings_of(run_dir, address, begins_at=100))
    assert [event.timesteps for event in told if isinstance(event, Uploaded)] == [200]
    store = ObjectStore(address)
    stored = store.get(stored_checkpoints(store, run_dir.identity().id).name(200))
    files = {f.path: f.n_bytes for f in parse_stored(RunManifest, stored or b"", "").files}
    assert files["checkpoints/000000000200/policy.safetensors"] == 30_000


def test_old_checkpoints_leave_and_shared_blobs_stay(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300)
    send(settings_of(run_dir, address))
    add_checkpoint(run_dir, 400)
    send(settings_of(run_dir, address, begins_at=300, keep_remote_last=2))
    store = ObjectStore(address)
    assert stored_runs(store) == {run_dir.identity().id: [300, 400]}
    assert verify_stored(store, RemoteAddress.parse(address)).damage == {}


def test_the_journal_of_a_run_that_is_complete_asks_for_nothing(
    tmp_path: Path, address: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100)
    send(settings_of(run_dir, address))
    told = send(settings_of(run_dir, address, begins_at=100))
    assert not [event for event in told if isinstance(event, Uploaded | UploadQueued | Warned)]


def whole_at(address: str) -> list[int]:
    """The checkpoints of the one run at an address, each of which can be fetched."""
    store = ObjectStore(address)
    assert verify_stored(store, RemoteAddress.parse(address)).damage == {}
    (found,) = stored_runs(store).values()
    return found


def test_what_has_vanished_from_storage_is_sent_again(tmp_path: Path, address: str) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300)
    run_dir.videos.mkdir()
    (run_dir.videos / "best.gif").write_bytes(b"GIF89a")
    settings = settings_of(run_dir, address, begins_at=300)
    first = sent_bytes(send(settings))
    store = ObjectStore(address)
    before = {stored.name for stored in store.list("")}
    for name in before:
        store.delete(name)

    told = send(settings)
    assert [e.timesteps for e in told if isinstance(e, Uploaded)] == [300, 200, 100]
    assert sent_bytes(told) == first
    (warned,) = (event.text for event in told if isinstance(event, Warned))
    assert "checkpoints 100, 200, 300" in warned
    assert {stored.name for stored in store.list("")} == before
    assert whole_at(address) == [100, 200, 300]


@pytest.mark.parametrize("suffix", [".gif", "policy.safetensors"])
def test_a_blob_that_has_vanished_from_storage_is_sent_again(
    tmp_path: Path, address: str, suffix: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200)
    run_dir.videos.mkdir()
    (run_dir.videos / "best.gif").write_bytes(b"GIF89a")
    settings = settings_of(run_dir, address, begins_at=200)
    send(settings)
    store = ObjectStore(address)
    paths = [path for path in run_dir.root.rglob(f"*{suffix}") if "100" not in str(path)]
    (lost,) = (blob_name(hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths)
    store.delete(lost)

    send(settings)
    assert store.find(lost) is not None
    assert whole_at(address) == [100, 200]


def test_what_storage_no_longer_keeps_on_purpose_is_not_sent_again(
    tmp_path: Path, address: str
) -> None:
    run_dir = make_run(tmp_path / "run", 100, 200, 300)
    settings = settings_of(run_dir, address, begins_at=300, keep_remote_last=2)
    send(settings)
    assert not [event for event in send(settings) if isinstance(event, Uploaded | Warned)]
    assert whole_at(address) == [200, 300]
