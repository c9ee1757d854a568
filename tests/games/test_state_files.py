"""States of older formats, each saved by that version of PyBoy in a bundled game.

Those of duel were made by the script of its first start state: 90 frames after power-on, START for
4 frames, 12 frames, START for 4 frames and 29 frames. Those of seasons are on the title, for a game
in colour: 90 frames, START for 4 frames, 60 frames.
"""

import shutil
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.emulator import pyboy_emulator
from game_rl.envs.make_env import make_env
from game_rl.errors import EmulatorError, GameFileError
from game_rl.games import start_state as start_states
from game_rl.games.definition import Game, load_game
from game_rl.games.start_state import read_state

OLDER = Path(__file__).parents[1] / "emulator" / "older_states"
FORMATS = {"1.6.14": 9, "2.2.2": 11, "2.4.1": 12, "2.5.2": 14, "2.6.0": 15, "2.7.1": 17}
VERSIONS = tuple(FORMATS)


def older(version: str, game: str = "duel") -> bytes:
    return zlib.decompress((OLDER / f"{game}_pyboy_{version}.z").read_bytes())


def duel_in(folder: Path, state: bytes, more: str = ", accept_older: true") -> Path:
    """The path of a copy of duel whose one start state is this file."""
    bundled = load_game("duel")
    for name in ("duel.gb", "duel.sym"):
        shutil.copy(bundled.folder / name, folder / name)
    text = (bundled.folder / "game.yaml").read_text(encoding="utf-8")
    before, rest = text.split("start_states:", 1)
    after = rest[rest.index("actions:") :]
    path = folder / "game.yaml"
    own = f"start_states:\n  begin: {{file: begin.state{more}}}\n"
    path.write_text(before + own + after, encoding="utf-8")
    (folder / "begin.state").write_bytes(state)
    return path


def begun(game: Game, start_state: str) -> tuple[dict[str, Any], np.ndarray]:
    config = EnvConfig(max_idle_frames=0)
    with closing(make_env(config, game)) as env:
        env.reset(seed=0, options={"start_state": start_state})
        return env.read_variables(), env.render()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_of_an_older_version_begins_where_the_script_does(
    version: str, tmp_path: Path
) -> None:
    state = older(version)
    assert state[0] == FORMATS[version]
    values, screen = begun(load_game(str(duel_in(tmp_path, state))), "begin")
    first = next(iter(load_game("duel").definition.start_states))
    expected, picture = begun(load_game("duel"), first)
    differing = {name for name, value in values.items() if value != expected[name]}
    assert differing <= {"fight_timer", "rng_seed"}, "PyBoy 2.8 has another timing"
    assert np.mean(screen == picture) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.6.14", "2.7.1"])
def test_a_state_in_colour_is_the_same_moment(version: str, tmp_path: Path) -> None:
    game = load_game("seasons")
    (tmp_path / "begin.state").write_bytes(older(version, "seasons"))
    state = read_state(tmp_path / "begin.state", game.rom, colour=True, accepts_older=True)
    with closing(pyboy_emulator.PyBoyEmulator(game.rom, colour=True)) as emulator:
        emulator.tick(90, render=False)
        emulator.hold(["start"])
        emulator.tick(4, render=False)
        emulator.hold([])
        emulator.tick(63, render=True)
        by_script = emulator.screen().copy()
        emulator.load_state(state)
        assert np.mean(emulator.screen() == by_script) > 0.9
        emulator.tick(60, render=True)
        assert len(np.unique(emulator.screen())) > 4


@pytest.mark.slow
def test_it_is_converted_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = duel_in(tmp_path, older("2.7.1"))
    game = load_game(str(path))
    kept = tmp_path / "begin.state.converted"
    content = kept.read_bytes()

    def refuse(*_: object, **__: object) -> bytes:
        raise AssertionError("converted again")

    with monkeypatch.context() as patched:
        patched.setattr(pyboy_emulator, "convert_older_state", refuse)
        begun(load_game(str(path)), "begin")
        assert kept.read_bytes() == content
    file = tmp_path / "begin.state"
    for damage in (content[:500], content[:-1] + b"x", b"", older("2.7.1")):
        kept.write_bytes(damage)
        assert read_state(file, game.rom, colour=False, accepts_older=True) == content[32:]
        assert kept.read_bytes() == content
    file.write_bytes(older("2.6.0"))
    read_state(file, game.rom, colour=False, accepts_older=True)
    assert kept.read_bytes()[:32] != content[:32]


def test_where_nothing_can_be_written_it_is_converted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(start_states, "write_atomic", full)
    game = load_game(str(duel_in(tmp_path, older("2.4.1"))))
    state = read_state(tmp_path / "begin.state", game.rom, colour=False, accepts_older=True)
    assert state.startswith(b"GRLSTAT1")
    assert not (tmp_path / "begin.state.converted").exists()


def test_a_state_of_today_needs_no_conversion(tmp_path: Path) -> None:
    with closing(pyboy_emulator.PyBoyEmulator(load_game("duel").rom, colour=False)) as emulator:
        emulator.tick(30, render=True)
        path = duel_in(tmp_path, emulator.save_state())
    load_game(str(path))
    assert not (tmp_path / "begin.state.converted").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "more", "says"),
    [
        (older("2.7.1"), "", "its format is 17, PyBoy's is .* or write `accept_older: true`"),
        (b"\xff" * 1_000, ", accept_older: true", "its format is 255, .*save the state again"),
        (b"\xff" * 1_000, "", "its format is 255"),
        (b"", ", accept_older: true", "the file is empty"),
        (older("2.7.1")[:9_000], ", accept_older: true", "PyBoy refused the state"),
        (older("2.7.1") + b"\0", ", accept_older: true", "saved with another cartridge"),
        (b"\x0b" + older("2.7.1")[1:], ", accept_older: true", "save"),
    ],
    ids=[
        "not accepted",
        "newer",
        "newer and not accepted",
        "empty",
        "cut",
        "longer",
        "mislabelled",
    ],
)
def test_a_state_that_cannot_be_converted_is_a_located_error(
    state: bytes, more: str, says: str, tmp_path: Path
) -> None:
    path = duel_in(tmp_path, state, more)
    with pytest.raises(GameFileError, match=rf"line \d+ .*start_states\.begin\.file: .*{says}"):
        load_game(str(path))
    assert not (tmp_path / "begin.state.converted").exists()


def test_a_script_has_no_format(tmp_path: Path) -> None:
    path = duel_in(tmp_path, b"")
    text = path.read_text(encoding="utf-8").replace("file: begin.state", "script: [{wait: 9}]")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GameFileError, match=r"start_states\.begin\.accept_older: .*remove it"):
        load_game(str(path))


def test_an_older_state_is_refused_where_it_is_not_accepted() -> None:
    game = load_game("duel")
    with (
        closing(pyboy_emulator.PyBoyEmulator(game.rom, colour=False)) as emulator,
        pytest.raises(EmulatorError, match="accept_older"),
    ):
        emulator.load_state(older("2.7.1"))
