"""The training that `game-rl train` does, without evaluation and checkpoints.

    python -c "from benchmarks.trainings.ours import main; main()" [--set KEY=VALUE] ...

Started so because Python's worker processes import their parent's main module again, and that of
the real command is light where this one imports torch.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList, ConvertCallback

from benchmarks.trainings.update_clock import UpdateClock
from benchmarks.trainings.work import Work
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.callbacks.cores import CoresCallback
from game_rl.callbacks.game_metrics import GameMetricsCallback
from game_rl.callbacks.non_finite import NonFiniteCallback
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_frame_format
from game_rl.games.definition import load_game
from game_rl.run_dir import RunDir
from game_rl.system.machine import effective_cpus
from game_rl.vec_env.make_vec_env import make_training_env

CONFIG = Path(__file__).with_name("duel.yaml")


def train(config: RunConfig, run_dir: RunDir) -> UpdateClock:
    clock, cores = UpdateClock(), CoresCallback(effective_cpus())
    callbacks = [clock, NonFiniteCallback(), cores, GameMetricsCallback()]
    with built(config, run_dir) as model:
        settle(model, cores)
        model.learn(config.total_timesteps, callback=CallbackList(callbacks))
    return clock


@contextmanager
def built(config: RunConfig, run_dir: RunDir) -> Iterator[PPO]:
    """The algorithm on its emulators."""
    game = load_game(config.game)
    env = make_training_env(config.env, game, seed=config.seed)
    with closing(env):
        packing = make_frame_format(config.env.observation, game).packing
        model = make_algorithm(config, env, run_dir, packing=packing, stream="algorithm")
        assert isinstance(model, PPO)
        yield model
        model.logger.close()


def settle(model: PPO, cores: CoresCallback) -> None:
    """Play until the workers' cores are found, which takes a run its first seconds."""
    until_settled = CallbackList([cores, ConvertCallback(lambda *_: not cores.is_settled)])
    _, callback = model._setup_learn(model.n_steps * model.n_envs, until_settled)
    assert model.env is not None
    while model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    work, options = Work.parse(parser)
    config = load_config(CONFIG, [*work.overrides(), *options.set])
    with tempfile.TemporaryDirectory() as folder:
        print(train(config, RunDir(Path(folder))).to_json())
