"""Folders that travel by storage, compared with the files that were there."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from game_rl.errors import StorageError
from game_rl.storage import blobs
from game_rl.storage.blobs import RateLimit, read_tree, restore_tree, send_blobs
from game_rl.storage.faults import LostFileError
from game_rl.storage.manifest import FolderTree, StoredFile, blob_name
from game_rl.storage.object_store import ObjectStore
from tests.examples import examples
from tests.storage.runs import add_checkpoint, flip_a_bit, make_run

_NAMES = st.sampled_from(["a", "b.json", "c/d", "c/e", "f/g/h", "checkpoints/000064/x"])
_FOLDERS = st.dictionaries(_NAMES, st.sampled_from([b"", b"x", b"other", b"p" * 3_000_000]))


def content_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def carry(store: ObjectStore, source: Path, target: Path, *parts: str) -> int:
    tree, sources = read_tree(source, parts)
    sent = send_blobs(store, sources, set())
    restore_tree(store, FolderTree.model_validate_json(tree.model_dump_json()), target, parts)
    return sent


@given(before=_FOLDERS, after=_FOLDERS)
@settings(max_examples=examples(20))
def test_any_folder_becomes_any_other_one(
    before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    place = Path(tempfile.mkdtemp(prefix="game_rl_tree_"))
    try:
        write(place / "source" / "run", after)
        write(place / "target" / "run", {**before, "claim": b"7-x", ".hidden": b"y"})
        (place / "store").mkdir()
        carry(ObjectStore(f"file://{place}/store"), place / "source", place / "target", "run")
        found = content_of(place / "target" / "run")
        assert found.pop("claim") == b"7-x"
        assert found.pop(".hidden") == b"y"
        assert found == after
    finally:
        shutil.rmtree(place)


def test_a_run_arrives_as_it_was_and_goes_once(address: str, tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "here" / "members" / "03", 100, 200, weights_bytes=6_000_000)
    store = ObjectStore.below(address, "some/where")
    sent = carry(store, tmp_path / "here", tmp_path / "there", "members/03")
    assert sent > 12_000_000
    assert content_of(tmp_path / "there") == content_of(tmp_path / "here")
    shutil.copytree(tmp_path / "here" / "members" / "03", tmp_path / "here" / "members" / "04")
    assert carry(store, tmp_path / "here", tmp_path / "there", "members") == 0
    add_checkpoint(run_dir, 300, weights_bytes=50_000)
    sent = carry(store, tmp_path / "here", tmp_path / "there", "members/03")
    assert 50_000 < sent < 100_000
    assert content_of(tmp_path / "there") == content_of(tmp_path / "here")
    store.clear()
    assert list(ObjectStore.below(address, "some/where").list("")) == []


def test_a_blob_that_is_damaged_or_gone_is_refused(disk_address: str, tmp_path: Path) -> None:
    make_run(tmp_path / "here", 100)
    store = ObjectStore(disk_address)
    tree, sources = read_tree(tmp_path / "here", ("checkpoints",))
    send_blobs(store, sources, set())
    (weights,) = [f for f in tree.files if f.path.endswith("policy.safetensors")]
    blob = tmp_path / "mounted disk" / blob_name(weights.pieces[0].sha256)
    flip_a_bit(blob)
    with pytest.raises(StorageError, match="is damaged"):
        restore_tree(store, tree, tmp_path / "there", ("checkpoints",))
    assert content_of(tmp_path / "there") == {}
    blob.unlink()
    with pytest.raises(StorageError, match="is missing"):
        restore_tree(store, tree, tmp_path / "there", ("checkpoints",))


def test_a_file_that_changes_before_it_is_sent_is_not_sent(
    disk_address: str, tmp_path: Path
) -> None:
    write(tmp_path / "here", {"eval.csv": b"old", "other": b"o"})
    _, sources = read_tree(tmp_path, ("here",))
    (tmp_path / "here" / "eval.csv").write_bytes(b"new")
    with pytest.raises(LostFileError):
        send_blobs(ObjectStore(disk_address), sources, set())


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "a/.b", "", "a\\b"])
def test_no_file_lands_outside(path: str) -> None:
    with pytest.raises(ValidationError):
        StoredFile(path=path, pieces=())


CHUNK = 100_000


@dataclass
class Clock:
    """Takes the place of the module `time` in `blobs` alone, as other threads sleep, too."""

    now_s: float = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(blobs, "time", clock)
    return clock


def seconds_for(limit: RateLimit, clock: Clock, chunks: int) -> float:
    began_s = clock.now_s
    assert list(limit.slowed(bytes(CHUNK) for _ in range(chunks))) == [bytes(CHUNK)] * chunks
    return clock.now_s - began_s


def test_bytes_take_as_long_as_the_limit_says(clock: Clock) -> None:
    assert seconds_for(RateLimit(2.0), clock, 100) == pytest.approx(5.0)  # 10 MB at 2 MB/s


def test_a_pause_saves_up_a_quarter_of_a_second_and_no_more(clock: Clock) -> None:
    limit = RateLimit(1.0)
    for idle_s, saved_s in ((0.1, 0.1), (60.0, 0.25)):
        clock.sleep(idle_s)
        assert seconds_for(limit, clock, 50) == pytest.approx(5.0 - saved_s)


def test_without_a_limit_nothing_waits(clock: Clock) -> None:
    assert seconds_for(RateLimit(None), clock, 100) == 0.0
