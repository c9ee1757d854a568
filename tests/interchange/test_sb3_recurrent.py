"""Policies with a memory, exchanged with sb3-contrib's RecurrentPPO."""

import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from sb3_contrib import RecurrentPPO

from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_zip import export_policy, import_policy
from game_rl.playback.trained_policy import trained_policy
from game_rl.playback.trained_run import open_trained_run
from game_rl.training.train import resume
from game_rl.vec_env.make_vec_env import SpacesVecEnv
from tests.interchange.test_sb3_zip import train_one
from tests.tiny_run import MakeConfig, command

MEMORY = "algorithm.memory={size: 12, sequence: 4, layers: 2}"
PREDICT = """
import sys
sys.modules["game_rl"] = None  # as where it is not installed
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
model = RecurrentPPO.load(sys.argv[1], device="cpu")
torch.manual_seed(1)
state = None
actions = []
for stack, begins in zip(np.load(sys.argv[2]), np.load(sys.argv[3])):
    action, state = model.predict(
        stack[None], state=state, episode_start=begins[None], deterministic=False
    )
    actions.append(action[0])
np.savez(sys.argv[4], actions=actions, state=state)
print(model.num_timesteps, model.batch_size, model.n_steps, model.policy.lstm_actor)
"""


@pytest.mark.slow
def test_sb3_contrib_plays_an_exported_policy_on_with_its_state(tmp_path: Path) -> None:
    run = open_trained_run(train_one(tmp_path, MEMORY), "latest")
    assert export_policy(run, tmp_path / "model.zip") == "sb3_contrib"
    policy = trained_policy(run)
    rng = np.random.default_rng(0)
    shape = make_observation_format(run.config.env, run.game).space.shape
    stacks = rng.integers(0, 256, (200, *shape), np.uint8)
    begins = rng.random(200) < 0.1
    np.save(tmp_path / "stacks.npy", stacks)
    np.save(tmp_path / "begins.npy", begins)
    names = [tmp_path / name for name in ("model.zip", "stacks.npy", "begins.npy", "played.npz")]
    found = subprocess.run(
        [sys.executable, "-c", PREDICT, *map(str, names)],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    state = None
    expected = []
    torch.manual_seed(1)
    for stack, begin in zip(stacks, begins, strict=True):
        action, state = policy.predict(stack[None], state, begin[None], deterministic=False)
        expected.append(action[0])
    played = np.load(tmp_path / "played.npz")
    assert played["actions"].tolist() == expected
    np.testing.assert_allclose(played["state"], state, atol=1e-5)
    assert len(set(expected)) > 1
    assert found.stdout.startswith("96 16 16 LSTM(512, 12, num_layers=2)")


@pytest.mark.slow
def test_a_run_goes_on_from_what_sb3_contrib_saved(make_config: MakeConfig, tmp_path: Path) -> None:
    config = make_config("imported", MEMORY)
    env = SpacesVecEnv(config.env, load_game(config.game), n_envs=1)
    kwargs = {"lstm_hidden_size": 12, "n_lstm_layers": 2}
    plain = RecurrentPPO(
        "CnnLstmPolicy", env, n_steps=4, batch_size=4, policy_kwargs=kwargs, device="cpu"
    )
    plain.num_timesteps = 128
    plain.save(tmp_path / "plain.zip")
    run_dir = import_policy(tmp_path / "plain.zip", config)
    weights = newest_valid_checkpoint(run_dir)[0].policy()
    assert all(torch.equal(weights[n], plain.policy.state_dict()[n]) for n in weights)
    resume(run_dir.root, command(Console(file=StringIO())))
    assert newest_valid_checkpoint(run_dir)[0].state.num_timesteps == 192


def test_a_gru_is_refused_both_ways(make_config: MakeConfig, tmp_path: Path) -> None:
    (tmp_path / "any.zip").touch()
    config = make_config("never", "algorithm.memory={kind: gru, sequence: 4}")
    with pytest.raises(
        UsageError, match="kind is gru, and sb3-contrib's RecurrentPPO only has an LSTM"
    ):
        import_policy(tmp_path / "any.zip", config)
    assert not RunDir(config.run_dir).exists()
