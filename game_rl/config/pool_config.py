"""`env.pool`: the states in which episodes of the training begin, besides the start states."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.values import Count, Name, RunAt, Timesteps


class SaveOnConfig(StrictModel):
    """When a state that the training reaches enters the pool."""

    new_maximum: Annotated[Name, Field(examples=["keys"])]
    """Name of a variable of game.yaml. The state after a timestep enters in which the variable
    rises above all its values in the episode, unless the run has saved a state with a higher
    one."""


class BackwardConfig(StrictModel):
    """How beginnings move back along routes, from their ends (Salimans and Chen 2018)."""

    routes: Literal["best"] | Count = "best"
    """Number of routes of the exploration: those with the highest reward, then the shortest ones.
    best: one. With goal: success they end in a success."""
    step: Timesteps = 25
    """Timesteps between two beginnings on a route."""
    success_rate: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Success rate from a beginning, over its last episodes, at which the one before it follows."""


class PoolConfig(StrictModel):
    """States in which episodes of the training begin, besides the start states.

    Such an episode is a new one: rewards, endings and limits count from that state on. Evaluations
    always begin in the start states.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Annotated[
        RunAt | None,
        Field(alias="from", examples=["explored/beacon", "mine/*.json", "runs/beacon_ppo"]),
    ] = None
    """Where the states come from when the run begins: the folder of a `game-rl explore`, the file
    of a route, such as its best.json, files of recorded episodes, such as mine/*.json, or another
    run with a pool, with @T for its checkpoint of timestep T. null: nowhere, so save_on must fill
    the pool. A resumed run goes on with the pool of its checkpoint, unless this changes."""
    save_on: SaveOnConfig | None = None
    """When a state that the training reaches enters the pool; null: never."""
    size: Annotated[int, Field(ge=1, le=100_000)] = 200
    """The most states in the pool. Of more, each reward that a state's way has earned keeps as many
    states as every other, if it has as many."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Probability that an episode of the training begins in the pool, not in a start state."""
    choose: Literal["success", "rank", "uniform", "backward"] = "success"
    """How a state is drawn. success: in proportion to p (1 - p), where p is the success rate from
    there, so most often where episodes neither always fail nor always succeed. rank: in proportion
    to its rank by progress, which is the reward of the way to it, then its timesteps; the last of n
    states is drawn n times as often as the first. uniform: evenly. backward: from the ends of
    routes backwards, see below."""
    goal: Literal["success", "reward"] = "success"
    """When an episode counts as a success here. success: by the game's `success`, or, in a game
    without one, if it earns more than 0. reward: if it earns more than 0, so that every stretch
    between two rewards is learned at the same time. Terms with a `potential` are not counted."""
    write: Annotated[dict[Name, int], Field(default={}, examples=[{"lives": 5}])]
    """Variables that get a value when an episode begins in the pool, such as as many lives as at
    the start, since the way to a state may have cost most of them."""
    backward: BackwardConfig = BackwardConfig()
    """How beginnings move back along routes, with choose: backward."""
    migrate: Literal["furthest"] | None = None
    """furthest: when the pool gets states with a higher reward than any before, the next episode of
    each env begins in one of them (a swarm). null: all beginnings are drawn."""

    def problems(self) -> Iterator[Problem]:
        if self.choose == "backward":
            if self.from_ is None:
                yield Problem(
                    ("choose",),
                    "backward goes along routes; name the folder of an exploration, or the file of "
                    "a route, in env.pool.from, or choose success, rank or uniform",
                    reads=(("from",),),
                )
            if self.save_on is not None:
                yield Problem(
                    ("save_on",),
                    "backward draws states of routes only, and what is saved in training is on "
                    "none; remove save_on, or choose success, rank or uniform",
                    reads=(("choose",),),
                )
            if self.migrate is not None:
                yield Problem(
                    ("migrate",),
                    "backward draws states of routes from their ends backwards; remove migrate, "
                    "or choose success, rank or uniform",
                    reads=(("choose",),),
                )
        elif self.from_ is None and self.save_on is None:
            yield Problem(
                ("from",),
                "there is nothing to fill the pool; write the folder of an exploration (game-rl "
                "explore) or of a run with a pool, or fill it in training, for example with "
                "save_on: {new_maximum: keys}",
                reads=(("save_on",),),
            )
