"""Vectors and windows from SB3's replay buffer into a Lake and back, bit for bit."""

import gzip
import json
import os
import pickle
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import minari
import numpy as np
import pytest
import torch
import zstandard
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import load_from_pkl, save_to_pkl

from game_rl.cli.main import main
from game_rl.errors import LakeError
from game_rl.interchange.minari_export import export_minari
from game_rl.interchange.replay_export import export_replay
from game_rl.interchange.replay_import import import_replay
from game_rl.interchange.replay_pickle import read_pickle
from game_rl.lake.block import block_bytes
from game_rl.lake.lake import Lake
from game_rl.lake.segment import read_index
from game_rl.lake.writer import LakeWriter
from tests.lake.plays import SCHEMA, Play, everything

ACTIONS: tuple[spaces.Space[Any], ...] = (
    spaces.Discrete(300),
    spaces.Box(-1, 1, (3, 2), np.float32),
    spaces.MultiDiscrete([3, 7]),
    spaces.MultiBinary(4),
    spaces.Box(-5, 5, (2,), np.int32),
)


Key = tuple[bytes, bytes, bytes, float, bool, bool]


def played(
    n: int,
    *,
    size: int = 60,
    n_envs: int = 2,
    stack: int = 3,
    levels: tuple[int, ...] = (0, 85, 170, 255),
    repeats_first: bool = False,
    action_space: spaces.Space[Any] | None = None,
    lean: bool = False,
    seed: int = 0,
) -> ReplayBuffer:
    """A buffer filled by a naive frame stack."""
    rng = np.random.default_rng(seed)
    space = spaces.Box(0, 255, (stack, 4, 5), np.uint8)
    actions = action_space or spaces.Discrete(7)
    buffer = ReplayBuffer(
        size * n_envs,
        space,
        actions,
        device="cpu",
        n_envs=n_envs,
        optimize_memory_usage=lean,
        handle_timeout_termination=not lean,
    )

    def first() -> np.ndarray:
        frame = rng.choice(levels, (1, 4, 5)).astype(np.uint8)
        before = frame if repeats_first else np.zeros_like(frame)
        return np.concatenate([before] * (stack - 1) + [frame])

    obs = np.stack([first() for _ in range(n_envs)])
    for _ in range(n):
        frames = rng.choice(levels, (n_envs, 1, 4, 5)).astype(np.uint8)
        following = np.concatenate([obs[:, 1:], frames], 1)
        terminated, truncated = rng.random(n_envs) < 0.1, rng.random(n_envs) < 0.1
        infos = [{"TimeLimit.truncated": bool(t)} for t in truncated & ~terminated]
        taken = np.stack([np.asarray(actions.sample()).reshape(-1) for _ in range(n_envs)])
        rewards = rng.normal(size=n_envs).astype(np.float32)
        buffer.add(obs, following, taken, rewards, terminated | truncated, infos)
        obs = following.copy()
        for env in np.flatnonzero(terminated | truncated):
            obs[env] = first()
    return buffer


def of_buffer(buffer: ReplayBuffer) -> list[Key]:
    """Every transition that SB3 would sample, as it would give it."""
    rows = range(buffer.buffer_size if buffer.full else buffer.pos)
    found = []
    for row in rows:
        if buffer.optimize_memory_usage and buffer.full and row == buffer.pos:
            continue
        for env in range(buffer.n_envs):
            later = (
                buffer.observations[(row + 1) % buffer.buffer_size, env]
                if buffer.optimize_memory_usage
                else buffer.next_observations[row, env]
            )
            done = buffer.dones[row, env] > 0
            timeout = buffer.timeouts[row, env] > 0 if buffer.handle_timeout_termination else False
            found.append(
                (
                    buffer.observations[row, env].tobytes(),
                    buffer.actions[row, env].astype(np.float64).tobytes(),
                    later.tobytes(),
                    float(buffer.rewards[row, env]),
                    bool(done and not timeout),
                    bool(timeout),
                )
            )
    return sorted(found)


def of_lake(lake: Lake) -> list[Key]:
    view = lake.view()
    batch, _ = everything(view, gamma=1)
    truncated = np.concatenate(
        [
            (columns.flags[columns.rows] & 8) > 0
            for columns in map(view.columns, range(len(view.heads)))
        ]
    )
    return sorted(
        (
            batch.stacks[i].tobytes(),
            batch.actions[i].astype(np.float64).tobytes(),
            batch.next_stacks[i].tobytes(),
            float(batch.rewards[i]),
            bool(batch.discounts[i] == 0),
            bool(truncated[i]),
        )
        for i in range(len(batch.rewards))
    )


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "raw": lambda data: data,
    "gzip": gzip.compress,
    "zstd": lambda data: zstandard.compress(data),
}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("n", [1, 40, 150])
def test_every_transition_is_imported_bit_for_bit(
    tmp_path: Path, compression: str, protocol: int, n: int
) -> None:
    """Also when the ring went round and begins within an episode."""
    buffer = played(n)
    path = tmp_path / "replay.pkl"
    path.write_bytes(COMPRESSIONS[compression](pickle.dumps(buffer, protocol=protocol)))
    found = import_replay(path, tmp_path / "lake")
    lake = Lake.open(tmp_path / "lake")
    assert of_lake(lake) == of_buffer(buffer)
    assert found.n_transitions == 2 * min(n, 60)
    assert (found.bits, lake.schema.frame_stack) == (2, 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "replay.pkl"]


@pytest.mark.parametrize(
    ("keywords", "bits", "stack"),
    [
        ({"levels": (0, 22, 43, 255)}, 4, 3),
        ({"levels": (0, 1, 200)}, 8, 3),
        ({"stack": 1}, 2, 1),
        ({"stack": 4, "repeats_first": True}, 2, 4),
        ({"action_space": spaces.Box(-1, 1, (2,), np.float32)}, 2, 3),
        ({"action_space": spaces.MultiDiscrete([3, 400])}, 2, 3),
        ({"lean": True}, 2, 3),
        ({"lean": True, "n_envs": 1, "size": 30}, 2, 3),
        ({"lean": True, "stack": 4, "repeats_first": True}, 2, 4),
    ],
)
def test_buffers_of_many_kinds_are_imported(
    tmp_path: Path, keywords: dict[str, Any], bits: int, stack: int
) -> None:
    for n in (25, 75):
        buffer = played(n, **keywords)
        path = tmp_path / f"{n}.pkl"
        save_to_pkl(path, buffer)
        found = import_replay(path, tmp_path / f"lake{n}")
        assert (found.bits, found.frame_stack) == (bits, stack)
        assert of_lake(Lake.open(tmp_path / f"lake{n}")) == of_buffer(buffer)


def test_observations_that_are_no_stacks_are_kept_whole(tmp_path: Path) -> None:
    buffer = played(40)
    buffer.next_observations[7, 0, 0] = 85  # a game that draws its older frames anew
    save_to_pkl(tmp_path / "r.pkl", buffer)
    assert import_replay(tmp_path / "r.pkl", tmp_path / "lake").frame_stack == 1
    assert of_lake(Lake.open(tmp_path / "lake")) == of_buffer(buffer)
    with pytest.raises(LakeError, match="are not stacks of 3 frames; try 1"):
        import_replay(tmp_path / "r.pkl", tmp_path / "other", frame_stack=3)
    assert not (tmp_path / "other").exists()


def test_what_is_exported_is_what_sb3_would_have_kept(tmp_path: Path) -> None:
    buffer = played(50)
    save_to_pkl(tmp_path / "r.pkl", buffer)
    import_replay(tmp_path / "r.pkl", tmp_path / "lake")
    assert export_replay(Lake.open(tmp_path / "lake"), tmp_path / "out.pkl", n_actions=7) == 100
    loaded = load_from_pkl(tmp_path / "out.pkl")
    assert type(loaded) is ReplayBuffer
    theirs = {(k[0], k[2], k[3]): k for k in of_buffer(buffer)}
    ours = {(k[0], k[2], k[3]): k for k in of_buffer(loaded)}
    differing = [key for key, value in ours.items() if value != theirs[key]]
    assert ours.keys() == theirs.keys()
    assert len(differing) <= 2  # the last of each env, whose episode goes on: truncated now
    np.random.seed(0)  # noqa: NPY002 - SB3 draws from it
    sample = loaded.sample(64)
    assert sample.observations.shape == (64, 3, 4, 5)
    assert loaded.action_space == spaces.Discrete(7)
    assert torch.isfinite(sample.rewards).all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lake", "out.pkl", "r.pkl"]


@pytest.mark.parametrize("keywords", [{}, {"repeats_first": True}, {"stack": 1}])
@pytest.mark.parametrize("n", [25, 60, 150])
def test_a_buffer_that_saved_memory_is_exported_as_sb3_would_sample_it(
    tmp_path: Path, n: int, keywords: dict[str, Any]
) -> None:
    """At an episode's end, too, where SB3 gives the first observation of the next one."""
    buffer = played(n, lean=True, **keywords)
    save_to_pkl(tmp_path / "r.pkl", buffer)
    import_replay(tmp_path / "r.pkl", tmp_path / "lake")
    export_replay(Lake.open(tmp_path / "lake"), tmp_path / "out.pkl", n_actions=7)
    theirs, ours = of_buffer(buffer), of_buffer(load_from_pkl(tmp_path / "out.pkl"))
    assert [key[:4] for key in ours] == [key[:4] for key in theirs]
    assert sum(key[4] for key in ours) == sum(key[4] for key in theirs) > 5


def test_a_minari_data_set_has_the_whole_episodes_and_every_pixel(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake", SCHEMA)
    play = Play(SCHEMA, np.random.default_rng(0), 2, end_chance=0.2)
    with LakeWriter(lake, "w", n_envs=2, segment_bytes=600) as writer:
        play.steps(writer, 60)
    episodes, timesteps = export_minari(lake, tmp_path / "set", n_actions=256)
    expected = []
    for rows in play.stored:
        start = 0
        for end, row in enumerate(rows):
            if row.terminated or row.truncated:
                expected.append(rows[start : end + 1])
                start = end + 1
    data = minari.MinariDataset(tmp_path / "set")
    assert episodes == len(expected) == data.total_episodes > 10
    assert timesteps == sum(map(len, expected)) == data.total_steps
    assert data.action_space == spaces.Discrete(256)
    for found, rows in zip(data.iterate_episodes(), expected, strict=True):
        frames = [rows[0].stack[-1:], *(row.next_stack[-1:] for row in rows)]
        np.testing.assert_array_equal(found.observations, frames)
        np.testing.assert_array_equal(found.actions, [row.action for row in rows])
        np.testing.assert_allclose(found.rewards, [row.reward for row in rows], rtol=1e-6)
        assert found.terminations.tolist() == [row.terminated for row in rows]
        last = rows[-1]
        assert found.truncations.tolist()[-1] == (last.truncated and not last.terminated)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Files of 31 and 123 MB are mapped, not read."""
    peaks = {}
    for rows in (150, 600):
        folder = tmp_path / f"{rows}"
        folder.mkdir()
        space = spaces.Box(0, 255, (1, 320, 320), np.uint8)
        buffer = ReplayBuffer(rows, space, spaces.Discrete(2), "cpu")
        buffer.full = True
        save_to_pkl(folder / "r.pkl", buffer)
        assert (folder / "r.pkl").stat().st_size > rows * 2 * 320 * 320
        del buffer
        tracemalloc.start()
        try:
            import_replay(folder / "r.pkl", folder / "lake")
            export_replay(Lake.open(folder / "lake"), folder / "out.pkl")
            peaks[rows] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peaks[600] < 1.1 * peaks[150]


# ---------------------------------------------------------------------- what is refused


class Bomb:
    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize(
    ("bomb", "name"),
    [
        (Bomb(os.system, "touch exploded"), r"posix\.system"),
        (Bomb(eval, "open('exploded', 'w')"), r"builtins\.eval"),
        (Bomb(getattr, "", "join"), r"builtins\.getattr"),
        (Bomb(np.load, "exploded"), r"numpy\.load"),
    ],
)
def test_a_pickle_bomb_is_refused_by_name_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: int, bomb: Bomb, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    buffer = played(3)
    buffer.device = bomb  # type: ignore[assignment]
    Path("r.pkl").write_bytes(pickle.dumps(buffer, protocol=protocol))
    with pytest.raises(LakeError, match=rf"r\.pkl: refused, nothing was run: it asks for {name}"):
        import_replay(Path("r.pkl"), Path("lake"))
    assert [p.name for p in tmp_path.iterdir()] == ["r.pkl"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"a": 1}), "holds a dict, not a ReplayBuffer"),
        (pickle.dumps(played(1), protocol=2), "protocol 2; save it again with protocol 5"),
        (b"PK\x03\x04rest", "a zip, perhaps of a model; give the file"),
        (b"\x00\x01\x02", "is not a replay buffer of Stable-Baselines3"),
        (pickle.dumps(np.array([{}], object)), "only numbers are supported"),
        (b"\x80\x05" + b"]" * 1_000_010, "more than 1,000,000 instructions"),
        (b"\x80\x05\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", "it is cut off"),
        (b"\x80\x05\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", "unsupported instruction BINUNICODE8"),
        (b"\x80\x05X\xff\xff\xff\x7f", "a text of 2,147,483,647 bytes"),
        (gzip.compress(pickle.dumps(played(3)))[:-30], "compression is damaged or cut off"),
    ],
)
def test_what_is_no_replay_buffer_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "r.pkl").write_bytes(content)
    with pytest.raises(LakeError, match=message):
        import_replay(tmp_path / "r.pkl", tmp_path / "lake")
    assert [p.name for p in tmp_path.iterdir()] == ["r.pkl"]


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(played(3), protocol=5)
    path = tmp_path / "r.pkl"
    for length in np.linspace(2, len(content) - 1, 300).astype(int).tolist():
        path.write_bytes(content[:length])
        with pytest.raises(LakeError):
            read_pickle(path)


def test_any_flipped_byte_of_the_instructions_only_ever_raises_a_lake_error(tmp_path: Path) -> None:
    content = bytearray(pickle.dumps(played(3), protocol=5))
    rng = np.random.default_rng(0)
    path = tmp_path / "r.pkl"
    for _ in range(1_500):
        changed = content.copy()
        changed[int(rng.integers(len(content)))] = int(rng.integers(256))
        path.write_bytes(changed)
        try:
            read_pickle(path)
        except LakeError as error:
            assert "r.pkl" in str(error)  # noqa: PT017


def test_a_small_file_that_unpacks_to_more_than_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.pkl").write_bytes(gzip.compress(bytes(50_000_000)))
    usage = shutil.disk_usage(tmp_path)._replace(free=20 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(LakeError, match=r"unpacked, it has more than 19\.0 MiB"):
        import_replay(tmp_path / "r.pkl", tmp_path / "lake")
    assert [p.name for p in tmp_path.iterdir()] == ["r.pkl"]


def test_an_existing_output_is_left_alone(tmp_path: Path) -> None:
    save_to_pkl(tmp_path / "r.pkl", played(3))
    (tmp_path / "lake").mkdir()
    with pytest.raises(LakeError, match="exists; name a new folder"):
        import_replay(tmp_path / "r.pkl", tmp_path / "lake")


# ---------------------------------------------------------------------- damage


def _with_checksum(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


@pytest.mark.parametrize("compress", [gzip.compress, _with_checksum])
def test_a_changed_byte_of_a_file_with_a_checksum_is_found(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "r.pkl").write_bytes(compress(pickle.dumps(played(3))))
    assert import_replay(tmp_path / "r.pkl", tmp_path / "lake").had_checksum
    content = bytearray((tmp_path / "r.pkl").read_bytes())
    content[-3] ^= 1  # of the checksum
    (tmp_path / "r.pkl").write_bytes(content)
    with pytest.raises(LakeError, match="compression is damaged"):
        import_replay(tmp_path / "r.pkl", tmp_path / "other")


@pytest.mark.parametrize("compress", [bytes, zstandard.compress])
def test_a_file_without_a_checksum_is_imported_as_one(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "r.pkl").write_bytes(compress(pickle.dumps(played(3))))
    assert not import_replay(tmp_path / "r.pkl", tmp_path / "lake").had_checksum


# ---------------------------------------------------------------------- the commands


def test_the_commands_from_import_to_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_to_pkl("r.pkl", played(40))
    assert main(["replay", "import", "r.pkl", "--output", "lake"]) == 0
    said = capsys.readouterr().out
    assert "80 transitions, stacks of 3 frames, 2 bits a pixel" in said
    assert "r.pkl has no checksum: a byte that changed" in said
    assert main(["replay", "info", "lake", "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["n_transitions"] == 80
    assert [stream["stream"] for stream in info["streams"]] == ["env000", "env001"]
    assert main(["replay", "info", "lake"]) == 0
    assert "env001" in capsys.readouterr().out
    assert main(["replay", "verify", "lake"]) == 0
    assert "80 transitions" in capsys.readouterr().out
    assert main(["replay", "compact", "lake"]) == 0
    assert main(["replay", "export", "lake", "--output", "out.pkl"]) == 0
    assert len(of_buffer(load_from_pkl("out.pkl"))) == 80
    assert main(["replay", "export", "lake", "--format", "minari", "--output", "set"]) == 0
    assert "minari.MinariDataset('set')" in capsys.readouterr().out
    (segment, *_) = Path("lake").glob("*.segment")
    content = bytearray(segment.read_bytes())
    index = read_index(segment).index()
    content[int(index.offsets[-1]) + block_bytes(index.heads[-1]) - 1] ^= 1  # of a frame
    segment.write_bytes(bytes(content))
    capsys.readouterr()
    assert main(["replay", "verify", "lake"]) == 1
    said = capsys.readouterr().out
    assert f"damaged: {Path('lake') / segment.name}: its sha256 is not the one" in said
    assert "delete the damaged files, or restore them from a copy" in said
    assert "replay verify" not in said  # that is what was run
    assert main(["replay", "info", "lake"]) == 1
    said = capsys.readouterr().out
    assert "80 transitions" in said  # only frames are damaged
    assert f"damaged: {Path('lake') / segment.name}: its sha256 is not the one" in said
    assert main(["replay", "info", "lake", "--json"]) == 1
    assert list(json.loads(capsys.readouterr().out)["damaged"]) == [segment.name]
    assert main(["replay", "info", "nothing"]) == 2
    assert "is not a Lake" in capsys.readouterr().err
