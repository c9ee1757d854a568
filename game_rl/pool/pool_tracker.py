"""The part of a pool in a worker: the states from which its envs draw."""

from collections.abc import Sequence

from game_rl.envs.custom_wrappers import GameEnv
from game_rl.envs.episode_starts import PoolBeginning, PoolDraw
from game_rl.envs.make_env import innermost


def hand_pool(env: GameEnv, draw: PoolDraw | None, new: Sequence[PoolBeginning]) -> tuple[int, ...]:
    """Let an env draw in this way from now on.

    Args:
        new: states that it may not have yet.

    Returns:
        Numbers of states that it lacks, because its process is a new one. If there are any, it
        draws from none until it was called again with them.
    """
    pool = innermost(env).starts.pool
    pool.draw = None
    if draw is None:
        pool.states = {}
        return ()
    known = pool.states | {each.number: each for each in new}
    missing = tuple(number for number in draw.numbers if number not in known)
    if not missing:
        pool.states = {number: known[number] for number in draw.numbers}
        pool.draw = draw
    return missing
