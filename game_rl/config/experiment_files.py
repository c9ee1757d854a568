"""Files of experiments that train members in generations or rounds, whatever their kind."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.config.experiments import Population, dump_population, kind_of, load_population
from game_rl.config.mixtures import Mixture, dump_mixture, load_mixture

Experiment = Population | Mixture


def load_experiment(
    path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False
) -> Experiment:
    """What the file describes.

    Args:
        is_saved: the file is one that `dump_experiment` wrote.

    Raises:
        ConfigError: with every problem of the file.
    """
    load = load_mixture if kind_of(path, overrides) == "mixture" else load_population
    return load(path, overrides, is_saved=is_saved)


def dump_experiment(experiment: Experiment) -> str:
    """YAML that `load_experiment` reads back as an equal one, wherever it is."""
    if isinstance(experiment, Mixture):
        return dump_mixture(experiment)
    return dump_population(experiment)
