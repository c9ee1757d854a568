from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.storage.journal import (
    BlobUploaded,
    BlobVerified,
    Committed,
    Dropped,
    Journal,
    Line,
    Opened,
    Seen,
    UploadState,
    VideosStored,
    read_lines,
    read_upload_state,
)

_timesteps = st.integers(0, 5)
_sha256 = st.sampled_from(["a" * 64, "b" * 64, "c" * 64])
_lines: st.SearchStrategy[Line] = st.one_of(
    st.builds(Opened, to=st.sampled_from(["s3://a/b", "file:///c"]), writer=st.just("w")),
    st.builds(Seen, timesteps=_timesteps, n_bytes=st.integers(0, 9), written_ns=_timesteps),
    st.builds(
        BlobUploaded,
        sha256=_sha256,
        n_bytes=st.integers(0, 9),
        was_there=st.booleans(),
        segment=st.none() | st.sampled_from(["x.segment", "y.segment"]),
    ),
    st.builds(BlobVerified, sha256=_sha256),
    st.builds(Committed, timesteps=_timesteps),
    st.builds(Dropped, timesteps=_timesteps, reason=st.text(max_size=5)),
    st.builds(VideosStored, sha256=_sha256),
)


def _naive(lines: list[Line]) -> tuple[set[int], set[int]]:
    """What waits and what is committed: by the last line that names a checkpoint."""
    starts = [i for i, line in enumerate(lines) if isinstance(line, Opened)]
    for start in reversed(starts):
        before = [line.to for line in lines[:start] if isinstance(line, Opened)]
        opened = lines[start]
        assert isinstance(opened, Opened)
        if before[-1:] != [opened.to]:
            lines = lines[start:]
            break
    last: dict[int, Line] = {}
    for line in lines:
        if isinstance(line, Seen | Committed | Dropped):
            last[line.timesteps] = line
    waiting = {t for t, line in last.items() if isinstance(line, Seen)}
    committed = set()
    for timesteps in last:
        steps = [
            line
            for line in lines
            if isinstance(line, Seen | Committed) and line.timesteps == timesteps
        ]
        if steps and isinstance(steps[-1], Committed):
            committed.add(timesteps)
    return waiting, committed


@given(st.lists(_lines, max_size=30))
def test_the_state_says_what_the_lines_say(lines: list[Line]) -> None:
    state = UploadState()
    for line in lines:
        state.apply(line)
    assert (set(state.waiting), state.committed) == _naive(lines)


@given(st.lists(_lines, max_size=12), st.integers(0, 4000))
def test_a_journal_that_is_cut_anywhere_has_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Line], cut: int
) -> None:
    texts = [line.model_dump_json().encode() + b"\n" for line in lines]
    content = b"".join(texts)[:cut]
    n_whole = content.count(b"\n")
    path = tmp_path_factory.mktemp("run") / "upload.jsonl"
    path.write_bytes(content)
    assert list(read_lines(path)) == lines[:n_whole]


@given(st.lists(_lines, max_size=12))
def test_lines_that_are_written_twice_change_nothing(lines: list[Line]) -> None:
    once, twice = UploadState(), UploadState()
    for line in lines:
        once.apply(line)
        twice.apply(line)
        twice.apply(line)
    assert once == twice


def test_a_torn_line_is_ignored_and_the_next_one_is_not_glued_to_it(tmp_path: Path) -> None:
    path = tmp_path / "upload.jsonl"
    with Journal(path) as journal:
        journal.write(Opened(to="s3://a/b", writer="w"))
        journal.write(Seen(timesteps=1, n_bytes=5, written_ns=1))
    path.write_bytes(path.read_bytes() + b'{"step": "commit')
    with Journal(path) as journal:
        assert set(journal.state.waiting) == {1}
        journal.write(Committed(timesteps=1))
    assert read_upload_state(path).committed == {1}


def test_another_address_begins_anew(tmp_path: Path) -> None:
    with Journal(tmp_path / "upload.jsonl") as journal:
        journal.write(Opened(to="s3://a/b", writer="w"))
        journal.write(Committed(timesteps=1))
        journal.write(Opened(to="s3://a/b", writer="w"))
        assert journal.state.committed == {1}
        journal.write(Opened(to="s3://c/d", writer="w"))
        assert journal.state.committed == set()
