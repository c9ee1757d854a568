"""A run of the bundled game that is as small as a run can be."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.callbacks.stop import StopRequest
from game_rl.cli.run_console import RunConsole
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.preflight.report import render_report
from game_rl.training.train import Command

TINY = """\
game: duel
total_timesteps: 192
run_dir: {run_dir}
device: cpu
env: {{n_envs: 2, n_workers: 1, frame_skip: 8, max_episode_timesteps: 25, start_states: [level_1]}}
algorithm: {{n_steps: 16, batch_size: 16, n_epochs: 1}}
evaluation: {{every_timesteps: 64, episodes: 2, final_episodes: 2, n_envs: 2}}
checkpoints: {{every_timesteps: 64, keep_last: 2}}
recording: {{episodes: 1}}
"""


def command(
    console: Console, *, until: int | None = None, stop: StopRequest | None = None
) -> Command:
    """To train as the command line does, with what it prints on `console`."""
    return Command(
        until=until,
        stop=stop or StopRequest(),
        listeners=[RunConsole(console)],
        show=lambda report: console.print(render_report(report)),
    )


MakeConfig = Callable[..., RunConfig]


@pytest.fixture
def make_config(tmp_path: Path) -> MakeConfig:
    def make(run_dir: str = "run", *overrides: str) -> RunConfig:
        path = tmp_path / f"{run_dir}.yaml"
        path.write_text(TINY.format(run_dir=tmp_path / run_dir))
        return load_config(path, overrides)

    return make
