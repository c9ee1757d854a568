"""Train a member of an experiment up to a timestep and write a result."""

import platform
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import read_manifest
from game_rl.checkpoints.checkpoint_store import best_of, find_checkpoint
from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.config.loader import load_config
from game_rl.errors import ExperimentError, NonFiniteError
from game_rl.events import Event, Listener, Progress, RolloutEnded
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.preflight.report import measured_ram_peak_bytes
from game_rl.run_dir import RunDir, check_claim, write_atomic
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.training.offline_phase import is_offline
from game_rl.training.stretch_result import Played, StretchResult, read_result
from game_rl.training.train import Command, resume


@dataclass
class _Speed:
    """A Listener that keeps the latest speed of the training and passes events on."""

    timesteps_per_s: float = 0.0
    others: list[Listener] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress | RolloutEnded):
            self.timesteps_per_s = event.timesteps_per_s
        for other in self.others:
            other(event)


def run_stretch(
    root: Path,
    *,
    until: int,
    seed: int,
    result: Path,
    stop: StopRequest,
    listeners: list[Listener],
) -> StretchResult:
    """Train the run at `root` up to timestep `until`, and evaluate it there with `seed`.

    The result is the same however often the function is interrupted and called again. If there is
    a result already, nothing is done. Non-finite weights after an update are a result, too.

    Raises:
        Interrupted: a signal stopped the training; everything learned is saved.
        GameRLError: see `train.resume`.
    """
    if (found := read_result(result)) is not None:
        return found
    check_claim(RunDir(root))
    started, speed = time.monotonic(), _Speed(others=listeners)
    command = Command(until=until, force=True, evaluates_at_end=False, stop=stop, listeners=[speed])
    ram_peak = 0
    try:
        ram_peak = _trained(root, command, seed)
        end = _end_of(RunDir(root), until, seed)
    except NonFiniteError as error:
        end = StretchResult(timesteps=until, failure="non_finite", text=str(error))
    measured = {
        "host": platform.node(),
        "timesteps_per_s": speed.timesteps_per_s,
        "seconds": round(time.monotonic() - started, 3),
        "ram_peak_bytes": ram_peak,
    }
    return _left(end.model_copy(update=measured), RunDir(root), result)


def _trained(root: Path, command: Command, seed: int) -> int:
    """Train, and return the run's peak of memory in bytes.

    The seed's games are played only at the end of the stretch. Evaluations during the phase before
    the first timestep use other games. So the best policy is always that of a stretch's end, which
    is what an experiment keeps.
    """
    if _is_before_first_timestep(RunDir(root)):
        others = seed_for(seed, "before the first timestep")
        _resume(root, replace(command, until=0), others)
    _resume(root, command, seed)
    return measured_ram_peak_bytes(RunDir(root).footprint)


def _resume(root: Path, command: Command, seed: int) -> None:
    command = replace(command, asks_storage=False)  # the experiment has asked
    resume(root, command, overrides=[f"evaluation.seed={seed}"])


def _is_before_first_timestep(run_dir: RunDir) -> bool:
    checkpoint, _ = find_checkpoint(run_dir)
    return is_offline(load_config(run_dir.config, is_saved=True), checkpoint)


def _left(made: StretchResult, run_dir: RunDir, result: Path) -> StretchResult:
    check_claim(run_dir)
    write_atomic(result, made.model_dump_json(indent=2) + "\n")
    return made


def _end_of(run_dir: RunDir, until: int, seed: int) -> StretchResult:
    """Return the part of the result that follows from the run directory alone."""
    newest = Checkpoint(run_dir.checkpoints_newest_first()[0])
    episodes, best = read_episodes(run_dir), best_of(run_dir, newest)
    timesteps = newest.state.num_timesteps
    if timesteps >= until + load_config(run_dir.config, is_saved=True).rollout_timesteps:
        raise ExperimentError(
            f"{run_dir.root} is at timestep {timesteps:,}, beyond the end of the stretch at "
            f"{until:,}; continue the experiment with --resume, which brings it back"
        )
    if not episodes.timesteps or episodes.timesteps[-1] != timesteps or best is None:
        raise ExperimentError(
            f"{run_dir.root} has no evaluation at timestep {timesteps:,}; "
            "evaluation.every_timesteps must be the length of a stretch"
        )
    return StretchResult(
        timesteps=timesteps,
        checkpoint=newest.path.name,
        weights_sha256=read_manifest(newest.path).files["policy.safetensors"].sha256,
        played=Played(
            seed=seed,
            deterministic=best.deterministic,
            rewards=tuple(map(float, episodes.results[-1])),
            successes=_successes(episodes.successes),
        ),
    )


def _successes(lists: list[list[bool]]) -> tuple[bool, ...]:
    return tuple(map(bool, lists[-1])) if lists else ()


def play_checkpoint(
    root: Path, checkpoint: str, *, episodes: int, seed: int, result: Path
) -> Played:
    """Play episodes with a kept checkpoint, and write their results."""
    run = open_trained_run(root, checkpoint)
    evaluation = evaluate_run(run, episodes=episodes, seed=seed)
    played = Played(
        seed=seed,
        deterministic=evaluation.deterministic,
        rewards=evaluation.rewards,
        successes=evaluation.successes,
    )
    result.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(result, played.model_dump_json(indent=2) + "\n")
    return played
