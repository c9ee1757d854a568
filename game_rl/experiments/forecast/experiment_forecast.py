"""The preflight of an experiment, made of its runs' reports."""

import math
from dataclasses import replace

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.executor_config import ExecutorConfig, LocalExecutorConfig
from game_rl.config.experiments.experiment import Experiment
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
)
from game_rl.games.definition import Game
from game_rl.lake.origin import LakeRows
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, run_facts
from game_rl.preflight.preflight import report_of
from game_rl.preflight.preflight_report import PreflightReport
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
    """Predict what an experiment needs, from reports on one member and on the learner.

    Args:
        measured: measured speeds of members and learner on `machine`.
    """
    config = experiment.config
    alone = replace(machine, cpus=config.cpus_per_member)
    facts = run_facts(experiment.run, game, alone, probe, lake)
    of_member = None if measured is None else measured.member
    member = report_of(experiment.run, facts, alone, probe=probe, measured=of_member)
    learner = learner_report(experiment, game, alone, probe, measured)
    slots = slots_of(config, member, machine)
    episode_timesteps = facts.episode_timesteps if probe is None else probe.mean
    report = ExperimentReport(
        config=config,
        verdict="fits",
        machine=machine,
        member=member,
        slots=slots,
        growth=tuple(generation_rows(experiment, facts, member, learner)),
        momentary_bytes=momentary_bytes(config, member, learner, slots=slots),
        findings=(),
        duration=duration(experiment, member, learner, measured, slots, episode_timesteps),
        gpus_per_member=gpus_of(config.executor, member, machine),
        learner=learner,
    )
    findings = tuple(findings_of(report))
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
    experiment: Experiment,
    game: Game,
    machine: Machine,
    probe: EpisodeLengths | None,
    measured: ExperimentSpeed | None,
) -> PreflightReport | None:
    """Return the report of the learner's last run, which reads the largest Lake.

    None without a learner.
    """
    if experiment.learner is None:
        return None
    run = experiment.learner
    without = run.model_copy(
        update={"algorithm": run.algorithm.model_copy(update={"learn_from": None})}
    )
    facts = replace(
        run_facts(without, game, machine, probe, None), learned_lakes=_lake_rows(experiment)
    )
    taught = _taught(experiment, run)
    speed = None if measured is None else measured.learner
    return report_of(taught, facts, machine, probe=probe, measured=speed)


def _lake_rows(experiment: Experiment) -> LakeRows:
    """Return the rows of all members; each emulator begins a new block in each generation."""
    config, n_envs = experiment.config, experiment.run.env.n_envs
    transitions = config.members * config.total_timesteps
    begun = config.members * config.generations * n_envs
    return LakeRows(transitions=transitions, blocks=-(-transitions // _ROWS_OF_A_BLOCK) + begun)


def _taught(experiment: Experiment, run: RunConfig) -> RunConfig:
    """Add a teacher, if the learner gets one; it does not matter here which run it is."""
    assert isinstance(run.algorithm, DQNConfig)
    if not experiment.config.is_taught:
        return run
    teacher = {"run": str(run.run_dir), "keep_if_better": False}
    return with_changed(run, {("algorithm", "teacher"): teacher})
