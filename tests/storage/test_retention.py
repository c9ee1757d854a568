"""What stays in storage, compared with a plain loop, and with a writer killed at every step."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.errors import StorageError
from game_rl.storage.claim import Claim
from game_rl.storage.faults import SecondWriterError
from game_rl.storage.fetch import fetch_experiment
from game_rl.storage.inventory import ExperimentAddress, stored_generations
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.retention import delete_old, doomed
from game_rl.storage.upload_settings import RemoteKeeping
from game_rl.storage.uploader import push_experiment
from tests.examples import examples
from tests.storage.experiments import ID, Files, push_files, read_files, settings_of, write_files

_KEEP = st.builds(
    RemoteKeeping, last=st.none() | st.integers(1, 4), every=st.none() | st.integers(1, 5)
)
_FILES = st.dictionaries(
    st.sampled_from(["a", "b/c", "members/00/x", "videos/v.gif"]),
    st.sampled_from([b"1", b"22", b"333", b"4444", b"55555"]),
)
_STEPS = st.lists(st.tuples(st.integers(1, 12), _FILES), min_size=1, max_size=8)


def kept_in_a_loop(found: list[int], keep: RemoteKeeping) -> list[int]:
    kept = []
    for number in sorted(found):
        n_newer = len([other for other in found if other > number])
        is_new = keep.last is None or n_newer < keep.last
        if is_new or (keep.every is not None and number % keep.every == 0):
            kept.append(number)
    return kept


@given(found=st.sets(st.integers(1, 60)), keep=_KEEP)
def test_what_is_doomed_is_what_a_loop_does_not_keep(found: set[int], keep: RemoteKeeping) -> None:
    numbers = sorted(found)
    gone = doomed(numbers, keep)
    assert [n for n in numbers if n not in gone] == kept_in_a_loop(numbers, keep)


@given(steps=_STEPS, keep=_KEEP)
@settings(max_examples=examples(12))
def test_after_each_push_exactly_the_kept_generations_can_be_fetched(
    steps: list[tuple[int, Files]], keep: RemoteKeeping
) -> None:
    place = Path(tempfile.mkdtemp(prefix="game_rl_retention_"))
    try:
        (place / "store").mkdir()
        address, there = f"file://{place}/store", dict[int, Files]()
        for number, files in steps:  # a lower one again: the experiment went back
            push_files(place / "folder", address, number, files, keep=keep)
            there = {n: f for n, f in there.items() if n < number} | {number: files}
            there = {n: there[n] for n in kept_in_a_loop(list(there), keep)}
            assert stored(address) == there
            if keep.last is not None:
                assert blobs_at(address) == needed(there)
    finally:
        shutil.rmtree(place)


def stored(address: str) -> dict[int, Files]:
    """What each generation there has, fetched."""
    found = {}
    for number in stored_generations(ObjectStore(f"{address}/experiments/{ID}")).found():
        place = Path(tempfile.mkdtemp(prefix="game_rl_fetched_"))
        fetch_experiment(ExperimentAddress(address, ID, number), place / "x")
        found[number] = read_files(place / "x")
        shutil.rmtree(place)
    return found


def blobs_at(address: str) -> set[str]:
    listed = ObjectStore(f"{address}/experiments/{ID}").list("blobs")
    return {blob.name.rpartition("/")[2] for blob in listed}


def needed(generations: dict[int, Files]) -> set[str]:
    always = [b"kind", b"{}"]
    contents = [*always, *(c for files in generations.values() for c in files.values())]
    return {hashlib.sha256(content).hexdigest() for content in contents}


class Killed(BaseException):
    """Of the uploader."""


@contextmanager
def killed_at(operation: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inside, the process dies before or after the n-th change in storage."""
    count = 0

    def wrapped(real: Any) -> Any:
        def act(*args: Any, **keywords: Any) -> Any:
            nonlocal count
            count += 1
            if 2 * count - 1 >= operation:
                raise Killed
            done = real(*args, **keywords)
            if 2 * count >= operation:
                raise Killed
            return done

        return act

    with monkeypatch.context() as patch:
        for name in ("put", "delete"):
            patch.setattr(obstore, name, wrapped(getattr(obstore, name)))
        yield


@pytest.mark.slow
def test_killed_at_any_step_nothing_needed_is_gone_and_the_rest_goes_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = range(1, 8)
    history = {n: {"a": b"%d" % n, "b/c": b"of all", f"m/{n}": b"m%d" % n} for n in names}
    left = {number: history[number] for number in (4, 6, 7)}
    (tmp_path / "base").mkdir()
    for number in range(1, 7):  # all stay, until somebody wants less
        push_files(tmp_path / "folder", f"file://{tmp_path}/base", number, history[number])
    write_files(tmp_path / "folder", history[7])
    n_killed, is_over = 0, False
    while not is_over:
        address = f"file://{tmp_path}/{n_killed}"
        shutil.copytree(tmp_path / "base", tmp_path / f"{n_killed}")
        keep = RemoteKeeping(last=2, every=4)
        seventh = settings_of(tmp_path / "folder", address, 7, keep)
        try:
            with killed_at(n_killed + 1, monkeypatch):
                push_experiment(seventh)
            is_over = True
        except Killed:
            n_killed += 1
            there = stored(address)
            assert there.items() <= history.items()
            assert there.keys() >= {4, 6}
            push_experiment(seventh)
        assert stored(address) == left
        assert blobs_at(address) == needed(left)
    # each before and after: the claim, two blobs, the manifest, four old ones, eight of their blobs
    assert n_killed == 2 * (1 + 2 + 1 + 4 + 8)


def test_who_lost_the_claim_deletes_nothing(tmp_path: Path, address: str) -> None:
    for number in range(1, 4):
        push_files(tmp_path / "folder", address, number, {"a": b"%d" % number})
    store = ObjectStore(f"{address}/experiments/{ID}")
    ours, theirs = (Claim(ID, name, take_over=True) for name in ("one", "another"))
    ours.take(store)
    theirs.take(store)
    before = blobs_at(address)
    with pytest.raises(SecondWriterError):
        delete_old(store, ours, RemoteKeeping(last=1))
    assert (list(stored_generations(store).found()), blobs_at(address)) == ([1, 2, 3], before)
    assert delete_old(store, theirs, RemoteKeeping(last=1)) == 2
    assert list(stored_generations(store).found()) == [3]


def test_beside_a_manifest_that_cannot_be_read_no_blob_is_deleted(
    tmp_path: Path, address: str
) -> None:
    for number in range(1, 4):
        push_files(tmp_path / "folder", address, number, {"a": b"%d" % number})
    store, before = ObjectStore(f"{address}/experiments/{ID}"), blobs_at(address)
    store.put("generations/000002.json", b"{torn")
    with pytest.raises(StorageError, match=r"000002\.json is damaged"):
        push_files(tmp_path / "folder", address, 4, {"a": b"4"}, keep=RemoteKeeping(last=3))
    assert before < blobs_at(address)


def test_generations_that_are_trained_again_are_set_aside(tmp_path: Path, address: str) -> None:
    history = {number: {"a": b"%d" % number} for number in range(1, 5)}
    for number, files in history.items():
        push_files(tmp_path / "folder", address, number, files)
    push_files(tmp_path / "folder", address, 2, {"a": b"again"})
    assert stored(address) == {1: history[1], 2: {"a": b"again"}}
    store = ObjectStore(f"{address}/experiments/{ID}")
    names = sorted(each.name for each in store.list("superseded"))
    assert names == ["superseded/000003.0.json", "superseded/000004.0.json"]
    assert needed(history) <= blobs_at(address)  # nobody has asked to keep less
    push_files(tmp_path / "folder", address, 3, {"a": b"3 again"}, keep=RemoteKeeping(last=1))
    assert list(store.list("superseded")) == []
    assert blobs_at(address) == needed({3: {"a": b"3 again"}})
