"""The game of a run is found again after a move, and compared with what the run learned on."""

import json
import shutil
from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint_files import write_files
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.named import open_run, read_checkpoint_state
from game_rl.checkpoints.run_game import (
    changed_game_keys,
    check_playable,
    find_game,
    game_notes,
    moved_game,
    open_game,
)
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, GameFileError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from tests.tiny_run import TINY_GAME

DUEL = TINY_GAME.parents[2] / "game_rl" / "games" / "duel"


def make_game(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("duel.gb", "duel.sym"):
        shutil.copyfile(DUEL / name, folder / name)
    text = TINY_GAME.read_text(encoding="utf-8").replace("../../game_rl/games/duel/", "")
    (folder / "game.yaml").write_text(text, encoding="utf-8")
    return folder / "game.yaml"


def another_rom(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[0x7FFF] ^= 0xFF  # a byte that the header's checksum does not cover
    file.write_bytes(content)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a project with a game and a run of it, as far as its game is looked for."""
    root = tmp_path / "old"
    game_file = make_game(root / "game")
    run_dir, game = RunDir(root / "runs" / "mine"), load_game(str(game_file))
    run_dir.root.mkdir(parents=True)
    values = {"game": str(game_file), "total_timesteps": 1_000, "run_dir": "runs/mine"}
    values |= {"evaluation": {"every_timesteps": 1_000}, "checkpoints": {"every_timesteps": 1_000}}
    values |= {"env": {"n_envs": 2}, "algorithm": {"n_steps": 128}}
    config = RunConfig.model_validate(values)
    run_dir.config.write_text(dump_config(config), encoding="utf-8")
    state = CheckpointState(
        num_timesteps=100,
        n_updates=1,
        schedule_timesteps=1_000,
        best=None,
        evaluation_due=False,
        rom_sha256=game.rom.sha256,
        config=config.model_dump(mode="json"),
        game=game.definition.model_dump(mode="json", by_alias=True),
        versions={},
        computing={},
    )
    run_dir.checkpoints.mkdir()
    content = (state.model_dump_json().encode(),)
    write_files(run_dir.checkpoint(100), [("state.json", content)])
    return root


def found(root: Path) -> Path:
    return Path(find_game(*open_run(root)))


def test_a_project_that_was_moved_has_its_game_again(project: Path, tmp_path: Path) -> None:
    assert found(project / "runs" / "mine") == project / "game" / "game.yaml"
    assert moved_game(RunDir(project / "runs" / "mine"), []) == []
    new = project.rename(tmp_path / "elsewhere")
    run, game = new / "runs" / "mine", new / "game" / "game.yaml"
    assert found(run) == game
    assert check_playable(run, "latest").folder == game.parent
    assert moved_game(RunDir(run), []) == [f"game={json.dumps(str(game))}"]
    assert moved_game(RunDir(run), ["game=duel"]) == []
    run_dir, config = open_run(run)
    state = read_checkpoint_state(run_dir.checkpoint(100))
    (note,) = game_notes(run_dir, config, state, open_game(run_dir, config), None)
    assert str(project / "game" / "game.yaml") in note
    assert str(game) in note


def test_a_run_without_a_checkpoint_finds_its_game_where_it_was_relative_to_it(
    tmp_path: Path,
) -> None:
    game = make_game(tmp_path / "a" / "games" / "tiny")
    run = tmp_path / "a" / "runs" / "mine"
    run.mkdir(parents=True)
    config = RunConfig.model_validate({
        "game": str(game), "total_timesteps": 1_000, "run_dir": str(run),
        "evaluation": {"every_timesteps": 1_000}, "checkpoints": {"every_timesteps": 1_000},
        "env": {"n_envs": 2}, "algorithm": {"n_steps": 128},
    })  # fmt: skip
    RunDir(run).config.write_text(dump_config(config), encoding="utf-8")
    (tmp_path / "a").rename(tmp_path / "b")
    assert found(tmp_path / "b" / "runs" / "mine") == tmp_path / "b" / "games/tiny/game.yaml"


def test_a_run_that_was_moved_alone_finds_the_game_of_the_current_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = (project / "runs" / "mine").rename(tmp_path / "alone")
    assert found(run) == project / "game" / "game.yaml"  # which is where it was
    new = project.rename(tmp_path / "project")
    monkeypatch.chdir(new)
    assert found(run) == new / "game" / "game.yaml"
    (new / "game" / "game.yaml").rename(new / "game" / "other.yaml")
    with pytest.raises(GameFileError, match=r"is gone.*--game FILE"):
        found(run)
    assert check_playable(run, "latest", str(new / "game" / "other.yaml")).name == "other"


def test_a_game_with_another_rom_is_not_taken_for_the_run_s(project: Path, tmp_path: Path) -> None:
    another_rom(project / "game" / "duel.gb")
    with pytest.raises(CheckpointError, match="was trained on a ROM with sha256"):
        check_playable(project / "runs" / "mine", "latest")
    new = project.rename(tmp_path / "new")
    learned = read_checkpoint_state(RunDir(new / "runs" / "mine").checkpoint(100)).rom_sha256
    with pytest.raises(GameFileError) as refused:
        found(new / "runs" / "mine")
    assert learned[:12] in str(refused.value)
    assert f"{new / 'game' / 'game.yaml'} has the ROM" in str(refused.value)


def test_the_file_with_the_definition_of_then_goes_before_one_with_the_same_rom(
    project: Path, tmp_path: Path
) -> None:
    new = project.rename(tmp_path / "new")
    game = new / "game" / "game.yaml"
    text = game.read_text(encoding="utf-8")
    game.write_text(text.replace("title: Tiny", "title: Changed"), encoding="utf-8")
    assert found(new / "runs" / "mine") == game
    as_then = make_game(tmp_path / "new" / "copy")
    assert found(new / "runs" / "mine") == as_then


def test_keys_that_have_changed_since_the_training_are_named(project: Path) -> None:
    run, game = project / "runs" / "mine", project / "game" / "game.yaml"
    text = game.read_text(encoding="utf-8")
    game.write_text(text.replace("{wait: 90}", "{wait: 91}", 1), encoding="utf-8")
    run_dir, config = open_run(run)
    state = read_checkpoint_state(run_dir.checkpoint(100))
    (note,) = game_notes(run_dir, config, state, open_game(run_dir, config), None)
    item = "game.yaml's start_states.level_1.script, item 1: {wait: 90} -> {wait: 91}"
    assert note == f"changed since the training: {item}"
    script = ", ".join(["{hold: [b], frames: 1}", "{wait: 1}"] * 20)
    longer = text.replace("kick: [b]", f"kick: [{script}]")
    game.write_text(longer.replace("{wait: 90}", "{wait: 91}", 1), encoding="utf-8")
    first, action = changed_game_keys(state.game, load_game(str(game)), ())
    assert first == item
    assert action == f"game.yaml's actions.kick: [b] -> {f'[{script}]'[:79]}…"
    game.write_text(text.replace("{wait: 90}", "{wait: 89}, {wait: 1}", 1), encoding="utf-8")
    (script,) = changed_game_keys(state.game, load_game(str(game)), ())
    key, _, values = script.partition(": ")
    before, _, now = values.partition(" -> ")
    assert key == "game.yaml's start_states.level_1.script"
    assert before.startswith("[{wait: 90}, {hold: [start], frames: 4}")
    assert now.startswith("[{wait: 89}, {wait: 1}, {hold: [start], frames: 4}")
    game.write_text(text, encoding="utf-8")
    of_an_older_version = {key: value for key, value in state.game.items() if key != "step"}
    assert changed_game_keys(of_an_older_version, load_game(str(game)), ()) == []


def test_only_changes_of_what_an_agent_sees_does_or_earns_are_named(project: Path) -> None:
    run, game = project / "runs" / "mine", project / "game" / "game.yaml"
    text = game.read_text(encoding="utf-8")
    shown = """
place: [level, player_x, player_height]
place_names: {1: ring}
place_screen: {}
milestones: [player_rounds]
cell: [level]
prefer: [player_health]
parts:
  health: {vector: [player_health]}
"""
    game.write_text(text.replace("title: Tiny", "title: Changed") + shown, encoding="utf-8")
    run_dir, config = open_run(run)
    state = read_checkpoint_state(run_dir.checkpoint(100))
    assert game_notes(run_dir, config, state, open_game(run_dir, config), None) == []
    changed = changed_game_keys(state.game, load_game(str(game)), ["health"])
    assert "game.yaml's parts.health.vector: none -> [player_health]" in changed
    assert all(text.startswith(("game.yaml's parts.health", "1")) for text in changed)
    stuck = "endings:\n  stuck: {same_place_for: 100}"
    game.write_text(text.replace("endings:", stuck) + shown, encoding="utf-8")
    changed = changed_game_keys(state.game, load_game(str(game)), ())
    assert "game.yaml's place: none -> [level, player_x, player_height]" in changed
    assert any(text.startswith("game.yaml's endings.stuck") for text in changed)
