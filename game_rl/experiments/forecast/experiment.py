"""The preflight of an experiment of any kind: whether it fits a machine."""

from dataclasses import replace

from game_rl.config.experiments.executor_config import LocalExecutorConfig
from game_rl.config.experiments.experiment import Experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.experiments.population_config import PopulationConfig, SelectionConfig
from game_rl.config.experiments.population_files import Population
from game_rl.experiments.forecast.live_mixture import live_report
from game_rl.experiments.forecast.population import population_preflight
from game_rl.experiments.forecast.report import ExperimentReport
from game_rl.games.definition import Game
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake
from game_rl.preflight.findings import Finding
from game_rl.preflight.fixes import Fix
from game_rl.preflight.speed import ExperimentSpeed
from game_rl.system.machine import Machine


def experiment_preflight(
    experiment: Experiment,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: ExperimentSpeed | None = None,
) -> ExperimentReport:
    """See `population_preflight`."""
    if isinstance(experiment, Population):
        return population_preflight(
            experiment, game, machine, probe=probe, lake=lake, measured=measured
        )
    report = population_preflight(
        _as_population(experiment), game, machine, probe=probe, lake=lake, measured=measured
    )
    findings = tuple(map(_of_rounds, report.findings))
    report = replace(report, kind="mixture", findings=findings)
    return live_report(experiment, report) if experiment.config.is_live else report


def _as_population(mixture: Mixture) -> Population:
    """Return a population that needs as much as the mixture.

    It copies half of its members in each generation, as if half of the members were cloned over.
    """
    config = mixture.config
    rounds, executor = config.rounds, config.executor
    if config.is_live:
        rounds, executor = 1, LocalExecutorConfig(parallel=config.members)
    alone = PopulationConfig(
        kind="population",
        run_dir=config.run_dir,
        seed=config.seed,
        member={},
        members=config.members,
        generations=rounds,
        timesteps_per_generation=config.total_timesteps // rounds,
        fitness=config.fitness,
        selection=SelectionConfig(share=0.5),
        champion=config.champion,
        keep_generations=config.keep_rounds,
        learner={"teacher": "best_member" if config.is_taught else None},
        learner_per_generation=config.learner_per_round,
        lake=config.lake,
        cpus_per_member=config.cpus_per_member,
        executor=executor,
        upload=config.upload,
    )
    return Population(alone, mixture.run, mixture.learner)


def _of_rounds(finding: Finding) -> Finding:
    """Rename keys of a population in a finding to those of a mixture."""
    fix = finding.fix
    named = None if fix is None else Fix(_key_of_rounds(fix.key), fix.value)
    return replace(finding, key=_key_of_rounds(finding.key), fix=named)


def _key_of_rounds(key: str) -> str:
    return key.replace("keep_generations", "keep_rounds")
