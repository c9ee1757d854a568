"""`game-rl evaluate` from start states that the user names."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.errors import CheckpointError
from game_rl.files.durable_files import remove_directory
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.playback.recording import record_run
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.system.stop_request import StopRequest
from game_rl.training.extension import evaluation_seed
from game_rl.training.train import TrainCommand, train
from game_rl.vec_env.make_vec_env import make_vec_env
from tests.tiny_run import TINY, train_once


@pytest.fixture(scope="module")
def run_of_level_1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("levels")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    changes = ["game=duel", "env.start_states=[level_1]", "recording.episodes=0"]
    return train_once(load_config(config, changes)).root


@pytest.mark.slow
def test_each_named_start_state_is_played_whether_trained_on_or_not(
    run_of_level_1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_trained_run(run_of_level_1, "latest")
    command = ["evaluate", str(run_of_level_1), "--checkpoint", "latest", "--episodes", "3"]
    assert main([*command, "--json"]) == 0
    trained_on = json.loads(capsys.readouterr().out)
    assert main([*command, "--json", "--start-states", "level_1", "level_3"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["level_1", "level_3"]
    assert report["level_1"] == trained_on
    played = evaluate_run(run, episodes=3, start_state="level_3").to_json()
    assert report["level_3"] == played | {"policy_timesteps": 192, "policy_frames": 192 * 8}
    assert report["level_3"] != report["level_1"]


def test_the_final_evaluation_plays_other_games_than_those_that_select(
    run_of_level_1: Path,
) -> None:
    run = open_trained_run(run_of_level_1, "latest")
    selecting = evaluate_run(run, episodes=2, seed=evaluation_seed(run.config))
    final = evaluate_run(run, episodes=2)
    assert (final.rewards, final.lengths) != (selecting.rewards, selecting.lengths)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dqn", "pqn"])
def test_what_a_q_network_expects_is_compared_with_what_it_gets(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    algorithm = {
        "dqn": "{name: dqn, replay: {capacity: 60}, learning_starts: 40, gamma: 0.9}",
        "pqn": "{name: pqn, n_steps: 16, batch_size: 16, gamma: 0.9}",
    }
    config = load_config(path, [f"algorithm={algorithm[name]}", "recording.episodes=0"])
    train(config, TrainCommand(stop=StopRequest(), until=64))
    run = open_trained_run(tmp_path / "run", "latest")
    found = evaluate_run(run, episodes=1, seed=7)
    with closing(make_vec_env(run.config.env, run.game, n_envs=1, seed=7)) as vec_env:
        vec_env.seed(7)
        observation: Any = vec_env.reset()
        rewards = []
        over = False
        policy = run.policy(vec_env.observation_space, vec_env.action_space)
        expected = policy.q_net(torch.as_tensor(observation)).max().item()
        while not over:
            observation, reward, done, _ = vec_env.step(policy.predict(observation, None)[0])
            rewards.append(float(reward[0]))
            over = bool(done[0])
    got = sum(0.9**t * reward for t, reward in enumerate(rewards))
    assert found.q_minus_return == pytest.approx(expected - got, abs=1e-4)


def test_an_unknown_start_state_is_named_before_anything_is_played(
    run_of_level_1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", str(run_of_level_1), "--start-states", "level_1", "level_9"]
    assert main([*command, "--checkpoint", "latest"]) == 2
    error = capsys.readouterr().err
    assert "duel has no start state level_9; did you mean level_" in error


def test_evaluate_can_take_the_likeliest_actions_or_draw_them(
    run_of_level_1: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = open_trained_run(run_of_level_1, "latest")
    command = ["evaluate", str(run_of_level_1), "--checkpoint", "latest", "--episodes", "2"]
    for option, way in (("--deterministic", True), ("--no-deterministic", False)):
        assert main([*command, "--json", option]) == 0
        report = json.loads(capsys.readouterr().out)
        played = evaluate_run(replace(run, deterministic=way), episodes=2).to_json()
        assert report == played | run.policy_facts()
        assert report["deterministic"] is way
    assert main(["evaluate", str(run_of_level_1), "--policy", "random", "--deterministic"]) == 2
    assert "leave out --deterministic" in capsys.readouterr().err


@pytest.fixture(scope="module")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """Whose evaluations draw actions."""
    folder = tmp_path_factory.mktemp("drawn")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    changes = ["evaluation.deterministic=false", "recording.episodes=0"]
    return train_once(load_config(config, changes))


def set_way(run_dir: RunDir, way: str) -> None:
    before = run_dir.config.read_text(encoding="utf-8").splitlines()
    after = [f"  deterministic: {way}" if "deterministic:" in line else line for line in before]
    run_dir.config.write_text("\n".join(after) + "\n", encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "best_draws", "others_draw"),
    [("true", True, False), ("false", True, True), ("auto", True, True)],
)
def test_the_best_acts_as_it_was_chosen_and_others_as_the_config_says(
    drawn_run: RunDir, config: str, best_draws: bool, others_draw: bool
) -> None:
    set_way(drawn_run, config)
    saved = [int(path.name) for path in drawn_run.checkpoints_newest_first()]
    best = Checkpoint(drawn_run.checkpoint(saved[0])).state.best
    assert best is not None
    assert not best.deterministic
    others = [str(timesteps) for timesteps in saved if timesteps != best.timesteps]
    for name in ("best", str(best.timesteps)):
        assert open_trained_run(drawn_run.root, name).deterministic is not best_draws
    for name in others:
        assert open_trained_run(drawn_run.root, name).deterministic is not others_draw


def test_a_best_that_draws_is_played_and_recorded_so_and_twice_the_same(
    drawn_run: RunDir, tmp_path: Path
) -> None:
    best = open_trained_run(drawn_run.root, "best")
    played = evaluate_run(best, episodes=2)
    assert not played.deterministic
    assert evaluate_run(best, episodes=2) == played
    clips = [
        record_run(best, episodes=1, output=tmp_path / f"{n}.gif").read_bytes() for n in range(2)
    ]
    assert clips[0] == clips[1]


@pytest.mark.slow
def test_without_its_best_checkpoint_a_run_says_which_one_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    same = ("algorithm.learning_rate=1e-12", "evaluation.deterministic=true")
    changes = [*same, "total_timesteps=128", "recording.episodes=0"]
    train(load_config(file, changes), TrainCommand(stop=StopRequest(), evaluates_at_end=False))
    run_dir = RunDir(tmp_path / "run")
    assert open_trained_run(run_dir.root, "best").state.num_timesteps == 64
    remove_directory(run_dir.checkpoint(64))
    with pytest.raises(CheckpointError, match=r"checkpoints/0+64, is gone; use --checkpoint lat"):
        open_trained_run(run_dir.root, "best")
    assert open_trained_run(run_dir.root, "latest").state.num_timesteps == 128


def test_export_says_how_the_policy_plays(
    drawn_run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_way(drawn_run, "true")
    output = str(tmp_path / "best.zip")
    assert main(["export", str(drawn_run.root), "--output", output]) == 0
    assert "model.predict(observation, deterministic=False)" in capsys.readouterr().out


def test_another_game_file_is_played_and_its_changed_keys_are_named(
    run_of_level_1: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = load_game("duel").folder
    text = (folder / "game.yaml").read_text(encoding="utf-8")
    text = text.replace("title: Duel", "title: Mine").replace("weight: 0.5}", "weight: 0.75}")
    text = text.replace("path: duel.gb, ", "path: DIR/duel.gb, ")
    file = tmp_path / "mine.yaml"
    file.write_text(
        text.replace("DIR", str(folder)).replace(": duel.sym", f": {folder}/duel.sym"),
        encoding="utf-8",
    )
    command = ["evaluate", str(run_of_level_1), "--episodes", "2", "--game", str(file), "--json"]
    assert main(command) == 0
    shown = capsys.readouterr()
    (note,) = json.loads(shown.out)["notes"]
    assert "game.yaml's rewards.round_won.weight: 0.5 -> 0.75" in note
    assert "title" not in note
    assert note in shown.err
