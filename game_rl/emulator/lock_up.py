"""Detect that the game has locked up the CPU, and end the emulator's tick.

Eleven opcodes do not exist on a Game Boy. A console that executes one hangs until it is switched
off (Pan Docs, "CPU Instruction Set"). This happens with a damaged ROM, and when an agent runs into
a bug of the game. PyBoy 2.8 stops its clock at such an opcode, so its tick never returns. As no
Python code runs during the tick, neither Ctrl-C nor SIGTERM ends the process. But PyBoy runs
without the GIL, so a thread can notice that the CPU hangs and move it to a HALT, which ends the
tick.
"""

import threading
import time
import weakref
from typing import NamedTuple, Protocol

_OPCODES = frozenset({0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD})
_LOOK_EVERY_S = 0.25
_READINGS = 16  # of the program counter; while the CPU runs, hardly two are equal

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
    """The parts of a PyBoy that a guard needs."""

    register_file: _Registers
    memory: _Memory


class TickGuard:
    """A guard that ends ticks of one PyBoy in which the CPU hangs.

    Attributes:
        n_edges: number of starts and ends of ticks so far, counted by the owner; odd during a tick.
        lock_up: where the CPU hung, or None. After a lock-up the memory is unusable, and the owner
            resets this to None once it has loaded a state.
    """

    def __init__(self, pyboy: Console) -> None:
        self.n_edges = 0
        self.lock_up: LockUp | None = None
        self._pyboy = pyboy
        self._seen_edges = 0
        _watch.add(self)

    def look(self) -> None:
        """End the tick if it was already running at the last look and the CPU hangs."""
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
        """Return the address at which the CPU hangs or waits, or None if it is running."""
        addresses = {self._pyboy.register_file.PC for _ in range(_READINGS)}
        return addresses.pop() if len(addresses) == 1 else None

    def _halt(self) -> None:
        memory = self._pyboy.memory
        memory[_INTERRUPT_ENABLE] = 0
        for offset, byte in enumerate(_HALT_FOR_EVER):
            memory[_HIGH_RAM + offset] = byte
        self._pyboy.register_file.PC = _HIGH_RAM


class _Watch:
    """The thread that looks at all guards of the process."""

    def __init__(self) -> None:
        self._guards: weakref.WeakSet[TickGuard] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, guard: TickGuard) -> None:
        self._guards.add(guard)
        if self._thread is None or not self._thread.is_alive():  # a fork does not copy threads
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
