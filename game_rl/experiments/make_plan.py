"""From the config of an experiment to its plan."""

from game_rl.config.experiment_files import Experiment
from game_rl.config.mixture_files import Mixture
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.live_mixture import LiveMixturePlan
from game_rl.experiments.mixture import MixturePlan
from game_rl.experiments.plan import Plan
from game_rl.experiments.population import PopulationPlan


def make_plan(folder: ExperimentDir, experiment: Experiment) -> Plan:
    if isinstance(experiment, Mixture) and experiment.config.is_live:
        return LiveMixturePlan(folder, experiment)
    if isinstance(experiment, Mixture):
        return MixturePlan(folder, experiment)
    return PopulationPlan(folder, experiment)
