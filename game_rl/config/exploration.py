"""How often a Q-learner acts at random: the main line, and where it begins again."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.config.values import Timesteps, UnitInterval

_MOST_RESTARTS = 1_000


class RestartConfig(StrictModel):
    """A stretch of training in which more actions are random again."""

    at: Timesteps
    """The timestep at which it begins, counted from the run's beginning."""
    start: UnitInterval
    """The share of random actions then."""
    over: Timesteps
    """Timesteps in which the share goes in a straight line to what the main line says."""


class ExplorationConfig(StrictModel):
    """How often an action is drawn at random instead of the one that is thought best."""

    start: UnitInterval = 1.0
    """The share of random actions at timestep 0."""
    end: UnitInterval = 0.05
    """The share after `fraction` of the run, from then on the same."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.1
    """The part of total_timesteps in which it goes from start to end, in a straight line."""
    restarts: Annotated[tuple[RestartConfig, ...], Field(max_length=_MOST_RESTARTS)] = ()
    """Stretches in which more actions are random again, the earliest first; the share never falls
    below the main line."""

    def problems_in_run(self, *, total_timesteps: int, key: Key) -> Iterator[Problem]:
        """What does not agree between the restarts, and with the run.

        Args:
            total_timesteps: of the run.
            key: of this section.
        """
        places = [(*key, "restarts", str(index)) for index in range(len(self.restarts))]
        for place, restart in zip(places, self.restarts, strict=True):
            if restart.at >= total_timesteps:
                yield Problem(
                    (*place, "at"),
                    f"{restart.at:,} is not before the run's end, total_timesteps: "
                    f"{total_timesteps:,}; use a smaller one, or remove the restart",
                    (("total_timesteps",),),
                )
        for (_, before), (place, restart) in pairwise(zip(places, self.restarts, strict=True)):
            yield from _order_problems(before, restart, place)


def _order_problems(before: RestartConfig, restart: RestartConfig, place: Key) -> Iterator[Problem]:
    reads = (place[:-1],)
    if restart.at <= before.at:
        yield Problem(
            (*place, "at"),
            f"{restart.at:,} is not after the restart before it, at {before.at:,}; "
            "write the earliest first, and each timestep once",
            reads,
        )
    elif restart.at < before.at + before.over:
        yield Problem(
            (*place, "at"),
            f"{restart.at:,} is within the restart before it, which goes from {before.at:,} to "
            f"{before.at + before.over:,}; use at least {before.at + before.over:,}, or there "
            f"over: {restart.at - before.at:_}",
            reads,
        )
