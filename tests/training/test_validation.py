"""A game in which walking right is all that counts, and players who always walk one way."""

import json
import shutil
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from game_rl.callbacks.evaluation import EvaluationInterrupted
from game_rl.checkpoints.checkpoint_files import read_manifest, write_files
from game_rl.checkpoints.model_state import dump_tensors, parse_tensors
from game_rl.cli.main import main
from game_rl.cli.run_console import RunConsole
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted
from game_rl.event_log import EventLog
from game_rl.events import Event, Validated
from game_rl.playback.teacher_copy import read_validation
from game_rl.playback.trained_run import open_trained_run, survey
from game_rl.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from game_rl.training.teacher_extension import validate_teacher
from game_rl.training.train import evaluate_best, train
from tests.tiny_run import SMALL_WINDOW, TINY, command

DUEL = Path(__file__).parents[2] / "game_rl" / "games" / "duel"
LEFT, RIGHT = 1, 2
SHORT = ["env.max_episode_timesteps=6", "recording.episodes=0"]
WALK = "rewards:\n  walked: {variable: player_x, on: increase, weight: 0.1}\n\nendings:"


def walking_game(folder: Path) -> Path:
    folder.mkdir()
    for path in DUEL.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    file = folder / "game.yaml"
    before, _, rest = file.read_text(encoding="utf-8").partition("rewards:")
    text = before + WALK + rest.partition("endings:")[2]
    file.write_text(f"{text}\n{SMALL_WINDOW}\n", encoding="utf-8")
    return file


def config_at(run_dir: Path, game: Path, *overrides: str) -> RunConfig:
    path = run_dir.with_suffix(".yaml")
    path.write_text(TINY.format(run_dir=run_dir), encoding="utf-8")
    return load_config(path, [f"game={game}", *SHORT, *overrides])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a student with an evaluation behind it, and of its teacher."""
    folder, quiet = tmp_path_factory.mktemp("runs"), Console(file=StringIO())
    game = walking_game(folder / "game")
    pqn = "algorithm={name: pqn, n_steps: 16, batch_size: 16}"
    train(config_at(folder / "pqn", game, pqn), command(quiet, until=64))
    dqn = (
        "algorithm={name: dqn, replay: {capacity: 150}, learning_starts: 40, "
        f"teacher: {{run: {folder / 'pqn'}, temperature: 0.1}}}}"
    )
    train(config_at(folder / "dqn", game, dqn), command(quiet, until=64))
    return folder


@pytest.fixture
def student(runs: Path, tmp_path: Path) -> RunConfig:
    shutil.copytree(runs / "dqn", tmp_path / "dqn")
    config = load_config(tmp_path / "dqn" / "config.yaml", is_saved=True)
    return config.model_copy(update={"run_dir": tmp_path / "dqn"})


def let_walk(checkpoint: Path, action: int) -> None:
    """Write the checkpoint anew with a network that likes one action, whatever it sees."""
    files = {name: (checkpoint / name).read_bytes() for name in read_manifest(checkpoint).files}
    tensors = dict(parse_tensors(files["policy.safetensors"], "policy"))
    for name, tensor in tensors.items():
        tensors[name] = torch.zeros_like(tensor)
    tensors["q_net.q_net.0.bias"][action] = 1.0
    files["policy.safetensors"] = b"".join(map(bytes, dump_tensors(tensors)))
    shutil.rmtree(checkpoint)
    write_files(checkpoint, [(name, (content,)) for name, content in files.items()])


def walking(config: RunConfig, *, student: int, teacher: int) -> RunDir:
    run_dir = RunDir(config.run_dir)
    let_walk(run_dir.checkpoint(64), student)
    let_walk(run_dir.teacher / "checkpoint", teacher)
    return run_dir


@pytest.mark.parametrize(
    ("own", "taught", "best"),
    [
        (LEFT, RIGHT, "teacher"),
        pytest.param(RIGHT, LEFT, "student", marks=pytest.mark.slow),
        pytest.param(RIGHT, RIGHT, "teacher", marks=pytest.mark.slow),
    ],
)
def test_the_better_of_the_two_is_the_runs_best_and_a_tie_goes_to_the_teacher(
    own: int, taught: int, best: str, student: RunConfig
) -> None:
    run_dir, found = walking(student, student=own, teacher=taught), list[Event]()
    console = Console(file=StringIO(), width=300)
    events = EventLog(listeners=[found.append, RunConsole(console)])
    final = evaluate_best(run_dir, student, events, StopRequest())
    (validated,) = (event for event in found if isinstance(event, Validated))
    assert (validated.best, validated.episodes) == (best, 200)
    assert (validated.student_mean_reward > 1) == (own == RIGHT)
    assert (validated.teacher_mean_reward > 1) == (taught == RIGHT)
    assert f"the best is the {best}" in console.file.getvalue()  # type: ignore[attr-defined]
    chosen = open_trained_run(run_dir.root, "best")
    assert chosen.is_teacher == (best == "teacher")
    assert final.policy_name == chosen.name
    assert final.evaluation.mean_reward > 1  # it walks right
    assert not open_trained_run(run_dir.root, "latest").is_teacher
    marks = [(finding.is_best, finding.teacher_is_better) for finding in survey(run_dir)]
    assert marks == [(True, best == "teacher")]


@pytest.mark.slow
def test_it_is_decided_once_and_anew_where_the_run_has_gone_on(student: RunConfig) -> None:
    run_dir, found = walking(student, student=LEFT, teacher=RIGHT), list[Event]()
    events = EventLog(listeners=[found.append])
    for _ in range(2):
        validate_teacher(run_dir, student, events, StopRequest())
    assert len(found) == 1
    assert read_validation(run_dir, at_timesteps=64, best=64) is not None
    assert read_validation(run_dir, at_timesteps=128, best=64) is None
    assert read_validation(run_dir, at_timesteps=64, best=32) is None


@pytest.mark.slow
def test_the_table_of_checkpoints_says_that_the_best_is_the_teacher(
    student: RunConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = walking(student, student=LEFT, teacher=RIGHT)
    said = []
    for _ in range(2):
        assert main(["checkpoints", str(run_dir.root), "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        said.append((row["is_best"], row["teacher_is_better"]))
        validate_teacher(run_dir, student, EventLog(), StopRequest())
    assert said == [(True, False), (True, True)]
    assert main(["checkpoints", str(run_dir.root)]) == 0
    assert "its teacher was as good or better" in " ".join(capsys.readouterr().out.split())


def test_a_stop_leaves_it_undecided(student: RunConfig) -> None:
    run_dir, stop = RunDir(student.run_dir), StopRequest()
    stop.ask(Interrupted("SIGTERM"))
    with pytest.raises(EvaluationInterrupted):
        validate_teacher(run_dir, student, EventLog(), stop)
    assert not run_dir.validation.exists()
    assert not open_trained_run(run_dir.root, "best").is_teacher


def test_a_run_that_does_not_want_it_keeps_its_own_best(student: RunConfig) -> None:
    assert student.algorithm.name == "dqn"
    assert student.algorithm.teacher is not None
    teacher = student.algorithm.teacher.model_copy(update={"keep_if_better": False})
    algorithm = student.algorithm.model_copy(update={"teacher": teacher})
    run_dir = walking(student, student=LEFT, teacher=RIGHT)
    config = student.model_copy(update={"algorithm": algorithm})
    validate_teacher(run_dir, config, EventLog(), StopRequest())
    assert not run_dir.validation.exists()
