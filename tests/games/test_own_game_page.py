"""What readers of the pages on game files are asked to write is valid."""

import csv
import json
import re
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.games.actions import frame_skip_problem
from game_rl.games.custom_reward import load_custom_reward
from game_rl.games.definition import load_game

ROOT = Path(__file__).parents[2]
LESSON = ROOT / "docs" / "tutorials" / "your-own-game.md"
GUIDE = ROOT / "docs" / "how-to" / "game-file.md"
DUEL = ROOT / "game_rl" / "games" / "duel" / "duel.gb"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def of_another_game() -> list[str]:
    return [block for block in blocks(GUIDE, "yaml") if block.startswith("# of another game")]


# what new-game and find have written when the lesson's own sections are added
FOUND = """
title: My game
rom: {path: my_game.gb}
start_states:
  beginning:
    script:
      - {wait: 78}
      - {hold: [start], frames: 4}
      - {wait: 4}
      - {hold: [start], frames: 4}
      - {wait: 28}
actions: {idle: [], left: [left], right: [right], up: [up], down: [down], a: [a], b: [b]}
endings: {game_over: {variable: over, at_least: 1}}
"""
FOUND_VARIABLES = """
  over: {address: 0xC0C5}
  health: {address: 0xC0A5}
  rival_health: {address: 0xC0B5}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The game of the lesson at its end."""
    sections = "".join(block for block in blocks(LESSON, "yaml") if "moments:" not in block)
    (tmp_path / "my_game.gb").write_bytes(DUEL.read_bytes())
    (tmp_path / "rewards.py").write_text(blocks(GUIDE, "python")[0], encoding="utf-8")
    assert sections.count("variables:\n") == 1
    sections = sections.replace("variables:\n", f"variables:{FOUND_VARIABLES}")
    (tmp_path / "game.yaml").write_text(FOUND + sections, encoding="utf-8")
    return tmp_path


def test_the_pieces_of_the_lesson_make_a_valid_game(folder: Path) -> None:
    game = load_game(str(folder / "game.yaml"))
    assert set(game.definition.rewards) == {"hit", "be_hit", "victory"}
    assert game.definition.random_seed == "seed"
    assert game.definition.success is not None


@pytest.mark.slow
@pytest.mark.parametrize(("name", "address"), [("health", 0xC0A5), ("rival_health", 0xC0B5)])
def test_the_moments_of_the_lesson_lead_to_the_numbers(
    folder: Path, name: str, address: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (moments,) = [block for block in blocks(LESSON, "yaml") if "moments:" in block]
    (folder / "moments.yaml").write_text(moments, encoding="utf-8")
    file = str(folder / "moments.yaml")
    assert main(["find", str(folder), "--moments", file, "--name", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["places"][0]["address"] == address


def test_the_trace_of_the_guide_is_the_one_that_it_shows(tmp_path: Path) -> None:
    (nearly_won,) = [block for block in blocks(GUIDE, "yaml") if block.startswith("# of duel")]
    text = (DUEL.parent / "game.yaml").read_text(encoding="utf-8")
    text = text.replace("start_states:\n", f"start_states:\n{nearly_won}", 1)
    (tmp_path / "game.yaml").write_text(text, encoding="utf-8")
    for name in ("duel.gb", "duel.sym"):
        (tmp_path / name).write_bytes((DUEL.parent / name).read_bytes())
    recorded = tmp_path / "episode.json"
    trace = tmp_path / "trace.csv"
    recorded.write_text(blocks(GUIDE, "json")[0], encoding="utf-8")
    arguments = ["--recorded", str(recorded), "--trace", str(trace), "--timesteps", "20"]
    assert main(["check-game", str(tmp_path), *arguments]) == 0
    with trace.open(encoding="utf-8", newline="") as file:
        first = [row for row in csv.DictReader(file) if row["episode"] == "1"]
    played = {row["timestep"]: row for row in first}
    (shown,) = [block for block in blocks(GUIDE, "text") if block.startswith("timestep,")]
    header, dots, *rows = shown.splitlines()
    assert dots == "..."
    for row in rows:
        named = dict(zip(header.split(","), row.split(","), strict=True))
        assert named.items() <= played[named["timestep"]].items()


def test_the_rewards_and_endings_of_another_game_are_valid(folder: Path) -> None:
    pieces = [
        block
        for block in blocks(GUIDE, "yaml")
        if "\nactions:" not in block and not block.startswith("# of duel")
    ]
    names: tuple[str, ...] = ("map", "x", "y", "lives", "clock", "in_battle", "levels", "health")
    names += ("party_size", "health_fraction", "joy_ignore")
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
    (source,) = [block for block in blocks(GUIDE, "python") if "# of another game" in block]
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
