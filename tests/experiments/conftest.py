from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import Experiment, load_experiment

_RUN = """\
game: duel
total_timesteps: 1
run_dir: x
env: {n_envs: 2}
algorithm: {n_steps: 16, batch_size: 16, learning_rate: {start: 1.0e-3, end: 1.0e-4}}
"""
_POPULATION = """\
kind: population
run_dir: PLACE
member: {config: run.yaml}
members: 4
generations: 5
timesteps_per_generation: 100
fitness: {episodes: 8, metric: mean_reward}
selection: {share: 0.5}
mutation: {algorithm.learning_rate: {factor: [0.8, 1.25], bounds: [1.0e-5, 1.0e-2]}}
champion: {candidates: 2, episodes: 10}
keep_generations: {last: 2, every: 2}
"""

MakePopulation = Callable[..., Experiment]


@pytest.fixture
def make_population(tmp_path: Path) -> MakePopulation:
    def make(name: str = "population", *overrides: str) -> Experiment:
        (tmp_path / "run.yaml").write_text(
            _RUN.replace("total_timesteps: 1", "total_timesteps: 100"), encoding="utf-8"
        )
        path = tmp_path / f"{name}.yaml"
        path.write_text(_POPULATION.replace("PLACE", str(tmp_path / name)), encoding="utf-8")
        return load_experiment(path, overrides)

    return make


_MIXTURE = """\
kind: mixture
run_dir: PLACE
member: {config: pqn.yaml}
members: 4
rounds: 4
timesteps_per_round: 128
learner: {config: dqn.yaml, learn_from: {own_share: 0.5}}
learner_per_round: {gradient_steps: 10, timesteps: 64}
fitness: {episodes: 8, metric: mean_reward}
champion: {candidates: 2, episodes: 10}
keep_rounds: {last: 2}
"""
PQN = """\
game: duel
total_timesteps: 128
run_dir: x
env: {n_envs: 2}
algorithm: {name: pqn, n_steps: 16, batch_size: 16, learning_rate: {start: 1.0e-3, end: 0}}
"""
DQN = """\
game: duel
total_timesteps: 64
run_dir: x
env: {n_envs: 2}
algorithm:
  {name: dqn, replay: {capacity: 200}, learning_starts: 16, batch_size: 8, layer_norm: channels}
"""

_OF_ROUNDS = ("keep_rounds: {last: 2}\n", "gradient_steps: 10, ")

MakeMixture = Callable[..., Experiment]


@pytest.fixture
def make_mixture(tmp_path: Path) -> MakeMixture:
    def make(name: str = "mixture", *overrides: str, is_live: bool = False) -> Experiment:
        (tmp_path / "pqn.yaml").write_text(PQN, encoding="utf-8")
        (tmp_path / "dqn.yaml").write_text(DQN, encoding="utf-8")
        path = tmp_path / f"{name}.yaml"
        text = _MIXTURE.replace("PLACE", str(tmp_path / name))
        for part in _OF_ROUNDS if is_live else ():
            text = text.replace(part, "")
        path.write_text(text + "mode: live\n" * is_live, encoding="utf-8")
        return load_experiment(path, overrides)

    return make


_ERL = """\
kind: population
run_dir: PLACE
member: {config: pqn.yaml, algorithm: {n_epochs: 0}}
members: 4
generations: 5
timesteps_per_generation: 128
fitness: {episodes: 8, metric: mean_reward}
selection: {share: 0.25}
mutation: {weights: {sigma: 0.02}}
control: 0
learner: {config: dqn.yaml, inject_every: 2, learn_from: {own_share: 0.5}}
learner_per_generation: {gradient_steps: 10, timesteps: 64}
champion: {candidates: 2, episodes: 10}
keep_generations: {last: 2}
"""


@pytest.fixture
def make_erl(tmp_path: Path) -> MakePopulation:
    def make(name: str = "erl", *overrides: str) -> Experiment:
        (tmp_path / "pqn.yaml").write_text(PQN, encoding="utf-8")
        (tmp_path / "dqn.yaml").write_text(DQN, encoding="utf-8")
        path = tmp_path / f"{name}.yaml"
        path.write_text(_ERL.replace("PLACE", str(tmp_path / name)), encoding="utf-8")
        return load_experiment(path, overrides)

    return make
