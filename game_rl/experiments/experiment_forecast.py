"""Whether an experiment fits a machine, whatever its kind."""

from collections.abc import Iterator
from dataclasses import replace

from game_rl.config.algorithms import DQNConfig
from game_rl.config.executors import LocalExecutorConfig
from game_rl.config.experiment_files import Experiment
from game_rl.config.experiments import Population
from game_rl.config.mixtures import Mixture
from game_rl.config.population import ChampionConfig, PopulationConfig, SelectionConfig
from game_rl.config.schema import RunConfig
from game_rl.experiments.forecast import (
    PopulationReport,
    is_short_of_memory,
    kept_generations,
    population_preflight,
    verdict_of,
)
from game_rl.games.definition import Game
from game_rl.preflight.changes import Fix
from game_rl.preflight.facts import run_facts
from game_rl.preflight.findings import Finding
from game_rl.preflight.learning import VIEW_BYTES
from game_rl.preflight.measurements import EpisodeLengths, MeasuredLake
from game_rl.preflight.preflight import report_of
from game_rl.preflight.report import Report
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.preflight.verdict import Verdict
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes

_VIEWS_WHILE_RENEWED = 2
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
    """See `population_preflight`; of a mixture, with its learner.

    It trains alone or, where the mixture is live, while all members do.
    """
    if not isinstance(experiment, Mixture):
        return population_preflight(
            experiment, game, machine, probe=probe, lake=lake, measured=measured
        )
    report = population_preflight(
        _members_alone(experiment), game, machine, probe=probe, lake=lake, measured=measured
    )
    learner = _learner_report(experiment, game, machine, probe)
    report = _with_learner(experiment, report, learner)
    return _live(experiment, report) if experiment.config.is_live else report


def _members_alone(mixture: Mixture) -> Population:
    """A population that takes what the members take: in each round, half of them are cloned."""
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
        champion=ChampionConfig(candidates=1),
        keep_generations=config.keep_rounds,
        cpus_per_member=config.cpus_per_member,
        executor=executor,
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


def _live(mixture: Mixture, report: PopulationReport) -> PopulationReport:
    """All members and the learner at once."""
    assert isinstance(mixture.learner.algorithm, DQNConfig)
    settings = mixture.learner.algorithm.learn_from
    assert settings is not None
    live = replace(
        report,
        slots=mixture.config.members + 1,
        following_bytes=settings.cache_mb * 10**6 + _VIEWS_WHILE_RENEWED * VIEW_BYTES,
    )
    others = [each for each in report.findings if each.code != "members_do_not_fit"]
    verdicts = (report.verdict, verdict_of(live))
    return replace(
        live,
        verdict=min(verdicts, key=_WORST_FIRST.index),
        findings=(*_of_all_at_once(mixture, live), *others),
    )


def _of_all_at_once(mixture: Mixture, live: PopulationReport) -> Iterator[Finding]:
    members, machine = mixture.config.members, live.machine
    if is_short_of_memory(live):
        over = live.ram_bytes - machine.ram_available_bytes
        fitting = members - max(1, -(-over // live.member.footprint.ram.peak.bytes))
        yield Finding(
            "error",
            "members_do_not_fit",
            "members",
            f"{members} members and the learner at once need {format_bytes(live.ram_bytes)} of "
            f"memory, and {format_bytes(machine.ram_available_bytes)} are free",
            Fix("members", fitting) if fitting >= 2 else None,
        )
    wanted = live.slots * mixture.config.cpus_per_member
    if wanted > machine.cpus:
        yield Finding(
            "warning",
            "members_share_cpus",
            "members",
            f"{members} members and the learner have {wanted} threads at work on {machine.cpus} "
            "CPUs: each is slower than alone, and the learner sees what they play later",
            None,
        )
