"""`game-rl play`: what it refuses, writes and prints."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.games.definition import load_game
from tests.viewer.live_run import Watching
from tests.viewer.played_table import FakePage, open_socket


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run a command that is a mistake; return what it says."""
    assert main(["play", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return " ".join(printed.err.split())


def test_mistakes_name_the_thing_and_the_way_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rom = str(load_game("duel").folder / "duel.gb")
    assert "did you mean duel" in told(capsys, "dual")
    assert "did you mean level_1" in told(capsys, "duel", "--start-state", "levl_1")
    assert "game-rl new-game" in told(capsys, rom, "--start-state", "level_1")
    assert "nothing.gb" in told(capsys, "nothing.gb")
    assert "must end in .json" in told(capsys, "duel", "--record", "duel.txt")
    (tmp_path / "there.json").write_text('{"start_state": "level_1"}', encoding="utf-8")
    assert "never overwritten" in told(capsys, "duel", "--record", "there.json")
    assert "highest port" in told(capsys, "duel", "--port", "70000")
    assert "not a name of a host" in told(capsys, "duel", "--allow-host", "http://x")
    assert "at least 1" in told(capsys, "duel", "--frame-skip", "0")
    assert "at most" in told(capsys, "duel", "--frame-skip", "99999")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        assert f"--port {port + 1}" in told(capsys, "duel", "--port", str(port))


def test_without_a_display_the_window_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "no-such-driver")
    assert "play in the browser without --window" in told(capsys, "duel", "--window")


@contextmanager
def playing(*words: str) -> Iterator[tuple["subprocess.Popen[str]", Watching]]:
    command = [sys.executable, "-W", "ignore", "-m", "game_rl", "play", *words, "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        printed = ""
        while (found := re.search(r":(\d+)/\?token=(\S+)", printed)) is None:
            line = process.stdout.readline()
            assert line, printed
            printed += line
        yield process, Watching(int(found[1]), f"game_rl_play_%d={found[2]}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def ended(process: "subprocess.Popen[str]") -> str:
    """Send Ctrl-C; return what is printed then."""
    assert process.stdout is not None
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait() == 0, rest
    return rest


def test_ctrl_c_writes_the_episode_and_prints_the_next_commands(tmp_path: Path) -> None:
    words = ("duel", "--start-state", "level_2", "--seed", "7")
    with playing(*words) as (process, server), open_socket(server) as socket:
        page = FakePage(socket)
        page.send(held=["right"], input=1)
        while page.until("state")["seconds"] < 0.5:
            pass
        rest = ended(process)  # while the page is open
    assert "game-rl check-game duel --recorded played/duel_1.json" in rest
    assert "game-rl record played/duel_1.json --game duel" in rest
    assert "Traceback" not in rest
    recorded = json.loads((tmp_path / "played" / "duel_1.json").read_text(encoding="utf-8"))
    assert (recorded["start_state"], recorded["seed"]) == ("level_2", 7)
    assert recorded["presses"][-1][0] == ["right"]


@pytest.mark.slow
def test_a_rom_is_played_from_power_on_and_its_start_states_have_scripts(tmp_path: Path) -> None:
    rom = tmp_path / "unknown.gb"
    rom.write_bytes((load_game("duel").folder / "duel.gb").read_bytes())
    with playing("unknown.gb", "-q") as (process, server):
        with open_socket(server) as socket:
            page = FakePage(socket)
            assert page.until("game")["has_game_file"] is False
            page.send(held=["start"], input=1)
            while page.until("state")["seconds"] < 0.2:
                pass
            page.send(do="start_state", name="first")
            said = page.until("said")
        assert "first: {file: first.state}" in said
        assert re.search(r"script: \[\{wait: 1\}, .*\{hold: \[start\], frames: \d+\}\]", said)
        assert ended(process).strip() == "played/unknown_1.json"


@pytest.mark.slow
def test_nothing_is_written_where_nothing_was_played(tmp_path: Path) -> None:
    with playing("duel") as (process, _):
        assert "nothing was played" in ended(process)
    assert list(tmp_path.rglob("*.json")) == []
