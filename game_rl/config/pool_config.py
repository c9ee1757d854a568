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
    """How starts of episodes move back along routes, from their ends (Salimans and Chen 2018)."""

    routes: Literal["best"] | Count = "best"
    """Number of routes of the exploration: those with the highest reward, then the shortest ones.
    best: one. With goal: success they end in a success."""
    step: Timesteps = 25
    """Timesteps between two states of a route in which episodes start."""
    success_rate: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Success rate of the latest episodes from one such state, at which episodes move on to the
    state before it on the route."""


class PoolConfig(StrictModel):
    """Saved states in which training episodes may start, in addition to the start states.

    Such an episode is a new one: rewards, endings and limits count from that state on. Evaluations
    always start in the start states.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Annotated[
        RunAt | None,
        Field(alias="from", examples=["explored/beacon", "mine/*.json", "runs/beacon_ppo"]),
    ] = None
    """Where the states come from when the run starts: the folder of a `game-rl explore`, the file
    of a route, such as its best.json, files of recorded episodes, such as mine/*.json, an agent
    that brings some, such as pretrained:duel, or another run with a pool, with @T for its
    checkpoint of timestep T. null: nowhere, so save_on must fill the pool. A resumed run continues
    with the pool of its checkpoint, unless this key changes."""
    save_on: SaveOnConfig | None = None
    """When a state that the training reaches enters the pool; null: never."""
    size: Annotated[int, Field(ge=1, le=100_000)] = 200
    """Largest number of states in the pool. Above it, the pool keeps equally many states for each
    reward that was earned on the way to them, as far as there are that many."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Probability that a training episode starts in a state of the pool instead of a start
    state."""
    choose: Literal["success", "rank", "uniform", "backward"] = "success"
    """How a state is drawn. success: in proportion to p (1 - p), where p is the success rate from
    there, so most often where episodes neither always fail nor always succeed. rank: in proportion
    to its rank by progress, which is the reward of the way to it, then its timesteps; the last of n
    states is drawn n times as often as the first. uniform: every state with the same probability.
    backward: along routes, from their ends to their starts; see `backward`."""
    goal: Literal["success", "reward"] = "success"
    """When an episode counts as a success here. success: by the game's `success`, or, in a game
    without one, if it earns more than 0. reward: if it earns more than 0, so that the agent learns
    every part of the way from one reward to the next at the same time. Terms with a `potential` are
    not counted."""
    write: Annotated[dict[Name, int], Field(default={}, examples=[{"lives": 5}])]
    """Variables that get a value when an episode starts in the pool. For example, set the lives to
    their number at the start, since most of them may have been lost on the way to the state."""
    backward: BackwardConfig = BackwardConfig()
    """With choose: backward, how the states in which episodes start move back along routes."""
    migrate: Literal["furthest"] | None = None
    """furthest: when the pool gets states with a higher reward than any before, the next episode of
    each env starts in one of them (a swarm). null: every start is drawn by `choose`."""

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
                    "backward draws states of routes only, and states that are saved in training "
                    "are on no route; remove save_on, or choose success, rank or uniform",
                    reads=(("choose",),),
                )
            if self.migrate is not None:
                yield Problem(
                    ("migrate",),
                    "backward draws states of routes in the order from end to start; remove "
                    "migrate, or choose success, rank or uniform",
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
