"""What runs, and all that they come from, have played: each counts once."""

from collections.abc import Sequence

from game_rl.event_log import read_events
from game_rl.lineage import Source, account_of, counted_once
from game_rl.run_dir import RunDir


def played_by(run_dir: RunDir, frame_skip: int) -> Source:
    """The run, as far as its account and its checkpoints go, with all that it comes from."""
    saved = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    told = [event.timesteps for event in read_events(run_dir)[-1:]]
    return account_of(run_dir, max(saved + told, default=0), frame_skip=frame_skip).run


def at(run: Source, timesteps: int) -> Source:
    """The run when it had come to this timestep, if it has come so far."""
    return run.model_copy(update={"timesteps": min(run.timesteps, timesteps)})


def totals(runs: Sequence[Source]) -> tuple[int, int]:
    """Timesteps and frames that all of them, and all that they come from, have played.

    What one of the runs has played is what it says itself: who reads its rows from a Lake counts by
    their numbers, of which a fork leaves one out for each env.
    """
    own = {run.run: run for run in runs}
    counted = [own.get(source.run, source) for source in counted_once(runs)]
    return sum(each.played_timesteps for each in counted), sum(each.frames for each in counted)
