"""Forks of tiny runs."""

import hashlib
from io import StringIO
from pathlib import Path

from rich.console import Console

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.training.forking import find_source, forked_config
from tests.tiny_run import MakeConfig, train_once

_DQN = (
    "algorithm={name: dqn, replay: {capacity: 60}, learning_starts: 40, batch_size: 16, "
    "n_step: 2, layer_norm: channels}"
)
KINDS = {
    "ppo": ["algorithm={n_steps: 16, batch_size: 16, n_epochs: 1}"],
    "ppo-memory": [
        "algorithm={n_steps: 16, batch_size: 16, n_epochs: 1, memory: {size: 8, sequence: 8}}"
    ],
    "ppo-curiosity": ["algorithm={n_steps: 16, batch_size: 16, n_epochs: 1, curiosity: {}}"],
    "dqn": [_DQN, "checkpoints.save_replay_buffer=true"],
    "dqn-lake": [_DQN, "lake={}"],
    "pqn": ["algorithm={name: pqn, n_steps: 16, batch_size: 16}", "lake={}"],
}
FILES = ("policy.safetensors", "optimizer.safetensors", "arrays.safetensors", "replay.safetensors")


def quiet() -> Console:
    return Console(file=StringIO(), width=1000)


def told(by: Console) -> str:
    assert isinstance(by.file, StringIO)
    return by.file.getvalue()


def whole_run(make_config: MakeConfig, kind: str, *overrides: str, name: str = "parent") -> RunDir:
    """A run to fork from."""
    config = make_config(
        name, *KINDS[kind], "recording.episodes=0", "checkpoints.keep_last=9", *overrides
    )
    return train_once(config)


def fork_of(parent: RunDir, at: int, name: str, **changed: object) -> RunConfig:
    """Keys with `__` for the dots; those of the section `fork` among them."""
    fork = {key.removeprefix("fork__"): v for key, v in changed.items() if key.startswith("fork__")}
    rest = {tuple(k.split("__")): v for k, v in changed.items() if not k.startswith("fork__")}
    source = find_source(parent.root, at)
    return forked_config(source, parent.root.with_name(name), rest, fork=fork)


def everything(root: Path) -> dict[str, tuple[int, str]]:
    """Of each file and folder its time of change and, of a file, its content."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in (root, *root.rglob("*"))
    }


def learned(run_dir: RunDir, name: int) -> dict[str, str]:
    files = Checkpoint(run_dir.checkpoint(name)).files
    return {file: files[file].sha256 for file in (*FILES, "curiosity.json") if file in files}


def generators(run_dir: RunDir, name: int) -> object:
    play = Checkpoint(run_dir.checkpoint(name)).play()
    return play.random, play.algorithm, play.envs, play.seeds
