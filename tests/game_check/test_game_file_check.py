"""`check-game --without-rom`: a game file whose ROM is missing."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.emulator.pyboy_emulator import PyBoyEmulator
from game_rl.errors import EmulatorError, GameFileError
from game_rl.game_check.game_check import check_game_file
from game_rl.games.definition import load_game

SHA1 = "0f" * 20
GAME = f"""\
title: Elsewhere
rom: {{sha1: {SHA1}}}
start_states:
  shore: {{file: shore.state, accept_older: true}}
  caves: {{battery: caves.sav, script: [{{wait: 90}}]}}
actions:
  idle: []
  jump: {{hold: [a], frames: 8}}
variables:
  lives: {{address: 0xC0A0}}
  kept: {{address: 0xA010, bank: 3}}
  events: {{address: 0xD747, type: bits, bytes: 311}}
rewards:
  life: {{variable: lives, on: increase}}
endings:
  over: {{variable: lives, equals: 0}}
parts:
  status: {{vector: [lives, events]}}
"""
REWARD = """\
class Mine:
    def reset(self, variables, screen):
        pass

    def step(self, variables, memory, {argument}):
        return 0.0
"""
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAME_RL_ROMS", raising=False)
    (tmp_path / "game.yaml").write_text(GAME, encoding="utf-8")
    return tmp_path


def test_the_missing_rom_is_named_by_its_hash_and_the_exit_code_is_0(
    folder: Path, capsys: Output
) -> None:
    assert main(["check-game", "game.yaml", "--without-rom"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    told = (
        "Elsewhere: 3 variables, 2 actions, 1 reward term, 1 ending, 2 start states",
        "env.frame_skip of at least 9",
        f"missing: the ROM with sha1 {SHA1}, which was looked for in {folder / 'roms'} "
        "(no such folder), GAME_RL_ROMS (not set)",
        f"missing: start_states.shore.file: {folder / 'shore.state'}",
        f"missing: start_states.caves.battery: {folder / 'caves.sav'}",
    )
    assert [part for part in told if part not in text] == []


def test_a_script_reads_the_same_as_json(folder: Path, capsys: Output) -> None:
    (folder / "shore.state").write_bytes(b"of another game, perhaps")
    assert main(["check-game", "game.yaml", "--without-rom", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rom"] == {
        "hashes": {"sha1": SHA1},
        "path": None,
        "looked_in": [f"{folder / 'roms'} (no such folder)", "GAME_RL_ROMS (not set)"],
    }
    assert found["missing_files"] == {"start_states.caves.battery": str(folder / "caves.sav")}
    assert found["variables"] == ["lives", "kept", "events"]
    (status,) = found["parts"]
    assert status == {
        "name": "status",
        "kind": "vector",
        "shape": [1 + 8 * 311],
        "stored_bytes": 4 + 311,
    }


def test_a_rom_that_is_there_is_found_without_being_read(folder: Path, capsys: Output) -> None:
    rom = folder / "mine.gb"
    rom.write_bytes(b"no ROM at all")
    text = GAME.replace(f"sha1: {SHA1}", "path: mine.gb")
    (folder / "game.yaml").write_text(text, encoding="utf-8")
    check = check_game_file("game.yaml")
    assert check.rom.path == str(rom)
    assert not [missing for missing in check.missing if "ROM" in missing]
    assert main(["check-game", "game.yaml", "--without-rom"]) == 0
    assert f"ROM: {rom}" in capsys.readouterr().out


def test_a_bundled_game_has_its_rom() -> None:
    check = check_game_file("duel")
    assert check.missing == ()
    assert [part.name for part in check.parts] == list(load_game("duel").definition.parts)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("variable: lives, on", "variable: live, on", "did you mean lives?"),
        ("address: 0xC0A0", "address: 0x1234", "is in ROM, which never changes"),
        ("address: 0xC0A0", "symbol: wLives", "needs a symbol file"),
        (f"{{sha1: {SHA1}}}", "{}", "give the ROM's `path`, or its `sha256` or `sha1`"),
        ("accept_older: true", "accept_older: true, write: {lives: 256}", "it can be 0 to 255"),
        ("parts:\n", "reward: mine:Mine\nparts:\n", "mine"),
    ],
)
def test_everything_else_is_checked(old: str, new: str, told: str, folder: Path) -> None:
    assert old in GAME
    (folder / "game.yaml").write_text(GAME.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(GameFileError) as error:
        check_game_file("game.yaml")
    assert told in str(error.value)


def test_what_a_reward_class_takes_is_checked(folder: Path) -> None:
    for module, argument in (("right_class", "action"), ("wrong_class", "actoin")):
        (folder / f"{module}.py").write_text(REWARD.format(argument=argument), encoding="utf-8")
        text = GAME + f"reward: {module}:Mine\n"
        (folder / f"{module}.yaml").write_text(text, encoding="utf-8")
    assert check_game_file("right_class.yaml").reward_class == "right_class:Mine"
    with pytest.raises(GameFileError, match="did you mean action"):
        check_game_file("wrong_class.yaml")


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("recorded", "7"),
        ("timesteps", "7"),
        ("seed", "7"),
        ("sheet", "sheet.png"),
        ("trace", "trace.csv"),
    ],
)
def test_options_of_play_do_not_go_with_it(word: str, value: str, capsys: Output) -> None:
    assert main(["check-game", "game.yaml", "--without-rom", f"--{word}", value]) == 2
    assert f"--{word} needs play" in " ".join(capsys.readouterr().err.split())


def test_what_stands_for_the_rom_cannot_be_played() -> None:
    game = load_game("duel", without_rom=True)
    assert game.rom.is_absent
    with pytest.raises(EmulatorError, match="no ROM to play"):
        PyBoyEmulator(game.rom, colour=False)
