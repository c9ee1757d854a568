"""A run that has won, or is already where a command would bring it: it is left as it is."""

from dataclasses import dataclass

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.schema import RunConfig
from game_rl.event_log import final_evaluation, read_events
from game_rl.events import Ended
from game_rl.run_dir import RunDir
from game_rl.system.units import with_frames


@dataclass(frozen=True)
class Asked:
    """What a command asks of a run.

    Attributes:
        until: timestep to bring it to; None: its end.
        evaluates_at_end: whether to play the final evaluation at its end.
        is_changed: whether the config is changed, so that the final evaluation is played again.
    """

    until: int | None
    evaluates_at_end: bool
    is_changed: bool


def already_reached(
    run_dir: RunDir,
    config: RunConfig,
    checkpoint: Checkpoint | None,
    asked: Asked,
) -> Ended | None:
    """Return how the run has ended, or None if there is something to do for the command.

    Args:
        checkpoint: the one that the command continues from, if there is one.
    """
    if checkpoint is None:
        return None
    state, total = checkpoint.state, config.total_timesteps
    met = state.counters_with(config.model_dump(mode="json")).met
    is_newest = run_dir.checkpoints_newest_first()[:1] == [checkpoint.path]
    end = total if asked.until is None else min(asked.until, total)
    if not is_newest or state.evaluation_due or not (met or state.num_timesteps >= end):
        return None
    final = final_evaluation(read_events(run_dir))
    is_complete = final is not None and final.timesteps == state.num_timesteps
    final_is_due = asked.evaluates_at_end and (asked.is_changed or not is_complete)
    if final_is_due and (met or end == total):
        return None
    return Ended(
        timesteps=state.num_timesteps,
        reason="completed" if is_complete else "until",
        exit_code=0,
        text=(
            _won(run_dir, config, state.num_timesteps, met)
            if met
            else _words(run_dir, config, state.num_timesteps, end, is_complete=is_complete)
        ),
    )


def _won(run_dir: RunDir, config: RunConfig, timesteps: int, met: str) -> str:
    return (
        f"{run_dir.root} has ended at timestep {with_frames(timesteps, config.env.frame_skip)}: "
        f"{met}; nothing was trained and nothing was changed; train it on to its total with "
        f"{run_dir.way_on} --set stop_when=null"
    )


def _words(
    run_dir: RunDir, config: RunConfig, timesteps: int, end: int, *, is_complete: bool
) -> str:
    """Say that nothing was done, and what can be done instead."""
    total, root = config.total_timesteps, run_dir.root
    asked = f", and --until asks for {end:,}" if end < total else ", its end"
    way_on = (
        f"train it on with {run_dir.way_on} --set total_timesteps={2 * total}"
        if is_complete
        else f"continue with {run_dir.way_on}"
    )
    back = "; --at T goes back to an earlier checkpoint" if end < timesteps else ""
    return (
        f"{root} is already at timestep {with_frames(timesteps, config.env.frame_skip)}{asked}: "
        f"nothing was trained and nothing was changed; {way_on}{back}"
    )
