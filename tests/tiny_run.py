"""The smallest possible run of the bundled game."""

import hashlib
import os
import shutil
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from filelock import FileLock
from rich.console import Console

from game_rl.cli.run_console import RunConsole
from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, train

SMALL_WINDOW = "observation: {crop: {top: 40, left: 40, height: 72, width: 72}}"
TINY_GAME = Path(__file__).parent / "tiny_game" / "game.yaml"
TINY = """\
game: GAME
total_timesteps: 192
run_dir: {run_dir}
device: cpu
env: {{n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}}
algorithm: {{n_steps: 16, batch_size: 16, n_epochs: 1}}
evaluation: {{every_timesteps: 64, episodes: 2, final_episodes: 2, n_envs: 2, deterministic: true,
  baselines: false}}
checkpoints: {{every_timesteps: 64, keep_last: 2}}
recording: {{episodes: 0}}
""".replace("GAME", str(TINY_GAME))


def command(
    console: Console, *, until: int | None = None, stop: StopRequest | None = None
) -> TrainCommand:
    """Return a TrainCommand to train like the command line, with its output on `console`."""
    return TrainCommand(
        until=until,
        stop=stop or StopRequest(),
        listeners=[RunConsole(console)],
        show=lambda report: console.print(report.table()),
    )


MakeConfig = Callable[..., RunConfig]


@pytest.fixture
def make_config(tmp_path: Path) -> MakeConfig:
    def make(run_dir: str = "run", *overrides: str) -> RunConfig:
        path = tmp_path / f"{run_dir}.yaml"
        path.write_text(TINY.format(run_dir=tmp_path / run_dir), encoding="utf-8")
        return load_config(path, overrides)

    return make


def train_once(config: RunConfig) -> RunDir:
    """Train this run, or copy it if a test has trained the same one, even in another process."""
    run = RunDir(config.run_dir)
    text = dump_config(config).replace(str(run.root), "")
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    is_beside_others = "PYTEST_XDIST_WORKER" in os.environ  # then each process has its own folder
    shared = run.root.parents[2 if is_beside_others else 1] / f"trained once, {key}"
    with FileLock(shared.with_suffix(".lock")):
        if shared.exists():
            _copy(shared, run.root, was=shared, becomes=run.root)
        else:
            train(config, command(Console(file=StringIO(), width=1000)))
            part = shared.with_suffix(".part")
            _copy(run.root, part, was=run.root, becomes=shared)
            part.rename(shared)
    return run


def _copy(source: Path, target: Path, *, was: Path, becomes: Path) -> None:
    """Copy a run directory and change its path in the saved config."""
    shutil.copytree(source, target, symlinks=True)
    saved = RunDir(target).config
    saved.write_text(
        saved.read_text(encoding="utf-8").replace(str(was), str(becomes)), encoding="utf-8"
    )
