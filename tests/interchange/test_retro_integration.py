"""Integrations of stable-retro, written here, as game files."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.emulator.rom import read_rom
from game_rl.errors import GameFileError, UsageError
from game_rl.games.definition import Game, load_game
from game_rl.games.starter import KnownGame, write_starter
from game_rl.games.variables import VariableReader
from game_rl.interchange.known_games import known_game
from game_rl.interchange.retro_integration import (
    installed_integrations,
    integrations_by_hash,
    known_from_retro,
    retro_folder,
)
from tests.emulator.fake_emulator import FakeEmulator
from tests.emulator.roms import make_rom

DATA = {
    "lives": {"address": 0xC100, "type": "|i1"},
    "score": {"address": 0xC110, "type": ">n6"},
    "boss-hp": {"address": 0xFF90, "type": "<u2", "mask": 0x0FFF},
    "1up": {"address": 0xD000, "type": "<d3"},
    "null": {"address": 0x9800, "type": "|u1"},
}


def integration(folder: Path, **files: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in ({"data": {"info": DATA}} | files).items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def converted(folder: Path, rom_folder: Path, **header: Any) -> tuple[KnownGame, Game]:
    rom = rom_folder / "game.gb"
    rom.write_bytes(make_rom(**header))
    known = known_from_retro(folder, read_rom(rom))
    return known, load_game(str(write_starter(rom, rom_folder / "written", known)))


def test_variables_read_what_stable_retro_reads(tmp_path: Path) -> None:
    _, game = converted(integration(tmp_path / "AFunnyGame-GameBoy-v0"), tmp_path)
    emulator = FakeEmulator()
    contents = {
        0xC100: [0xFE],
        0xC110: [0x31, 0x02, 0xF3, 0x04, 0x05, 0x86],
        0xFF90: [0x34, 0xA2],
        0xD000: [0x56, 0x34, 0x12],
        0x9800: [7],
    }
    for address, found in contents.items():
        for offset, byte in enumerate(found):
            emulator.write(address + offset, byte)
    values = VariableReader(game.variables, game.definition.variables).read(emulator)
    named = {"lives": -2, "score": 123_456, "boss_hp": 0x234, "_1up": 123_456, "_null": 7}
    assert values == named
    assert game.definition.title == "A Funny Game"
    text = (game.folder / "game.yaml").read_text(encoding="utf-8")
    assert "# What is known of this game is from AFunnyGame-GameBoy-v0 of stable-retro.\n" in text
    assert "endian: big}  # score: 49424 >n6\n" in text
    assert "# boss-hp: 65424 <u2 mask 4095\n" in text


def test_rewards_endings_buttons_and_the_picture_are_taken_over(tmp_path: Path) -> None:
    folder = integration(
        tmp_path / "Game-GameBoy",
        scenario={
            "reward": {
                "variables": {
                    "score": {"reward": 10.0},
                    "boss-hp": {"penalty": -2},
                    "lives": {"reward": 1, "penalty": 1},
                },
                "time": {"reward": -0.01},
            },
            "done": {
                "variables": {"lives": {"op": "negative"}},
                "nodes": {
                    "beaten": {
                        "condition": "all",
                        "variables": {"boss-hp": {"op": "zero"}, "score": {"op": "nonzero"}},
                    }
                },
            },
            "actions": [[[], ["LEFT"], ["RIGHT"]], [[], ["A"], ["START", "Z"], ["LEFT"]]],
            "crop": [8, 16, 0, 100],
        },
    )
    known, game = converted(folder, tmp_path)
    definition = game.definition
    terms = {name: (t.variable, t.on, t.weight) for name, t in definition.rewards.items()}
    assert terms == {
        "score_up": ("score", "increase", 10.0),
        "boss_hp_down": ("boss_hp", "decrease", 2.0),
        "lives": ("lives", "difference", 1.0),
        "time": ("always_0", "equals", -0.01),
    }
    values = {"lives": 0, "boss_hp": 0, "score": 5}
    endings = definition.endings
    assert list(endings) == ["lives", "beaten"]
    assert not endings["lives"].holds(values)
    assert endings["lives"].holds({**values, "lives": -1})
    assert endings["beaten"].holds(values)
    assert not endings["beaten"].holds({**values, "score": 0})
    assert set(definition.actions.values()) == {
        (),
        ("left",),
        ("right",),
        ("a",),
        ("a", "left"),
        ("a", "right"),
    }
    crop = definition.observation.crop
    assert (crop.left, crop.top, crop.width, crop.height) == (8, 16, 152, 100)
    assert known.notes == ("actions: the Game Boy has no button z",)


def test_all_conditions_of_done_make_one_ending(tmp_path: Path) -> None:
    variables = {"lives": {"op": "zero"}, "score": {"op": "less-than", "reference": 3}}
    done = {"condition": "all", "variables": variables}
    folder = integration(tmp_path / "g", scenario={"done": done})
    _, game = converted(folder, tmp_path)
    (ending,) = game.definition.endings.values()
    assert ending.holds({"lives": 0, "score": 2})
    assert not ending.holds({"lives": 0, "score": 3})
    assert not ending.holds({"lives": 1, "score": 2})


def test_an_ending_of_which_a_part_cannot_be_said_is_left_out(tmp_path: Path) -> None:
    variables = {
        "lives": {"op": "zero"},
        "score": {"measurement": "delta", "op": "equal", "reference": -3},
    }
    for condition, endings in (("all", []), ("any", ["no_lives"])):
        done = {"condition": condition, "variables": variables}
        place = tmp_path / condition
        folder = integration(place / "g", scenario={"done": done})
        known, game = converted(folder, place)
        assert list(game.definition.endings) == endings
        assert any("a change by an amount" in note for note in known.notes)


def test_what_cannot_be_said_is_told_in_the_file_and_to_the_caller(tmp_path: Path) -> None:
    data = {"info": DATA | {"far": {"address": 0x1_0000, "type": "|u1"}, "odd": {"type": "?"}}}
    folder = integration(
        tmp_path / "g",
        data=data,
        scenario={
            "reward": {"script": "lua:correct_score"},
            "done": {"script": "lua:done"},
            "scripts": ["script.lua"],
        },
        metadata={"default_state": "Level1"},
    )
    (folder / "rom.sha").write_text("ab" * 20 + "\n", encoding="utf-8")
    (folder / "Level1.state").write_bytes(b"state")
    (folder / "Level2.state").write_bytes(b"state")
    (folder / "notes.txt").write_text("ends a life\nearly\n", encoding="utf-8")
    known, game = converted(folder, tmp_path)
    told = " | ".join(known.notes)
    for part in (
        "is for the ROM with sha1 " + "ab" * 20,
        "variable far: stable-retro exposes no memory at 0x10000",
        "variable odd: its address None is not a whole number",
        "reward: lua:correct_score is a function of a program in Lua",
        "done: lua:done is a function of a program in Lua",
        "(Level1.state, Level2.state) come from another emulator, gambatte, and PyBoy cannot load",
        "it starts with Level1",
        "notes.txt says: ends a life early",
        "rewards: none could be imported; the one in the file is a guess",
    ):
        assert part in told
    lines = (game.folder / "game.yaml").read_text(encoding="utf-8").splitlines()
    comments = " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    for note in known.notes:
        assert note in comments
    assert list(game.definition.rewards) == ["score_up"]
    assert not game.definition.endings


def test_a_colour_game_reads_the_bank_that_stable_retro_shows(tmp_path: Path) -> None:
    header = {"colour_flag": 0x80, "cartridge": 0x1B, "ram_size": 3}
    _, game = converted(integration(tmp_path / "g"), tmp_path, **header)
    banks = {name: spec.bank for name, spec in game.definition.variables.items()}
    assert banks == {"lives": None, "score": None, "boss_hp": None, "_1up": 1, "_null": 0}


def test_without_variables_the_starters_guess_stands(tmp_path: Path) -> None:
    known, game = converted(integration(tmp_path / "g", data={"info": {}}), tmp_path)
    assert list(game.definition.variables) == ["score"]
    assert "data.json has no variable that can be read here" in known.notes


def test_the_page_shows_what_is_written(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "known-games.md"
    text = page.read_text(encoding="utf-8")
    folder = tmp_path / "Fight-GameBoy"
    folder.mkdir()
    for name in ("data.json", "scenario.json"):
        block = text.partition(f"<!-- writes Fight-GameBoy/{name} -->")[2]
        content = block.partition("```json\n")[2].partition("```")[0]
        (folder / name).write_text(content, encoding="utf-8")
    _, game = converted(folder, tmp_path)
    shown = text.partition("```yaml\n")[2].partition("```")[0]
    assert shown in (game.folder / "game.yaml").read_text(encoding="utf-8")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(["lives", "score", "a b", "", "#x", "on", "é", "\ud800", "a\nb: {"])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["zero", "sign", "less-than"]) | JSON,
        "measurement": st.sampled_from(["delta", "absolute"]) | JSON,
        "reference": st.integers() | JSON,
        "reward": st.floats() | st.integers() | JSON,
        "penalty": st.floats() | JSON,
    },
)
PLACES = st.fixed_dictionaries(
    {},
    optional={
        "address": st.integers(0x8000, 0x10000) | JSON,
        "type": st.sampled_from(["|u1", ">d3", "<n6", "<i4", "><u4"]) | JSON,
        "mask": st.integers() | JSON,
    },
)
NODES = st.recursive(
    st.fixed_dictionaries({}, optional={"variables": st.dictionaries(NAMES, SPECS | JSON)}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "condition": st.sampled_from(["all", "any"]) | JSON,
            "variables": st.dictionaries(NAMES, SPECS | JSON),
            "nodes": st.dictionaries(NAMES, inner | JSON),
        },
    ),
    max_leaves=4,
)
SCENARIOS = st.fixed_dictionaries(
    {},
    optional={
        "reward": st.fixed_dictionaries(
            {}, optional={"variables": st.dictionaries(NAMES, SPECS | JSON), "time": SPECS | JSON}
        )
        | JSON,
        "rewards": JSON,
        "done": NODES | JSON,
        "actions": st.lists(st.lists(st.lists(st.sampled_from(["A", "LEFT", "RIGHT"])))) | JSON,
        "crop": st.lists(st.integers(-5, 200), min_size=4, max_size=4) | JSON,
    },
)


@given(
    st.dictionaries(NAMES, PLACES | JSON, max_size=4) | JSON,
    SCENARIOS | JSON,
    st.fixed_dictionaries({}, optional={"default_state": st.text(max_size=5) | JSON}) | JSON,
)
def test_any_integration_makes_a_game_file_that_loads(
    tmp_path_factory: pytest.TempPathFactory, info: Any, scenario: Any, metadata: Any
) -> None:
    place = tmp_path_factory.mktemp("any")
    folder = integration(
        place / "Any-GameBoy", data={"info": info}, scenario=scenario, metadata=metadata
    )
    known, game = converted(folder, place)
    given = len(info) if isinstance(info, dict) else 0
    assert len(game.definition.variables) <= max(given, 1)  # or the starter's guess
    assert known.notes or len(game.definition.variables) == given


@pytest.mark.parametrize("content", ["", "{", "\udcff", "[" * 100_000])
def test_a_file_that_is_no_json_is_named(tmp_path: Path, content: str) -> None:
    folder = integration(tmp_path / "g")
    (folder / "scenario.json").write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(GameFileError, match=r"scenario\.json cannot be read"):
        converted(folder, tmp_path)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that looks like stable-retro, and must not be imported."""
    package = tmp_path / "site" / "stable_retro"
    folder = integration(package / "data" / "stable" / "Found-GameBoy-v0")
    (folder / "rom.sha").write_text("cd" * 20, encoding="utf-8")
    (integration(package / "data" / "stable" / "Other-Genesis-v0") / "rom.sha").touch()
    integration(package / "data" / "experimental" / "Found-GameBoy")
    (package / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "stable_retro", raising=False)
    return folder


def test_the_installed_package_is_found_without_importing_it(installed: Path) -> None:
    assert list(installed_integrations()) == [installed]
    assert integrations_by_hash() == {"cd" * 20: installed}
    for name in ("Found-GameBoy-v0", "Found-GameBoy", str(installed)):
        assert retro_folder(name) == installed
    assert "stable_retro" not in sys.modules


def test_a_game_with_a_known_hash_is_found_by_itself(installed: Path, tmp_path: Path) -> None:
    path = tmp_path / "game.gb"
    path.write_bytes(make_rom())
    rom = read_rom(path)
    assert known_game(rom) is None
    (installed / "rom.sha").write_text(rom.sha1.upper(), encoding="utf-8")
    known = known_game(rom)
    assert known is not None
    assert known.source == "Found-GameBoy-v0 of stable-retro"
    assert known_game(rom, "nothing") is None


@pytest.mark.usefixtures("installed")
def test_a_name_that_is_none_is_answered_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no integration Lost .*has 1 for the Game Boy"):
        retro_folder("Lost")
    with pytest.raises(UsageError, match=r"has no data\.json"):
        retro_folder(str(tmp_path))


def test_without_the_package_a_name_is_answered_with_what_to_name() -> None:
    with pytest.raises(UsageError, match="not installed here, so name a folder"):
        retro_folder("Lost")
