"""A disk that is full, breaks or hangs at any operation: what was sealed stays."""

import errno
import functools
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.errors import LakeError
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake import Lake
from game_rl.lake.segment_sink import OnFull
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds

OPERATIONS = ("open", "write", "fsync", "replace", "ftruncate", "unlink")


@dataclass
class Faults:
    """Counts operations on files, and makes those in `failing` fail.

    A write that fails writes half of its bytes first, as a disk that becomes full does.
    """

    failing: Callable[[int], bool] = lambda _: False
    code: int = errno.ENOSPC
    n: int = 0
    names: list[str] = field(default_factory=list)

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **keywords: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **keywords)
            self.names.append(name)
            self.n += 1
            if not self.failing(self.n - 1):
                return real(*arguments, **keywords)
            if name == "write":
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise OSError(self.code, os.strerror(self.code))

        return operation

    @contextmanager
    def injected(self) -> Iterator[None]:
        real = {name: getattr(os, name) for name in OPERATIONS}
        try:
            for name, function in real.items():
                setattr(os, name, self.wrap(name, function))
            yield
        finally:
            for name, function in real.items():
                setattr(os, name, function)


def life(lake: Lake, play: Play, on_full: OnFull) -> tuple[int, LakeWriter]:
    """Twenty timesteps with seals and a pin; returns how many of them were sealed for certain."""
    sealed = 0
    writer = LakeWriter(lake, "w", n_envs=1, segment_bytes=500, on_full=on_full)
    for step in range(20):
        play.step(writer)
        if step % 6 == 5 and writer.seal() and not writer.n_dropped:
            sealed = step + 1
    writer.close()
    return sealed, writer


def operations_of_a_life(path: Path) -> list[str]:
    faults = Faults()
    lake = Lake.create(path, SCHEMA)
    with faults.injected():
        life(lake, Play(SCHEMA, np.random.default_rng(0)), "pause")
    return faults.names


@pytest.mark.slow
@pytest.mark.parametrize("on_full", ["pause", "evict"])
@pytest.mark.parametrize("lasts", ["once", "twice", "for ever"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_no_operation_that_fails_loses_what_was_sealed(
    tmp_path: Path, on_full: OnFull, lasts: str, code: int
) -> None:
    names = operations_of_a_life(tmp_path / "whole")
    assert set(names) == {"open", "write", "fsync", "replace"}
    for at in range(len(names)):
        lake = Lake.create(tmp_path / f"{at}", SCHEMA)
        play = Play(SCHEMA, np.random.default_rng(at))
        length = {"once": 1, "twice": 2, "for ever": 10**9}[lasts]
        faults = Faults(lambda n, at=at, length=length: at <= n < at + length, code)  # type: ignore[misc]
        with faults.injected():
            sealed, writer = life(lake, play, on_full)
        sequences = {"w/0": play.stored[0]}
        found = assert_view_holds(lake.view(), sequences)
        if on_full == "pause":
            assert {("w/0", i) for i in range(sealed)} <= found
        # There is space again: the next writer saves what was written and not sealed.
        LakeWriter(lake, "w", n_envs=1).close()
        again = assert_view_holds(lake.view(), sequences)
        assert found <= again
        if on_full == "pause":
            assert len(again) == 20 - writer.n_dropped
        assert not [p for p in lake.path.iterdir() if p.suffix not in (".segment", ".json")]


def test_growth_pauses_and_goes_on_and_both_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(lake, "w", n_envs=1, tell=told.append) as writer:
        play.steps(writer, 10)
        assert writer.seal()
        with Faults(lambda _: True).injected():
            play.steps(writer, 10)
            assert not writer.seal()
        assert writer.is_paused
        assert writer.n_dropped == 10
        play.steps(writer, 10)
        assert writer.seal()
        assert not writer.is_paused
    assert len(told) == 2
    assert "stops growing: No space left on device" in told[0]
    assert "grows again" in told[1]
    found = assert_view_holds(lake.view(), {"w/0": play.stored[0]})
    assert found == {("w/0", i) for i in [*range(10), *range(20, 30)]}


def test_eviction_makes_space_but_leaves_what_a_checkpoint_needs(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(lake, "w", n_envs=1, on_full="evict") as writer:
        for n in range(3):
            play.steps(writer, 10)
            assert writer.seal()
            if n == 0:
                mark = lake.pin("first")
        faults = Faults(lambda n: n == 0)
        with faults.injected():
            play.steps(writer, 10)
            assert writer.seal()
    found = assert_view_holds(lake.view(), {"w/0": play.stored[0]})
    assert found == {("w/0", i) for i in [*range(10), *range(20, 40)]}
    assert len(lake.view(mark)) == 10


def test_an_error_that_space_would_not_mend_arrives_at_the_next_call(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    writer = LakeWriter(lake, "w", n_envs=1)
    play.steps(writer, 1)
    with (
        Faults(lambda _: True, errno.EACCES).injected(),
        pytest.raises(LakeError, match="Permission denied"),
    ):
        writer.seal()
    with pytest.raises(LakeError, match="Permission denied"):
        play.step(writer)
    with pytest.raises(LakeError, match="Permission denied"):
        writer.close()
    writer.close()


def test_close_returns_when_the_disk_hangs(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    is_released = threading.Event()
    real = os.fsync

    def hang(file: int) -> None:
        is_released.wait()
        real(file)

    writer = LakeWriter(lake, "w", n_envs=1, close_timeout_s=0.1)
    play.steps(writer, 10)
    os.fsync = hang  # type: ignore[assignment]  # the name of the argument
    try:
        with pytest.raises(LakeError, match=r"did not finish in 0\.1 s"):
            writer.close()
    finally:
        os.fsync = real
        is_released.set()
        writer._thread.join()


def test_every_file_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also lake.json, a pin, and a segment that is recovered after a crash."""
    synced: dict[int, int] = {}  # bytes of each file at its last sync, by inode
    named = []
    real_fsync, real = os.fsync, {name: getattr(os, name) for name in ("rename", "replace")}

    def fsync(file: int) -> None:
        real_fsync(file)
        synced[os.fstat(file).st_ino] = os.fstat(file).st_size

    def moved(name: str, old: Path, new: Path) -> None:
        file = Path(old).stat()
        assert synced.get(file.st_ino) == file.st_size, f"{name} of {old} to {new}"
        named.append(Path(new).suffix)
        real[name](old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    for name in real:
        monkeypatch.setattr(os, name, functools.partial(moved, name))
    lake = Lake.create(tmp_path, SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(lake, "w", n_envs=1) as writer:
        play.steps(writer, 20)
        writer.seal()
    lake.pin("first")
    (segment,) = lake.files(".segment")
    segment.with_suffix(".open").write_bytes(segment.read_bytes())  # as a crash leaves it
    segment.unlink()
    lake.recover("w")
    assert named == [".json", ".segment", ".json", ".segment"]


def test_a_limit_on_the_size_of_files_only_pauses(tmp_path: Path) -> None:
    """The kernel's own error, in a process of its own."""
    code = f"""
import resource
from pathlib import Path
import numpy as np
from game_rl.lake.lake import Lake
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, assert_view_holds
lake = Lake.create(Path({str(tmp_path / "lake")!r}), SCHEMA)
play = Play(SCHEMA, np.random.default_rng(0))
with LakeWriter(lake, "w", n_envs=1) as writer:
    play.steps(writer, 30)
    assert writer.seal()
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY))
    play.steps(writer, 60)
    writer.seal()
    assert writer.is_paused or writer.n_dropped
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert writer.seal()
    kept = 90 - writer.n_dropped
found = assert_view_holds(lake.view(), {{"w/0": play.stored[0]}})
assert len(found) == kept >= 30
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


# ---------------------------------------------------------------------- capacity


def test_the_oldest_transitions_go_at_capacity_and_marks_keep_theirs(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA, capacity=Capacity(transitions=25))
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(lake, "w", n_envs=1) as writer:
        for n in range(5):
            play.steps(writer, 10)
            assert writer.seal()
            if n == 0:
                mark = lake.pin("first")
    sequences = {"w/0": play.stored[0]}
    assert assert_view_holds(lake.view(), sequences) == {("w/0", i) for i in range(25, 50)}
    assert assert_view_holds(lake.view(mark), sequences, ends={"w/0": 10}) == {
        ("w/0", i) for i in range(10)
    }
    assert list(tmp_path.glob("*.shelved"))
    lake.unpin("first")
    assert not list(tmp_path.glob("*.shelved"))
    with pytest.raises(LakeError, match=r"the checkpoint needs .*, which is missing"):
        lake.view(mark)


def test_no_operation_that_fails_shows_what_the_capacity_hides(tmp_path: Path) -> None:
    limit = Capacity(transitions=7)

    def lived(path: Path, failing: Callable[[int], bool]) -> tuple[Lake, Play, Faults]:
        lake, play = Lake.create(path, SCHEMA, capacity=limit), Play(SCHEMA, rng_of(path))
        faults = Faults(failing)
        with faults.injected():
            life(lake, play, "pause")
        LakeWriter(lake, "w", n_envs=1).close()  # there is space again
        return lake, play, faults

    names = lived(tmp_path / "0", lambda _: False)[2].names
    for at in range(len(names)):
        lake, play, _ = lived(tmp_path / f"{at + 1}", lambda n, at=at: n == at)  # type: ignore[misc]
        found = assert_view_holds(lake.view(), {"w/0": play.stored[0]})
        end = 1 + max(number for _, number in found)  # less than 20 if the newest were lost
        assert found <= {("w/0", i) for i in range(end - 7, end)}
        assert assert_view_holds(Lake.open(lake.path).view(), {"w/0": play.stored[0]}) == found
        assert not list(lake.path.glob("*.open"))


def rng_of(path: Path) -> np.random.Generator:
    return np.random.default_rng(int(path.name))


def test_bytes_on_disk_stay_under_the_capacity(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, SCHEMA, capacity=Capacity(n_bytes=4_000))
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(lake, "w", n_envs=1, segment_bytes=800) as writer:
        for _ in range(10):
            play.steps(writer, 20)
            assert writer.seal()
            assert lake.n_bytes() <= 4_000
    assert 0 < len(assert_view_holds(lake.view(), {"w/0": play.stored[0]})) < 200
