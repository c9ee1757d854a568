"""Fields that share rows against a list of whole arrays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.buffers.fields import FieldStore, Frame, NextOf, RowTable, StackOf, Value, WindowOf
from game_rl.envs.packing import FramePacking

PRICES = {
    "state": WindowOf("prices", rows=504),
    "next_state": NextOf("state"),
    "action": Value((108, 2), np.float32),
    "reward": Value((), np.float32),
    "done": Value((), np.bool_),
}


def transition(table: np.ndarray, row: int) -> dict[str, Any]:
    return {
        "state": table[row : row + 504],
        "next_state": table[row + 1 : row + 505],
        "action": np.full((108, 2), row, np.float32),
        "reward": np.float32(row),
        "done": np.bool_(row % 7 == 6),
    }


def test_windows_over_a_table_take_4_8_kb_a_transition_and_not_3_92_mb() -> None:
    table = np.random.default_rng(0).normal(size=(504 + 60, 108, 9)).astype(np.float32)
    store = FieldStore(PRICES)
    store.add(transition(table, 0))
    first = store.nbytes
    for row in range(1, 51):
        store.add(transition(table, row))
    raw = sum(np.asarray(value).nbytes for value in transition(table, 0).values())
    assert raw == 2 * 504 * 108 * 9 * 4 + 864 + 4 + 1 == 3_919_973
    each = (store.nbytes - first) / 50
    assert each == 108 * 9 * 4 + 864 + 4 + 1 + 2 * 8 == 4_773
    found = store.take(np.array([0, 50, 13]))
    for i, row in enumerate((0, 50, 13)):
        for name, value in transition(table, row).items():
            np.testing.assert_array_equal(found[name][i], value)


@given(st.lists(st.integers(0, 36), min_size=1, max_size=30), st.integers(1, 4), st.booleans())
def test_windows_in_any_order_come_back(starts: list[int], rows: int, alike: bool) -> None:
    table = np.arange(40 * 2, dtype=np.int16).reshape(40, 2) // (20 if alike else 1)
    store = FieldStore({"w": WindowOf("t", rows), "next": NextOf("w")})
    for number, start in enumerate(starts):
        window = table[start : start + rows]
        store.add({"w": window, "next": table[start][None].repeat(rows, 0)}, stream=number % 2)
    found = store.take(np.arange(len(starts)))
    for i, start in enumerate(starts):
        np.testing.assert_array_equal(found["w"][i], table[start : start + rows])
        np.testing.assert_array_equal(found["next"][i], table[start][None].repeat(rows, 0))


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_stacks_of_frames_are_kept_once_each(seed: int, n: int) -> None:
    """Two envs side by side, with episodes that end; as many rows as there were frames."""
    rng = np.random.default_rng(seed)
    packing = FramePacking((1, 4, 4), bits=2)
    store = FieldStore({"frame": Frame(packing), "obs": StackOf("frame", n), "next": NextOf("obs")})
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    stacks: list[np.ndarray | None] = [None, None]
    n_frames = 0

    def frame() -> np.ndarray:
        nonlocal n_frames
        n_frames += 1
        return packing.unpack(rng.integers(1, 256, (1, packing.nbytes)).astype(np.uint8))[0]

    for step in range(40):
        env = step % 2
        stack = stacks[env]
        if stack is None:
            stack = np.concatenate([np.zeros((n - 1, 4, 4), np.uint8), frame()])
        following = np.concatenate([stack[1:], frame()])
        store.add({"obs": stack, "next": following}, stream=env)
        kept.append((stack, following))
        stacks[env] = None if rng.random() < 0.2 else following
    found = store.take(np.arange(40))
    np.testing.assert_array_equal(found["obs"], [obs for obs, _ in kept])
    np.testing.assert_array_equal(found["next"], [following for _, following in kept])
    assert store.nbytes == n_frames * packing.nbytes + 40 * 2 * 8


def test_bits_are_compared_and_not_numbers() -> None:
    table = np.array([[np.nan], [0.0], [-0.0], [1.0]], np.float32)
    store = FieldStore({"w": WindowOf("t", 2)})
    for start in (0, 1, 2, 0):
        store.add({"w": table[start : start + 2]})
    assert store.nbytes == 4 * 4 + 4 * 8
    assert store.take(np.array([1]))["w"].tobytes() == table[1:3].tobytes()


def test_many_equal_rows_are_not_all_tried() -> None:
    table = RowTable()
    for value in range(100):
        table.place(np.array([[0, value]], np.uint8).view("V1").reshape(2))
    assert max(len(places) for places in table._places.values()) == 16


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a": NextOf("b")}, "a is the next of b, which is no field"),
        ({"a": StackOf("b", 4)}, "a is a stack of b, which is no Frame"),
    ],
)
def test_a_field_that_names_nothing_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FieldStore(fields)


def test_a_value_of_another_shape_is_refused_and_nothing_is_stored() -> None:
    store = FieldStore({"w": WindowOf("t", 2), "r": Value()})
    good = {"w": np.zeros((2, 3)), "r": np.float32(1)}
    store.add(good)
    before = store.nbytes
    for bad in ({"w": np.zeros((2, 4))}, {"w": np.zeros((3, 3))}, {"r": np.float64(1)}):
        with pytest.raises(ValueError, match="not"):
            store.add({**good, **bad})
    assert (store.nbytes, len(store)) == (before, 1)
