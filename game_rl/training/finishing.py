"""Train the run of an (arm, seed) of a study to its end and test it."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from game_rl.callbacks.evaluation import EvaluationInterrupted
from game_rl.checkpoints.checkpoint_files import read_manifest
from game_rl.config.loader import load_config
from game_rl.errors import Interrupted, NonFiniteError
from game_rl.events import Listener
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.run_dir import RunDir, check_claim
from game_rl.system.stop_request import StopRequest
from game_rl.training.finished import Finished, read_finished, write_finished
from game_rl.training.stretch_result import Played
from game_rl.training.train import Command, resume


@dataclass(frozen=True, kw_only=True)
class FinalTest:
    """The episodes that test a finished run.

    Attributes:
        selection: the policy that plays: the best one or the last one.
        seed: seed of the episodes.
    """

    selection: Literal["best", "last"]
    episodes: int
    seed: int


def finish_run(
    root: Path, test: FinalTest, *, result: Path, stop: StopRequest, listeners: list[Listener]
) -> Finished:
    """Train the run at `root` to its end, test it, and write the result.

    The result is the same however often the function is interrupted and called again. If there is
    a result already, nothing is done. Non-finite weights after an update are a result, too.

    Raises:
        Interrupted: a signal stopped it; everything learned is saved.
        GameRLError: see `train.resume`.
    """
    found = read_finished(result)
    if found is not None:
        return found
    check_claim(RunDir(root))
    started = time.monotonic()
    try:
        _train(root, stop, listeners)
        end = _tested(root, test, stop)
    except NonFiniteError as error:
        end = Finished(failure="non_finite", text=str(error))
    return write_finished(result, end, root=root, seconds=time.monotonic() - started)


def _train(root: Path, stop: StopRequest, listeners: list[Listener]) -> None:
    """Train to the end, without the final evaluation unless it chooses student or teacher."""
    config = load_config(RunDir(root).config, is_saved=True)
    has_teacher = config.validation_episodes > 0
    command = Command(force=True, evaluates_at_end=has_teacher, stop=stop, listeners=listeners)
    resume(root, command)


def _tested(root: Path, test: FinalTest, stop: StopRequest) -> Finished:
    run = open_trained_run(root, "best" if test.selection == "best" else "latest")
    try:
        evaluation = evaluate_run(run, episodes=test.episodes, seed=test.seed, stop=stop)
    except EvaluationInterrupted:
        code = stop.reason.exit_code if stop.reason is not None else Interrupted("").exit_code
        raise Interrupted(f"{stop.reason}; the run is complete", exit_code=code) from None
    newest = RunDir(root).checkpoints_newest_first()[0]
    return Finished(
        timesteps=int(newest.name),
        policy_timesteps=run.state.num_timesteps,
        weights_sha256=read_manifest(run.checkpoint.path).files["policy.safetensors"].sha256,
        played=Played(
            seed=test.seed,
            deterministic=evaluation.deterministic,
            rewards=evaluation.rewards,
            successes=evaluation.successes,
        ),
    )
