"""The choice of an experiment's plan by its config."""

from game_rl.config.experiments.experiment import Experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.plans.live_plan import LiveMixturePlan
from game_rl.experiments.plans.mixture_plan import MixturePlan
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.plans.population_plan import PopulationPlan


def make_plan(folder: ExperimentDir, experiment: Experiment) -> Plan:
    if isinstance(experiment, Mixture) and experiment.config.is_live:
        return LiveMixturePlan(folder, experiment)
    if isinstance(experiment, Mixture):
        return MixturePlan(folder, experiment)
    return PopulationPlan(folder, experiment)
