"""Against the files of real checkpoints of the bundled game."""

from io import StringIO

import pytest
from rich.console import Console

from game_rl.checkpoints import checkpoint_files
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.model_state import Tensors
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.preflight.disk import predicted_checkpoint_bytes
from game_rl.preflight.facts import run_facts
from game_rl.preflight.memory import storage
from game_rl.system.machine import detect_machine
from game_rl.training.train import train
from tests.tiny_run import MakeConfig, command


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    [
        "algorithm.n_epochs=1",
        "algorithm={name: pqn, n_steps: 16, batch_size: 16, layer_norm: picture}",
        "algorithm={name: dqn, replay: {capacity: 40}, learning_starts: 20}",
    ],
)
def test_checkpoints_of_a_run_are_as_large_as_forecast_and_as_their_own_numbers_say(
    algorithm: str, make_config: MakeConfig
) -> None:
    has_replay = "dqn" in algorithm
    saves = f"checkpoints.save_replay_buffer={str(has_replay).lower()}"
    short = ("total_timesteps=64", "recording.episodes=0")
    config = make_config("run", "game=duel", algorithm, saves, *short)
    train(config, command(Console(file=StringIO())))
    checkpoint = Checkpoint(RunDir(config.run_dir).checkpoint(64))
    facts = run_facts(config, load_game(config.game), detect_machine(config.run_dir))
    assert predicted_checkpoint_bytes(config, facts) == pytest.approx(checkpoint.nbytes, rel=0.005)

    def numbers(tensors: Tensors) -> int:
        return sum(tensor.numel() for tensor in tensors.values())

    written = checkpoint_files.checkpoint_bytes(
        policy_weights=numbers(checkpoint.policy()),
        optimized_weights=numbers(checkpoint.optimizer()) // 2,
        n_envs=2,
        observation_bytes=4 * 72 * 80,
        replay_bytes=storage(config, facts).bytes if has_replay else 0,
    )
    assert written == pytest.approx(checkpoint.nbytes, rel=0.005)
