"""How fast members of an experiment train side by side."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from statistics import fmean

from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.measure.probe import measure_speed
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.system.share import take_share


def measure_member_speed(
    config: RunConfig, game: Game, *, cpus: int, members_at_once: int
) -> MeasuredSpeed:
    """Means of `measure_speed` in so many processes at once.

    Alone, a member's workers play on a core while its network is at work on another one; where
    members train on all cores, they wait for each other, and for the caches that they share.

    Args:
        cpus: that a member counts as its own.
    """
    spawn = get_context("spawn")
    with ProcessPoolExecutor(members_at_once, spawn, take_share, (cpus,)) as pool:
        members = [pool.submit(measure_speed, config, game) for _ in range(members_at_once)]
        measured = [member.result() for member in members]
    names = [field.name for field in fields(MeasuredSpeed)]
    return MeasuredSpeed(**{name: fmean(getattr(m, name) for m in measured) for name in names})
