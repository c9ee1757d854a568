"""`game-rl evaluate` from start states that the user names."""

import json
from contextlib import closing
from pathlib import Path

import pytest
import torch

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.system.stop_request import StopRequest
from game_rl.training.make_callbacks import evaluation_seed
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
        observation, rewards, over = vec_env.reset(), [], False
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
