import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from game_rl.config.strict_model import differences
from game_rl.errors import GameFileError
from game_rl.games.definition import bundled_games, load_game
from game_rl.games.parts.part_spec import unused_parts
from tests.games.example import (
    BAD_GAMES,
    BAD_REWARDS,
    ROM_BYTES,
    VALID_GAME,
    BadGame,
    write_game,
)


def test_a_valid_game_is_loaded_with_its_places(tmp_path: Path) -> None:
    game = load_game(str(write_game(tmp_path)))
    assert game.name == tmp_path.name
    assert game.rom.title == "TESTROM"
    assert game.action_names == ("idle", "left", "jump_right")
    places = {v.name: (v.address, v.bank, v.n_bytes) for v in game.variables}
    assert places == {
        "counter": (0xC000, None, 2),
        "lives": (0xC010, None, 1),
        "points": (0xC020, None, 3),
        "flag": (0xC030, None, 1),
        "saved": (0xA000, 2, 1),
        "seed": (0xC002, None, 1),
    }


@pytest.mark.parametrize("bad", BAD_GAMES, ids=lambda bad: bad.name)
def test_a_wrong_game_file_is_refused_with_cause_and_place(bad: BadGame, tmp_path: Path) -> None:
    path = bad.make(tmp_path)
    with pytest.raises(GameFileError) as caught:
        load_game(str(path))
    for part in (str(path), *bad.says):
        assert part in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("bad", BAD_REWARDS, ids=lambda bad: bad.name)
def test_a_wrong_reward_class_is_refused_when_it_is_needed(bad: BadGame, tmp_path: Path) -> None:
    game = load_game(str(bad.make(tmp_path)))
    with pytest.raises(GameFileError) as caught:
        game.custom_reward()
    for part in (f"the reward of {game.name}, in {tmp_path}: ", *bad.says):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "code",
    ["class A: ...", "from collections import Counter as A", "from os.path import *", "A = dict"],
)
def test_loading_a_game_runs_none_of_its_python(tmp_path: Path, code: str) -> None:
    sign = tmp_path / "it_ran"
    (tmp_path / "my_rewards.py").write_text(
        f"open({str(sign)!r}, 'w').close()\n{code}\n", encoding="utf-8"
    )
    game = load_game(str(write_game(tmp_path, VALID_GAME + "reward: my_rewards:A\n")))
    assert game.reward_source == str(tmp_path / "my_rewards.py")
    assert not sign.exists()
    with pytest.raises(GameFileError):  # none of these is a reward
        game.custom_reward()
    assert sign.exists()


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    text = VALID_GAME.replace("type: u16", "type: u12").replace("_seed,", "_sead,")
    text = text.replace("[up, right]", "[left]").replace(
        "variable: lives, on", "variable: life, on"
    )
    path = write_game(tmp_path, text)
    (tmp_path / "game.gb").unlink()
    with pytest.raises(GameFileError) as caught:
        load_game(str(path))
    for part in ("variables.counter.type", "same buttons", "rewards.dead.variable", "no ROM at"):
        assert part in str(caught.value)
    assert "rewards.counted" not in str(caught.value), "its variable exists, though it is wrong"


def test_a_sha256_is_not_needed_and_may_be_in_capitals(tmp_path: Path) -> None:
    sha256 = VALID_GAME.split("sha256: ")[1][:64]
    for text in (f", sha256: {sha256}", ""), (sha256, sha256.upper()):
        game = load_game(str(write_game(tmp_path, VALID_GAME.replace(*text))))
        assert game.rom.sha256 == sha256


def test_a_rom_without_a_path_is_found_by_its_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roms").mkdir()
    digests = {
        "sha256": hashlib.sha256(ROM_BYTES).hexdigest(),
        "sha1": hashlib.sha1(ROM_BYTES, usedforsecurity=False).hexdigest(),
    }
    named = load_game(str(write_game(tmp_path)))
    for name, digest in digests.items():
        path = write_game(
            tmp_path,
            VALID_GAME.replace(f"path: game.gb, sha256: {digests['sha256']}", f"{name}: {digest}"),
        )
        (tmp_path / "game.gb").rename(tmp_path / "roms" / "any name.gb")
        game = load_game(str(path))
        assert game.rom.path == Path("roms/any name.gb")
        assert game.rom.data == named.rom.data
        assert game.definition.rom.path is None


def test_a_folder_is_enough_and_paths_are_relative_to_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting").mkdir()
    write_game(tmp_path / "counting")
    monkeypatch.chdir(tmp_path)
    game = load_game("./counting")
    assert game == load_game("counting/game.yaml")
    assert game.name == "counting"


def test_bundled_games_are_loaded_by_name_and_intact() -> None:
    assert "duel" in bundled_games()
    for name in bundled_games():
        game = load_game(name)
        assert game.name == name
        assert game.definition.rom.sha256 == game.rom.sha256
        assert pickle.loads(pickle.dumps(game)) == game  # noqa: S301 - our own bytes


@pytest.mark.parametrize(("name", "says"), [("dual", "did you mean duel?"), ("x", "duel")])
def test_an_unknown_name_gets_a_guess_and_the_way_to_a_path(name: str, says: str) -> None:
    with pytest.raises(GameFileError, match="no bundled game") as caught:
        load_game(name)
    assert says in str(caught.value)
    assert f"./{name}/game.yaml" in str(caught.value)


_OLD_KEYS = {
    "": ("title", "rom", "symbols", "hardware", "random_seed", "start_states", "actions",
         "variables", "rewards", "endings", "success", "observation", "reward"),
    "rom": ("path", "sha256"),
    "variables": ("symbol", "address", "bank", "type", "endian", "bytes", "bit"),
    "endings": ("variable", "equals", "in", "at_most", "at_least"),
}  # fmt: skip
"""The keys that there were before variables could be computed."""


def _of_old_keys(entry: dict[str, Any], section: str) -> dict[str, Any]:
    return {key: entry[key] for key in _OLD_KEYS[section]}


def test_a_game_without_new_keys_is_dumped_as_earlier_versions_did(tmp_path: Path) -> None:
    without = sorted({*bundled_games()} - {"beacon"})  # which names its milestones
    for name in (*without, str(write_game(tmp_path))):
        dumped = load_game(name).definition.model_dump(mode="json", by_alias=True)
        old = _of_old_keys(dumped, "")
        old["rom"] = _of_old_keys(dumped["rom"], "rom")
        for section in ("variables", "endings"):
            old[section] = {n: _of_old_keys(e, section) for n, e in dumped[section].items()}
        old["success"] = _of_old_keys(dumped["success"], "endings")
        assert differences(old, dumped, *unused_parts((), old, dumped)) == {}
        for section in ("rewards", "endings", "success", "actions", "observation"):
            assert old[section] == dumped[section], "these are compared as a whole"
