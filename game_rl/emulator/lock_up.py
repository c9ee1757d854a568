"""Freeing a tick in which the game has locked up the CPU.

Eleven opcodes exist on no Game Boy; a console that meets one stands still until it is switched off
(Pan Docs, "CPU Instruction Set"). A damaged ROM does, and so does a game that an agent has driven
into a fault of its program. PyBoy 2.8 stops its clock there: its tick never comes back, and as no
Python runs in it, neither Ctrl-C nor SIGTERM ends the process. But it runs without the GIL, so a
thread can see the CPU stand and put it onto a HALT, with which the tick ends.
"""

import threading
import time
import weakref
from typing import NamedTuple, Protocol

_OPCODES = frozenset({0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD})
_LOOK_EVERY_S = 0.25
_READINGS = 16  # of a CPU that runs, hardly two are alike

_HIGH_RAM, _INTERRUPT_ENABLE = 0xFF80, 0xFFFF
_HALT_FOR_EVER = (0x76, 0x18, 0xFD)  # HALT; JR to it


class LockUp(NamedTuple):
    address: int
    opcode: int

    def __str__(self) -> str:
        return f"opcode 0x{self.opcode:02X} at 0x{self.address:04X}, which no Game Boy has"


class _Registers(Protocol):
    PC: int


class _Memory(Protocol):
    def __getitem__(self, address: int) -> int: ...
    def __setitem__(self, address: int, value: int) -> None: ...


class Console(Protocol):
    """What of a PyBoy is looked at."""

    register_file: _Registers
    memory: _Memory


class TickGuard:
    """Sees to it that the ticks of one PyBoy end.

    Attributes:
        n_edges: beginnings and ends of ticks so far, counted by the owner; odd in a tick.
        lock_up: where the CPU stood, if it did. Memory is of no more use then; the owner says None
            when it has loaded a state.
    """

    def __init__(self, pyboy: Console) -> None:
        self.n_edges = 0
        self.lock_up: LockUp | None = None
        self._pyboy = pyboy
        self._seen_edges = 0
        _watch.add(self)

    def look(self) -> None:
        """End the tick if it has run since the last look and the CPU stands."""
        edges, self._seen_edges = self._seen_edges, self.n_edges
        if self.n_edges % 2 and edges == self.n_edges and self.lock_up is None:
            address = self._standing_at()
            if address is None:
                return
            opcode = self._pyboy.memory[address]
            if opcode in _OPCODES and self._standing_at() == address:
                self.lock_up = LockUp(address, opcode)
                self._halt()

    def _standing_at(self) -> int | None:
        """Where the CPU stands or waits; None if it goes on."""
        addresses = {self._pyboy.register_file.PC for _ in range(_READINGS)}
        return addresses.pop() if len(addresses) == 1 else None

    def _halt(self) -> None:
        memory = self._pyboy.memory
        memory[_INTERRUPT_ENABLE] = 0
        for offset, byte in enumerate(_HALT_FOR_EVER):
            memory[_HIGH_RAM + offset] = byte
        self._pyboy.register_file.PC = _HIGH_RAM


class _Watch:
    """The one thread of a process that looks after all its guards."""

    def __init__(self) -> None:
        self._guards: weakref.WeakSet[TickGuard] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, guard: TickGuard) -> None:
        self._guards.add(guard)
        if self._thread is None or not self._thread.is_alive():  # a fork takes no threads along
            self._thread = threading.Thread(target=self._run, name="lock-up watch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK_EVERY_S)
            self._look()

    def _look(self) -> None:
        for guard in tuple(self._guards):
            guard.look()


_watch = _Watch()
