"""Trainings that learn from played episodes: imitated, exact over resumes, forked, moved."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.errors import UsageError
from game_rl.events import Cloned, EpisodesReplayed, Evaluated
from game_rl.events.event_log import read_events
from game_rl.files.run_dir import RunDir
from game_rl.training.train import resume, train
from tests.played.recorded import as_presses, changed, record
from tests.tiny_run import MakeConfig, command, train_once
from tests.training.forks import fork_of, generators, learned, quiet, told

KINDS = {
    "ppo": "{n_steps: 16, batch_size: 16, n_epochs: 1, learn_from: SECTION}",
    "dqn": "{name: dqn, replay: {capacity: 60}, learning_starts: 40, batch_size: 16, n_step: 2, "
    "layer_norm: channels, learn_from: SECTION}",
    "pqn": "{name: pqn, n_steps: 16, batch_size: 16, learn_from: SECTION}",
}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played") / "mine"
    record(folder, 3)
    return folder


def settings(kind: str, mine: Path, **keys: object) -> tuple[str, ...]:
    section = {"played": {"episodes": f"{mine}/*.json", "clone": {"n_epochs": 2}, **keys}}
    more = ["checkpoints.save_replay_buffer=true"] if kind == "dqn" else []
    return (
        f"algorithm={KINDS[kind].replace('SECTION', json.dumps(section))}",
        "total_timesteps=128",
        "checkpoints.every_timesteps=32",
        "checkpoints.keep_last=20",
        *more,
    )


def events_of(run_dir: RunDir) -> Sequence[object]:
    return list(read_events(run_dir))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo", "dqn", "pqn"])
def test_a_run_that_was_stopped_and_moved_is_the_run_that_was_not(
    make_config: MakeConfig, mine: Path, kind: str, tmp_path: Path
) -> None:
    whole = train_once(make_config("whole", *settings(kind, mine)))
    own = tmp_path / "own"
    shutil.copytree(mine, own)
    config = make_config("stopped", *settings(kind, own))
    for until in (0, 64):
        train(config, command(quiet(), until=until)) if not until else resume(
            config.run_dir, command(quiet(), until=until)
        )
    shutil.rmtree(own)  # the run has its copies
    moved = config.run_dir.with_name("moved")
    config.run_dir.rename(moved)
    resume(moved, command(quiet()))
    run_dir = RunDir(moved)
    for at in (0, 64, 96, 128):
        assert learned(run_dir, at) == learned(whole, at)
        assert generators(run_dir, at) == generators(whole, at)
    state = Checkpoint(run_dir.checkpoint(128)).play().algorithm
    played = state["played"]
    assert isinstance(played, dict)
    assert "rng" in played


def test_what_was_imitated_is_told_and_evaluated_before_the_first_timestep(
    make_config: MakeConfig, mine: Path
) -> None:
    run_dir = train_once(make_config("whole", *settings("ppo", mine)))
    events = events_of(run_dir)
    (replayed,) = (each for each in events if isinstance(each, EpisodesReplayed))
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(mine.glob("*.json"))]
    assert replayed.episodes == 3
    assert replayed.timesteps_played == sum(len(file["actions"]) for file in files)
    assert replayed.mean_reward == pytest.approx(np.mean([file["reward"] for file in files]))
    (cloned,) = (each for each in events if isinstance(each, Cloned))
    assert cloned.epochs == 2
    assert 0 < cloned.held_out < replayed.timesteps_played / 5
    first = next(each for each in events if isinstance(each, Evaluated))
    assert (first.timesteps, first.is_best) == (0, True)
    curves = (run_dir.tensorboard.glob("events.out.tfevents.*"), b"clone/held_out_accuracy")
    assert any(curves[1] in path.read_bytes() for path in curves[0])


@pytest.mark.slow
def test_a_fork_learns_from_its_parents_episodes(
    make_config: MakeConfig, mine: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    shutil.copytree(mine, own)
    config = make_config("parent", *settings("ppo", own))
    train(config, command(quiet(), until=64))
    shutil.rmtree(own)
    parent = RunDir(config.run_dir)
    fork = fork_of(parent, 64, "fork")
    train(fork, command(quiet()))
    made = RunDir(fork.run_dir)
    names = sorted(path.name for path in parent.played.iterdir())
    assert sorted(path.name for path in made.played.iterdir()) == names
    resume(parent.root, command(quiet()))
    assert learned(made, 128) == learned(parent, 128)
    without = fork_of(parent, 64, "without", algorithm__learn_from=None)
    train(without, command(quiet()))
    assert not RunDir(without.run_dir).played.exists()


def test_a_play_that_is_not_as_recorded_is_a_mistake(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    (file,) = record(tmp_path / "mine", 1, most=5)
    faults: dict[str, dict[str, Any]] = {
        r"it earns \S+, and earned 17": {"reward": 17.0},
        "it ends in no success": {"success": True, "reward": None},
    }
    for fault, keys in faults.items():
        changed(file, **keys)
        config = make_config("run", *settings("ppo", file.parent))
        with pytest.raises(UsageError, match=f"does not replay as it was recorded: {fault}"):
            train(config, command(quiet()))


@pytest.mark.slow
def test_a_resume_cannot_change_what_came_before(make_config: MakeConfig, mine: Path) -> None:
    config = make_config("run", *settings("ppo", mine))
    train(config, command(quiet(), until=32))
    played = "algorithm.learn_from.played"
    for change in (
        f"{played}.episodes=other",
        f"{played}.clone.n_epochs=3",
        f"{played}.clone=null",
    ):
        with pytest.raises(UsageError, match="cannot change"):
            resume(config.run_dir, command(quiet()), overrides=[change])
    console = quiet()
    resume(config.run_dir, command(console, until=64), overrides=[f"{played}.imitate.weight=0.1"])
    assert "imitate.weight: 0.5 -> 0.1" in told(console)


def test_buttons_of_frames_are_played_as_they_were_held(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    for path in record(tmp_path / "mine", 2, most=12):
        as_presses(path, late_frames=3)
    config = make_config("run", *settings("ppo", tmp_path / "mine"))
    train(config, command(quiet(), until=32))
    found = [
        each for each in events_of(RunDir(config.run_dir)) if isinstance(each, EpisodesReplayed)
    ]
    assert [each.timesteps_played for each in found] == [2 * 13]
