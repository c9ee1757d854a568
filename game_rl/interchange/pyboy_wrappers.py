"""What PyBoy's game wrappers read of the games that they know, as sections of a game.yaml.

A wrapper belongs to a cartridge title. The addresses are those of its module in PyBoy 2.8.1, which
names its own sources; the tiles of each class are read from the installed one. Rewards are
proposals, because a wrapper has none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

from game_rl.emulator.emulator import N_TILES
from game_rl.emulator.rom import Rom
from game_rl.errors import GameFileError
from game_rl.games.starter import KnownGame, symbols_beside
from game_rl.games.symbol_files import read_symbols

_LINE_WIDTH = 100
_TITLE_BEGIN = 0x134
_TITLE_END = 0x143


class _Tiles(NamedTuple):
    """The part of the screen that a wrapper shows as tiles.

    Attributes:
        area: x, y, width and height, in tiles.
        follow_scroll: whether it moves with the screen.
        mapping: attribute of the module with the class of each tile id; None for ids.
        classes: names of the classes from 1 on.
    """

    area: tuple[int, int, int, int]
    follow_scroll: bool
    mapping: str | None = None
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Wrapper:
    name: str
    module: str
    titles: tuple[str, ...]
    variables: str
    rewards: str
    endings: str = ""
    tiles: _Tiles | None = None
    notes: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    """Folders in `examples` that describe the game, too."""


_WRAPPERS = (
    _Wrapper(
        name="Tetris",
        module="game_wrapper_tetris",
        titles=("TETRIS",),
        examples=("tetris", "tetris_flat"),
        variables="""\
  score: {address: 0x986D, type: digits, bytes: 6, endian: big}  # on the screen
  level: {address: 0x98EE, type: digits, bytes: 4, endian: big}
  lines: {address: 0x994E, type: digits, bytes: 4, endian: big}
  next_piece: {address: 0xC213, mask: 0xFC}  # 0 L, 4 J, 8 I, 12 O, 16 Z, 20 S, 24 T
  top_left_tile: {address: 0x9802}  # 135 once the board is filled because the game is over
""",
        rewards="""\
  score_up: {variable: score, on: increase, weight: 0.01}
""",
        endings="""\
  game_over: {variable: top_left_tile, equals: 135}
""",
        tiles=_Tiles(
            (2, 0, 10, 18),
            follow_scroll=False,
            mapping="mapping_compressed",
            classes=("j", "z", "o", "l", "t", "s", "i", "lost"),
        ),
    ),
    _Wrapper(
        name="Super Mario Land",
        module="game_wrapper_super_mario_land",
        titles=("SUPER MARIOLAND",),
        examples=("mario_land", "mario_run"),
        variables="""\
  score: {address: 0x9820, type: digits, bytes: 6, endian: big}  # on the screen
  coins: {address: 0x9829, type: digits, bytes: 2, endian: big}
  lives: {address: 0xDA15, type: bcd, bytes: 1}
  world: {address: 0xFFB4, mask: 0xF0, shift: 4}
  level: {address: 0xFFB4, mask: 0x0F}
  time_left: {address: 0xDA01, type: bcd, bytes: 2}
  level_block: {address: 0xC0AB}  # 16 pixels each of its level_progress
  mario_x: {address: 0xC202}
  game_over: {address: 0xC0A4}
""",
        rewards="""\
  progress: {variable: level_block, on: new_maximum, weight: 1.0}
  life_lost: {variable: lives, on: decrease, weight: -10.0}
""",
        endings="""\
  game_over: {variable: game_over, equals: 0x39}
""",
        tiles=_Tiles(
            (0, 2, 20, 16),
            follow_scroll=True,
            mapping="mapping_compressed",
            classes=(
                "mario",
                "plane",
                "submarine",
                "shots",
                "coin",
                "mushroom",
                "heart",
                "star",
                "lever",
                "solid",
                "moving",
                "pushable",
                "question",
                "pipe",
                "goomba",
                "koopa",
                "plant",
                "moth",
                "flying_moth",
                "sphinx",
                "big_sphinx",
                "fist",
                "bill",
                "projectile",
                "shell",
                "explosion",
                "spike",
            ),
        ),
    ),
    _Wrapper(
        name="Kirby's Dream Land",
        module="game_wrapper_kirby_dream_land",
        titles=("KIRBY DREAM LAN",),
        examples=("kirby",),
        variables="""\
  score: {address: 0xD070, type: digits, bytes: 4, endian: big}  # the screen shows a 0 after it
  health: {address: 0xD086}
  lives: {address: 0xD089}  # one more than it calls lives_left
""",
        rewards="""\
  score_up: {variable: score, on: increase, weight: 0.1}
  health_lost: {variable: health, on: decrease, weight: -1.0}
""",
        endings="""\
  game_over: {all: [{variable: lives, at_most: 1}, {variable: health, equals: 0}]}
""",
        tiles=_Tiles((0, 0, 20, 16), follow_scroll=True),
    ),
    _Wrapper(
        name="Super Mario Bros. Deluxe",
        module="game_wrapper_super_mario_bros_deluxe",
        titles=("MARIO DELUXAHY",),
        variables="""\
  score: {address: 0xC17A, type: bcd, bytes: 3}
  time_left: {address: 0xC17D, type: u16}
  lives: {address: 0xC17F}
  coins: {address: 0xC1F2}
  level: {address: 0xC163}  # 4 a world, from 0 on
  player_state: {address: 0xC1C1}
  player_x: {address: 0xC1CA, type: u16}
  level_x: {address: 0xFFA7}
  level_progress: {sum: [level_x, player_x]}
  mode: {address: 0xFFB5}  # 11 in a level
""",
        rewards="""\
  progress: {variable: level_progress, on: new_maximum, weight: 0.01}
  life_lost: {variable: lives, on: decrease, weight: -1.0}
""",
        endings="""\
  game_over: {any: [{variable: player_state, equals: 3},
    {variable: mode, in: [0x0E, 0x10, 0x11, 0x14, 0x1B]}]}
""",
        notes=(
            "its game area is made of tables of the game, which no part of a game.yaml reads; a "
            "class in Python can",
        ),
    ),
    _Wrapper(
        name="Pokémon Red or Blue",
        module="game_wrapper_pokemon_gen1",
        titles=("POKEMON RED", "POKEMON BLUE"),
        examples=("pokemon_red_v2", "pokemon_red_nerorl", "pokemon_red_grass"),
        variables="""\
  badges: {address: 0xD356, type: bits, bytes: 1}
  n_badges: {count: badges}
  money: {address: 0xD347, type: bcd, bytes: 3, endian: big}  # PyBoy reverses it
  n_items: {address: 0xD31D}
  events: {address: 0xD747, type: bits, bytes: 316}
  n_events: {count: events}
  party_size: {address: 0xD163}
  levels: {addresses: [0xD18C, 0xD1B8, 0xD1E4, 0xD210, 0xD23C, 0xD268]}
  level_sum: {sum: levels}
  opponent: {address: 0xD059}  # from 200 on a trainer
  enemy_level: {address: 0xD127}
""",
        rewards="""\
  badge: {variable: n_badges, on: new_maximum, weight: 5.0}
  event: {variable: n_events, on: new_maximum, weight: 1.0}
  level: {variable: level_sum, on: new_maximum, weight: 0.5}
""",
        tiles=_Tiles((0, 0, 20, 18), follow_scroll=True),
        notes=("it has no ending; end episodes with a limit, env.max_episode_timesteps",),
    ),
    _Wrapper(
        name="Pokémon Pinball",
        module="game_wrapper_pokemon_pinball",
        titles=("POKEPINBALLVPH",),
        examples=("pokemon_pinball",),
        variables="""\
  score: {address: 0xD46A, type: bcd, bytes: 6}  # the screen shows a 0 after it
  balls_used: {address: 0xD49D}
  extra_balls: {address: 0xD49B}
  balls: {difference: [extra_balls, balls_used]}  # 3 more are left
  ball_type: {address: 0xD47E}
  ball_size: {address: 0xD4C8}
  multiplier: {address: 0xD482}
  stage: {address: 0xD4AC}
  map: {address: 0xD54A}
  ball_x: {address: 0xD4B3}
  ball_y: {address: 0xD4B5}
  velocity_x: {address: 0xD4BB}
  velocity_y: {address: 0xD4BD}
  saver_seconds: {address: 0xD4A4}
  pikachu_charge: {address: 0xD517}
  special_mode: {address: 0xD550}
  special_mode_active: {address: 0xD54B}
  game_over: {address: 0xD616}
""",
        rewards="""\
  score_up: {variable: score, on: increase, weight: 1.0e-4}
  ball_lost: {variable: balls, on: decrease, weight: -1.0}
""",
        endings="""\
  game_over: {variable: game_over, equals: 1}
""",
        tiles=_Tiles((0, 0, 20, 16), follow_scroll=True),
    ),
    _Wrapper(
        name="Pandora's Blocks",
        module="game_wrapper_pandoras_blocks",
        titles=("DMGTRIS",),
        variables="""\
  score: {address: 0xFFB8, type: digits, bytes: 8, endian: big}
  level: {address: 0xFF90, type: digits, bytes: 4, endian: big}  # the lines, too
  next_piece: {address: 0xFFD2}  # 0 I, 1 Z, 2 S, 3 J, 4 L, 5 O, 6 T
  mode: {address: 0xFFDB}
""",
        rewards="""\
  score_up: {variable: score, on: increase, weight: 0.01}
  lines: {variable: level, on: increase, weight: 1.0}
""",
        endings="""\
  game_over: {variable: mode, in: [21, 24]}
""",
        tiles=_Tiles(
            (2, 0, 10, 18),
            follow_scroll=False,
            mapping="mapping_compressed",
            classes=("block", "lost"),
        ),
    ),
    _Wrapper(
        name="2048",
        module="game_wrapper2048",
        titles=("2048",),
        variables="""\
  score: {symbol: _score, type: u16}
  winner: {symbol: _winner}
  state: {symbol: _state}  # 0 title, 1 playing, 2 won, 3 over
""",
        rewards="""\
  score_up: {variable: score, on: increase, weight: 0.01}
""",
        endings="""\
  won: {variable: state, equals: 2}
  game_over: {variable: state, equals: 3}
""",
        tiles=_Tiles((0, 0, 20, 18), follow_scroll=False),
        symbols=("_score", "_winner", "_state"),
        notes=("its board is 25 numbers of type u16 from the symbol _board on, row by row",),
    ),
)


def wrapped_titles() -> tuple[str, ...]:
    """Return the cartridge titles that wrappers are for."""
    return tuple(title for wrapper in _WRAPPERS for title in wrapper.titles)


def known_from_pyboy(rom: Rom) -> KnownGame | None:
    """Return what the wrapper for the cartridge's title reads; None if there is none."""
    wrapper = _wrapper_of(rom)
    if wrapper is None:
        return None
    sections = {}
    notes = list(wrapper.notes)
    missing = _missing_symbols(wrapper, rom)
    if missing:
        notes.append(
            f"it needs the symbols {', '.join(missing)}; put the game's .sym or .map next to the "
            "ROM, under the same name, and write the file again"
        )
    else:
        about = f"# From {wrapper.module} of PyBoy 2.8.1, as {wrapper.name} keeps them.\n"
        sections["variables"] = f"{about}variables:\n{wrapper.variables}"
        about = "# A PROPOSAL: PyBoy rewards nothing.\n"
        sections["rewards"] = f"{about}rewards:\n{wrapper.rewards}"
        if wrapper.endings:
            about = "# From its game_over().\n" * ("game_over" in wrapper.endings)
            sections["endings"] = f"{about}endings:\n{wrapper.endings}"
    see_also = None
    if wrapper.examples:
        folders = ", ".join(f"examples/{name}" for name in wrapper.examples)
        see_also = f"the repository has this game with a training, too: {folders}"
    if wrapper.tiles is not None:
        sections["parts"] = _parts_text(wrapper.module, wrapper.tiles)
    source = f"PyBoy's wrapper of {wrapper.name}"
    return KnownGame(source, sections, tuple(notes), see_also, title=wrapper.name)


def has_wrapper(rom: Rom) -> bool:
    return _wrapper_of(rom) is not None


def _wrapper_of(rom: Rom) -> _Wrapper | None:
    title = _title_in_pyboy(rom)
    return next((each for each in _WRAPPERS if title in each.titles), None)


def _title_in_pyboy(rom: Rom) -> str:
    """Return the cartridge's title as PyBoy reads it, one character less in a colour game."""
    end = _TITLE_END - 1 if rom.supports_colour else _TITLE_END
    return rom.data[_TITLE_BEGIN:end].split(b"\0")[0].decode("latin-1")


def _missing_symbols(wrapper: _Wrapper, rom: Rom) -> tuple[str, ...]:
    if not wrapper.symbols:
        return ()
    path = symbols_beside(rom.path)
    try:
        found = {} if path is None else read_symbols(path)
    except GameFileError:
        found = {}
    return tuple(name for name in wrapper.symbols if name not in found)


def _parts_text(module: str, tiles: _Tiles) -> str:
    x, y, width, height = tiles.area
    return "\n".join(
        (
            "# Its game area: what the agent may see besides the screen or in its place, with",
            "# env.observation.parts: [tiles] in the run's config.",
            "parts:",
            "  tiles:",
            "    stack: true",
            "    tiles:",
            f"      area: {{x: {x}, y: {y}, width: {width}, height: {height}}}",
            f"      follow_scroll: {'true' if tiles.follow_scroll else 'false'}",
            "      sprites: true",
            *_class_lines(module, tiles),
            "",
        )
    )


def _class_lines(module: str, tiles: _Tiles) -> Iterator[str]:
    from game_rl.emulator.pyboy_emulator import wrapper_mapping  # PyBoy is large

    mapping = None if tiles.mapping is None else wrapper_mapping(module, tiles.mapping)
    if mapping is None:
        yield "      ids: true"
        return
    yield f"      classes:  # {tiles.mapping} of {module}"
    for number in range(1, max(mapping) + 1):
        ids = [str(tile) for tile, found in enumerate(mapping[:N_TILES]) if found == number]
        name = tiles.classes[number - 1] if number <= len(tiles.classes) else f"class_{number}"
        if not ids:
            continue
        text = f"        {name}: [{', '.join(ids)}]"
        yield from wrap(text, _LINE_WIDTH, subsequent_indent=" " * 10, drop_whitespace=True)
