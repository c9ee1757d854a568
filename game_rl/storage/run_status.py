"""The state of a run and of its uploads, from the files that it leaves."""

from dataclasses import asdict, dataclass

from game_rl.events import (
    BaselinePlayed,
    Begun,
    CheckpointSaved,
    Ended,
    Evaluated,
    Event,
    HintGiven,
    Resumed,
    RolloutEnded,
    StopConditionMet,
)
from game_rl.events.curve_points import read_curves
from game_rl.events.event_log import read_events
from game_rl.events.milestone_rows import MilestoneRow, milestone_rows
from game_rl.files.run_dir import RunDir
from game_rl.storage.journal import UploadState, read_upload_state
from game_rl.storage.manifest import run_folder

_LAST_POINTS = 5  # of a curve that changes with each episode


@dataclass(frozen=True)
class StoredPart:
    """The part of a run that is in storage.

    Attributes:
        address: address of the run in storage.
        checkpoints: timesteps of the stored checkpoints, ascending.
        newest: timesteps of the newest stored checkpoint, or None.
        is_newest_safe: whether that one is at least as new as the newest checkpoint here.
        waiting: timesteps of the checkpoints that wait to be uploaded, newest first.
        waiting_bytes: upper bound of the bytes that those need.
    """

    address: str
    checkpoints: tuple[int, ...]
    newest: int | None
    is_newest_safe: bool
    waiting: tuple[int, ...]
    waiting_bytes: int


@dataclass(frozen=True)
class RunStatus:
    """The current state of a run.

    Attributes:
        run: id of the run.
        is_training: whether a process on this machine is training it; None if that cannot be
            told, because this user may not read the lock.
        timesteps: highest timestep of any event.
        frames: emulator frames of these timesteps; None if the log does not say `frame_skip`.
        last_checkpoint: timesteps of the newest checkpoint here, or None.
        evaluation: timesteps, mean reward and success rate of the newest evaluation, and whether
            it is the final one.
        baselines: what policies reached that have learned nothing, in words.
        ended: how the last process ended, in a word; None while it trains, or if it was killed.
        stop_when: conditions under which the run ends before its total, in words.
        ended_by: the one that has ended it; empty if none has.
        milestones: what it has reached, with the last maximum of each variable.
        hints: texts of the hints that it was given, the newest last, each once.
        stuck_episodes: share of the last episodes that were stuck; None if it is not known.
        uploads: None if the run was never uploaded.
    """

    run: str
    is_training: bool | None
    timesteps: int
    frames: int | None
    total_timesteps: int | None
    timesteps_per_s: float | None
    last_checkpoint: int | None
    evaluation: dict[str, float | int | bool | None] | None
    baselines: tuple[str, ...]
    ended: str | None
    stop_when: tuple[str, ...]
    game_changes: tuple[str, ...]
    ended_by: str
    milestones: tuple[MilestoneRow, ...]
    hints: tuple[str, ...]
    stuck_episodes: float | None
    uploads: StoredPart | None

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def run_status(run_dir: RunDir) -> RunStatus:
    """Return the state of a run; raise UsageError if its identity cannot be read."""
    events = read_events(run_dir)
    here = [int(path.name) for path in run_dir.checkpoints_newest_first()]
    starts = [event for event in events if isinstance(event, Begun | Resumed)]
    speeds = [event.timesteps_per_s for event in events if event.event == "rollout_ended"]
    evaluations = [event for event in events if isinstance(event, Evaluated)]
    saved = [event.timesteps for event in events if isinstance(event, CheckpointSaved)]
    last = events[-1] if events else None
    run = run_dir.identity().id
    state = read_upload_state(run_dir.upload_journal)
    timesteps = max([event.timesteps for event in events], default=0)
    return RunStatus(
        run=run,
        is_training=run_dir.is_locked,
        timesteps=timesteps,
        frames=_frames(events, timesteps),
        total_timesteps=starts[-1].total_timesteps if starts else None,
        timesteps_per_s=speeds[-1] if speeds else None,
        last_checkpoint=max([*here, *saved[-1:]], default=None),
        evaluation=None if not evaluations else _evaluation(evaluations[-1]),
        baselines=tuple(event.in_words for event in events if isinstance(event, BaselinePlayed)),
        ended=last.reason if isinstance(last, Ended) else None,
        stop_when=starts[-1].stop_when if starts else (),
        game_changes=starts[-1].game_changes if starts else (),
        ended_by=_ended_by(events),
        milestones=tuple(milestone_rows(events, is_newest=True)),
        hints=_hints(events),
        stuck_episodes=_stuck_episodes(events),
        uploads=None if state.to is None else _stored_part(state, run, here),
    )


def _frames(events: list[Event], timesteps: int) -> int | None:
    frame_skip = next((e.frame_skip for e in events[::-1] if isinstance(e, Begun | Resumed)), None)
    waited = [event.waited_frames for event in events if event.waited_frames is not None]
    return None if frame_skip is None else timesteps * frame_skip + max(waited, default=0)


def _ended_by(events: list[Event]) -> str:
    """Return the condition that has ended the run, if nothing was played since."""
    last = [event for event in events if isinstance(event, StopConditionMet | RolloutEnded)][-1:]
    return last[0].text if last and isinstance(last[0], StopConditionMet) else ""


def _hints(events: list[Event]) -> tuple[str, ...]:
    given = {event.name: event for event in events if isinstance(event, HintGiven)}
    return tuple(hint.text for hint in sorted(given.values(), key=lambda hint: hint.timesteps))


def _stuck_episodes(events: list[Event]) -> float | None:
    curve = read_curves(events).get("game/stuck/episodes")
    return None if curve is None else float(curve.values[-_LAST_POINTS:].mean())


def _evaluation(event: Evaluated) -> dict[str, float | int | bool | None]:
    return {
        "policy_timesteps": event.policy_timesteps,
        "mean_reward": event.mean_reward,
        "success_rate": event.success_rate,
        "is_final": event.is_final,
    }


def _stored_part(state: UploadState, run: str, here: list[int]) -> StoredPart:
    stored = tuple(sorted(state.committed))
    newest = stored[-1] if stored else None
    return StoredPart(
        address=f"{state.to}/{run_folder(run)}",
        checkpoints=stored,
        newest=newest,
        is_newest_safe=newest is not None and newest >= max(here, default=0),
        waiting=tuple(sorted(state.waiting, reverse=True)),
        waiting_bytes=sum(state.waiting.values()),
    )
