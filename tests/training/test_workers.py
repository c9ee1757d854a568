"""The number of worker processes is about speed alone: what is learned is the same."""

import pytest

from game_rl.files.run_dir import RunDir
from game_rl.training.train import train
from tests.tiny_run import MakeConfig, command
from tests.training.forks import KINDS, learned, quiet


@pytest.mark.slow
@pytest.mark.parametrize("n_envs", [2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_workers_has_no_effect_on_what_is_learned(
    make_config: MakeConfig, kind: str, n_envs: int
) -> None:
    found = []
    for n_workers in sorted({1, 2, n_envs}):
        name = f"{n_workers}"
        changes = (
            f"env.n_envs={n_envs}",
            f"env.n_workers={n_workers}",
            "env.sticky_actions=0.2",
            "evaluation.every_timesteps=96",
            "checkpoints.every_timesteps=96",
        )
        config = make_config(name, *KINDS[kind], *changes)
        train(config, command(quiet()))
        run_dir = RunDir(config.run_dir)
        newest = int(run_dir.checkpoints_newest_first()[0].name)
        found.append((newest, learned(run_dir, newest), run_dir.evaluations.read_bytes()))
    assert all(each == found[0] for each in found)
