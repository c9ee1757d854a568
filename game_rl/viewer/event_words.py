"""What a report says about an event of a run, in one line."""

from game_rl import events
from game_rl.events import Event
from game_rl.system.units import format_bytes


def event_words(event: Event) -> str:
    """Return one line about an event; empty for those that plots and tables show."""
    match event:
        case events.Begun():
            stop = (
                f"; it ends early after {', or '.join(event.stop_when)}" if event.stop_when else ""
            )
            return f"began on {event.device} in {event.precision}{stop}"
        case events.Resumed():
            return _resumed(event)
        case events.Forked():
            return f"forked from {event.parent_path} at timestep {event.parent_timesteps:,}"
        case events.CheckpointSaved():
            best = ", the best so far" if event.is_best else ""
            return f"checkpoint of {format_bytes(event.n_bytes)} saved{best}"
        case events.WorkerRestarted() | events.Warned() | events.DiskForecast():
            return event.text
        case events.ResourceLow() | events.StopConditionMet():
            return event.text
        case events.ExplorationRestarted():
            return f"exploration begins again: {event.share:.0%} of the actions are random"
        case events.TeacherReady():
            return f"teacher: {event.path}, policy of timestep {event.policy_timesteps:,}"
        case events.Validated():
            return f"validated on {event.episodes} new episodes: the {event.best} is better"
        case events.Uploaded():
            return f"checkpoint {int(event.checkpoint.rpartition('/')[2]):,} uploaded to {event.to}"
        case events.Recorded():
            return f"clip recorded: {event.path}"
        case events.Ended():
            text = f": {event.text}" if event.text else ""
            return f"ended ({event.reason}){text}"
    return ""


def _resumed(event: events.Resumed) -> str:
    words = [f"resumed from checkpoint {int(event.checkpoint.rpartition('/')[2]):,}"]
    if event.not_restored:
        words.append(f"not restored: {'; '.join(event.not_restored)}")
    if event.changes:
        words.append(f"changed: {', '.join(event.changes)}")
    if event.other_code:
        words.append(event.other_code)
    return "; ".join(words)
