"""Runs that play and take no gradient step."""

import pytest
import torch

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import quiet

_PLAYERS = {
    "ppo": "{n_steps: 16, batch_size: 16, n_epochs: 0}",
    "pqn": "{name: pqn, n_steps: 16, batch_size: 16, n_epochs: 0}",
    "dqn": "{name: dqn, learning_starts: 8, batch_size: 8, replay: {capacity: 60}, "
    "gradient_steps: 0}",
}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", _PLAYERS.values(), ids=_PLAYERS.keys())
def test_a_run_that_takes_no_gradient_steps_keeps_its_weights_and_fills_its_lake(
    make_config: MakeConfig, algorithm: str
) -> None:
    config = make_config("run", f"algorithm={algorithm}", "lake={}", "recording.episodes=0")
    run_dir = RunDir(config.run_dir)
    train(config, command(quiet(), until=64))
    first = Checkpoint(run_dir.checkpoint(64)).policy()
    resume(run_dir.root, command(quiet()))
    last = Checkpoint(run_dir.checkpoint(192))
    assert all(torch.equal(tensor, first[name]) for name, tensor in last.policy().items())
    assert last.nbytes_of("optimizer.safetensors") < 1_000
    assert Lake.open(run_dir.root / "lake").view().n_transitions.sum() == 192
