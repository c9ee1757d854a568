"""Mixture files: what they make of the runs' configs, and what they refuse."""

from pathlib import Path

import pytest

from game_rl.config.algorithms import DQNConfig
from game_rl.config.mixtures import dump_mixture, load_mixture
from game_rl.errors import ConfigError

_RUN = """\
game: duel
total_timesteps: 400_000
run_dir: runs/x
env: {n_envs: 8, frame_skip: 8}
algorithm: ALGORITHM
"""
_MIXTURE = """\
kind: mixture
run_dir: runs/m
member: {config: pqn.yaml}
members: 3
rounds: 5
timesteps_per_round: 16_384
lake: {capacity_gb: 5}
learner: {config: dqn.yaml, learn_from: {own_share: 0.4}}
learner_per_round: {gradient_steps: 700, timesteps: 4_096}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    dqn = "{name: dqn, learning_starts: 100, layer_norm: channels, replay: {capacity: 5_000}}"
    for name, algorithm in {"pqn": "{name: pqn}", "dqn": dqn, "ppo": "{name: ppo}"}.items():
        (tmp_path / f"{name}.yaml").write_text(_RUN.replace("ALGORITHM", algorithm))
    path = tmp_path / "mixture.yaml"
    path.write_text(_MIXTURE)
    return path


def refused(file: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_mixture(file, overrides)
    return str(error.value)


def test_members_write_the_lake_that_the_learner_reads(file: Path) -> None:
    mixture = load_mixture(file)
    lake = Path("runs/m/lake").absolute()
    assert mixture.run.lake is not None
    assert (mixture.run.lake.path, mixture.run.lake.capacity_gb) == (lake, 5)
    assert isinstance(mixture.learner.algorithm, DQNConfig)
    learn_from = mixture.learner.algorithm.learn_from
    assert learn_from is not None
    assert learn_from.offline is not None
    assert (learn_from.lakes, learn_from.own_share) == ((lake,), 0.4)
    assert learn_from.offline.gradient_steps == 700
    assert (mixture.run.total_timesteps, mixture.learner.total_timesteps) == (5 * 16_384, 4_096)
    assert mixture.learner.checkpoints.save_replay_buffer


@pytest.mark.parametrize("teacher", ["best_member", "null"])
def test_what_is_saved_is_read_back_as_it_was(file: Path, tmp_path: Path, teacher: str) -> None:
    mixture = load_mixture(file, [f"learner.teacher={teacher}"])
    saved = tmp_path / "saved" / "experiment.yaml"
    saved.parent.mkdir()
    saved.write_text(dump_mixture(mixture))
    again = load_mixture(saved, is_saved=True)
    assert (again.run, again.learner) == (mixture.run, mixture.learner)
    assert again.config.is_taught == mixture.config.is_taught == (teacher == "best_member")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("learner.config=pqn.yaml", "write name: dqn"),
        ("member.config=ppo.yaml", "ppo has no values"),
        ("learner.env.frame_stack=2", "is not the members', 4"),
        ("learner.algorithm.layer_norm=none", "layer_norm: none is not the members', channels"),
        ("clone.optimiser=keep", "pqn cannot go on with the optimiser of dqn"),
        ("learner.teacher=worst_member", "write best_member"),
        ("learner.learn_from.lakes=[x]", "it learns from the mixture's Lake"),
        ("learner.learn_from.agents={a: 1}", "it draws evenly"),
        ("learner.algorithm.teacher={run: x}", "write teacher: best_member"),
        ("learner.lake={}", "the mixture has one for all members"),
        ("member.lake={}", "the mixture has one for all members"),
        ("member.total_timesteps=5", "it is rounds x timesteps_per_round"),
        ("lake.path=x", "the Lake is the folder lake in run_dir"),
        ("champion.candidates=5", "more than members and learner, 4"),
        ("generations=5", "did you mean rounds"),
    ],
)
def test_what_cannot_work_is_refused_with_the_way_out(
    file: Path, override: str, words: str
) -> None:
    assert words in refused(file, override)
