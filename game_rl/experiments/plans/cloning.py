"""Which members of a mixture go on as clones of the learner."""

from collections.abc import Sequence

from game_rl.config.experiments.mixture import CloneConfig
from game_rl.experiments.plans.selection import Copy, Scored, ranked


def clones(members: Sequence[Scored], learner: Scored, config: CloneConfig) -> list[Copy]:
    """By their fitness on the same episodes; of equal ones the higher mean reward decides.

    A member that is not finite is always cloned over: by the learner or, where that is not finite
    either, by the best member.

    Returns:
        In the order of the members' numbers; none if nobody is finite.
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
