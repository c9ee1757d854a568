"""What PyBoy's own game wrappers read, beside the game files that are made of them."""

import io
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyboy import PyBoy

from game_rl.emulator.emulator import N_TILES
from game_rl.emulator.rom import read_rom
from game_rl.errors import UsageError
from game_rl.games.definition import Game, load_game
from game_rl.games.parts.tiles_part import TilesPart
from game_rl.games.starter import write_starter
from game_rl.games.variables import VariableReader
from game_rl.interchange.known_games import known_game
from game_rl.interchange.pyboy_wrappers import _WRAPPERS, known_from_pyboy, wrapped_titles
from tests.emulator.roms import make_rom
from tests.public_projects.scripted import EXAMPLES

_WAITS = bytes([0x18, 0xFE])  # JR to itself


def write_rom(folder: Path, title: str, *, is_colour: bool = False) -> Path:
    path = folder / "game.gb"
    path.write_bytes(
        make_rom(
            title=title.encode(),
            colour_flag=0x80 * is_colour,
            program=_WAITS,
            n_banks=64,  # a wrapper looks at code in the last one
            cartridge=0x19,
        )
    )
    return path


def described(folder: Path, title: str) -> Game:
    rom = write_rom(folder, title)
    known = known_from_pyboy(read_rom(rom))
    assert known is not None
    return load_game(str(write_starter(rom, folder / "written", known)))


@contextmanager
def wrapped(rom: Path) -> Iterator[PyBoy]:
    """A PyBoy whose memory nobody changes, past its boot code."""
    pyboy = PyBoy(
        io.BytesIO(rom.read_bytes()),
        window="null",
        sound_emulated=False,
        no_input=True,
        cgb=False,
        log_level=5,
    )
    pyboy.tick(120, True, False)
    yield pyboy
    pyboy.stop(save=False)


class Memory:
    """PyBoy's memory, as our variables read it."""

    is_colour = False

    def __init__(self, pyboy: PyBoy) -> None:
        self._pyboy = pyboy

    def read(self, address: int, *, bank: int | None = None) -> int:  # noqa: ARG002
        return self._pyboy.memory[address]


def bcd(rng: random.Random) -> int:
    return int(f"{rng.randrange(100):02}", 16)


def digit(rng: random.Random) -> int:
    return rng.randrange(10)


def byte(rng: random.Random) -> int:
    return rng.randrange(256)


Contents = dict[range, Callable[[random.Random], int]]

CASES: dict[str, tuple[Contents, dict[str, Callable[[Any], Any]]]] = {
    "TETRIS": (
        {
            range(0x986D, 0x9873): digit,
            range(0x98EE, 0x98F2): digit,
            range(0x994E, 0x9952): digit,
            range(0x9802, 0x9803): lambda rng: rng.choice([135, 47]),
        },
        {"score": lambda w: w.score, "level": lambda w: w.level, "lines": lambda w: w.lines},
    ),
    "SUPER MARIOLAND": (
        {
            range(0xFF40, 0xFF41): lambda _: 0x81,  # tile numbers have a sign, as in the game
            range(0x9820, 0x982B): digit,
            range(0xDA15, 0xDA16): bcd,
            range(0xFFB4, 0xFFB5): byte,
            range(0xDA01, 0xDA03): bcd,
            range(0xC0A4, 0xC0A5): lambda rng: rng.choice([0x39, 0]),
        },
        {
            "score": lambda w: w.score,
            "coins": lambda w: w.coins,
            "lives": lambda w: w.lives_left,
            "world": lambda w: w.world[0],
            "level": lambda w: w.world[1],
            "time_left": lambda w: w.time_left,
        },
    ),
    "KIRBY DREAM LAN": (
        {
            range(0xD070, 0xD074): digit,
            range(0xD086, 0xD087): byte,
            range(0xD089, 0xD08A): lambda rng: rng.randrange(1, 9),
        },
        {
            "score": lambda w: w.score // 10,
            "health": lambda w: w.health,
            "lives": lambda w: w.lives_left + 1,
        },
    ),
    "MARIO DELUXAHY": (
        {
            range(0xC17A, 0xC17D): bcd,
            range(0xC17D, 0xC17F): byte,
            range(0xC17F, 0xC180): byte,
            range(0xC1F2, 0xC1F3): byte,
            range(0xC163, 0xC164): byte,
            range(0xC1CA, 0xC1CC): byte,
            range(0xFFA7, 0xFFA8): byte,
        },
        {
            "score": lambda w: w.score,
            "time_left": lambda w: w.time_left,
            "lives": lambda w: w.lives_left,
            "coins": lambda w: w.coins,
            "level": lambda w: w.level,
            "level_progress": lambda w: w.level_progress,
        },
    ),
    "POKEMON RED": (
        {range(0xD347, 0xD34A): bcd, range(0xD163, 0xD164): lambda rng: rng.randrange(7),
         range(0xD16B, 0xD16B + 6 * 44): byte},
        {
            # it takes the lowest byte for the highest, which the game has first
            "money": lambda w: int("".join(f"{w.money:06}"[i : i + 2] for i in (4, 2, 0))),
            "party_size": lambda w: len(w.party),
        },
    ),
    "POKEPINBALLVPH": (
        {range(0xD460, 0xD470): bcd, range(0xD470, 0xD620): byte},
        {
            "score": lambda w: w.score // 10,
            "balls": lambda w: w.balls_left - 3,
            "ball_type": lambda w: w.ball_type,
            "ball_size": lambda w: w.ball_size,
            "multiplier": lambda w: w.multiplier,
            "stage": lambda w: w.current_stage,
            "map": lambda w: w.current_map,
            "ball_x": lambda w: w.ball_x,
            "ball_y": lambda w: w.ball_y,
            "velocity_x": lambda w: w.ball_x_velocity,
            "velocity_y": lambda w: w.ball_y_velocity,
            "saver_seconds": lambda w: w.ball_saver_seconds_left,
            "pikachu_charge": lambda w: w.pikachu_saver_charge,
            "special_mode": lambda w: w.special_mode,
        },
    ),
    "DMGTRIS": (
        {range(0xFFB8, 0xFFC0): digit, range(0xFF90, 0xFF94): digit,
         range(0xFFDB, 0xFFDC): lambda rng: rng.choice([21, 24, 3])},
        {"score": lambda w: w.score, "level": lambda w: w.level},
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", CASES)
def test_variables_are_what_the_wrapper_reads(title: str, tmp_path: Path) -> None:
    contents, attributes = CASES[title]
    game = described(tmp_path, title)
    reader = VariableReader(game.variables, game.definition.variables)
    rng = random.Random(title)
    endings = list(game.definition.endings.values())
    with wrapped(tmp_path / "game.gb") as pyboy:
        assert pyboy.cartridge_title == title
        for _ in range(20):
            for addresses, draw in contents.items():
                for address in addresses:
                    pyboy.memory[address] = draw(rng)
            pyboy.tick(1, True, False)
            values = reader.read(Memory(pyboy))  # type: ignore[arg-type]
            wrapper = pyboy.game_wrapper
            assert {name: values[name] for name in attributes} == {
                name: read(wrapper) for name, read in attributes.items()
            }
            if title in ("SUPER MARIOLAND", "MARIO DELUXAHY", "DMGTRIS", "TETRIS"):
                assert any(each.holds(values) for each in endings) == bool(wrapper.game_over())


def test_examples_read_the_numbers_that_they_share_with_wrappers_alike() -> None:
    """The test above compares those of the wrappers with PyBoy."""
    compared = []
    for wrapper in _WRAPPERS:
        of_wrapper = yaml.safe_load(wrapper.variables).values()
        for name in wrapper.examples:
            text = (EXAMPLES / name / "game.yaml").read_text(encoding="utf-8")
            for variable, spec in yaml.safe_load(text)["variables"].items():
                for other in of_wrapper:
                    is_same = all(spec.get(key) == other.get(key) for key in ("address", "type"))
                    if is_same and spec.get("type") in ("bcd", "digits"):
                        compared.append((name, variable))
                        assert spec == other, (name, variable)
    assert ("kirby", "score") in compared


@pytest.mark.parametrize("title", ["TETRIS", "SUPER MARIOLAND", "DMGTRIS"])
def test_tiles_have_the_classes_of_the_installed_mapping(title: str, tmp_path: Path) -> None:
    game = described(tmp_path, title)
    part = game.definition.game_parts()["tiles"]
    assert isinstance(part, TilesPart)
    number_of = dict.fromkeys(range(N_TILES), 0)
    for number, tiles in enumerate(part.tiles.classes.values(), 1):
        number_of.update(dict.fromkeys(tiles, number))
    area = part.tiles.area
    with wrapped(tmp_path / "game.gb") as pyboy:
        wrapper = pyboy.game_wrapper
        assert list(number_of.values()) == list(map(int, wrapper.mapping_compressed[:N_TILES]))
        assert (area.x, area.y, area.width, area.height) == tuple(wrapper.game_area_section)
        assert part.tiles.follow_scroll == wrapper.game_area_follow_scxy


@pytest.mark.parametrize("title", ["KIRBY DREAM LAN", "POKEMON BLUE", "POKEPINBALLVPH", "2048"])
def test_without_a_mapping_the_tiles_are_ids(title: str, tmp_path: Path) -> None:
    part = described(tmp_path, title).definition.game_parts()["tiles"]
    assert isinstance(part, TilesPart)
    assert part.tiles.ids


def test_every_title_is_one_of_pyboys(tmp_path: Path) -> None:
    for title in wrapped_titles():
        if title == "2048":  # its wrapper cannot do without the game's symbols
            continue
        with wrapped(write_rom(tmp_path, title)) as pyboy:
            assert type(pyboy.game_wrapper).__name__ != "PyBoyGameWrapper", title


def test_a_game_that_needs_symbols_takes_them_from_the_file_beside_its_rom(tmp_path: Path) -> None:
    known = known_from_pyboy(read_rom(write_rom(tmp_path, "2048")))
    assert known is not None
    assert "needs the symbols _score, _winner, _state" in " ".join(known.notes)
    lines = "00:C100 _score\n00:C102 _winner\n00:C103 _state\n"
    (tmp_path / "game.sym").write_text(lines, encoding="utf-8")
    game = described(tmp_path, "2048")
    assert list(game.definition.variables) == ["score", "winner", "state"]


def test_a_colour_title_is_a_character_shorter_as_in_pyboy(tmp_path: Path) -> None:
    rom = read_rom(write_rom(tmp_path, "POKEPINBALLVPHE", is_colour=True))
    known = known_game(rom)
    assert known is not None
    assert known.title == "Pokémon Pinball"
    assert known_game(read_rom(write_rom(tmp_path, "POKEPINBALLVPHE"))) is None


def test_a_title_that_has_no_wrapper_is_answered_with_those_that_have(tmp_path: Path) -> None:
    rom = read_rom(write_rom(tmp_path, "OTHER"))
    assert known_game(rom) is None
    with pytest.raises(UsageError, match=r"no wrapper for the cartridge title 'OTHER'.*TETRIS"):
        known_game(rom, "pyboy")
    with pytest.raises(UsageError, match="no such source; name retro:FOLDER, pyboy or nothing"):
        known_game(rom, "gameshark")
