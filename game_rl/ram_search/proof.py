"""Proof: a number is written into a copy of the emulator, to see what the game makes of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from game_rl.emulator.emulator import Emulator, Press
from game_rl.emulator.ram import Ram
from game_rl.errors import LockUpError
from game_rl.ram_search.search import RamCandidate

_FRAMES = 300
_IDLE_FRAMES = 24  # first without a button, in which most games write their copies again
_LEAST_KEPT_FRAMES = 12  # a copy is written again sooner
_LONGEST_HOLD_FRAMES = 24
_SHOWN_FRAMES = 48
_FRAMES_A_PICTURE = 8
_STEPS = (-1, 2, 8, None)
"""What is added to the number, in turn; None: it becomes 1, since many games end something at 0."""


class Verdict(IntEnum):
    """What the game does with a number that is written; the best first."""

    ORIGINAL = 0
    NO_EFFECT = 1
    COPY = 2

    @property
    def words(self) -> str:
        return {"ORIGINAL": "original", "NO_EFFECT": "no effect seen", "COPY": "copy"}[self.name]


@dataclass(frozen=True)
class Proof:
    """What came of writing a number.

    Attributes:
        is_shown: whether the number on the screen became the one that was written; None if no
            number on the screen is known.
    """

    verdict: Verdict
    is_shown: bool | None = None


class Prover:
    """Writes into copies of one state, and plays the same buttons after each.

    Args:
        emulator: may end up in any state.
        state: the state to write into.
        button_sets: what random play holds.
        shown_number: reads the number on the screen.
    """

    def __init__(
        self,
        emulator: Emulator,
        ram: Ram,
        state: bytes,
        button_sets: Sequence[frozenset[str]],
        shown_number: Callable[[Emulator], int | None] | None = None,
    ) -> None:
        self._emulator = emulator
        self._ram = ram
        self._state = state
        self._shown_number = shown_number
        self._presses = _random_presses(button_sets)
        self._untouched = self._played(None, b"")

    def prove(self, candidate: RamCandidate) -> Proof:
        """Write other numbers in place of a candidate's."""
        found = [self._written(candidate, step) for step in _STEPS]
        proofs = [proof for proof in found if proof is not None]
        if not proofs:
            return Proof(Verdict.NO_EFFECT)
        shown = [proof.is_shown for proof in proofs if proof.is_shown is not None]
        return Proof(min(proof.verdict for proof in proofs), any(shown) if shown else None)

    def _written(self, candidate: RamCandidate, step: int | None) -> Proof | None:
        after = _stepped(candidate, self._bytes_of(candidate, self._untouched.frames[0]), step)
        if after is None:
            return None
        try:
            played = self._played(candidate, after)
        except LockUpError:
            return Proof(Verdict.ORIGINAL)
        end = candidate.index + candidate.encoding.n_bytes
        usual = self._untouched.frames[:, candidate.index : end]
        differs = (played.frames != usual).any(axis=1)
        others = played.last != self._untouched.last
        others[candidate.index : end] = False
        is_shown = None
        if self._shown_number is not None:
            is_shown = self._is_shown(candidate, played, differs)
        if differs[-1]:
            has_effect = others.any() or played.pictures != self._untouched.pictures
            return Proof(Verdict.ORIGINAL if has_effect else Verdict.NO_EFFECT, is_shown)
        kept_frames = int(np.argmin(differs[1:]))
        if kept_frames >= _LEAST_KEPT_FRAMES and others.any():
            return Proof(Verdict.ORIGINAL, is_shown)
        return Proof(Verdict.COPY, is_shown)

    def _is_shown(
        self, candidate: RamCandidate, played: "_Played", differs: NDArray[np.bool_]
    ) -> bool:
        """Whether the screen mostly shows the number in memory while that is another than usual."""
        stored = [candidate.encoding.values(f, np.array([0]))[0] for f in played.frames]
        expected = candidate.shown.of(np.concatenate(stored)).tolist()
        frames = range(_LEAST_KEPT_FRAMES, _LEAST_KEPT_FRAMES + _SHOWN_FRAMES)
        both = [
            (expected[frame], played.numbers[frame])
            for frame in frames
            if differs[frame] and played.numbers[frame] is not None
        ]
        return bool(both) and 2 * sum(one == other for one, other in both) >= len(both)

    def _bytes_of(self, candidate: RamCandidate, snapshot: NDArray[np.uint8]) -> bytes:
        end = candidate.index + candidate.encoding.n_bytes
        return snapshot[candidate.index : end].tobytes()

    def _played(self, candidate: RamCandidate | None, written: bytes) -> "_Played":
        emulator = self._emulator
        emulator.load_state(self._state)
        if candidate is not None:
            address = int(self._ram.addresses[candidate.index])
            bank = self._ram.bank_of(candidate.index)
            for offset, byte in enumerate(written):
                emulator.write(address + offset, byte, bank=bank)
        frames = [self._seen(candidate)]
        numbers = []
        pictures = []
        if self._shown_number is not None:
            numbers.append(self._shown_number(emulator))
        for number, (buttons, n_frames) in enumerate(self._presses):
            emulator.hold(buttons)
            emulator.tick(n_frames, render=number % _FRAMES_A_PICTURE == 0)
            frames.append(self._seen(candidate))
            if self._shown_number is not None:
                numbers.append(self._shown_number(emulator))
            if number % _FRAMES_A_PICTURE == 0:
                pictures.append(emulator.screen().tobytes())
        last = self._ram.read(emulator)
        return _Played(np.array(frames), last, tuple(numbers), tuple(pictures))

    def _seen(self, candidate: RamCandidate | None) -> NDArray[np.uint8]:
        """Return the bytes of a candidate, or all of RAM."""
        if candidate is None:
            return self._ram.read(self._emulator)
        address = int(self._ram.addresses[candidate.index])
        bank = self._ram.bank_of(candidate.index)
        end = address + candidate.encoding.n_bytes
        return np.frombuffer(self._emulator.read_range(address, end, bank=bank), np.uint8)


@dataclass(frozen=True, eq=False)
class _Played:
    """What was seen at each frame.

    Attributes:
        frames: uint8 [n_frames + 1, n], the bytes of the candidate, or all.
        last: uint8 [n_bytes], RAM at the end.
    """

    frames: NDArray[np.uint8]
    last: NDArray[np.uint8]
    numbers: tuple[int | None, ...]
    pictures: tuple[bytes, ...]


def _random_presses(button_sets: Sequence[frozenset[str]]) -> list[Press]:
    """Return presses of one frame each: none at first, then random ones that are held a while."""
    rng = np.random.default_rng(0)
    found = [Press(frozenset(), 1)] * _IDLE_FRAMES
    while len(found) < _FRAMES:
        held = button_sets[int(rng.integers(len(button_sets)))]
        found += [Press(held, 1)] * int(rng.integers(4, _LONGEST_HOLD_FRAMES))  # type: ignore[arg-type]
    return found[:_FRAMES]


def _stepped(candidate: RamCandidate, before: bytes, step: int | None) -> bytes | None:
    """Return the bytes of a number that is `step` more; None if there is no such number."""
    encoding = candidate.encoding
    number = int(encoding.values(np.frombuffer(before, np.uint8), np.array([0]))[0][0])
    if step is None:
        step = 1 - number
        if step in (0, *_STEPS):
            return None
    return encoding.bytes_of(number + step, before)
