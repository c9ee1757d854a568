"""Evaluate a run's best policy at its end, and record a clip of it."""

from dataclasses import dataclass
from pathlib import Path

from game_rl.callbacks.evaluation import Evaluation, EvaluationInterrupted, evaluated_event
from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted
from game_rl.event_log import EventLog
from game_rl.events import Evaluating, Recorded
from game_rl.playback.recording import record_run
from game_rl.playback.trained_run import TrainedRun, evaluate_run, open_trained_run
from game_rl.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from game_rl.training.validation import validate


@dataclass(frozen=True)
class FinalEvaluation:
    """The final evaluation of the best policy.

    Attributes:
        policy_name: name of the policy, for people.
        video: the clip, or None if none was recorded.
    """

    evaluation: Evaluation
    policy_name: str
    video: Path | None


def evaluate_best(
    run_dir: RunDir, config: RunConfig, events: EventLog, stop: StopRequest
) -> FinalEvaluation:
    """Play the best policy on episodes that were not used for any selection, and record it.

    If the run has a teacher, the better of student and teacher is chosen first.

    Raises:
        Interrupted: a stop was requested; everything is saved.
    """
    try:
        validate(run_dir, config, events, stop)
    except EvaluationInterrupted:
        raise _stopped(run_dir, stop) from None
    best = open_trained_run(run_dir.root, "best")
    timesteps, episodes = best.state.num_timesteps, best.config.evaluation.final_episodes
    events.emit(
        Evaluating(
            timesteps=events.timesteps,
            policy_timesteps=timesteps,
            episodes=episodes,
            is_final=True,
        )
    )
    try:
        evaluation = evaluate_run(best, episodes=episodes, stop=stop)
    except EvaluationInterrupted:
        raise _stopped(run_dir, stop) from None
    events.emit(
        evaluated_event(
            evaluation,
            timesteps=events.timesteps,
            policy_timesteps=timesteps,
            is_final=True,
        )
    )
    video = _record(best)
    if video is not None:
        events.emit(Recorded(timesteps=events.timesteps, path=str(video)))
    return FinalEvaluation(evaluation, best.name, video)


def _stopped(run_dir: RunDir, stop: StopRequest) -> Interrupted:
    code = stop.reason.exit_code if stop.reason is not None else Interrupted("").exit_code
    return Interrupted(
        f"{stop.reason}; the training is complete, and {run_dir.way_on} evaluates it",
        exit_code=code,
    )


def _record(best: TrainedRun) -> Path | None:
    recording = best.config.recording
    if recording.episodes == 0:
        return None
    output = best.run_dir.videos / f"best.{recording.format}"
    return record_run(best, episodes=recording.episodes, output=output, max_s=recording.max_s)
