"""What readers of docs/tutorials/your-own-game.md are asked to write is valid."""

import json
import re
from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.games.actions import frame_skip_problem
from game_rl.games.custom_reward import load_custom_reward
from game_rl.games.definition import load_game

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "your-own-game.md"
DUEL = ROOT / "game_rl" / "games" / "duel" / "duel.gb"


def blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def of_another_game() -> list[str]:
    return [block for block in blocks("yaml") if block.startswith("# of another game")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A game whose game.yaml is the page's pieces one after the other."""
    others = ("# configs", "# of another game")
    pieces = [block for block in blocks("yaml") if not block.startswith(others)]
    (tmp_path / "my_game.gb").write_bytes(DUEL.read_bytes())
    (tmp_path / "rewards.py").write_text(blocks("python")[0], encoding="utf-8")
    header = "title: My game\nrom: {path: my_game.gb}\n"
    (tmp_path / "game.yaml").write_text(header + "".join(pieces), encoding="utf-8")
    return tmp_path


def test_the_pieces_of_the_page_make_a_valid_game(folder: Path) -> None:
    game = load_game(str(folder / "game.yaml"))
    assert set(game.definition.rewards) == {"hit", "be_hit", "round", "victory"}
    recorded = json.loads(blocks("json")[0])
    assert set(recorded["actions"]) <= set(game.action_names)
    assert recorded["start_state"] in game.definition.start_states


def test_the_rewards_and_endings_of_another_game_are_valid(folder: Path) -> None:
    pieces = [block for block in of_another_game() if "\nactions:" not in block]
    names = ("map", "x", "y", "lives", "clock", "in_battle", "levels", "health", "party_size")
    names += ("health_fraction", "joy_ignore")
    places = "".join(f"  {name}: {{address: {0xC000 + n}}}\n" for n, name in enumerate(names))
    header = "title: Caves\nrom: {path: my_game.gb}\nstart_states: {a: {script: [{wait: 1}]}}\n"
    (folder / "other.yaml").write_text(
        f"{header}actions: {{idle: [], a: [a]}}\nvariables:\n{places}{''.join(pieces)}",
        encoding="utf-8",
    )
    definition = load_game(str(folder / "other.yaml")).definition
    assert set(definition.rewards) == {"explored", "stuck", "levels", "healing"}
    truncating = {name for name, ending in definition.endings.items() if ending.is_truncation}
    assert truncating == {"stuck", "dawdles"}
    assert definition.step is not None


def test_the_reward_class_of_the_page_pays_for_hits_in_quick_succession(folder: Path) -> None:
    reward = load_custom_reward("rewards:Combo", folder)
    reward.reset({"rival_health": 90})
    played = [80, 80, 70, *[70] * 20, 60, 50]
    earned = [reward.step({"rival_health": health}) for health in played]
    assert [at for at, found in enumerate(earned) if found != {"combo": 0.0}] == [2, 24]
    assert earned[2] == earned[24] == {"combo": 0.01}


def test_the_reward_class_of_another_game_takes_what_it_names(tmp_path: Path) -> None:
    (source,) = [block for block in blocks("python") if "# of another game" in block]
    (tmp_path / "rewards.py").write_text(source, encoding="utf-8")
    sources = {"memory": lambda: {0xD356: 0b101}, "action": lambda: "start", "screen": lambda: None}
    reward = load_custom_reward("rewards:Explorer", tmp_path, sources)
    here = {"map": 3, "x": 1, "y": 2, "health": 0}
    reward.reset(here)
    assert reward.step(here) == {"new": 0.01, "pause": -0.01, "badges": 2}
    assert reward.ends("endings", here) == {"lost": True}
    assert reward.ends("truncations", here) == {"stuck": False}
    for _ in range(599):
        assert reward.step(here)["new"] == 0
    assert reward.ends("truncations", here) == {"stuck": True}
    assert reward.renewed().save_state() == reward.save_state()


def test_the_actions_of_another_game_fit_into_its_timesteps(folder: Path) -> None:
    (piece,) = [block for block in of_another_game() if "\nactions:" in block]
    (frame_skip,) = map(int, re.findall(r"env\.frame_skip: (\d+)", piece))
    (folder / "other.yaml").write_text(
        "title: Menus\nrom: {path: my_game.gb}\nstart_states: {a: {script: [{wait: 1}]}}\n"
        f"variables: {{y: {{address: 0xC000}}}}\nrewards: {{up: {{variable: y, on: decrease}}}}\n"
        f"{piece}",
        encoding="utf-8",
    )
    actions = load_game(str(folder / "other.yaml")).definition.actions
    assert list(actions) == ["walk", "press_a", "next_item"]
    assert frame_skip_problem(actions, frame_skip) is None


def test_the_run_config_of_the_page_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "my_game.yaml"
    path.write_text(
        next(block for block in blocks("yaml") if block.startswith("# configs")), encoding="utf-8"
    )
    expected = tmp_path.parent / "my_game" / "game.yaml"
    assert Path(load_config(path).game).resolve() == expected.resolve()
