"""Check before a run starts whether it fits the machine, and forecast how long it takes."""

from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.preflight.disk import disk_plan, growth_rows
from game_rl.preflight.estimate import Situation, estimate
from game_rl.preflight.facts import EpisodeLengths, MeasuredLake, RunFacts, run_facts
from game_rl.preflight.findings import explain, worst_first
from game_rl.preflight.footprint import verdict
from game_rl.preflight.preflight_report import PreflightReport
from game_rl.preflight.recommendation import Recommendation, RunNeeds
from game_rl.preflight.workload import MeasuredSpeed, forecast_speed
from game_rl.system.machine import Machine, without_installation


def preflight(
    config: RunConfig,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: MeasuredSpeed | None = None,
) -> PreflightReport:
    """Estimate a run, compare it with the machine, and look for settings that could be better.

    Args:
        probe: measured lengths of episodes; None: not measured.
        lake: measured size of a timestep in a Lake; None: not measured.
        measured: measured speed of `machine` at this run; None: not measured.
    """
    facts = run_facts(config, game, machine, probe, lake)
    return report_of(config, facts, machine, probe=probe, measured=measured)


def report_of(
    config: RunConfig,
    facts: RunFacts,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    measured: MeasuredSpeed | None = None,
) -> PreflightReport:
    """As `preflight`, with the game given as numbers."""
    footprint = estimate(config, facts)
    situation = Situation(
        config=config, facts=facts, machine=machine, footprint=footprint, probe=probe
    )
    length = facts.episode_timesteps if probe is None else probe.mean
    speed = (
        forecast_speed(config, footprint.training, measured, episode_timesteps=length)
        if measured is not None
        else None
    )
    growth = growth_rows(config, facts, footprint.training)
    plan = disk_plan(
        config,
        facts,
        footprint,
        installation_bytes=machine.installation_bytes,
        timesteps_per_s=None if speed is None else speed.timesteps_per_s,
    )
    checks = explain(situation)
    findings = worst_first(result.finding for result in checks)
    has_error = any(finding.severity == "error" for finding in findings)
    return PreflightReport(
        "does_not_fit" if has_error else verdict(footprint, machine),
        machine,
        footprint,
        findings,
        plan,
        speed,
        growth,
        checks,
    )


def recommend(
    config: RunConfig,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: MeasuredSpeed | None = None,
    hours: float | None = None,
) -> Recommendation:
    """Return the smallest machine on which a run fits; arguments are as in `preflight`.

    Args:
        machine: machine with the processor and GPU that are meant.
        hours: time in which the run should end; None: any.
    """
    facts = run_facts(config, game, machine, probe, lake)
    length = None if probe is None else probe.mean
    other = without_installation(machine)
    needs = RunNeeds(config, facts, other, measured=measured, episode_timesteps=length)
    return needs.recommendation(hours)
