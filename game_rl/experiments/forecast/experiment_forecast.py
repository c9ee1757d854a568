"""The preflight of an experiment, made of its runs' reports."""

import math
from collections.abc import Iterator
from dataclasses import replace

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.executor_config import ExecutorConfig, LocalExecutorConfig
from game_rl.config.experiments.experiment import Experiment
from game_rl.config.experiments.mixture_files import Mixture
from game_rl.config.experiments.population_config import PopulationConfig, SelectionConfig
from game_rl.config.experiments.population_files import Population
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.experiments.forecast.experiment_footprint import (
    duration,
    generation_rows,
    momentary_bytes,
    slots_of,
)
from game_rl.experiments.forecast.experiment_report import (
    ExperimentReport,
    experiment_verdict,
    findings_of,
    is_short_of_memory,
)
from game_rl.games.definition import Game
from game_rl.lake.origin import LakeRows
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, run_facts
from game_rl.preflight.findings import Finding
from game_rl.preflight.fixes import Fix
from game_rl.preflight.preflight import report_of
from game_rl.preflight.preflight_report import PreflightReport
from game_rl.preflight.speed import ExperimentSpeed
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes


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


def population_preflight(
    population: Population,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: ExperimentSpeed | None = None,
) -> ExperimentReport:
    """Predict what a population needs, from reports on one member and on the learner.

    Args:
        measured: measured speeds of members and learner on `machine`.
    """
    alone = replace(machine, cpus=population.config.cpus_per_member)
    facts = run_facts(population.run, game, alone, probe, lake)
    of_member = None if measured is None else measured.member
    member = report_of(population.run, facts, alone, probe=probe, measured=of_member)
    learner = learner_report(population, game, alone, probe, measured)
    slots = slots_of(population.config, member, machine)
    episode_timesteps = facts.episode_timesteps if probe is None else probe.mean
    report = ExperimentReport(
        verdict="fits",
        machine=machine,
        member=member,
        slots=slots,
        growth=tuple(generation_rows(population, facts, member, learner)),
        momentary_bytes=momentary_bytes(population, member, learner, slots=slots),
        findings=(),
        duration=duration(population, member, learner, measured, slots, episode_timesteps),
        gpus_per_member=gpus_of(population.config.executor, member, machine),
        executor=population.config.executor,
        learner=learner,
    )
    findings = tuple(findings_of(population, report))
    return replace(report, verdict=experiment_verdict(report), findings=findings)


def gpus_of(executor: ExecutorConfig, member: PreflightReport, machine: Machine) -> float:
    """Return the GPUs that a member requests from a cluster.

    It is the config's number or, if that is "auto", the member's share of this machine's GPU.
    """
    if isinstance(executor, LocalExecutorConfig):
        return 0.0
    if executor.gpus_per_member != "auto":
        return executor.gpus_per_member
    vram = member.footprint.vram
    if vram is None or vram.gpu >= len(machine.gpus):
        return 0.0
    return min(1.0, math.ceil(100 * vram.peak.bytes / machine.gpus[vram.gpu].total_bytes) / 100)


_ROWS_OF_A_BLOCK = 62  # a block has at most 64 frames, some of which belong to its first stack


def learner_report(
    population: Population,
    game: Game,
    machine: Machine,
    probe: EpisodeLengths | None,
    measured: ExperimentSpeed | None,
) -> PreflightReport | None:
    """Return the report of the learner's last run, which reads the largest Lake.

    None without a learner.
    """
    if population.learner is None:
        return None
    run = population.learner
    without = run.model_copy(
        update={"algorithm": run.algorithm.model_copy(update={"learn_from": None})}
    )
    facts = replace(
        run_facts(without, game, machine, probe, None), learned_lakes=_lake_rows(population)
    )
    taught = _taught(population, run)
    speed = None if measured is None else measured.learner
    return report_of(taught, facts, machine, probe=probe, measured=speed)


def _lake_rows(population: Population) -> LakeRows:
    """Return the rows of all members; each emulator begins a new block in each generation."""
    config, n_envs = population.config, population.run.env.n_envs
    transitions = config.members * config.total_timesteps
    begun = config.members * config.generations * n_envs
    return LakeRows(transitions=transitions, blocks=-(-transitions // _ROWS_OF_A_BLOCK) + begun)


def _taught(population: Population, run: RunConfig) -> RunConfig:
    """Add a teacher, if the learner gets one; it does not matter here which run it is."""
    assert isinstance(run.algorithm, DQNConfig)
    if not population.config.is_taught:
        return run
    teacher = {"run": str(run.run_dir), "keep_if_better": False}
    return with_changed(run, {("algorithm", "teacher"): teacher})


def live_report(mixture: Mixture, report: ExperimentReport) -> ExperimentReport:
    """Turn a population's report into that of a live mixture.

    Args:
        report: the report of a population with as many slots as the mixture has members.
    """
    live = replace(report, is_live=True)
    if report.duration is not None:
        live = replace(live, duration=replace(report.duration, at_once=True))
    others = [each for each in report.findings if each.code != "members_do_not_fit"]
    return replace(
        live, verdict=experiment_verdict(live), findings=(*_of_all_at_once(mixture, live), *others)
    )


def _of_all_at_once(mixture: Mixture, live: ExperimentReport) -> Iterator[Finding]:
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
    wanted = (members + 1) * mixture.config.cpus_per_member
    if wanted > machine.cpus:
        yield Finding(
            "warning",
            "members_share_cpus",
            "members",
            f"{members} members and the learner have {wanted} threads at work on {machine.cpus} "
            "CPUs: each is slower than alone, and what the members play reaches the learner later",
            None,
        )
