"""Game files as people get them wrong, each with what its message must say."""

from pathlib import Path
from typing import NamedTuple

from tests.games.example import VALID_GAME, write_game

_ARRAYS = """\
variables:
  events: {address: 0xC100, type: bits, bytes: 4}
  levels: {addresses: [0xC110, 0xC111]}
  share: {ratio: [lives, counter]}
"""
_GAME = VALID_GAME.replace("variables:\n", _ARRAYS)
_SCRIPT = "script: [{wait: 90}, {hold: [start], frames: 4}]"
_TERM = "{variable: counter, on: increase, weight: 0.5}"
_ENDING = "{variable: lives, equals: 255}"
_PLACED = "place: [seed, lives, flag]\nparts: {a: {visited: {radius: 3, offsets: "


class WrongFile(NamedTuple):
    """A game.yaml and the files beside it; all of `says` are in the message."""

    name: str
    text: str
    says: tuple[str, ...]

    def write(self, folder: Path) -> Path:
        for name, data in _FILES.items():
            (folder / name).write_bytes(data)
        return write_game(folder, self.text)


_FILES = {
    "list.yaml": b"- [0, 0]\n",
    "short.yaml": b"maps: {0: [1]}\n",
    "names.yaml": b"maps: {pallet: [1, 2]}\n",
    "small.sav": bytes(1_000),
    "format_255.state": bytes([255]) + bytes(60_000),
    "format_12.state": bytes([12]) + bytes(60_000),
    "page.state": b"<!DOCTYPE html>" + bytes(5_000),
    "empty.state": b"",
}


def _changed(name: str, old: str, new: str, *says: str) -> WrongFile:
    assert _GAME.count(old) == 1, old
    return WrongFile(name, _GAME.replace(old, new), says)


def _variable(name: str, line: str, *says: str) -> WrongFile:
    return WrongFile(name, _GAME.replace(_ARRAYS, f"{_ARRAYS}  {line}\n"), says)


def _term(name: str, term: str, *says: str) -> WrongFile:
    return _changed(name, _TERM, term, "line 28", "rewards.counted", *says)


def _ending(name: str, ending: str, *says: str) -> WrongFile:
    return _changed(name, _ENDING, ending, "line 32", "endings.game_over", *says)


def _start(name: str, start: str, *says: str) -> WrongFile:
    return _changed(name, _SCRIPT, start, "start_states.beginning", *says)


def _added(name: str, lines: str, *says: str) -> WrongFile:
    return WrongFile(name, f"{_GAME}{lines}\n", ("line 3", *says))  # lines 36 and 37 are the last


WRONG_FILES = (
    _variable("cycle", "a: {sum: [b, lives]}\n  b: {difference: [a, lives]}",
              "variables.a.sum", "from itself (a from b from a)", "1 problem"),
    _variable("count of itself", "a: {count: a}", "from itself (a from a)", "1 problem"),
    _variable("ratio of one", "a: {ratio: [lives]}", "found a list of 1", "of 2, each text"),
    _variable("difference of one word", "a: {difference: lives}", "found lives", "of 2"),
    _variable("sum of nothing", "a: {sum: []}", "variables.a.sum", "found an empty list"),
    _variable("count of a ratio", "a: {count: share}", "computed by `ratio`; name a variable"),
    _variable("bit beyond", "a: {bit_of: {variable: lives, index: 8}}", "lives has no bit 8",
              "0 to 7"),
    _variable("address with a dollar", "a: {address: $C010}", "found $C010", "write 0xC010"),
    _variable("address without 0x", "a: {address: C010}", "found C010", "write 0xC010"),
    _variable("addresses of an assembler", "a: {addresses: [C010h, C011h]}", "addresses.0",
              "write 0xC010"),
    _variable("written twice", "a: {sum: levels}\n  a: {sum: lives}", "written twice", "keep one"),
    _ending("unknown name deep in a condition",
            "{all: [{variable: lives, equals: 0}, {not: {variable: ponts, at_least: 3}}]}",
            "game_over.all.1.not.variable", "did you mean points?"),
    _ending("unknown name on the right", "{variable: lives, at_most: countr}",
            "game_over.at_most", "did you mean counter?"),
    _ending("condition on bits", "{variable: events, equals: 0}", "events is an array",
            "{count: events}"),
    _ending("array on the right", "{variable: lives, equals: levels}", "game_over.equals",
            "levels is an array"),
    _ending("not with a list", "{not: [{variable: lives, equals: 0}]}", "game_over.not",
            "found a list of 1", "{variable: ..., equals: ..."),
    _ending("for no timestep", "{variable: lives, equals: 0, for: 0}", "game_over.for",
            "from 1 to 1_000_000_000"),
    _ending("same place without place", "{same_place_for: 100}", "`place: [map, x, y]`"),
    _ending("in with words", "{variable: lives, in: [one, two]}", "game_over.in.0",
            "found one; allowed: a number", "2 problems"),
    _ending("in with a number", "{variable: lives, in: 3}", "game_over.in", "found 3", "a list"),
    _ending("all of nothing", "{all: []}", "game_over.all", "found an empty list"),
    _ending("condition as in Python", "lives == 0", "found lives == 0", "{variable: ..., equals:"),
    _ending("a wait of a wait", "{no_reward_for: 10, for: 3}", "game_over.for", "remove it"),
    _term("a wait in a reward", "{variable: counter, on: increase, when: {no_reward_for: 10}}",
          "counted.when.no_reward_for", "for endings only; remove it"),
    _term("first visit of a variable", "{variable: counter, on: first_visit}",
          "counted.variable", "`variables: [map, x, y]`; write that"),
    _term("first visit of an unknown variable",
          "{variables: [lives, whereabouts], on: first_visit}",
          "counted.variables.1", "there is no variable whereabouts; known: "),
    _term("visits without a number", "{variables: [lives, flag], on: visits}", "counted.at_least"),
    _term("knee above the cap",
          "{variable: counter, on: increase, cap: 10, knee: {at: 20, slope: 0.5}}",
          "counted.knee.at", "nothing above the cap of 10 counts; choose a lower knee"),
    _term("knee as a number", "{variable: counter, on: increase, knee: 20}", "counted.knee",
          "{at: ..., slope: ...}"),
    _term("power of what has no amount", "{variable: counter, on: equals, value: 1, power: 2}",
          "counted.power", "remove `power`"),
    _term("when with an unknown name",
          "{variable: counter, on: increase, when: {variable: live, equals: 0}}",
          "counted.when.variable", "did you mean lives?"),
    _start("script and file", f"{_SCRIPT}\n    file: empty.state", "remove one of the two"),
    _start("neither script nor file", "write: {lives: 3}", "give it a `script` or a `file`"),
    _start("script with a slip", "script: [{hold: [strat], frames: 4}]", "script.0.hold.0",
           "did you mean start?", "1 problem"),
    _start("script that presses", "script: [{press: [start], frames: 4}]", "script.0.press",
           "{hold: [start], frames: 4}"),
    _start("script of a word", "script: [start]", "script.0", "{wait: ..., hold: ..., frames: ...}",
           "1 problem"),
    _start("script that waits backwards", "script: [{wait: -1}]", "script.0.wait", "found -1",
           "above 0"),
    _start("older format of a script", f"{_SCRIPT}\n    accept_older: true", "accept_older",
           "goes with `file`", "remove it"),
    _start("battery file of another size", f"{_SCRIPT}\n    battery: small.sav", "battery",
           "it has 1,000 bytes", "32,768", "name the file that was saved for this ROM"),
    _start("no battery file", f"{_SCRIPT}\n    battery: a.sav", "a.sav cannot be read",
           "correct the path"),
    _start("state of format 255", "file: format_255.state", "its format is 255", "newer version",
           "save the state again"),
    _start("state of an older format", "file: format_12.state", "its format is 12",
           "write `accept_older: true`"),
    _start("state that is a web page", "file: page.state", "it is not a state"),
    _start("empty state", "file: empty.state", "the file is empty; save the state again"),
    _added("step of an unknown variable",
           "step: {until: {variable: locked, equals: 0}, at_most_frames: 600}",
           "step.until.variable", "there is no variable locked"),
    _added("step without a limit", "step: {until: {variable: lives, equals: 0}}",
           "step.at_most_frames", "missing; add it"),
    _added("step too short to press",
           "step: {until: {variable: lives, equals: 0}, press: [a], at_most_frames: 10}",
           "step.at_most_frames", "write at least 17, or remove `press`"),
    _added("step that counts timesteps",
           "step: {until: {variable: lives, equals: 0, for: 3}, at_most_frames: 10}",
           "step.until.for", "remove it"),
    _added("place of an unknown variable", "place: [map, lives]", "place.0",
           "there is no variable map"),
    _added("place of one word", "place: lives", "place: found lives", "write [lives]"),
    _added("no waves", "parts: {a: {vector: [{variable: lives, fourier: 0}]}}",
           "parts.a.vector.0.fourier", "found 0", "from 1 to 16"),
    _added("vector of one word", "parts: {a: {vector: lives}}", "parts.a.vector", "write [lives]"),
    _added("part of an unknown variable", "parts: {a: {categories: specie, of: 8}}",
           "parts.a.categories", "there is no variable specie"),
    _added("recent of a ratio",
           "parts: {a: {recent: {variable: share, timesteps: 4, of: 8}}}",
           "parts.a.recent.variable", "share is not always a whole number", "remove `of`"),
    _added("recent of all time", "parts: {a: {recent: {variable: lives, timesteps: 5000}}}",
           "parts.a.recent.timesteps", "1_024", "found 5000"),
    _added("recent scaled categories",
           "parts: {a: {recent: {variable: lives, timesteps: 4, of: 8, scale: 0.1}}}",
           "parts.a.recent.scale", "does not go with `of`"),
    _added("recent of an unknown variable", "parts: {a: {recent: {variable: life, timesteps: 4}}}",
           "parts.a.recent.variable", "there is no variable life"),
    _added("visited without place", "parts: {a: {visited: {radius: 3}}}", "parts.a.visited",
           "`place: [map, x, y]`"),
    _added("offsets in a list", _PLACED + "list.yaml}}}",
           "parts.a.visited.offsets", "list.yaml", "it needs maps"),
    _added("offset of one number",
           _PLACED + "short.yaml}}}",
           "short.yaml", "maps.0.1: missing"),
    _added("offset of a map's name",
           _PLACED + "names.yaml}}}",
           "names.yaml", "maps.pallet: is not a whole number", "`12: ...`"),
    _added("classes without names",
           "parts: {a: {tiles: {area: {width: 3, height: 3}, classes: [1, 2]}}}",
           "parts.a.tiles.classes", "a section of `name: value` lines"),
    _added("place with a variable twice", "place: [seed, lives, lives]", "place.2",
           "lives is named twice; remove one"),
    _variable("colon without a space", "a: {address:0xC010}", "a space is missing after the `:`",
              "write `address: ...`", "1 problem"),
    _ending("wait that may not be enough", "{any: [{variable: lives, equals: 0}, "
            "{no_reward_for: 10}]}", "any.1.no_reward_for", "make it an ending of its own"),
    _ending("truncation of one of two", "{any: [{variable: lives, equals: 0, truncates: true}]}",
            "game_over.any.0.truncates", "unknown key"),
    _changed("one action", "  left: [left]\n  jump_right: [up, right]\n", "", "actions",
             "at least 2 `name: value` lines"),
    _changed("title that is a number", "title: Counting", "title: 2048", "line 1", "found 2048",
             'write "2048"'),
    _changed("seed that is an array", "random_seed: seed", "random_seed: levels", "random_seed",
             "levels is not one whole number in memory"),
    _changed("tab", "  idle: []", "\tidle: []", "a tab at column 1", "replace it"),
)  # fmt: skip
