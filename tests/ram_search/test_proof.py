"""Numbers that are written into memory, against games whose rules are known."""

from collections.abc import Collection
from typing import NamedTuple, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.emulator.emulator import Emulator
from game_rl.errors import LockUpError
from game_rl.games.variables import Variable
from game_rl.ram_search.encodings import ENCODINGS, U8, Encoding
from game_rl.ram_search.known_facts import Shown
from game_rl.ram_search.proof import Proof, Prover, Verdict, _stepped
from game_rl.ram_search.search import RamCandidate
from tests.ram_search.scripted_memory import FIRST, Rule, ScriptedMemory

BUTTON_SETS = (frozenset[str](), frozenset({"a"}))


class Cell(NamedTuple):
    """A byte of a game: it stays, counts, or is copied from another every few frames."""

    kind: str
    source: int = 0
    every: int = 1
    start: int = 0


def rule_of(cells: list[Cell]) -> Rule:
    def rule(memory: bytearray, _: frozenset[str], frame: int) -> None:
        for index, cell in enumerate(cells):
            if cell.kind == "counts":
                memory[index] = (memory[index] + 1) % 256
            elif cell.kind == "copies" and frame % cell.every == 0:
                memory[index] = memory[cell.source]

    return rule


def verdict_by_the_rules(cells: list[Cell], index: int) -> Verdict:
    """What the rules say: a copy is written again, and an original has a copy."""
    if cells[index].kind == "copies":
        return Verdict.COPY
    has_copy = any(cell.kind == "copies" and cell.source == index for cell in cells)
    return Verdict.ORIGINAL if has_copy else Verdict.NO_EFFECT


@st.composite
def games(draw: st.DrawFn) -> list[Cell]:
    cells: list[Cell] = []
    for index in range(draw(st.integers(2, 7))):
        kinds = ["stays", "counts"] + ["copies"] * (index > 0)
        kind = draw(st.sampled_from(kinds))
        source = draw(st.integers(0, index - 1)) if kind == "copies" else 0
        cells.append(Cell(kind, source, draw(st.integers(1, 8)), draw(st.integers(0, 255))))
    return cells


def started(cells: list[Cell]) -> list[int]:
    """Return memory in which every copy is one already."""
    memory: list[int] = []
    for cell in cells:
        memory.append(memory[cell.source] if cell.kind == "copies" else cell.start)
    return memory


def prover_of(game: ScriptedMemory, shown: int | None = None) -> Prover:
    return Prover(
        cast("Emulator", game),
        game.ram,
        game.save_state(),
        BUTTON_SETS,
        None if shown is None else lambda emulator: emulator.read(FIRST + shown),
    )


@settings(max_examples=10, deadline=None)
@given(cells=games())
def test_each_byte_of_a_game_is_what_its_rules_make_of_it(cells: list[Cell]) -> None:
    game = ScriptedMemory(started(cells), rule_of(cells))
    prover = prover_of(game)
    for index in range(len(cells)):
        found = prover.prove(RamCandidate(index, U8))
        assert found == Proof(verdict_by_the_rules(cells, index)), index


def test_what_only_the_picture_follows_is_an_original() -> None:
    cells = [Cell("stays", start=5), Cell("stays", start=5)]
    prover = prover_of(ScriptedMemory([5, 5], rule_of(cells), drawn=[0]))
    assert prover.prove(RamCandidate(0, U8)) == Proof(Verdict.ORIGINAL)
    assert prover.prove(RamCandidate(1, U8)) == Proof(Verdict.NO_EFFECT)


def test_a_number_that_locks_the_game_up_is_an_original() -> None:
    def rule(memory: bytearray, _: frozenset[str], __: int) -> None:
        if memory[0] != 5:
            raise LockUpError("it locks up")

    assert prover_of(ScriptedMemory([5], rule)).prove(RamCandidate(0, U8)) == Proof(
        Verdict.ORIGINAL
    )


def test_the_number_on_the_screen_follows_its_original_and_no_other_byte() -> None:
    cells = [Cell("stays", start=9), Cell("copies", 0, 2, 9), Cell("stays", start=9)]
    prover = prover_of(ScriptedMemory([9, 9, 9], rule_of(cells)), shown=1)
    assert prover.prove(RamCandidate(0, U8)) == Proof(Verdict.ORIGINAL, is_shown=True)
    assert prover.prove(RamCandidate(2, U8)) == Proof(Verdict.NO_EFFECT, is_shown=False)
    one_more = RamCandidate(0, U8, Shown(offset=1))
    assert prover.prove(one_more) == Proof(Verdict.ORIGINAL, is_shown=False)


def as_variable(encoding: Encoding, raw: bytes) -> int | None:
    """Return the number that a variable of game.yaml reads; None if its bytes are no digits."""
    if encoding.type == "bcd" and any(byte >> 4 > 9 or byte & 15 > 9 for byte in raw):
        return None
    if encoding.type == "digits" and any(not 0 <= b - encoding.zero <= 9 for b in raw):
        return None
    variable = Variable(
        "n",
        FIRST,
        None,
        encoding.type,
        encoding.n_bytes,
        encoding.big_endian,
        mask=encoding.mask,
        shift=encoding.shift,
        zero=encoding.zero,
    )
    game = ScriptedMemory(list(raw), lambda *_: None)
    return variable.read(game)  # type: ignore[arg-type]


def numbers_of(encoding: Encoding) -> Collection[int]:
    """Return all numbers that an encoding has."""
    if encoding.zero > 246:  # only some digits have a byte
        last = 255 - encoding.zero
        return [10 * one + two for one in range(last + 1) for two in range(last + 1)]
    if encoding.type == "digits":
        return range(10**encoding.n_bytes)
    if encoding.type == "bcd":
        return range(100**encoding.n_bytes)
    if encoding.mask is not None:
        return range(16)
    whole = 256**encoding.n_bytes
    if encoding.type.startswith("s"):
        return range(-whole // 2, whole // 2)
    return range(whole)


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_a_written_number_is_as_much_more_as_it_should_be(data: st.DataObject) -> None:
    zeroed = [Encoding("digits", 2, big_endian=True, zero=zero) for zero in (0x30, 250)]
    encoding = data.draw(st.sampled_from([*ENCODINGS, *zeroed]))
    raw = bytes(data.draw(st.lists(st.integers(0, 255), min_size=6, max_size=6)))
    raw = raw[: encoding.n_bytes]
    if encoding.type == "digits":
        raw = bytes(min(255, encoding.zero + byte % 10) for byte in raw)
    if encoding.type == "bcd":
        raw = bytes((byte >> 4) % 10 << 4 | byte % 10 for byte in raw)
    step = data.draw(st.sampled_from([-1, 2, 8, None]))
    before = as_variable(encoding, raw)
    assert before is not None
    after = _stepped(RamCandidate(0, encoding), raw, step)
    wanted = 1 if step is None else before + step
    if step is None and wanted - before in (0, -1, 2, 8):
        assert after is None  # it was or will be written anyway
    elif wanted not in numbers_of(encoding):
        assert after is None
    else:
        assert after is not None
        assert as_variable(encoding, after) == wanted
        if encoding.mask is not None:
            assert (after[0] ^ raw[0]) & ~encoding.mask == 0


@pytest.mark.parametrize("number", [0, 1, 255])
def test_a_byte_that_is_written_holds_the_number_in_the_first_frame(number: int) -> None:
    seen: list[int] = []

    def rule(memory: bytearray, _: frozenset[str], frame: int) -> None:
        if frame == 0:
            seen.append(memory[0])

    prover_of(ScriptedMemory([number], rule)).prove(RamCandidate(0, U8))
    steps = [n for n in (number - 1, number + 2, number + 8) if 0 <= n <= 255]
    rest = [1] if 1 not in (number, *steps) else []
    assert seen == [number, *steps, *rest]
    assert np.all(np.array(seen) >= 0)
