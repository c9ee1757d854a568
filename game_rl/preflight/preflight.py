"""The question that is asked before a run starts: does it fit, how long does it take?"""

from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.preflight.checks import check
from game_rl.preflight.estimate import estimate
from game_rl.preflight.facts import RunFacts, run_facts
from game_rl.preflight.growth import growth_rows
from game_rl.preflight.measurements import EpisodeLengths, MeasuredLake
from game_rl.preflight.report import Report
from game_rl.preflight.situation import Situation
from game_rl.preflight.speed import MeasuredSpeed, forecast_speed
from game_rl.preflight.verdict import verdict
from game_rl.system.machine import Machine


def preflight(
    config: RunConfig,
    game: Game,
    machine: Machine,
    *,
    probe: EpisodeLengths | None = None,
    lake: MeasuredLake | None = None,
    measured: MeasuredSpeed | None = None,
) -> Report:
    """Estimate, compare with the machine, and look for what could be better.

    Args:
        config: of the run.
        game: that it plays.
        machine: on which it runs.
        probe: how long episodes are.
        lake: what a timestep takes in a Lake.
        measured: how fast `machine` is at this run.
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
) -> Report:
    """As `preflight`, from numbers."""
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
    return Report(verdict(footprint, machine), machine, footprint, check(situation), speed, growth)
