"""Files of a play: none is overwritten, and other parts of game_rl read them."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_game_env
from game_rl.errors import UsageError
from game_rl.games.definition import load_game
from game_rl.play.play_files import PlayFiles, free_recording, known_facts
from tests.viewer.played_table import duel_table


def own_duel(folder: Path) -> Path:
    """Copy the game into a folder, as one of the user's."""
    source = load_game("duel").folder
    folder.mkdir()
    for name in ("duel.gb", "duel.sym", "game.yaml"):
        (folder / name).write_bytes((source / name).read_bytes())
    return folder / "game.yaml"


def test_a_kept_moment_is_a_start_state_of_the_game_file(tmp_path: Path) -> None:
    path = own_duel(tmp_path / "mine")
    with duel_table(tmp_path) as table:
        files = PlayFiles(tmp_path / "one.json", game=load_game(str(path)), game_file=path)
        for _ in range(50):
            table.session.play(["right"])
        kept = files.keep_start_state(table.session, "near")
        assert kept.path == path.with_name("near.state")
        again = files.keep_start_state(table.session)
        assert again.lines == ("kept_1: {file: kept_1.state}",)
        shown = table.session.screen.copy()
        for name in ("near", "level_1"):
            with pytest.raises(UsageError, match=f"there is a start state {name} already"):
                files.keep_start_state(table.session, name)
        for name in ("a/b", "../x", "3", "x" * 41):
            with pytest.raises(UsageError, match="not a name for a start state"):
                files.keep_start_state(table.session, name)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("start_states:\n", f"start_states:\n  {kept.lines[0]}\n"), "utf-8")
    config = EnvConfig(start_states=("near",), max_episode_timesteps=10, max_idle_frames=0)
    with closing(make_game_env(config, load_game(str(path)))) as env:
        env.reset(seed=0)
        np.testing.assert_array_equal(env.render(), shown)


def test_moments_are_added_to_one_file_with_what_is_known(tmp_path: Path) -> None:
    with duel_table(tmp_path) as table:
        told = table.files.mark(table.session, "health: 64, timer: decreased")
        table.files.mark(table.session)
        with pytest.raises(UsageError, match="health: 3"):
            table.files.mark(table.session, "health 3")
        found = yaml.safe_load(table.files.moments.read_text(encoding="utf-8"))
    assert "health: 64, timer: decreased" in told
    assert found == {
        "moments": [
            {"at": {"state": "duel_moment_1.state"}, "known": {"health": 64, "timer": "decreased"}},
            {"at": {"state": "duel_moment_2.state"}, "known": {}},
        ]
    }
    assert (tmp_path / "duel_moment_2.state").stat().st_size > 1_000


def test_what_is_known_is_a_name_and_a_fact() -> None:
    assert known_facts("") == {}
    assert known_facts(" lives:2 ,x: same as 1,") == {"lives": 2, "x": "same as 1"}
    for text in ("lives", ": 3", "a b: 3", "lives:", "3: 3"):
        with pytest.raises(UsageError, match="does not say what is known"):
            known_facts(text)


def test_no_recording_is_overwritten(tmp_path: Path) -> None:
    first = free_recording(tmp_path / "played", "duel")
    assert first == tmp_path / "played" / "duel_1.json"
    files = PlayFiles(first, game=None, game_file=None)
    files.write(json.dumps({"start_state": "a"}))
    files.next_episode()
    assert files.recording == first.with_name("duel_1_2.json")
    files.next_episode()  # nothing was written to it
    assert files.recording == first.with_name("duel_1_2.json")
    with pytest.raises(UsageError, match="never overwritten"):
        PlayFiles(first, game=None, game_file=None)
    assert free_recording(tmp_path / "played", "duel").name == "duel_2.json"
