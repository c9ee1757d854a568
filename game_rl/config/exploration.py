"""The share of random actions of DQN and PQN: a line over the run, and restarts that raise it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.config.values import Timesteps, UnitInterval

_MOST_RESTARTS = 1_000


class RestartConfig(StrictModel):
    """A restart of exploration: for a while, more actions are random again."""

    at: Timesteps
    """Timestep at which the restart begins, counted from the beginning of the run."""
    start: UnitInterval
    """Share of random actions at that timestep."""
    over: Timesteps
    """Number of timesteps in which the share goes in a straight line to what it would be without
    the restart."""


class ExplorationConfig(StrictModel):
    """The share of actions that are random instead of those with the highest value."""

    start: UnitInterval = 1.0
    """Share of random actions at timestep 0."""
    end: UnitInterval = 0.05
    """Share of random actions from `fraction` of the run on."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Part of total_timesteps in which the share goes from start to end, in a straight line."""
    restarts: Annotated[tuple[RestartConfig, ...], Field(max_length=_MOST_RESTARTS)] = ()
    """Restarts, the earliest first: from each on, more actions are random again for a while. The
    share is never lower than without them."""

    def problems_in_run(self, *, total_timesteps: int, key: Key) -> Iterator[Problem]:
        """Yield restarts that do not agree with one another or with the run.

        Args:
            total_timesteps: length of the run.
            key: key of this section.
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


class PQNExplorationConfig(ExplorationConfig):
    """The share of actions that are random instead of those with the highest value."""

    end: UnitInterval = 0.001
    """Share of random actions from `fraction` of the run on."""


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
            f"{before.at + before.over:,}; use at least {before.at + before.over:,}, or shorten "
            f"that one to over: {restart.at - before.at:_}",
            reads,
        )
