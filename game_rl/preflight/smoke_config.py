"""The smallest training that goes the whole way of a config, for `game-rl train --smoke`.

What a training is made of stays: game, emulators, pictures, network, batches, replay. Only what it
does long or often is lowered, and what it would write outside of its own folder is left out.
"""

import json
from collections.abc import Iterator, Mapping
from math import gcd
from pathlib import Path

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.experiment import STAGES, Experiment
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, value_at

_UPDATES = 2
_FEWEST_VEC_STEPS = 8  # between two updates, so that most envs see a few actions
_EPISODE_TIMESTEPS = 100
_EPISODES = 2
_CLIP_S = 5.0
_OFFLINE_GRADIENT_STEPS = 8

# keys of a run that an experiment decides for its runs
_DECIDED = (
    "total_timesteps",
    "evaluation.every_timesteps",
    "evaluation.episodes",
    "recording.episodes",
    "stop_when",
    "lake",
    "algorithm.learn_from.offline.gradient_steps",
)


def smoke_changes(config: RunConfig) -> dict[Key, object]:
    """Return the keys of a run to change, with their new values: for two updates and an evaluation.

    The run learns, evaluates and saves at its end, and saves once before.
    """
    wanted = {tuple(key.split(".")): value for key, value in _wanted(config)}
    before = config.model_dump(mode="json")
    return {key: v for key, v in wanted.items() if value_at(before, ".".join(key)) != v}


def _wanted(config: RunConfig) -> Iterator[tuple[str, object]]:
    algorithm = config.algorithm
    if isinstance(algorithm, DQNConfig):
        rollout = config.rollout_timesteps
        vec_steps = max(_FEWEST_VEC_STEPS, algorithm.n_step + 1)
        random = _rounded_up(vec_steps * config.env.n_envs, rollout)
        starts = min(algorithm.learning_starts, random)
        yield "algorithm.learning_starts", starts
        total = _rounded_up(starts, rollout) + _UPDATES * rollout
        yield from _offline(config)
    else:
        n_steps = _fewest_n_steps(algorithm.n_steps, algorithm.batch_size, config.env.n_envs)
        yield "algorithm.n_steps", n_steps
        yield "algorithm.n_epochs", min(algorithm.n_epochs, 1)
        rollout = n_steps * config.env.n_envs
        total = _UPDATES * rollout
    if algorithm.exploration is not None and algorithm.exploration.restarts:
        yield "algorithm.exploration.restarts", []
    if algorithm.teacher is not None:
        yield "algorithm.teacher.keep_if_better", False
    yield "total_timesteps", total
    longest = config.env.most_episode_timesteps or _EPISODE_TIMESTEPS
    yield "env.max_episode_timesteps", min(longest, _EPISODE_TIMESTEPS)
    yield "evaluation.every_timesteps", total
    yield "evaluation.episodes", min(config.evaluation.episodes, _EPISODES)
    yield "evaluation.final_episodes", min(config.evaluation.final_episodes, _EPISODES)
    yield "checkpoints.every_timesteps", rollout
    yield "recording.episodes", min(config.recording.episodes, 1)
    yield "recording.max_s", min(config.recording.max_s or _CLIP_S, _CLIP_S)
    yield "stop_when", None
    yield "upload", None
    yield "logging.wandb", None
    if config.lake is not None:
        yield "lake.path", None


def _fewest_n_steps(n_steps: int, batch_size: int, n_envs: int) -> int:
    """Return the smallest n_steps whose rollout has whole batches, and not too few vec steps."""
    unit = batch_size // gcd(batch_size, n_envs)
    return min(n_steps, _rounded_up(_FEWEST_VEC_STEPS, unit))


def _offline(config: RunConfig) -> Iterator[tuple[str, object]]:
    if config.offline is None:
        return
    steps = min(config.offline.gradient_steps, _OFFLINE_GRADIENT_STEPS)
    for name in ("gradient_steps", "evaluate_every_gradient_steps", "save_every_gradient_steps"):
        yield f"algorithm.learn_from.offline.{name}", steps


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def smoke_overrides(experiment: Experiment, run_dir: Path) -> list[str]:
    """Return overrides of the experiment's file: two members and one generation in `run_dir`."""
    config = experiment.config
    run = experiment.run
    stage = STAGES[config.kind]
    of_member = smoke_changes(run)
    values: dict[str, object] = {
        "run_dir": str(run_dir),
        "members": 2,
        f"{stage}s": 1,
        f"timesteps_per_{stage}": of_member.get(("total_timesteps",), run.total_timesteps),
        "fitness.episodes": min(config.fitness.episodes, _EPISODES),
        "champion.candidates": min(config.champion.candidates, 2),
        "champion.episodes": min(config.champion.episodes, _EPISODES),
        "upload": None,
    }
    if config.kind == "population":
        values |= {"control": min(config.control, 1), "train_on": None}
    values |= _of_section("member", of_member)
    if experiment.learner is not None:
        of_learner = smoke_changes(experiment.learner)
        total = of_learner.get(("total_timesteps",), experiment.learner.total_timesteps)
        if config.rule != "live":  # there it learns while it plays
            values[f"learner_per_{stage}.gradient_steps"] = _OFFLINE_GRADIENT_STEPS
        values |= {
            f"learner_per_{stage}.timesteps": total,
            "learner.member_shares": None,
            **_of_section("learner", of_learner),
        }
    return [f"{key}={json.dumps(value)}" for key, value in values.items()]


def _of_section(name: str, changes: Mapping[Key, object]) -> dict[str, object]:
    """Return the changes of a run in its section of the experiment's file."""
    keys = {".".join(key): value for key, value in changes.items()}
    return {
        f"{name}.{key}": value
        for key, value in keys.items()
        if not f"{key}.".startswith(tuple(f"{decided}." for decided in _DECIDED))
    }
