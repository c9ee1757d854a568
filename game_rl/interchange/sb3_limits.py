"""What can be exchanged with Stable-Baselines3, checked without loading it."""

from pathlib import Path

from game_rl.config.algorithms import AlgorithmConfig
from game_rl.config.schema import RunConfig
from game_rl.errors import UsageError
from game_rl.files.run_dir import RunDir


def exchangeable(config: RunConfig) -> AlgorithmConfig:
    """Return the config's algorithm.

    Raises:
        UsageError: SB3 has no such network.
    """
    algorithm = config.algorithm
    if not algorithm.is_in_sb3:
        raise UsageError(
            f"algorithm.name is {algorithm.name}, and Stable-Baselines3 has no "
            f"{algorithm.name.upper()}; only policies of ppo, and of dqn without layer_norm, can "
            "be exchanged with it"
        )
    if algorithm.memory is not None and algorithm.memory.kind == "gru":
        raise UsageError(
            "algorithm.memory.kind is gru, and sb3-contrib's RecurrentPPO only has an LSTM, so "
            "its zips cannot hold this policy; train a run with memory: {kind: lstm} to exchange "
            "its policy"
        )
    if algorithm.layer_norm != "none":
        raise UsageError(
            f"algorithm.layer_norm is {algorithm.layer_norm}, and Stable-Baselines3's Q-network "
            "has no layers that normalise, so its zips cannot hold this one; train a run with "
            "layer_norm: none to exchange its policy"
        )
    return algorithm


def check_zip_to_write(path: Path) -> None:
    """Raise UsageError if `path` does not end in .zip or exists."""
    check_new_file(path, ".zip", "files of SB3")


def check_new_file(path: Path, suffix: str, kind: str) -> None:
    """Raise UsageError if `path` does not end in `suffix`, as files of this kind do, or exists."""
    if path.suffix != suffix:
        raise UsageError(f"--output {path} does not end in {suffix}, as {kind} must")
    if path.exists():
        raise UsageError(f"{path} exists already; name another --output, or delete it")


def check_zip_to_read(path: Path, root: Path) -> None:
    """Raise UsageError if there is no file `path`, or a run in `root` already."""
    if RunDir(root).exists():
        raise UsageError(f"{root} already holds a run; choose another --set run_dir=...")
    if not path.is_file():
        raise UsageError(f"there is no file {path}; name a zip that PPO.save or DQN.save wrote")
