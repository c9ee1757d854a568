"""Timesteps and frames that runs and everything that they come from have played, counted once."""

from collections.abc import Sequence

from game_rl.event_log import read_events
from game_rl.lineage import Source, account_of, counted_once
from game_rl.run_dir import RunDir


def played_by(run_dir: RunDir, frame_skip: int) -> Source:
    """Return a run in its newest state, by its events and checkpoints, with its sources."""
    saved = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    told = [event.timesteps for event in read_events(run_dir)[-1:]]
    return account_of(run_dir, max(saved + told, default=0), frame_skip=frame_skip).run


def at(run: Source, timesteps: int) -> Source:
    """Return the run as it was at this timestep, or as it is if it has not reached it."""
    return run.model_copy(update={"timesteps": min(run.timesteps, timesteps)})


def totals(runs: Sequence[Source]) -> tuple[int, int]:
    """Return the timesteps and frames that runs and everything that they come from have played.

    Each run counts with the figures that it states itself. A reader of its rows in a Lake would
    count by their numbers, of which a fork skips one for each env.
    """
    own = {run.run: run for run in runs}
    counted = [own.get(source.run, source) for source in counted_once(runs)]
    return sum(each.played_timesteps for each in counted), sum(each.frames for each in counted)
