"""A run that a condition of `stop_when` has ended: it is left as it is, until that is changed."""

import shlex

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.event_log import read_events
from game_rl.events import Ended
from game_rl.run_dir import RunDir
from game_rl.system.units import with_frames


def won(run_dir: RunDir, config: RunConfig, checkpoint: Checkpoint) -> Ended | None:
    """Return how the run has ended; None if it goes on, or its final evaluation is not played yet.

    Args:
        config: config with which the run is to go on.
        checkpoint: the one that it would continue from.
    """
    state = checkpoint.state
    met = state.counters_with(config.model_dump(mode="json")).met
    last = read_events(run_dir)[-1:]
    if not (met and last and isinstance(last[0], Ended) and last[0].reason == "completed"):
        return None
    timesteps = with_frames(state.num_timesteps, config.env.frame_skip)
    return Ended(
        timesteps=state.num_timesteps,
        reason="completed",
        exit_code=0,
        text=(
            f"{run_dir.root} has ended at timestep {timesteps}: {met}; nothing was trained and "
            "nothing was changed; train it on to its total with --resume "
            f"{shlex.quote(str(run_dir.root))} --set stop_when=null"
        ),
    )
