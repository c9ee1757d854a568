"""Vectors and windows from SB3's replay buffer into a Lake and back, bit for bit."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.save_util import load_from_pkl, save_to_pkl

from game_rl.cli.main import main
from game_rl.errors import LakeError
from game_rl.interchange.minari_export import export_minari
from game_rl.interchange.replay_export import export_replay
from game_rl.interchange.replay_import import import_replay
from game_rl.lake.lake import Lake
from tests.examples import examples
from tests.interchange.test_replay_import import ACTIONS

NAMES = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
DTYPES = ("float16", "float32", "float64", "int8", "int64", "uint16", "uint8")


def any_bits(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """NaNs of all kinds, infinities and zeros of both signs among them."""
    kind = np.dtype(dtype)
    values = rng.integers(256, size=(*shape, kind.itemsize)).astype(np.uint8)
    found = values.view(kind)[..., 0]
    if kind.kind == "f" and found.size:
        found.flat[0], found.flat[-1] = np.nan, -0.0
    return found


def filled(
    rng: np.random.Generator,
    *,
    n: int,
    shape: tuple[int, ...],
    size: int = 12,
    n_envs: int = 1,
    dtype: str = "float32",
    actions: spaces.Space[Any] = ACTIONS[0],
    lean: bool = False,
    are_windows: bool = True,
    odd: float = 0.1,
) -> ReplayBuffer:
    """SB3's own buffer, by its own `add`; `odd` of the transitions do not move on by a row."""
    space = spaces.Box(0, 1, shape, np.float32)
    space.dtype = np.dtype(dtype)
    buffer = ReplayBuffer(
        size * n_envs,
        space,
        actions,
        "cpu",
        n_envs=n_envs,
        optimize_memory_usage=lean,
        handle_timeout_termination=not lean,
    )
    actions.seed(int(rng.integers(1000)))
    before = any_bits(rng, (n_envs, *shape), dtype)
    for _ in range(n):
        after = any_bits(rng, (n_envs, *shape), dtype)
        if are_windows:
            moved = np.concatenate([before[:, 1:], after[:, -1:]], 1)
            after = np.where(
                (rng.random(n_envs) < odd).reshape(-1, *[1] * len(shape)), after, moved
            ).astype(dtype)
        done, timeout = rng.random(n_envs) < 0.2, rng.random(n_envs) < 0.1
        taken = np.stack([np.asarray(actions.sample()).reshape(-1) for _ in range(n_envs)])
        rewards = any_bits(rng, (n_envs,), "float32")
        infos = [{"TimeLimit.truncated": bool(t)} for t in timeout]
        buffer.add(before, after, taken, rewards, done, infos)
        before = after.copy()
        for env in np.flatnonzero(done):
            before[env] = any_bits(rng, shape, dtype)
    return buffer


def expected(buffer: ReplayBuffer) -> dict[str, np.ndarray]:
    """What the buffer has to sample from, oldest first, by the rules of `ReplayBuffer.sample`."""
    size = buffer.buffer_size
    rows = (
        [(buffer.pos + i) % size for i in range(size)] if buffer.full else list(range(buffer.pos))
    )
    if buffer.full and buffer.optimize_memory_usage:
        rows = rows[1:]
    found = {name: getattr(buffer, name)[rows] for name in NAMES if name != "next_observations"}
    found["next_observations"] = (
        buffer.observations[[(row + 1) % size for row in rows]]
        if buffer.optimize_memory_usage
        else buffer.next_observations[rows]
    )
    return found


def assert_equal_bits(found: ReplayBuffer, wanted: dict[str, np.ndarray]) -> None:
    for name, values in wanted.items():
        array = getattr(found, name)
        assert (array.shape, array.dtype) == (values.shape, values.dtype), name
        assert array.tobytes() == values.tobytes(), name


def there_and_back(buffer: ReplayBuffer, folder: Path) -> ReplayBuffer:
    save_to_pkl(folder / "in.pkl", buffer)
    import_replay(folder / "in.pkl", folder / "lake")
    n = export_replay(Lake.open(folder / "lake"), folder / "out.pkl")
    loaded = load_from_pkl(folder / "out.pkl")
    assert type(loaded) is ReplayBuffer
    assert (loaded.full, loaded.pos, loaded.n_envs) == (True, 0, buffer.n_envs)
    assert n == loaded.buffer_size * buffer.n_envs
    return loaded


@settings(max_examples=examples(50))
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 40),
    shape=st.sampled_from([(1,), (6,), (5, 2), (4, 3, 2), (2, 2), ()]),
    n_envs=st.integers(1, 3),
    dtype=st.sampled_from(DTYPES),
    actions=st.sampled_from(ACTIONS),
    lean=st.booleans(),
    odd=st.sampled_from([0.0, 0.1, 0.9]),
)
def test_any_buffer_comes_back_bit_for_bit(
    seed: int,
    n: int,
    shape: tuple[int, ...],
    n_envs: int,
    dtype: str,
    actions: spaces.Space[Any],
    lean: bool,
    odd: float,
) -> None:
    """Rings of 12 that are not full, just full, and went round; also what never moves on."""
    assume((dtype, len(shape)) != ("uint8", 3))  # pictures
    buffer = filled(
        np.random.default_rng(seed),
        n=n,
        shape=shape,
        n_envs=n_envs,
        dtype=dtype,
        actions=actions,
        lean=lean,
        are_windows=bool(shape),
        odd=odd,
    )
    with TemporaryDirectory() as folder:
        assert_equal_bits(there_and_back(buffer, Path(folder)), expected(buffer))


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_windows_are_found_and_their_rows_stored_once(tmp_path: Path, protocol: int) -> None:
    buffer = filled(np.random.default_rng(0), n=10, shape=(50, 30, 4), odd=0)
    (tmp_path / "in.pkl").write_bytes(pickle.dumps(buffer, protocol=protocol))
    found = import_replay(tmp_path / "in.pkl", tmp_path / "lake")
    assert found.observations == "windows of 50 rows, float32 (50, 30, 4)"
    rows = Lake.open(tmp_path / "lake").view().heads["n_rows"].sum()
    n_episodes = 1 + int(buffer.dones[:9].sum())
    assert rows == 50 * n_episodes + 10


def test_vectors_are_stored_as_they_are(tmp_path: Path) -> None:
    buffer = filled(np.random.default_rng(0), n=10, shape=(6,), are_windows=False)
    save_to_pkl(tmp_path / "in.pkl", buffer)
    found = import_replay(tmp_path / "in.pkl", tmp_path / "lake")
    assert found.observations == "arrays of float32 (6,)"
    assert found.raw_bytes == 10 * (2 * 24 + 8 + 12)


def test_an_exported_buffer_is_sampled_and_added_to(tmp_path: Path) -> None:
    buffer = filled(np.random.default_rng(0), n=12, shape=(6,), n_envs=2)
    loaded = there_and_back(buffer, tmp_path)
    assert loaded.observation_space == spaces.Box(-np.inf, np.inf, (6,), np.float32)
    assert loaded.sample(5).observations.shape == (5, 6)
    new = np.ones((2, 6), np.float32)
    loaded.add(new, new, np.ones((2, 1)), np.ones(2), np.ones(2), [{}, {}])
    assert (loaded.observations[0] == 1).all()


def test_an_exported_buffer_is_imported_again(tmp_path: Path) -> None:
    buffer = filled(np.random.default_rng(0), n=12, shape=(6, 20), n_envs=2, size=12)
    there_and_back(buffer, tmp_path)
    import_replay(tmp_path / "out.pkl", tmp_path / "again")
    export_replay(Lake.open(tmp_path / "again"), tmp_path / "twice.pkl")
    assert (tmp_path / "twice.pkl").read_bytes()[-500:] == (tmp_path / "out.pkl").read_bytes()[
        -500:
    ]
    assert_equal_bits(load_from_pkl(tmp_path / "twice.pkl"), expected(buffer))


_CHILD = """
import json, re, sys
from pathlib import Path
from game_rl.interchange.replay_export import export_replay
from game_rl.interchange.replay_import import import_replay
from game_rl.lake.lake import Lake

def resident(name):
    return int(re.search(name + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

def extra(act):
    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what there is now
    before = resident("VmRSS")
    act()
    return resident("VmHWM") - before

folder = Path(sys.argv[1])
print(json.dumps([
    extra(lambda: import_replay(folder / "in.pkl", folder / "lake")),
    extra(lambda: export_replay(Lake.open(folder / "lake"), folder / "out.pkl")),
]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, pytest.param(300, marks=pytest.mark.soak)])
def test_windows_of_3_92_mb_a_transition_go_there_and_back_in_less_memory_than_two(
    tmp_path: Path, n: int
) -> None:
    """What the kernel says that a process of its own took beyond its imports, mapped files too."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(504 + n, 108, 9)).astype(np.float32)
    buffer = ReplayBuffer(
        n,
        spaces.Box(-np.inf, np.inf, (504, 108, 9), np.float32),
        spaces.Box(-1, 1, (108, 2), np.float32),
        "cpu",
    )
    for t in range(n):
        window, later = table[t : t + 504], table[t + 1 : t + 505]
        done = t % 25 == 24
        action = rng.uniform(-1, 1, (1, 108, 2)).astype(np.float32)
        buffer.add(window[None], later[None], action, np.ones(1), np.array([done]), [{}])
    save_to_pkl(tmp_path / "in.pkl", buffer)
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    transition = 2 * 504 * 108 * 9 * 4
    assert max(json.loads(child.stdout)) < 2 * transition
    lake = Lake.open(tmp_path / "lake")
    assert lake.view().heads["n_rows"].sum() == 504 + n
    assert lake.n_bytes() < 1.02 * (504 + n) * 972 * 4 + n * 900 + 10_000
    assert_equal_bits(load_from_pkl(tmp_path / "out.pkl"), expected(buffer))
    for name in ("in.pkl", "out.pkl"):
        (tmp_path / name).unlink()


# ---------------------------------------------------------------------- what is refused


def test_a_cut_or_changed_file_of_arrays_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "in.pkl"
    save_to_pkl(path, filled(np.random.default_rng(0), n=12, shape=(50, 30)))
    content = path.read_bytes()
    for length in (10, 1000, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(LakeError, match=r"in\.pkl"):
            import_replay(path, tmp_path / "lake")
        assert [p.name for p in tmp_path.iterdir()] == ["in.pkl"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dones": np.full((12, 1), 0.5, np.float32)}, "its dones are not all 0 or 1"),
        ({"rewards": np.zeros((12, 1))}, "its rewards are float64, not float32"),
        ({"actions": np.zeros((11, 1, 1))}, r"actions are \(11, 1, 1\), but dones are \(12, 1\)"),
        (
            {name: np.zeros((12, 1, 0), np.float32) for name in NAMES[:2]},
            r"float32 \(0,\), which have no values",
        ),
    ],
)
def test_what_cannot_come_back_is_refused(
    tmp_path: Path, change: dict[str, np.ndarray], message: str
) -> None:
    buffer = filled(np.random.default_rng(0), n=12, shape=(3,))
    for name, values in change.items():
        setattr(buffer, name, values)
    save_to_pkl(tmp_path / "in.pkl", buffer)
    with pytest.raises(LakeError, match=message):
        import_replay(tmp_path / "in.pkl", tmp_path / "lake")
    assert [p.name for p in tmp_path.iterdir()] == ["in.pkl"]


def test_what_is_for_pictures_alone_says_so(tmp_path: Path) -> None:
    save_to_pkl(tmp_path / "in.pkl", filled(np.random.default_rng(0), n=12, shape=(3,)))
    with pytest.raises(LakeError, match="not pictures; leave --frame-stack out"):
        import_replay(tmp_path / "in.pkl", tmp_path / "lake", frame_stack=3)
    import_replay(tmp_path / "in.pkl", tmp_path / "lake")
    with pytest.raises(LakeError, match="but a Minari data set is made of pictures"):
        export_minari(Lake.open(tmp_path / "lake"), tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_damaged_lake_of_arrays_is_not_exported(tmp_path: Path) -> None:
    save_to_pkl(tmp_path / "in.pkl", filled(np.random.default_rng(0), n=12, shape=(50, 30)))
    import_replay(tmp_path / "in.pkl", tmp_path / "lake")
    (segment,) = (tmp_path / "lake").glob("*.segment")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(bytes(content))
    with pytest.raises(LakeError, match="its checksum is wrong"):
        export_replay(Lake.open(tmp_path / "lake"), tmp_path / "out.pkl")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.pkl", "lake"]


def test_the_commands_on_a_lake_of_windows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_to_pkl("in.pkl", filled(np.random.default_rng(0), n=12, shape=(50, 30), n_envs=2, odd=0))
    assert main(["replay", "import", "in.pkl", "--output", "lake"]) == 0
    text = "24 transitions, windows of 50 rows, float32 (50, 30)"
    assert text in capsys.readouterr().out
    assert main(["replay", "info", "lake", "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["observation"] == "windows of 50 rows, float32 (50, 30)"
    assert (info["n_transitions"], len(info["streams"])) == (24, 2)
    assert main(["replay", "info", "lake"]) == 0
    assert "windows of 50 rows" in capsys.readouterr().out
    assert main(["replay", "verify", "lake"]) == 0
    assert main(["replay", "compact", "lake"]) == 0
    assert main(["replay", "export", "lake", "--output", "out.pkl"]) == 0
    assert_equal_bits(load_from_pkl("out.pkl"), expected(load_from_pkl("in.pkl")))
    next(Path("lake").glob("env000.*")).unlink()
    assert main(["replay", "verify", "lake"]) == 0
    assert main(["replay", "export", "lake", "--output", "half.pkl"]) == 0
    assert load_from_pkl("half.pkl").n_envs == 1
