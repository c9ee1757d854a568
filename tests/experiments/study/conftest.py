from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.config.experiments.study_config import Study, load_study
from tests.experiments.conftest import DQN, PQN
from tests.tiny_run import TINY, TINY_GAME

STUDY = """\
kind: study
question: Is the fast one better?
results: {place}/results
run_dir: {place}/runs
arms:
  slow: {{config: arm.yaml}}
  fast: {{config: arm.yaml, algorithm: {{learning_rate: 1.0e-2}}}}
seeds: [5, 6, 7, 8, 9, 10]
budget: {{timesteps: 192}}
test: {{episodes: 20}}
metric: mean_reward
primary: {{arm: fast, against: slow}}
executor: {{parallel: 2}}
"""

_EXPERIMENTS = """\
kind: study
question: Are several better than one?
results: {place}/results
run_dir: {place}/runs
arms:
  alone: {{config: arm.yaml, total_timesteps: 192}}
  four:
    {{config: four.yaml, members: 3, member: {{env: {{max_episode_timesteps: 33}}}}}}
  mixed:
    kind: mixture
    member: {{config: pqn.yaml}}
    members: 2
    rounds: 2
    timesteps_per_round: 32
    learner: {{config: dqn.yaml, learn_from: {{own_share: 0.5}}}}
    learner_per_round: {{gradient_steps: 4, timesteps: 16}}
    fitness: {{episodes: 3, metric: mean_reward}}
    champion: {{candidates: 2, episodes: 4}}
seeds: [5, 6]
budget: {{timesteps: 208}}
test: {{episodes: 20}}
metric: mean_reward
primary: {{arm: four, against: alone}}
others: [{{arm: mixed, against: alone}}]
decision: {{alpha: 0.6}}
executor: {{parallel: 2}}
"""
_FOUR = """\
kind: population
run_dir: elsewhere
seed: 99
member: {config: arm.yaml}
generations: 2
timesteps_per_generation: 32
train_on: {timesteps: 16}
fitness: {episodes: 3, metric: mean_reward}
champion: {candidates: 1, episodes: 4}
cpus_per_member: 3
executor: {parallel: 7}
"""

_ERL = """\
kind: population
run_dir: elsewhere
member: {config: pqn.yaml, algorithm: {n_epochs: 0}}
members: 2
generations: 2
timesteps_per_generation: 32
mutation: {weights: {sigma: 0.02}}
control: 0
learner: {config: learner.yaml}
learner_per_generation: {gradient_steps: 4, timesteps: 16}
champion: {candidates: 1, episodes: 4}
"""

MakeStudy = Callable[..., Study]


def write_study(place: Path) -> Path:
    """Write the file of a study whose folders are in `place`, and its arms' config next to it."""
    place.mkdir(exist_ok=True)
    (place / "arm.yaml").write_text(
        TINY.format(run_dir=place / "unused").replace(str(TINY_GAME), "duel"), encoding="utf-8"
    )
    path = place / "study.yaml"
    path.write_text(STUDY.format(place=place), encoding="utf-8")
    return path


def write_study_of_experiments(place: Path) -> Path:
    """Write a study with a run, a population and a mixture as arms."""
    write_study(place)
    (place / "four.yaml").write_text(_FOUR, encoding="utf-8")
    (place / "pqn.yaml").write_text(PQN, encoding="utf-8")
    (place / "dqn.yaml").write_text(DQN, encoding="utf-8")
    path = place / "study.yaml"
    path.write_text(_EXPERIMENTS.format(place=place), encoding="utf-8")
    return path


def with_erl(file: Path) -> Path:
    """Give the population in the file a learner; return the file."""
    (file.parent / "erl.yaml").write_text(_ERL, encoding="utf-8")
    (file.parent / "learner.yaml").write_text(DQN, encoding="utf-8")
    text = file.read_text(encoding="utf-8")
    assert "four.yaml, members: 3, member:" in text
    file.write_text(
        text.replace("four.yaml, members: 3, member:", "erl.yaml, learner:"), encoding="utf-8"
    )
    return file


@pytest.fixture
def make_study(tmp_path: Path) -> MakeStudy:
    def make(name: str = "study", *overrides: str) -> Study:
        return load_study(write_study(tmp_path / name), overrides)

    return make


@pytest.fixture
def make_study_of_experiments(tmp_path: Path) -> MakeStudy:
    def make(name: str = "study") -> Study:
        return load_study(write_study_of_experiments(tmp_path / name))

    return make
