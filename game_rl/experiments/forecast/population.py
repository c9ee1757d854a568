"""Memory, disk space and time that a population needs."""

import math
from dataclasses import replace

from game_rl.config.experiments.executor_config import ExecutorConfig, LocalExecutorConfig
from game_rl.config.experiments.population_files import Population
from game_rl.experiments.forecast.duration import duration
from game_rl.experiments.forecast.findings import findings_of
from game_rl.experiments.forecast.growth import generation_rows, momentary_bytes
from game_rl.experiments.forecast.learner import learner_report
from game_rl.experiments.forecast.report import ExperimentReport
from game_rl.experiments.forecast.slots import slots_of
from game_rl.experiments.forecast.verdict import verdict_of
from game_rl.games.definition import Game
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, run_facts
from game_rl.preflight.preflight import report_of
from game_rl.preflight.preflight_report import Report
from game_rl.preflight.speed import ExperimentSpeed
from game_rl.system.machine import Machine


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
    return replace(report, verdict=verdict_of(report), findings=findings)


def gpus_of(executor: ExecutorConfig, member: Report, machine: Machine) -> float:
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
