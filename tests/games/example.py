"""A valid game.yaml for a ROM made by code, and every way to get one wrong."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.emulator.roms import make_rom

ROM_BYTES = make_rom(cartridge=0x1B, ram_size=3)

VALID_GAME = f"""\
title: Counting
rom: {{path: game.gb, sha256: {hashlib.sha256(ROM_BYTES).hexdigest()}}}
symbols: game.sym
hardware: dmg
random_seed: seed

start_states:
  beginning:
    script: [{{wait: 90}}, {{hold: [start], frames: 4}}]

actions:
  idle: []
  left: [left]
  jump_right: [up, right]

variables:
  counter: {{symbol: _counter, type: u16}}
  lives: {{address: 0xC010}}
  points: {{address: 0xC020, type: bcd, bytes: 3, endian: big}}
  flag: {{address: 0xC030, type: bit, bit: 3}}
  saved: {{address: 0xA000, bank: 2}}
  seed: {{symbol: _seed, type: u8}}

rewards:
  counted: {{variable: counter, on: increase, weight: 0.5}}
  dead: {{variable: lives, on: equals, value: 0, weight: -1, once: true}}

endings:
  game_over: {{variable: lives, equals: 255}}

success: {{variable: points, at_least: 100}}
observation: {{crop: {{top: 16, height: 128}}}}
"""

SYMBOLS = "; made by hand\n00:0150 _main\n00:C000 _counter\n00:C002 _seed\n00:D000 _player_health\n"


def write_game(folder: Path, text: str = VALID_GAME) -> Path:
    """The path of a game.yaml with the ROM and the symbols beside it."""
    (folder / "game.gb").write_bytes(ROM_BYTES)
    (folder / "game.sym").write_text(SYMBOLS, encoding="utf-8")
    path = folder / "game.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@dataclass(frozen=True)
class BadGame:
    """`make` writes a wrong game.yaml and returns its path; all of `says` are in the message."""

    name: str
    make: Callable[[Path], Path]
    says: tuple[str, ...]


def _changed(name: str, old: str, new: str, *says: str) -> BadGame:
    assert VALID_GAME.count(old) == 1, old

    def make(folder: Path) -> Path:
        return write_game(folder, VALID_GAME.replace(old, new))

    return BadGame(name, make, says)


def _part(name: str, part: str, *says: str) -> BadGame:
    variables = (
        "variables:\n  events: {address: 0xC100, type: bits, bytes: 4}\n"
        "  share: {ratio: [lives, counter]}\n  shares: {sum: [share, lives]}\n"
    )
    text = VALID_GAME.replace("variables:\n", variables) + f"parts:\n  {part}\n"
    return BadGame(name, lambda folder: write_game(folder, text), says)


def _missing_file(folder: Path) -> Path:
    write_game(folder)
    return folder / "gane.yaml"


def _without_rom(folder: Path) -> Path:
    path = write_game(folder)
    (folder / "game.gb").unlink()
    return path


def _without_symbols(folder: Path) -> Path:
    path = write_game(folder)
    (folder / "game.sym").unlink()
    return path


def _binary_symbols(folder: Path) -> Path:
    path = write_game(folder)
    (folder / "game.sym").write_bytes(bytes(range(256)) * 20)
    return path


def _with_reward(code: str, reference: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "my_rewards.py").write_text(code, encoding="utf-8")
        return write_game(folder, VALID_GAME + f"reward: {reference}\n")

    return make


def _exiting_reward(where: str) -> Callable[[Path], Path]:
    code = {
        "module": "raise SystemExit\nclass A: ...",
        "class": "class A:\n    def __init__(self): raise SystemExit",
    }[where]
    return _with_reward(code, "my_rewards:A")


def _colour_only(folder: Path) -> Path:
    data = make_rom(colour_flag=0xC0)
    text = VALID_GAME.replace(
        hashlib.sha256(ROM_BYTES).hexdigest(), hashlib.sha256(data).hexdigest()
    )
    path = write_game(folder, text)
    (folder / "game.gb").write_bytes(data)
    return path


def _jpeg_rom(folder: Path) -> Path:
    path = write_game(folder)
    (folder / "game.gb").write_bytes(b"\xff\xd8\xff\xe0" + bytes(40_000))
    return path


_SHA = VALID_GAME.split("sha256: ")[1][:64]

BAD_REWARDS = (
    BadGame("without step", _with_reward("class A: ...", "my_rewards:A"), ("no method",)),
    BadGame(
        "that fails",
        _with_reward("1 / 0\nclass A: ...", "my_rewards:A"),
        ("importing my_rewards", "ZeroDivisionError"),
    ),
    BadGame("without the class", _with_reward("A = 1", "my_rewards:A"), ("has no class A",)),
    BadGame("of a module's module", _with_reward("", "json.nothing:A"), ("no module json.no",)),
    BadGame("that exits", _exiting_reward("module"), ("importing my_rewards", "SystemExit")),
    BadGame("whose class exits", _exiting_reward("class"), ("SystemExit", "arguments")),
)
"""Games that load, as nothing of their Python is run, and whose reward does not."""

BAD_GAMES = (
    BadGame("no such file", _missing_file, ("no such file", "did you mean", "game.yaml")),
    BadGame("no ROM", _without_rom, ("rom.path", "there is no ROM at")),
    BadGame("JPEG as ROM", _jpeg_rom, ("rom.path", "JPEG")),
    BadGame("no symbol file", _without_symbols, ("symbols", "there is no symbol file")),
    BadGame("binary symbol file", _binary_symbols, ("symbols", "holds no symbol")),
    BadGame("colour-only cartridge", _colour_only, ("hardware", "write `hardware: cgb`")),
    BadGame("reward without module", _with_reward("", "no_such_module:A"), ("no module",)),
    BadGame("reward without class", _with_reward("class B: ...", "my_rewards:A"), ("has: B",)),
    BadGame("reward with an error", _with_reward("def (", "my_rewards:A"), ("SyntaxError",)),
    BadGame("reward of no form", _with_reward("", "my_rewards.A"), ("my_module:MyReward",)),
    _changed("not YAML", "title: Counting", "title: [Counting", "line"),
    _changed("unknown key", "hardware: dmg", "hardwear: dmg", "line 4", "did you mean hardware?"),
    _changed("no title", "title: Counting\n", "", "title: missing"),
    _changed("wrong hardware", "hardware: dmg", "hardware: gba", "hardware", "dmg, cgb"),
    _changed("colour of a grey game", "hardware: dmg", "hardware: cgb", "write `hardware: dmg`"),
    _changed("another revision", _SHA, "ab" * 32, _SHA, "ab" * 32, "another revision of the game"),
    _changed("sha256 of no form", _SHA, "abc", "rom.sha256", "64 hex digits"),
    _changed("another revision by sha1", "game.gb,", f"game.gb, sha1: {'ab' * 20},", "rom.sha1",
             hashlib.sha1(ROM_BYTES, usedforsecurity=False).hexdigest(), "another revision"),
    _changed("sha1 of no form", "game.gb,", "game.gb, sha1: abc,", "rom.sha1", "40 hex digits"),
    _changed("neither path nor hash", f"path: game.gb, sha256: {_SHA}", "", "rom.path",
             "give the ROM's `path`, or its `sha256` or `sha1`"),
    _changed("no ROM of the hash", f"path: game.gb, sha256: {_SHA}", f"sha1: {'ab' * 20}",
             "rom.sha1", "there is no ROM with sha1", "put it into a folder roms"),
    _changed("unknown symbol", "symbol: _seed", "symbol: _sead", "did you mean _seed?"),
    _changed(
        "symbol of a function",
        "symbol: _seed",
        "symbol: _main",
        "variables.seed.symbol",
        "0x0150 is in ROM",
    ),
    _changed("address out of range", "0xC010", "0x1C010", "variables.lives.address", "line 18"),
    _changed("negative address", "0xC010", "-1", "variables.lives.address"),
    _changed("echo RAM", "0xC010", "0xE010", "use 0xC010 instead"),
    _changed("bank beyond the cartridge", "bank: 2", "bank: 4", "banks 0 to 3", "not 4"),
    _changed("bank of work RAM", "0xC010", "0xC010, bank: 3", "work RAM", "not 3"),
    _changed("symbol and address", "symbol: _seed", "symbol: _seed, address: 1", "either `symbol`"),
    _changed("neither symbol nor address", "symbol: _seed, ", "", "either `symbol`"),
    _changed("unknown type", "type: u16", "type: u12", "variables.counter.type", "u16"),
    _changed("bcd without bytes", "bytes: 3, ", "", "`bytes` (1 to 8) goes with `type: bcd`"),
    _changed("bcd of nine bytes", "bytes: 3", "bytes: 9", "`bytes` (1 to 8) goes with"),
    _changed("bytes of a u16", "type: u16", "type: u16, bytes: 2", "variables.counter.bytes"),
    _changed("digits without bytes", "type: bcd, bytes: 3", "type: digits", "(1 to 8) goes with"),
    _changed("zero of bcd", "type: bcd", "zero: 9, type: bcd", "`zero` goes with `type: digits`"),
    _changed("zero without a nine", "type: bcd", "zero: 247, type: digits", "from 0 to 246"),
    _changed("mask of a bcd", "type: bcd", "mask: 15, type: bcd", "not with `type: bcd`"),
    _changed("mask of digits that leaves out bits", "type: bcd", "mask: 7, type: digits",
             "leaves out bits of the digits, which are 0x00 to 0x09"),
    _changed("mask beyond a digit", "type: bcd", "mask: 0x10F, type: digits",
             "more bits than the 8 of a byte of digits"),
    _changed("shift of digits", "type: bcd", "mask: 15, shift: 4, type: digits",
             "`shift` goes with u8, u16, u24, u32"),
    _changed("mask beyond the byte", "0xC010", "0xC010, mask: 0x1F0", "more bits than the 8"),
    _changed("shift of everything", "0xC010", "0xC010, mask: 15, shift: 4", "lives.shift", "low"),
    _changed("shift beyond the byte", "0xC010", "0xC010, shift: 8", "the value is always 0"),
    _changed("no addresses", "address: 0xC010", "addresses: []", "variables.lives.addresses"),
    _changed("address and addresses", "0xC010", "0xC010, addresses: [1]", "give either `symbol`"),
    _changed("an address in ROM", "address: 0xC010", "addresses: [0xC010, 0x10]", "is in ROM"),
    _changed("bits at addresses", "address: 0xC010", "addresses: [0xC010], type: bits, bytes: 1",
             "bits are at one `address`"),
    _changed("endian of bits", "0xC010", "0xC010, type: bits, bytes: 1, endian: big",
             "variables.lives.endian", "no `endian`"),
    _changed("too many bits", "0xC010", "0xC010, type: bits, bytes: 1025", "from 1 to 1_024"),
    _changed("bits beyond RAM", "0xC010", "0xDF00, type: bits, bytes: 512", "reach beyond"),
    _changed("array where a number is due", "address: 0xC010", "addresses: [0xC010]",
             "rewards.dead.variable", "endings.game_over.variable", "lives is an array"),
    _changed("seed that is masked", "_seed, type: u8", "_seed, mask: 15", "without `mask`"),
    _changed("bit 9", "bit: 3", "bit: 9", "variables.flag.bit", "from 0 to 7"),
    _changed("bit without a number", ", bit: 3", "", "`bit` (0 to 7)"),
    _changed("left and right", "[up, right]", "[left, right]", "left and right cannot be held"),
    _changed("same action twice", "[up, right]", "[left]", "same buttons as left"),
    _changed("left and right in a pulse", "[up, right]", "{hold: [left, right], frames: 2}",
             "actions.jump_right.hold", "left and right cannot be held"),
    _changed("up and down in a script", "[up, right]", "[{wait: 2}, {hold: [up, down], frames: 2}]",
             "actions.jump_right.1.hold", "up and down cannot be held"),
    _changed("button twice in a pulse", "[up, right]", "{hold: [a, a], frames: 2}",
             "actions.jump_right.hold", "named twice"),
    _changed("pulse without frames", "[up, right]", "{hold: [a]}", "actions.jump_right.frames",
             "missing"),
    _changed("pulse without buttons", "[up, right]", "{hold: [], frames: 2}",
             "actions.jump_right.hold", "at least 1"),
    _changed("pulse of no frames", "[up, right]", "{hold: [a], frames: 0}",
             "actions.jump_right.frames", "number of at least 1"),
    _changed("pulse longer than any timestep", "[up, right]", "{hold: [a], frames: 600}",
             "actions.jump_right.frames", "below 600"),
    _changed("pulse of an unknown button", "[up, right]", "{hold: [turbo], frames: 4}",
             "actions.jump_right.hold.0", "select"),
    _changed("pulse with a slip", "[up, right]", "{hold: [a], frame: 4}", "did you mean frames?"),
    _changed("action that is one word", "[up, right]", "up", "actions.jump_right", "write [up]"),
    _changed("script that mixes its forms", "[up, right]", "[{hold: [a], frames: 4}, b]",
             "actions.jump_right.1", "{wait: ..., hold: ..., frames: ...}"),
    _changed("script step of both kinds", "[up, right]", "[{hold: [a], wait: 4}]",
             "actions.jump_right.0", "write `wait: 90` or `hold: [start]"),
    _changed("script that only waits", "[up, right]", "[{wait: 4}]", "actions.jump_right",
             "presses no button; write []"),
    _changed("script that is one long press", "[up, right]",
             "[{hold: [a, b], frames: 4}, {hold: [b, a], frames: 2}]", "actions.jump_right.1",
             "one long press", "put a `wait` between"),
    _changed("script longer than any timestep", "[up, right]",
             "[{hold: [a], frames: 300}, {wait: 200}, {hold: [b], frames: 100}]",
             "actions.jump_right", "takes 601 frames, the last one without buttons", "at most 600"),
    _changed("same pulse twice", "[left]\n  jump_right: [up, right]",
             "{hold: [a, b], frames: 2}\n  jump_right: [{hold: [b, a], frames: 2}]",
             "actions.jump_right", "does the same as left"),
    _changed("same script but for its waits", "[left]\n  jump_right: [up, right]",
             "{hold: [a], frames: 2}\n  jump_right: [{hold: [a], frames: 2}, {wait: 1}, {wait: 3}]",
             "actions.jump_right", "does the same as left"),
    _changed("unknown button", "[up, right]", "[up, turbo]", "actions.jump_right.1", "select"),
    _changed("a name with a blank", "jump_right:", "jump right:", "letters, digits"),
    _changed(
        "reward of an unknown variable",
        "variable: counter",
        "variable: countr",
        "rewards.counted.variable",
        "did you mean counter?",
    ),
    _changed("reward on nothing", "on: increase", "on: rise", "rewards.counted.on", "increase"),
    _changed("equals without a value", "value: 0, ", "", "`value` goes with `on: equals`"),
    _changed("infinite weight", "weight: 0.5", "weight: .inf", "rewards.counted.weight"),
    _changed("weight of nothing", "weight: 0.5", "weight: 0", "a weight of 0"),
    _changed("ending of an unknown variable", "{variable: lives, equals: 255}",
             "{variable: life, equals: 255}", "endings.game_over.variable"),
    _changed("ending without comparison", ", equals: 255", "", "exactly one of `equals`"),
    _changed("success of two comparisons", "at_least: 100", "at_least: 100, at_most: 3", "exactly"),
    _changed("seed of an unknown variable", "random_seed: seed", "random_seed: sed", "random_seed"),
    _changed("seed that is no number", "random_seed: seed", "random_seed: flag", "of type bit"),
    _changed("seed in the divider", "{symbol: _seed, type: u8}", "{address: 0xFF04}",
             "random_seed", "seed is at 0xFF04, the divider register", "env.max_idle_frames"),
    _changed("seed that reaches into the divider", "{symbol: _seed, type: u8}",
             "{address: 0xFF03, type: u16}", "random_seed", "is at 0xFF04"),
    _changed("crop outside the screen", "height: 128", "height: 129", "144", "at most 128"),
    _changed("script of nothing", "[{wait: 90}, {hold: [start], frames: 4}]", "[]", "at least 1"),
    _changed("hold without frames", ", frames: 4", "", "write `wait: 90` or `hold: [start]"),
    _changed("script of a day", "{wait: 90}, ", "{wait: 36000}, " * 144, "5_184_004", "an hour"),
    _changed(
        "state file with a name too long",
        "script: [{wait: 90}, {hold: [start], frames: 4}]",
        f"file: {'a' * 300}",
        "there is no file",
    ),
    _changed(
        "a value of an unknown variable",
        "frames: 4}]",
        "frames: 4}]\n    write: {live: 3}",
        "start_states.beginning.write.live",
        "line 10",
        "did you mean lives?",
    ),
    _changed(
        "a value that does not fit its variable",
        "frames: 4}]",
        "frames: 4}]\n    hold_values: {lives: 256}",
        "start_states.beginning.hold_values.lives",
        "it can be 0 to 255",
    ),
    _changed(
        "a decimal value that has too many digits",
        "frames: 4}]",
        "frames: 4}]\n    write: {points: 1_000_000}",
        "start_states.beginning.write.points",
        "it can be 0 to 999,999",
    ),
    _changed(
        "a value that is text",
        "frames: 4}]",
        "frames: 4}]\n    write: {lives: many}",
        "start_states.beginning.write.lives",
        "a whole number",
    ),
    _changed(
        "a value of a variable that is computed",
        "frames: 4}]\n\nactions:\n  idle: []\n  left: [left]\n  jump_right: [up, right]\n"
        "\nvariables:",
        "frames: 4}]\n    write: {total: 3}\n\nactions: {idle: [], left: [left]}\n\nvariables:\n"
        "  total: {sum: [lives, flag]}",
        "start_states.beginning.write.total",
        "computed from others",
    ),
    _changed(
        "a value of the random seed",
        "frames: 4}]",
        "frames: 4}]\n    write: {seed: 7}",
        "start_states.beginning.write.seed",
        "is the random_seed",
    ),
    _changed(
        "a value that is written and held",
        "frames: 4}]",
        "frames: 4}]\n    write: {lives: 7}\n    hold_values: {lives: 7}",
        "start_states.beginning.write.lives",
        "remove this",
    ),
    _changed("wait of a day", "wait: 90", "wait: 5184000", "36_000"),
    _changed(
        "no state file",
        "script: [{wait: 90}, {hold: [start], frames: 4}]",
        "file: beginning.state",
        "start_states.beginning.file",
        "there is no file",
    ),
    _part("part called screen", "screen: {vector: [lives]}", "parts.screen", "rename this one"),
    _part("part with a blank in its name", "my part: {vector: [lives]}", "letters, digits"),
    _part("part of no kind", "a: {stack: true}", "parts.a", "has no kind", "exactly one of vector"),
    _part("part of two kinds", "a: {vector: [lives], actions: 2}", "parts.a",
          "has vector and actions"),
    _part("part of an unknown kind", "a: {vektor: [lives]}", "did you mean vector?"),
    _part("vector of an unknown variable", "a: {vector: [lives, points, live]}",
          "parts.a.vector.2", "did you mean lives?"),
    _part("scaled vector of an unknown variable", "a: {vector: [{variable: live}]}",
          "parts.a.vector.0.variable", "did you mean lives?"),
    _part("empty vector", "a: {vector: []}", "parts.a.vector", "names no variable"),
    _part("vector with a scale of nothing", "a: {vector: [{variable: lives, scale: 0}]}",
          "parts.a.vector.0.scale", "every value 0"),
    _part("vector with bits and a scale", "a: {vector: [{variable: lives, bits: 8, scale: 2}]}",
          "parts.a.vector.0.scale", "does not go with `bits`"),
    _part("vector of 17 waves", "a: {vector: [{variable: lives, fourier: 17}]}",
          "parts.a.vector.0.fourier"),
    _part("bits of bits", "a: {vector: [{variable: events, bits: 8}]}", "parts.a.vector.0.bits",
          "events is an array of bits, and a number is needed", "{count: events}"),
    _part("waves of bits", "a: {vector: [{variable: events, fourier: 2}]}",
          "parts.a.vector.0.fourier", "events is an array of bits"),
    _part("bits of a ratio", "a: {vector: [{variable: share, bits: 8}]}", "parts.a.vector.0.bits",
          "share is not always a whole number"),
    _part("categories of a sum of ratios", "a: {categories: shares, of: 8}", "parts.a.categories",
          "shares is not always a whole number"),
    _part("categories without of", "a: {categories: lives}", "parts.a.of", "how many categories"),
    _part("of without categories", "a: {vector: [lives], of: 8}", "parts.a.of", "only with it"),
    _part("one category", "a: {categories: lives, of: 1}", "parts.a.of", "from 2 to 65_536"),
    _part("categories of an unknown variable", "a: {categories: live, of: 8}",
          "parts.a.categories", "did you mean lives?"),
    _part("tiles outside the screen", "a: {tiles: {area: {x: 4, width: 17, height: 18}, "
          "follow_scroll: true, classes: {a: [1]}}}", "parts.a.tiles.area.width", "the screen",
          "20 x 18", "at most 16 fit"),
    _part("tiles outside the map", "a: {tiles: {area: {y: 20, width: 3, height: 13}, "
          "classes: {a: [1]}}}", "parts.a.tiles.area.height", "32 x 32", "at most 12 fit"),
    _part("tile of two classes", "a: {tiles: {area: {width: 3, height: 3}, classes: "
          "{solid: [142, 143], enemy: [7, 143]}}}", "parts.a.tiles.classes.enemy",
          "tile 143 is in solid as well"),
    _part("tile named twice", "a: {tiles: {area: {width: 3, height: 3}, classes: {a: [7, 7]}}}",
          "tile 7 is twice"),
    _part("tile that no memory has", "a: {tiles: {area: {width: 3, height: 3}, classes: "
          "{a: [768]}}}", "parts.a.tiles.classes.a.0", "below 768"),
    _part("tile that only colour has", "a: {tiles: {area: {width: 3, height: 3}, classes: "
          "{a: [383, 384]}}}", "parts.a.tiles.classes.a", "tile 384 is in bank 1", "hardware: cgb"),
    _part("tiles without classes", "a: {tiles: {area: {width: 3, height: 3}}}",
          "parts.a.tiles.classes", "`ids: true`"),
    _part("class without tiles", "a: {tiles: {area: {width: 3, height: 3}, classes: {a: []}}}",
          "parts.a.tiles.classes.a", "has no tiles"),
    _part("visited places without place", "a: {visited: {radius: 3}}", "parts.a.visited",
          "`place: [map, x, y]`"),
    _part("visited places of one variable", "a: {visited: {radius: 3}}\nplace: [lives]",
          "parts.a.visited", "the last two of them x and y"),
    _part("visited places at an array", "a: {visited: {radius: 3}}\nplace: [lives, events]",
          "place.1", "events is an array"),
    _part("visited places at a ratio", "a: {visited: {radius: 3}}\nplace: [lives, share]",
          "parts.a.visited", "share in `place` is not always a whole number"),
    _part("size that is no multiple", "a: {visited: {radius: 12, size: 50}}\nplace: [lives, flag]",
          "parts.a.visited.size", "not a multiple of 2 x radius = 24", "write 48"),
    _part("offsets without a map", "a: {visited: {radius: 3, offsets: maps.yaml}}\n"
          "place: [lives, flag]", "parts.a.visited.offsets", "has 2 variables, not [map, x, y]"),
    _part("no file of offsets", "a: {visited: {radius: 3, offsets: maps.yaml}}\n"
          "place: [seed, lives, flag]", "parts.a.visited.offsets", "maps.yaml", "no such file"),
    _part("offsets that are a game", "a: {visited: {radius: 3, offsets: game.yaml}}\n"
          "place: [seed, lives, flag]", "parts.a.visited.offsets", "maps: missing"),
    _part("own part without a class", "a: {own: {kind: vector, shape: [2]}}", "parts.a.own",
          "there is none", "reward: my_rewards:MyReward"),
    _part("own vector of two sides", "a: {own: {kind: vector, shape: [2, 2]}}",
          "parts.a.own.shape", "the shape of a vector is [n]"),
    _part("own grid of one side", "a: {own: {kind: grid, shape: [2], of: 3}}",
          "parts.a.own.shape", "the shape of a grid is [height, width]"),
    _part("own grid without of", "a: {own: {kind: grid, shape: [2, 2]}}", "parts.a.own.of",
          "needs the number of values"),
    _part("own grid as large as a film", "a: {own: {kind: grid, shape: [2, 20_000], of: 3}}",
          "parts.a.own.shape", "20,000 is too large"),
    _part("tiles with classes and ids",
          "a: {tiles: {area: {width: 2, height: 2}, ids: true, classes: {wall: [3]}}}",
          "parts.a.tiles.ids", "remove one of the two"),
    _changed("offsets of a place without a map", "success:",
             "place: [lives, flag]\nplace_offsets: maps.yaml\nsuccess:", "place_offsets",
             "has 2 variables, not [map, x, y]"),
    _changed("offsets without a place", "success:", "place_offsets: maps.yaml\nsuccess:",
             "place_offsets", "has 0 variables"),
    _changed("no file of offsets of the place", "success:",
             "place: [seed, lives, flag]\nplace_offsets: maps.yaml\nsuccess:", "place_offsets",
             "maps.yaml", "no such file"),
    _changed("names without maps", "success:", "place: [lives, flag]\n"
             "place_names: {1: a}\nsuccess:", "place_names", "has 2 variables, not [map, x, y]"),
    _changed("screens without a place", "success:", "place_screen: {}\nsuccess:", "place_screen",
             "has 0 variables"),
    _changed("an unknown camera", "success:",
             "place: [lives, flag]\nplace_screen: {left: camera}\nsuccess:", "place_screen.left",
             "camera"),
    _changed("a camera and a fixed player", "success:",
             "place: [lives, flag]\nplace_screen: {player: [64, 64], left: seed}\nsuccess:",
             "place_screen.left", "does not go with `player`"),
    _changed("a map that is shown after a change", "success:", "place: [lives, flag]\n"
             "place_screen: {when: {variable: seed, changes: true}}\nsuccess:",
             "place_screen.when", "a single moment"),
    _changed("a map on more than the screen", "success:", "place: [lives, flag]\n"
             "place_screen: {crop: {top: 16}}\nsuccess:", "place_screen.crop.height",
             "at most 128"),
    _part("no actions", "a: {actions: 0}", "parts.a.actions", "from 1 to 64"),
    _part("actions by their names", "a: {actions: [idle]}", "parts.a.actions", "whole number"),
)  # fmt: skip
