"""Damaged and odd ROMs, made from the bundled game and from generated headers."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from game_rl.emulator.emulator import BUTTONS
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.emulator.rom import SUPPORTED_CARTRIDGES, header_checksum, read_rom
from game_rl.errors import GameRLError
from game_rl.games.definition import load_game
from tests.bad_input.case import LONGEST_MESSAGE, Case
from tests.emulator.roms import BAD_ROMS, make_rom

_FRAMES, _FRAMES_HELD = 120, 4
_DUEL = load_game("duel").rom.data
_HEADER = range(0x100, 0x150)
_CODE = range(0x150, 0x8000)
_ENTRY = 0x150

# Writes every value to every register of the bank controller, and reads and writes mapped memory.
# LD A,0A; LD (0000),A; LD B,0
# loop: LD A,B; LD (2000),A; LD (3000),A; LD (4000),A; LD (6000),A
#       LD A,(4000); LD A,(7FFF); LD A,(A000); INC A; LD (A000),A; LD (BFFF),A; INC B; JR loop
_BANK_SWITCHER = bytes.fromhex(
    "3e0a ea0000 0600 78 ea0020 ea0030 ea0040 ea0060fa0040 faff7f fa00a0 3c ea00a0 eaffbf 04 18df"
)
_PROGRAMS = {
    "HALT without interrupts": "f3 76 18fe",
    "HALT twice": "f3 76 76 18fe",
    "STOP": "1000 18fe",
    "STOP of one byte": "10 10 10 10 10 10",
    "the LCD off": "af e040 18fe",
    "the LCD off, then HALT": "af e040 f3 76 18fe",
    "a jump into the header": "c30401",
    "a jump to the last byte": "c3ffff",
    "a jump into switched-off RAM": "c300a0",
    "a jump into the picture": "c30080",
    "RST 38 for ever": "ff",
    "the stack runs through everything": "310000 f5 18fd",
    "the stack runs through the I/O": "3180ff f5 18fd",
    "the timer as fast as it goes": "3e05 e007 3eff e006 e0ff fb 76 18fd",
    "every interrupt at every time": "3eff e0ff e00f fb 18f9",
    "OAM DMA of everything": "af e046 3c 18fb",
    "speed switch": "3e01 e04d 1000 18f8",
    "HDMA of everything": "af e051 e052 e053 e054 3e7f e055 18fa",
    "HDMA in every line": "3e80 e051 e053 3eff e055 18fa",
    "palettes": "3eff e068 e069 e06a e06b 3c 18f5",
    "WRAM banks": "3e00 e070 3c e04f fa00d0 ea00d0 18f4",
    "super console packets": "3e00 e000 3e30 e000 3e10 e000 3e20 e000 18ee",
    "sound of everything": "0e10 3eff e2 0c 18fc",
    "writes to every address": "210000 3a 77 2b 18fb",
    "serial transfer": "3e81 e002 18fc",
    "the window off the screen": "3eff e04a e04b e040 3c 18f7",
}
_NO_OPCODES = (0xD3, 0xDB, 0xDD, 0xE3, 0xE4, 0xEB, 0xEC, 0xED, 0xF4, 0xFC, 0xFD)
_COLOUR_FLAGS = (0x00, 0x01, 0x40, 0x7F, 0x80, 0x88, 0xBF, 0xC0, 0xC4, 0xFF)


def play(path: Path) -> None:
    """Load the ROM, play two seconds on each hardware it supports, save and load the state."""
    try:
        rom = read_rom(path)
        for colour in (False, True) if rom.supports_colour else (False,):
            if colour or not rom.requires_colour:
                with closing(PyBoyEmulator(rom, colour=colour)) as emulator:
                    _play(emulator)
    except GameRLError as error:
        text = str(error)
        assert str(path) in text, f"does not name the file: {text}"
        assert "; " in text, f"names no way out: {text}"
        assert len(text) < LONGEST_MESSAGE + 3 * len(str(path))
        raise


def _play(emulator: PyBoyEmulator) -> None:
    rng = np.random.default_rng(0)
    for frame in range(0, _FRAMES, _FRAMES_HELD):
        emulator.hold([button for button in BUTTONS if rng.random() < 0.25])
        emulator.tick(_FRAMES_HELD, render=frame % 3 == 0)
    state = emulator.save_state()
    emulator.tick(2, render=True)
    emulator.load_state(state)
    emulator.tick(2, render=True)
    for address in range(0x8000, 0x10000, 31):
        emulator.read(address)


def with_right_checksum(data: bytearray) -> bytes:
    data[0x14D] = header_checksum(bytes(data))
    return bytes(data)


def _rom(kind: str, name: str, data: Callable[..., bytes], *, file_name: str = "game.gb") -> Case:
    def attempt(folder: Path) -> None:
        path = folder / file_name
        path.write_bytes(data())
        play(path)

    return Case(kind, f"{kind}: {name}", attempt)


def _file(kind: str, name: str, make: Callable[[Path], Path]) -> Case:
    return Case(kind, f"{kind}: {name}", lambda folder: play(make(folder)))


def _flipped(data: bytes, places: list[int], rng: np.random.Generator) -> bytearray:
    changed = bytearray(data)
    for place in places:
        changed[place] ^= 1 << int(rng.integers(8))
    return changed


def _flips() -> Iterator[Case]:
    for place in _HEADER:
        for bit in range(8):
            changed = bytearray(_DUEL)
            changed[place] ^= 1 << bit
            yield _rom("a bit of the header flipped", f"{place:03X}.{bit}", lambda c=changed: c)
            mended = with_right_checksum(bytearray(changed))
            if 0x134 <= place < 0x14D:
                name = f"{place:03X}.{bit}"
                yield _rom("the same, checksum right", name, lambda m=mended: m)
    for seed in range(300):
        yield _rom("bits of the code flipped", f"seed {seed}", lambda s=seed: _flipped_code(s))


def _flipped_code(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    n_flips = int(rng.choice([1, 1, 10, 100, 1_000, 10_000]))
    places = rng.choice(_CODE, n_flips, replace=False).tolist()
    return bytes(_flipped(_DUEL, places, rng))


def _random_code(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    kind = int(rng.choice(sorted(SUPPORTED_CARTRIDGES)))
    n_banks = int(rng.choice([2, 4, 64]))
    flag = int(rng.choice([0, 0x80, 0xC0]))
    data = bytearray(make_rom(n_banks=n_banks, cartridge=kind, ram_size=seed % 6, colour_flag=flag))
    data[0x146], data[0x14B] = (0x03, 0x33) if seed % 4 == 0 else (0, 0)
    data[:0x100] = rng.bytes(0x100)
    data[_ENTRY:] = rng.bytes(len(data) - _ENTRY)
    return with_right_checksum(data)


def _lengths() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    lengths = {0, 1, 2, 0x100, 0x133, 0x134, 0x14D, 0x14E, 0x14F, 0x150, 0x151, 0x3FFF, 0x4000}
    lengths |= {0x4001, 0x7FFE, 0x7FFF, *map(int, rng.integers(0, 0x8000, 60))}
    for length in sorted(lengths):
        yield _rom("cut off", f"{length} bytes", lambda n=length: _DUEL[:n])
    for more in (1, 2, 511, 512, 0x3FFF, 0x4000, 0x8000, 0x10000, 8 * 2**20):
        yield _rom("more behind the end", f"{more} of 0x00", lambda n=more: _DUEL + bytes(n))
        yield _rom("more behind the end", f"{more} random", lambda n=more: _DUEL + _noise(n))
    yield _rom("more behind the end", "a copier's header before", lambda: bytes(512) + _DUEL)
    yield _rom("more behind the end", "twice", lambda: _DUEL * 2)
    yield _rom("more behind the end", "the header twice", lambda: _DUEL[:0x150] + _DUEL)


def _noise(n_bytes: int) -> bytes:
    return np.random.default_rng(n_bytes).bytes(n_bytes)


def _header_codes() -> Iterator[Case]:
    for code in range(256):
        name = f"0x{code:02X}"
        yield _rom("every cartridge type", name, lambda c=code: _switching(cartridge=c, ram_size=3))
        yield _rom("every RAM size", name, lambda c=code: _switching(cartridge=0x1B, ram_size=c))
        yield _rom("every ROM size", name, lambda c=code: make_rom(rom_size=c))
        yield _rom("every SGB flag", name, lambda c=code: _with(0x146, c))
        yield _rom("every licensee", name, lambda c=code: _with(0x14B, c))
    for exponent in range(1, 10):
        for code in range(9):
            yield _rom(
                "ROM size against the file",
                f"{2**exponent} banks, code {code}",
                lambda n=2**exponent, c=code: _switching(n_banks=n, rom_size=c, cartridge=0x19),
            )
    for flag in _COLOUR_FLAGS:
        name = f"0x{flag:02X}"
        yield _rom("colour flags", name, lambda f=flag: _switching(colour_flag=f, cartridge=0x1B))


def _combinations() -> Iterator[Case]:
    for cartridge in sorted(SUPPORTED_CARTRIDGES):
        for ram_size in range(6):
            for n_banks in (2, 8, 256):
                yield _rom(
                    "every cartridge with every RAM",
                    f"type 0x{cartridge:02X}, RAM {ram_size}, {n_banks} banks",
                    lambda c=cartridge, r=ram_size, n=n_banks: _switching(
                        cartridge=c, ram_size=r, n_banks=n
                    ),
                )


def _switching(**header: Any) -> bytes:
    data = bytearray(make_rom(**header))
    data[_ENTRY : _ENTRY + len(_BANK_SWITCHER)] = _BANK_SWITCHER
    return bytes(data)


def _with(address: int, value: int) -> bytes:
    data = bytearray(_DUEL)
    data[address] = value
    if address == 0x146:
        data[0x14B] = 0x33  # without it, the SGB flag is ignored
    return with_right_checksum(data)


def _programs() -> Iterator[Case]:
    for name, program in _PROGRAMS.items():
        for flag in (0x00, 0x80, 0xC0):
            full_name = f"{name}, 0x{flag:02X}"
            yield _rom("odd programs", full_name, lambda p=program, f=flag: _run(p, f))
    for opcode in range(256):
        yield _rom("every opcode for ever", f"0x{opcode:02X}", lambda o=opcode: _repeated(o))
    for opcode in _NO_OPCODES:
        yield _rom("no such opcode", f"0x{opcode:02X}", lambda o=opcode: _run(f"{o:02x} 18fd", 0))
    for seed in range(400):
        yield _rom("random code", f"seed {seed}", lambda s=seed: _random_code(s))


def _run(program: str, colour_flag: int) -> bytes:
    code = bytes.fromhex(program)
    data = bytearray(make_rom(colour_flag=colour_flag, cartridge=0x1B, ram_size=3))
    data[_ENTRY : _ENTRY + len(code)] = code
    return bytes(data)


def _repeated(opcode: int) -> bytes:
    data = bytearray(make_rom(cartridge=0x1B, ram_size=3))
    data[_ENTRY:] = bytes([opcode]) * (len(data) - _ENTRY)
    return bytes(data)


def _checksums_and_logo() -> Iterator[Case]:
    for value in range(256):
        if value != _DUEL[0x14D]:
            yield _rom(
                "header checksum wrong", f"0x{value:02X}", lambda v=value: _changed(0x14D, v)
            )
    for value in (0x00, 0x55, 0xFF):
        for address in (0x14E, 0x14F):
            yield _rom(
                "global checksum wrong",
                f"{address:03X} {value:02X}",
                lambda a=address, v=value: _changed(a, v),
            )
    for address in range(0x104, 0x134):
        yield _rom("logo wrong", f"{address:03X}", lambda a=address: _changed(a, 0xA5))
    logo = slice(0x104, 0x134)
    yield _rom("logo wrong", "all zeros", lambda: _replaced(logo, bytes(48)))
    yield _rom("logo wrong", "noise", lambda: _replaced(logo, _noise(48)))


def _changed(address: int, value: int) -> bytes:
    return _replaced(slice(address, address + 1), bytes([value]))


def _replaced(where: slice, by: bytes) -> bytes:
    data = bytearray(_DUEL)
    data[where] = by
    return bytes(data)


def _special_files() -> Iterator[Case]:
    kind = "no such file, or of another kind"
    for bad in BAD_ROMS:
        yield _file(kind, bad.name, bad.make)
    for name, make in {
        "4 GiB sparse": lambda folder: _sparse(folder / "game.gb", 4 * 2**30),
        "8 MiB and a byte": lambda folder: _sparse(folder / "game.gb", 8 * 2**20 + 1),
        "8 MiB of zeros": lambda folder: _sparse(folder / "game.gb", 8 * 2**20),
        "a pipe": _fifo,
        "a link to a pipe": lambda folder: _link(folder, _fifo(folder)),
        "a link to itself": lambda folder: _link(folder, folder / "link.gb"),
        "a link to nothing": lambda folder: _link(folder, folder / "nothing.gb"),
        "a link to a folder": lambda folder: _link(folder, folder),
        "/dev/zero": lambda _: Path("/dev/zero"),
        "/dev/null": lambda _: Path("/dev/null"),
        "/proc/self/maps": lambda _: Path("/proc/self/maps"),
        "/proc/self/mem": lambda _: Path("/proc/self/mem"),
        "a name of 300 letters": lambda folder: folder / ("a" * 300),
        "a path of 5,000 letters": lambda folder: folder / "/".join(["abcd"] * 1_000),
        "a name with NUL": lambda folder: folder / "a\0b.gb",
        "a name with a line break": lambda folder: folder / "a\nb.gb",
        "a name that is no text": lambda folder: _sparse(folder / "\udcff.gb", 10),
        "a name with escapes": lambda folder: _sparse(folder / "\x1b[31m.gb", 10),
    }.items():
        yield _file(kind, name, make)
    for name, data in {"text": b"hello\n", "PNG": b"\x89PNG\r\n\x1a\n", "ELF": b"\x7fELF"}.items():
        yield _rom(kind, f"{name} of a ROM's size", lambda d=data: d.ljust(32_768, b"\0"))


def _sparse(path: Path, n_bytes: int) -> Path:
    with path.open("wb") as file:
        file.truncate(n_bytes)
    return path


def _fifo(folder: Path) -> Path:
    path = folder / "game.gb"
    os.mkfifo(path)
    return path


def _link(folder: Path, target: Path) -> Path:
    path = folder / "link.gb"
    path.symlink_to(target)
    return path


CASES: tuple[Case, ...] = (
    *_special_files(),
    *_lengths(),
    *_checksums_and_logo(),
    *_header_codes(),
    *_programs(),
    *_flips(),
    *_combinations(),
)
