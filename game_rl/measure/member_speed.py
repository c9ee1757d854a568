"""How fast a member of an experiment trains beside others."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game
from game_rl.measure.probe import measure_speed
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.system.share import take_share


def measure_member_speed(
    config: RunConfig, game: Game, *, cpus: int, members_at_once: int
) -> MeasuredSpeed:
    """As `measure_speed`, in a process that has the cores of one of so many members.

    Alone, a member's workers play on a core while its network is at work on another one; where
    members train on all cores, nobody has a second one.

    Args:
        cpus: that a member counts as its own.
    """
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn, take_share, (cpus, members_at_once)) as pool:
        return pool.submit(measure_speed, config, game).result()
