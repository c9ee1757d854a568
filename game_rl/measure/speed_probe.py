"""How fast this machine trains: the run's own parts at work for some seconds."""

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.checkpoints.checkpoint import CheckpointState, save_checkpoint
from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.measure.short_training import ShortTraining, VecStepTime, median_of, median_of_means
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.threads import torch_threads
from game_rl.vec_env.make_vec_env import make_vec_env
from game_rl.vec_env.saved_vec_env import save_vec_env

TRAINING_S = 6.0
_CORES_S = 2.0  # to find the workers' cores; a run takes longer, to be surer
_FEWEST_UPDATES = 2
_EVALUATION_S = 1.0
_EVALUATION_WARM_UP = 5  # vec steps


def measure_speed(
    config: RunConfig, game: Game, *, training_s: float = TRAINING_S
) -> MeasuredSpeed:
    """Train in small; with start-up some twenty seconds, more where a single update takes long.

    Each figure is a median over rollouts or updates: another program's busy moment is left out.

    Args:
        config: of the run.
        game: that it plays.
        training_s: seconds for rollouts and updates, which come in turns as in the run.
    """
    with ShortTraining(config, game, trials_s=_CORES_S) as training:
        training.warm_up()
        training.collect()
        training.update()  # the first one, which is slower
        rollouts: list[VecStepTime] = []
        updates: list[float] = []
        deadline = time.perf_counter() + training_s
        while time.perf_counter() < deadline or len(updates) < _FEWEST_UPDATES:
            rollouts.append(training.collect())
            updates.append(training.update())
        started = time.perf_counter()
        evaluation_vec_step_s = _evaluation_vec_step_s(training.model, config, game)
        evaluation_s = time.perf_counter() - started
        vec_step = median_of(rollouts, n_averaged=training.n_averaged)
        return MeasuredSpeed(
            inference_s=vec_step.inference_s,
            emulation_s=vec_step.emulation_s,
            gradient_step_s=median_of_means(updates, training.n_averaged),
            evaluation_vec_step_s=evaluation_vec_step_s,
            checkpoint_s=_checkpoint_s(training.model, config),
            start_s=training.start_s + evaluation_s - _EVALUATION_S,
        )


def _evaluation_vec_step_s(model: BaseAlgorithm, config: RunConfig, game: Game) -> float:
    """Mean over a second of playing as evaluations do."""
    seed = seed_for(config.seed, "speed_probe/evaluation")
    n_envs = config.evaluation.envs_for(config.evaluation.episodes)
    with (
        closing(make_vec_env(config.env, game, n_envs=n_envs, seed=seed)) as vec_env,
        torch_threads(1),
    ):
        observations: Any = vec_env.reset()
        vec_steps, started = -_EVALUATION_WARM_UP, 0.0
        while vec_steps < 1 or time.perf_counter() < started + _EVALUATION_S:
            if vec_steps == 0:
                started = time.perf_counter()
            actions, _ = model.predict(observations, deterministic=config.evaluation.deterministic)
            observations, _, _, _ = vec_env.step(actions)
            vec_steps += 1
        return (time.perf_counter() - started) / vec_steps


def _checkpoint_s(model: BaseAlgorithm, config: RunConfig) -> float:
    state = CheckpointState(
        num_timesteps=0,
        n_updates=0,
        schedule_timesteps=config.total_timesteps,
        best=None,
        rom_sha256="",
        config={},
        game={},
        versions={},
        computing={},
    )
    assert isinstance(model._last_obs, np.ndarray)
    assert model.env is not None
    with tempfile.TemporaryDirectory(prefix="game_rl_") as folder:
        path = Path(folder)
        started = time.perf_counter()
        envs = save_vec_env(model.env, model._last_obs)
        save_checkpoint(path / "checkpoint", model, state, envs, RunDir(path))
        return time.perf_counter() - started
