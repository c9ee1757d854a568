"""Trainings whose start states set variables and have weights, and whose episode limit grows."""

import json
import zlib
from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.events import Begun, Resumed
from game_rl.events.event_log import read_events
from game_rl.events.run_view import read_view
from game_rl.experiments.compare.compared_folders import changed_games
from game_rl.files.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import FILES, quiet

OLDER_STATE = Path(__file__).parents[1] / "emulator" / "older_states" / "duel_pyboy_2.7.1.z"
CHANGES = (
    "start state level_1: fight_timer starts as 60, player_health is held at 9",
    "start state older: opponent_health is held at 30",
)


@pytest.fixture
def game(tmp_path: Path) -> Path:
    """The path of the tiny game with start states that change it."""
    text = TINY_GAME.read_text(encoding="utf-8")
    folder = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
    text = text.replace("../../game_rl/games/duel", str(folder))
    text = text.replace(
        "start_states:\n  level_1:\n",
        "start_states:\n"
        "  older: {file: a.state, accept_older: true, hold_values: {opponent_health: 30}}\n"
        "  level_1:\n    write: {fight_timer: 60}\n    hold_values: {player_health: 9}\n",
    )
    (tmp_path / "a.state").write_bytes(zlib.decompress(OLDER_STATE.read_bytes()))
    path = tmp_path / "game.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def settings(game: Path) -> tuple[str, ...]:
    return (
        f"game={game}",
        "checkpoints={every_timesteps: 32, keep_last: 20}",
        "env.start_states={level_1: 1, older: 2}",
        "env.max_episode_timesteps={start: 15, add: 2, per: player_x, most: 60}",
    )


def saved(run_dir: RunDir, timesteps: int) -> dict[str, bytes]:
    path = run_dir.checkpoint(timesteps)
    return {name: (path / name).read_bytes() for name in FILES if (path / name).exists()}


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
        assert saved(cut, timesteps) == saved(whole, timesteps)
    assert (cut.root / "eval.csv").read_bytes() == (whole.root / "eval.csv").read_bytes()
    envs = Checkpoint(whole.checkpoint(96)).play().envs
    assert envs is not None
    assert all(env.trackers["limit_from"] is not None for env in envs)
    (event,) = (event for event in read_events(cut) if isinstance(event, Resumed))
    assert event.not_restored == event.changes == ()
    assert event.game_changes == CHANGES


@pytest.mark.slow
def test_every_report_names_what_is_changed_in_the_game(
    make_config: MakeConfig, game: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config("run", *settings(game))
    train(config, command(quiet()))
    run_dir = RunDir(config.run_dir)
    (begun,) = (event for event in read_events(run_dir) if isinstance(event, Begun))
    assert begun.game_changes == CHANGES
    assert read_view(run_dir).game_changes == CHANGES
    assert changed_games(run_dir.root) == CHANGES
    run = str(run_dir.root)
    for arguments in (
        ["status", run],
        ["evaluate", run, "--episodes", "1"],
        ["record", run, "--episodes", "1", "--output", f"{run}/a.gif"],
        ["compare", run],
        ["check-game", str(game), "--timesteps", "20"],
    ):
        assert main(arguments) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert all(change in told for change in CHANGES), arguments
    assert main(["evaluate", run, "--episodes", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["game_changes"] == list(CHANGES)
    assert main(["evaluate", run, "--episodes", "1", "--start-states", "level_2"]) == 0
    assert "the game is changed" not in capsys.readouterr().out
