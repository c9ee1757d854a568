"""Windows of a Lake of arrays against a list of whole windows."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.envs.packing import FramePacking
from game_rl.errors import LakeError
from game_rl.lake.array_lake import RowWriter, sequences_of, windows
from game_rl.lake.block import JUMP
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import ArrayKind, LakeSchema
from game_rl.lake.sampler import Sampler
from game_rl.lake.upkeep import compact, verify_lake
from game_rl.lake.writer import LakeWriter
from tests.examples import examples
from tests.lake.plays import SCHEMA

ROW = 6  # bytes


def schema_of(rows: int, *, block_frames: int = 4) -> LakeSchema:
    return LakeSchema(
        FramePacking((1, 1, ROW)),
        frame_stack=rows,
        block_frames=block_frames,
        level=1,
        arrays=ArrayKind("|u1", (rows, ROW)),
    )


def write(
    lake: Lake, rng: np.random.Generator, n: int, *, stream: str, keeps: float
) -> list[bytes]:
    """Random windows, some of which go on from the ones before; all that a reader must give."""
    rows = lake.schema.frame_stack
    expected = []
    window: np.ndarray | None = None
    with RowWriter(lake, stream, segment_bytes=300) as writer:
        for _ in range(n):
            if window is None or rng.random() > keeps:
                window = rng.integers(256, size=(rows, ROW)).astype(np.uint8)
                writer.add_rows(window.view(f"V{ROW}")[:, 0])
            expected.append(window.tobytes())
            jumps = rng.random() > keeps
            fresh = rng.integers(256, size=(rows if jumps else 1, ROW)).astype(np.uint8)
            writer.add_transition(np.array(1, np.uint8), np.array(1, np.float32), JUMP * jumps)
            writer.add_rows(fresh.view(f"V{ROW}")[:, 0])
            window = np.concatenate([window, fresh])[-rows:]
            expected.append(window.tobytes())
    return expected


def read(lake: Lake) -> list[list[bytes]]:
    view = lake.view()
    return [[w.rows.tobytes() for w in windows(view, numbers)] for numbers in sequences_of(view)]


def in_order(found: list[bytes], lake: Lake, number: int) -> list[bytes]:
    """A window and the next one of each transition side by side."""
    view = lake.view()
    places = [(w.place, w.is_next) for w in windows(view, sequences_of(view)[number])]
    return [found[i] for i in sorted(range(len(found)), key=lambda i: places[i])]


@settings(max_examples=examples(40))
@given(
    st.integers(1, 9),
    st.integers(1, 7),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.7, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_every_window_comes_back_wherever_blocks_and_files_end(
    rows: int, block_frames: int, n: int, keeps: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder), schema_of(rows, block_frames=block_frames))
        expected = [write(lake, rng, n, stream=name, keeps=keeps) for name in ("a", "b")]
        assert len(lake.view()) == 2 * n
        for _ in range(2):
            assert [in_order(f, lake, i) for i, f in enumerate(read(lake))] == expected
            assert not verify_lake(lake.path).damaged
            compact(lake)


def test_rows_that_go_on_are_stored_once(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, schema_of(50))
    write(lake, np.random.default_rng(0), 100, stream="a", keeps=1)
    assert lake.view().heads["n_rows"].sum() == 50 + 100


def test_a_missing_file_is_found_wherever_it_was(tmp_path: Path) -> None:
    for missing in range(6):
        lake = Lake.create(tmp_path / str(missing), schema_of(20))
        write(lake, np.random.default_rng(0), 80, stream="a", keeps=1)
        files = lake.files(".segment")
        assert len(files) > 6
        files[missing].unlink()
        with pytest.raises(LakeError, match="rows that come before it in its stream are missing"):
            read(lake)
        (found,) = verify_lake(lake.path).damaged
        assert found == files[missing + 1].name


def test_the_newest_file_missing_is_found_by_the_window_that_needs_it(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path, schema_of(20))
    write(lake, np.random.default_rng(0), 80, stream="a", keeps=1)
    lake.files(".segment")[-1].unlink()
    with pytest.raises(LakeError, match="rows that come after it in its stream are missing"):
        read(lake)


def test_pictures_and_arrays_do_not_mix(tmp_path: Path) -> None:
    arrays, pictures = schema_of(20), SCHEMA
    lake = Lake.create(tmp_path / "arrays", arrays)
    write(lake, np.random.default_rng(0), 3, stream="a", keeps=1)
    what = r"has windows of 20 rows, uint8 \(20, 6\)"
    with pytest.raises(LakeError, match=f"{what}, not stacks of 3 frames, 2 bits a pixel"):
        Lake.create(tmp_path / "arrays", pictures)
    with pytest.raises(LakeError, match=f"{what}, to which no frames"):
        LakeWriter(lake, "b", n_envs=1)
    with pytest.raises(LakeError, match=f"{what}, and samples are drawn from Lakes of pictures"):
        Sampler(lake.view())
    with pytest.raises(LakeError, match="is a Lake of pictures"):
        RowWriter(Lake.create(tmp_path / "pictures", pictures), "a")


def test_a_schema_of_arrays_is_of_a_format_that_older_versions_refuse() -> None:
    text = schema_of(20).to_json()
    assert '"kind": "lake of format 2"' in text
    assert LakeSchema.from_json(text, source="it") == schema_of(20)
    assert '"kind": "lake of format 1"' in SCHEMA.to_json()
    assert "arrays" not in SCHEMA.to_json()
    with pytest.raises(LakeError, match="checksum"):
        LakeSchema.from_json(text.replace("[20, 6]", "[20, 7]"), source="it")
