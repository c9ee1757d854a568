"""The Lake of a run, from its start or from where a checkpoint was."""

from functools import partial

from rich.console import Console
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.ppo import LeanPPO
from game_rl.algorithms.pqn import PQN
from game_rl.callbacks.make_callbacks import warn_on
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.lake.feed import LakeFeed
from game_rl.lake.lake_state import refill_replay
from game_rl.lake.make_feed import make_lake_feed
from game_rl.run_dir import RunDir


def open_feed(
    config: RunConfig,
    run_dir: RunDir,
    model: BaseAlgorithm,
    packing: FramePacking,
    *,
    checkpoint: Checkpoint | None,
    console: Console,
) -> LakeFeed | None:
    """What `model` feeds from now on; None if the run writes no Lake.

    Raises:
        LakeError: the Lake cannot be used as it is.
    """
    state = None if checkpoint is None else checkpoint.lake()
    feed = make_lake_feed(
        config,
        run_dir,
        packing=packing,
        n_actions=int(model.action_space.n),  # type: ignore[attr-defined]  # buttons are discrete
        goes_on=checkpoint is not None,
        saved=None if state is None else (state.stream, state.parsed_mark(run_dir.checkpoints)),
        tell=partial(warn_on, console),
    )
    if feed is not None:
        assert isinstance(model, LeanPPO | PQN | LeanDQN)
        model.feeds = (feed,)
    return feed


def refill(model: BaseAlgorithm, feed: LakeFeed, checkpoint: Checkpoint, console: Console) -> None:
    """What the replay had at the checkpoint; says so if it is not all there."""
    state = checkpoint.lake()
    missing = 0 if state is None else refill_replay(model, feed, state)
    if missing:
        warn_on(
            console,
            f"the replay lacks {missing:,} timesteps that the Lake at {feed.lake.path} did not "
            "get, so this run is not bit for bit the one without the break",
        )
