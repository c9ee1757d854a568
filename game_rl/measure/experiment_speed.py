"""Measure how fast the members of an experiment train side by side, and its learner."""

import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from game_rl.config.experiments.experiment import Experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.games.definition import Game
from game_rl.measure.lake_probe import write_random_play
from game_rl.measure.probe import measure_speed
from game_rl.preflight.speed import ExperimentSpeed, MeasuredSpeed
from game_rl.system.share import take_share


def measure_experiment_speed(
    experiment: Experiment, game: Game, *, members_at_once: int
) -> ExperimentSpeed:
    """Time short trainings of `members_at_once` members at once, then of the learner if any.

    The learner of a live mixture trains at the same time as the members, as in the experiment. A
    learner draws from a Lake of random play instead of the experiment's, and it has no teacher.
    """
    members, cpus = [experiment.run] * members_at_once, experiment.config.cpus_per_member
    if experiment.learner is None:
        return ExperimentSpeed(_mean(measure_at_once(members, game, cpus=cpus)))
    with tempfile.TemporaryDirectory(prefix="game_rl_") as folder:
        write_random_play(experiment.run, game, Path(folder))
        changes: dict[Key, Any] = {("algorithm", "learn_from", "lakes"): [folder]}
        learner = with_changed(experiment.learner, changes)
        if isinstance(experiment, Mixture) and experiment.config.is_live:
            *measured, learned = measure_at_once([*members, learner], game, cpus=cpus)
        else:
            measured = measure_at_once(members, game, cpus=cpus)
            (learned,) = measure_at_once([learner], game, cpus=cpus)
    return ExperimentSpeed(_mean(measured), learned)


def measure_at_once(configs: Sequence[RunConfig], game: Game, *, cpus: int) -> list[MeasuredSpeed]:
    """Run `measure_speed` for each config, in as many processes at once.

    A single run's workers play on one core while its network computes on another. Where other runs
    train on all cores, they wait for each other and share the caches.

    Args:
        cpus: number of CPUs that each process may use.
    """
    spawn = get_context("spawn")
    with ProcessPoolExecutor(len(configs), spawn, take_share, (cpus,)) as pool:
        runs = [pool.submit(measure_speed, config, game) for config in configs]
        return [run.result() for run in runs]


def _mean(measured: Sequence[MeasuredSpeed]) -> MeasuredSpeed:
    names = [field.name for field in fields(MeasuredSpeed)]
    return MeasuredSpeed(**{name: fmean(getattr(m, name) for m in measured) for name in names})
