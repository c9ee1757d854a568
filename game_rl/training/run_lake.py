"""Open the Lake of a run, new or at the state of a checkpoint."""

from collections.abc import Callable
from contextlib import suppress

from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.ppo import LeanPPO
from game_rl.algorithms.pqn import PQN
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.errors import CheckpointError, LakeError
from game_rl.games.definition import Game
from game_rl.lake.lake_feed import LakeFeed, make_lake_feed
from game_rl.lake.mark import Mark
from game_rl.lake.origin import origin_of, write_origin
from game_rl.lake.pond_refill import refill_replay
from game_rl.run_dir import RunDir


def open_feed(
    config: RunConfig,
    run_dir: RunDir,
    model: BaseAlgorithm,
    packing: FramePacking,
    *,
    game: Game,
    checkpoint: Checkpoint | None,
    tell: Callable[[str], None],
) -> LakeFeed | None:
    """Open the run's Lake and let `model` write to it; None if the run writes no Lake.

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
        saved=None if state is None else state.saved_stream(run_dir.checkpoints),
        set_aside=_set_aside_marks(run_dir),
        tell=tell,
    )
    if feed is not None:
        with suppress(OSError):  # the feed reports a failing disk
            write_origin(feed.lake.path, feed.stream, origin_of(config, game))
        assert isinstance(model, LeanPPO | PQN | LeanDQN)
        model.feeds = (feed,)
    return feed


def _set_aside_marks(run_dir: RunDir) -> dict[str, Mark]:
    """Return the marks of checkpoints that were set aside when the run went back, if readable."""
    marks = {}
    for path in run_dir.set_aside_checkpoints():
        with suppress(CheckpointError, LakeError):
            if (state := Checkpoint(path).lake()) is not None:
                marks[path.name] = state.parsed_mark(path)
    return marks


def refill(model: BaseAlgorithm, feed: LakeFeed, checkpoint: Checkpoint) -> int:
    """Restore the replay of the checkpoint; return the number of timesteps that are missing."""
    state = checkpoint.lake()
    return 0 if state is None else refill_replay(model, feed, state)
