"""Whether an experiment fits a machine, whatever its kind."""

from collections.abc import Iterator
from dataclasses import replace

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiment_files import Experiment
from game_rl.config.experiments import Population
from game_rl.config.mixtures import Mixture
from game_rl.config.population import ChampionConfig, PopulationConfig, SelectionConfig
from game_rl.config.schema import RunConfig
from game_rl.experiments.forecast import PopulationReport, kept_generations, population_preflight
from game_rl.games.definition import Game
from game_rl.preflight.changes import Fix
from game_rl.preflight.facts import run_facts
from game_rl.preflight.findings import Finding
from game_rl.preflight.measurements import EpisodeLengths, MeasuredLake
from game_rl.preflight.preflight import report_of
from game_rl.preflight.report import Report
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine

_WORST_FIRST: tuple[Verdict, ...] = ("does_not_fit", "tight", "fits")


def experiment_preflight(
    experiment: Experiment,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: MeasuredSpeed | None = None,
) -> PopulationReport:
    """See `population_preflight`; of a mixture, with its learner, which trains alone."""
    if not isinstance(experiment, Mixture):
        return population_preflight(
            experiment, game, machine, probe=probe, lake=lake, measured=measured
        )
    report = population_preflight(
        _members_alone(experiment), game, machine, probe=probe, lake=lake, measured=measured
    )
    return _with_learner(experiment, report, _learner_report(experiment, game, machine, probe))


def _members_alone(mixture: Mixture) -> Population:
    """A population that takes what the members take: in each round, half of them are cloned."""
    config = mixture.config
    alone = PopulationConfig(
        kind="population",
        run_dir=config.run_dir,
        seed=config.seed,
        member={},
        members=config.members,
        generations=config.rounds,
        timesteps_per_generation=config.timesteps_per_round,
        fitness=config.fitness,
        selection=SelectionConfig(share=0.5),
        champion=ChampionConfig(candidates=1),
        keep_generations=config.keep_rounds,
        cpus_per_member=config.cpus_per_member,
        executor=config.executor,
    )
    return Population(alone, mixture.run)


def _learner_report(
    mixture: Mixture, game: Game, machine: Machine, probe: EpisodeLengths | None
) -> Report:
    run, alone = (
        _without_lakes(mixture.learner),
        replace(machine, cpus=mixture.config.cpus_per_member),
    )
    return report_of(run, run_facts(run, game, alone, probe, None), alone, probe=probe)


def _without_lakes(learner: RunConfig) -> RunConfig:
    """The Lake is not there yet; what reading it takes, its cache, is part of neither."""
    assert isinstance(learner.algorithm, DQNConfig)
    changes = {"learn_from": None, "teacher": None}
    return learner.model_copy(update={"algorithm": learner.algorithm.model_copy(update=changes)})


def _with_learner(mixture: Mixture, report: PopulationReport, learner: Report) -> PopulationReport:
    each = learner.footprint.disk.checkpoint_bytes
    keep = mixture.config.keep_rounds
    rows = tuple(
        replace(row, checkpoints=row.checkpoints + kept_generations(keep, row.generation) * each)
        for row in report.growth
    )
    verdicts = (report.verdict, learner.verdict)
    return replace(
        report,
        growth=rows,
        kind="mixture",
        learner=learner,
        verdict=min(verdicts, key=_WORST_FIRST.index),
        findings=(*report.findings, *_of_learner(learner)),
    )


def _of_learner(learner: Report) -> Iterator[Finding]:
    for finding in learner.findings:
        fix = finding.fix
        yield replace(
            finding,
            key=f"learner.{finding.key}",
            fix=None if fix is None else Fix(f"learner.{fix.key}", fix.value),
        )
