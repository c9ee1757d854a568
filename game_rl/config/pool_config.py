"""`env.pool`: the states in which episodes of the training begin, besides the start states."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import RunAt


class PoolConfig(StrictModel):
    """States in which episodes of the training begin, besides the start states.

    Such an episode is a new one: rewards, endings and limits count from that state on. Evaluations
    always begin in the start states.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Annotated[
        RunAt | None, Field(alias="from", examples=["explored/beacon", "runs/beacon_ppo"])
    ] = None
    """Where the states come from when the run begins: the folder of a `game-rl explore`, or
    another run with a pool, with @T for its checkpoint of timestep T. A resumed run goes on with
    the pool of its checkpoint."""
    size: Annotated[int, Field(ge=1, le=100_000)] = 200
    """The most states in the pool. Of more, each reward that a state's way has earned keeps as many
    states as every other, if it has as many."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Probability that an episode of the training begins in the pool, not in a start state."""
    choose: Literal["rank", "uniform"] = "uniform"
    """How a state is drawn. rank: in proportion to its rank by progress, which is the reward of the
    way to it, then its timesteps; the last of n states is drawn n times as often as the first.
    uniform: evenly."""

    def problems(self) -> Iterator[Problem]:
        if self.from_ is None:
            yield Problem(
                ("from",),
                "there is nothing to fill the pool; write the folder of an exploration (game-rl "
                "explore) or of a run with a pool",
            )
