"""Damaged emulator states, ours and PyBoy's own, used as files of `start_states`."""

import functools
import io
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyboy import PyBoy

from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.rom import Rom, read_rom
from game_rl.emulator.saved_state import STATE_MAGIC, pack_state
from game_rl.games.definition import load_game
from game_rl.games.start_state import StartStateSpec, make_start_state
from tests.bad_input.case import Case
from tests.emulator.roms import make_rom

_FRAMES = 120
_CUTS = 40
_FLIPS = 200
_ENVELOPE_BYTES = 45  # magic, SHA-256, colour, CRC-32


class _Game(NamedTuple):
    name: str
    rom: Rom
    colour: bool


@functools.cache
def _games() -> tuple[_Game, ...]:
    clock = make_rom(cartridge=0x10, ram_size=3, title=b"CLOCK")
    colour = make_rom(cartridge=0x1E, ram_size=2, colour_flag=0xC0, title=b"COLOUR")
    banks = make_rom(cartridge=0x03, ram_size=3, n_banks=8, title=b"BANKS")
    return (
        _Game("duel", load_game("duel").rom, colour=False),
        _Game("MBC3 with a clock", _as_rom(clock), colour=False),
        _Game("MBC5 in colour", _as_rom(colour), colour=True),
        _Game("MBC1", _as_rom(banks), colour=False),
    )


def _as_rom(data: bytes) -> Rom:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"bad_input_{os.getpid()}.gb"  # noqa: S108
    path.write_bytes(data)
    try:
        return read_rom(path)
    finally:
        path.unlink()


@functools.cache
def _packed(number: int) -> bytes:
    game = _games()[number]
    emulator = PyBoyEmulator(game.rom, colour=game.colour)
    emulator.tick(90, render=True)
    state = emulator.save_state()
    emulator.close()
    return state


@functools.cache
def _raw(number: int) -> bytes:
    """Return a state as PyBoy's own window saves it."""
    game = _games()[number]
    pyboy = PyBoy(
        io.BytesIO(game.rom.data),
        window="null",
        sound_emulated=False,
        cgb=game.colour,
        log_level=5,
    )
    pyboy.tick(90, True, False)
    file = io.BytesIO()
    pyboy.save_state(file)
    pyboy.stop(save=False)
    return file.getvalue()


def _begin(folder: Path, number: int) -> None:
    """Begin an episode like an env, and play two seconds."""
    game = _games()[number]
    emulator = PyBoyEmulator(game.rom, colour=game.colour)
    spec = StartStateSpec(file=Path("begin.state"))
    power_on = emulator.save_state()
    state = make_start_state(
        emulator, "begin", spec, rom=game.rom, power_on=power_on, folder=folder
    )
    emulator.load_state(state)
    for frame in range(0, _FRAMES, 4):
        emulator.hold(["a"] if frame % 16 else ["start"])
        emulator.tick(4, render=True)
    emulator.load_state(emulator.save_state())
    emulator.close()


def _state(kind: str, name: str, number: int, data: Callable[..., bytes]) -> Case:
    def attempt(folder: Path) -> None:
        (folder / "begin.state").write_bytes(data())
        _begin(folder, number)

    return Case(kind, f"{kind}: {_NAMES[number]}: {name}", attempt)


_NAMES = ("duel", "clock", "colour", "MBC1")


def _flipped(data: bytes, seed: int, n_flips: int) -> bytes:
    rng = np.random.default_rng(seed)
    changed = bytearray(data)
    # Half of the flips hit the registers; the rest is pictures and RAM, which may hold anything.
    ends = (64, len(data) // 16, len(data), len(data))
    for place in rng.integers(0, ends[seed % 4], n_flips):
        at = int(place) if seed % 8 < 6 else len(data) - 1 - int(place) % 600
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _damaged() -> Iterator[Case]:
    for number in range(len(_NAMES)):
        for seed in range(_FLIPS):
            flips = 1 if seed % 3 else 20
            yield _state(
                "our state, bits flipped",
                f"seed {seed}",
                number,
                lambda n=number, s=seed, f=flips: _flipped(_packed(n), s, f),
            )
            yield _state(
                "PyBoy's state, bits flipped",
                f"seed {seed}",
                number,
                lambda n=number, s=seed, f=flips: _flipped(_raw(n), s, f),
            )
        for part in range(_CUTS):
            yield _state(
                "our state, cut off",
                f"{part}/{_CUTS}",
                number,
                lambda n=number, p=part: _packed(n)[: len(_packed(n)) * p // _CUTS],
            )
            yield _state(
                "PyBoy's state, cut off",
                f"{part}/{_CUTS}",
                number,
                lambda n=number, p=part: _raw(n)[: len(_raw(n)) * p // _CUTS],
            )
        for more in (1, 31, 8_192):
            yield _state(
                "more behind the end",
                f"ours, {more} bytes",
                number,
                lambda n=number, m=more: _packed(n) + bytes(m),
            )
            yield _state(
                "more behind the end",
                f"PyBoy's, {more} bytes",
                number,
                lambda n=number, m=more: _raw(n) + bytes(m),
            )
        for other in range(len(_NAMES)):
            if other != number:
                yield _state(
                    "of another game",
                    f"ours, of {_NAMES[other]}",
                    number,
                    lambda o=other: _packed(o),
                )
                yield _state(
                    "of another game",
                    f"PyBoy's, of {_NAMES[other]}",
                    number,
                    lambda o=other: _raw(o),
                )


def _noise() -> Iterator[Case]:
    for seed in range(40):
        yield _state(
            "noise",
            f"seed {seed}",
            0,
            lambda s=seed: _raw(0)[:1] + np.random.default_rng(s).bytes(len(_raw(0)) - 1),
        )
        yield _state(
            "noise",
            f"behind our magic, seed {seed}",
            0,
            lambda s=seed: STATE_MAGIC + np.random.default_rng(s).bytes(20_000),
        )


def _bombs() -> Iterator[Case]:
    kind = "compressed to fill the memory"
    yield _state(kind, "512 MiB of zeros", 0, lambda: _envelope() + _deflated_zeros(2**29))
    yield _state(kind, "5 MiB of zeros", 0, lambda: _envelope() + _deflated_zeros(5 * 2**20))
    yield _state(kind, "twice", 0, lambda: _envelope() + zlib.compress(_deflated_zeros(2**28)))
    yield _state(kind, "1,000 streams", 0, lambda: _envelope() + _deflated_zeros(2**16) * 1_000)
    yield _state(kind, "nothing", 0, lambda: _envelope() + zlib.compress(b""))
    yield _state(kind, "one byte", 0, lambda: _forged(b"\x1d"))
    yield _state(kind, "half a state, right checksum", 0, lambda: _forged(_raw(0)[:80_000]))
    yield _state(kind, "a longer state, right checksum", 0, lambda: _forged(_raw(0) + bytes(99)))
    yield _state(kind, "another PyBoy's, right checksum", 0, lambda: _forged(b"\x1c" + _raw(0)[1:]))


def _envelope() -> bytes:
    return _packed(0)[:_ENVELOPE_BYTES]


def _forged(raw: bytes) -> bytes:
    return pack_state(raw, rom_sha256=_games()[0].rom.sha256, is_colour=False)


def _deflated_zeros(n_bytes: int) -> bytes:
    compressor = zlib.compressobj(1)
    block = bytes(2**20)
    parts = [compressor.compress(block) for _ in range(n_bytes // len(block))]
    return b"".join(parts) + compressor.flush()


def _special_files() -> Iterator[Case]:
    kind = "no such file, or of another kind"
    for name, make in {
        "missing": lambda _: None,
        "a folder": Path.mkdir,
        "a pipe": os.mkfifo,
        "empty": Path.touch,
        "text": lambda path: path.write_text("hello\n" * 100, encoding="utf-8"),
        "4 GiB sparse": lambda path: _sparse(path, 4 * 2**30),
        "a link to itself": lambda path: path.symlink_to(path),
        "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
        "/proc/self/mem": lambda path: path.symlink_to("/proc/self/mem"),
        "a ROM": lambda path: path.write_bytes(_games()[0].rom.data),
    }.items():
        yield Case(kind, f"{kind}: {name}", functools.partial(_begin_with, make=make))


def _begin_with(folder: Path, make: Callable[[Path], object]) -> None:
    make(folder / "begin.state")
    _begin(folder, 0)


def _sparse(path: Path, n_bytes: int) -> None:
    with path.open("wb") as file:
        file.truncate(n_bytes)


CASES: tuple[Case, ...] = (*_special_files(), *_bombs(), *_noise(), *_damaged())
