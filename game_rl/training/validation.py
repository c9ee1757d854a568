"""Decide by new episodes whether a run's best policy is its own or its teacher's."""

from game_rl.callbacks.evaluation import Evaluation
from game_rl.checkpoints.checkpoint_store import best_of, newest_valid_checkpoint
from game_rl.config.schema import RunConfig
from game_rl.event_log import EventLog
from game_rl.events import Validated
from game_rl.playback.teacher_copy import (
    Score,
    Validation,
    has_teacher,
    read_validation,
    write_validation,
)
from game_rl.playback.trained_run import TrainedRun, evaluate_run, open_own_run, open_teacher
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest


def validate(run_dir: RunDir, config: RunConfig, events: EventLog, stop: StopRequest) -> None:
    """Let student and teacher play the same episodes, unless they have; the better one is the best.

    The episodes' seed is used for nothing else: neither for evaluations, which selected the
    student's best policy, nor for the run's final evaluation, which reports the winner.

    Raises:
        EvaluationInterrupted: a stop was requested; nothing is decided yet.
    """
    newest, _ = newest_valid_checkpoint(run_dir)
    best, now = best_of(run_dir, newest), newest.state.num_timesteps
    if not (episodes := config.validation_episodes) or not has_teacher(run_dir) or best is None:
        return
    if read_validation(run_dir, at_timesteps=now, best=best.timesteps) is not None:
        return
    seed = seed_for(config.seed, "teacher_validation")

    def play(run: TrainedRun) -> Score:
        return _score(evaluate_run(run, episodes=episodes, seed=seed, stop=stop))

    validation = Validation(
        at_timesteps=now,
        student_timesteps=best.timesteps,
        episodes=episodes,
        student=play(open_own_run(run_dir.root, "best")),
        teacher=play(open_teacher(run_dir.root)),
    )
    events.emit(_event(validation, events.timesteps))
    write_validation(run_dir, validation)


def _score(evaluation: Evaluation) -> Score:
    return Score(mean_reward=evaluation.mean_reward, success_rate=evaluation.success_rate)


def _event(validation: Validation, timesteps: int) -> Validated:
    student, teacher = validation.student, validation.teacher
    return Validated(
        timesteps=timesteps,
        episodes=validation.episodes,
        student_timesteps=validation.student_timesteps,
        student_mean_reward=student.mean_reward,
        student_success_rate=student.success_rate,
        teacher_mean_reward=teacher.mean_reward,
        teacher_success_rate=teacher.success_rate,
        best="teacher" if validation.teacher_is_best else "student",
    )
