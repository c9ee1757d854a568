"""Trainings whose actions press and release within a timestep, and are sometimes repeated."""

import dataclasses
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.errors import UsageError
from game_rl.events import Resumed
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.lake.origin import read_origin
from game_rl.training.fork_parts import find_differences
from game_rl.training.train import resume, train
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import FILES, quiet

PRESSING = {
    "punch: [a]": "punch: {hold: [a], frames: 5}",
    "kick: [b]": "kick: [{hold: [b], frames: 2}, {wait: 1}, {hold: [down, b], frames: 3}]",
}


@pytest.fixture
def game(tmp_path: Path) -> Path:
    """The path of the tiny game with two actions that press and release."""
    text = TINY_GAME.read_text(encoding="utf-8")
    folder = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
    text = text.replace("../../game_rl/games/duel", str(folder))
    for old, new in PRESSING.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path = tmp_path / "game.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def settings(game: Path) -> tuple[str, ...]:
    return (
        f"game={game}",
        "checkpoints={every_timesteps: 32, keep_last: 20}",
        "env.sticky_actions=0.25",
        "lake={}",
    )


@pytest.mark.slow
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(
    make_config: MakeConfig, game: Path
) -> None:
    runs = {}
    for name, until in (("whole", None), ("cut", 96)):
        config = make_config(name, *settings(game))
        train(config, command(quiet(), until=until))
        runs[name] = RunDir(config.run_dir)
    whole, cut = runs["whole"], runs["cut"]
    resume(cut.root, command(quiet()))
    for timesteps in (128, 192):
        for name in FILES:
            ours, theirs = (run.checkpoint(timesteps) / name for run in (cut, whole))
            assert ours.exists() == theirs.exists()
            assert not ours.exists() or ours.read_bytes() == theirs.read_bytes()
    assert (cut.root / "eval.csv").read_bytes() == (whole.root / "eval.csv").read_bytes()
    envs = Checkpoint(whole.checkpoint(96)).play().envs
    assert envs is not None
    assert all(env.last_action is not None for env in envs)
    (event,) = (event for event in read_events(cut) if isinstance(event, Resumed))
    assert event.not_restored == event.changes == ()


@pytest.mark.slow
def test_a_lake_and_a_clip_and_a_fork_know_the_actions(
    make_config: MakeConfig, game: Path, tmp_path: Path
) -> None:
    config = make_config("run", *settings(game))
    train(config, command(quiet(), until=64))
    run_dir = RunDir(config.run_dir)
    origin = read_origin(run_dir.lake, run_dir.identity().id)
    assert origin is not None
    assert origin["env.sticky_actions"] == 0.25
    assert dict(origin["the game's actions"])["punch"] == {"hold": ["a"], "frames": 5}  # type: ignore[arg-type]
    clip = tmp_path / "clip.gif"
    assert main(["record", str(run_dir.root), "--episodes", "1", "--output", str(clip)]) == 0
    with Image.open(clip) as gif:
        shown = sum(frame.info["duration"] // 70 for frame in ImageSequence.Iterator(gif))
    assert shown == 25 * 2 + 15, "a picture every 4 frames, and a second of the last one"
    state = Checkpoint(run_dir.checkpoint(64)).state
    assert find_differences(state, config, load_game(str(game))).game == {}
    plain = load_game(str(TINY_GAME))
    other = dataclasses.replace(
        load_game(str(game)),
        definition=load_game(str(game)).definition.model_copy(
            update={"actions": plain.definition.actions}
        ),
    )
    with pytest.raises(UsageError, match=r"actions"):
        find_differences(state, config, other)


def test_a_training_whose_timesteps_are_too_short_is_refused(
    make_config: MakeConfig, game: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_config("run")
    config = str(tmp_path / "run.yaml")
    for arguments in (["preflight", config], ["train", config]):
        assert main([*arguments, f"game={game}", "env.frame_skip=4"]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "env.frame_skip is 4, and the action punch takes 6 frames" in told
        assert "write env.frame_skip=7, or shorten" in told
    assert not (tmp_path / "run").exists()
