"""The choice of a mixture's members that clones of the learner replace."""

from collections.abc import Sequence

from game_rl.config.experiments.mixture_config import CloneConfig
from game_rl.experiments.plans.selection import Copy, Scored, ranked


def clones(members: Sequence[Scored], learner: Scored, config: CloneConfig) -> list[Copy]:
    """Return which members are cloned over, by their fitness on the same episodes.

    Of equal fitness, the higher mean reward is better. A member with non-finite weights is always
    cloned over: by the learner or, if its weights are not finite either, by the best member.

    Returns:
        The clones, in the order of the members' numbers; empty if no weights are finite.
    """
    order = ranked(members)
    parent = learner if learner.fitness is not None else order[0]
    if parent.fitness is None:
        return []
    broken = [member for member in members if member.fitness is None]
    beaten: list[Scored] = []
    if learner.fitness is not None:
        finite = [member for member in order if member.fitness is not None]
        reached = finite if config.to == "all" else order[-1:]
        beaten = [m for m in reached if not config.only_if_better or _is_better(learner, m)]
    numbers = {member.number for member in (*broken, *beaten)}
    return [Copy(number, parent.number) for number in sorted(numbers)]


def _is_better(one: Scored, other: Scored) -> bool:
    if one.fitness is None or other.fitness is None:
        return other.fitness is None
    return (one.fitness, one.mean_reward) > (other.fitness, other.mean_reward)
