"""What a member's process does: train a stretch, play, copy, finish, compare actions."""

import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.callbacks.evaluation import EvaluationInterrupted
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import read_manifest
from game_rl.checkpoints.checkpoint_store import best_of, find_checkpoint
from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.config.loader import load_config
from game_rl.config.strict_model import Key
from game_rl.durable_files import write_saved
from game_rl.errors import ExperimentError, NonFiniteError
from game_rl.events import Event, Listener, Progress, RolloutEnded
from game_rl.jobs.results import (
    ActionDifferences,
    FinishedRun,
    Played,
    StretchResult,
    read_finished,
    read_stretch_result,
    write_finished,
)
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.playback.trained_run import evaluate_run, open_own_run, open_trained_run
from game_rl.preflight.preflight_report import measured_ram_peak_bytes
from game_rl.run_dir import RunDir, check_claim
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.system.threads import torch_threads
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork
from game_rl.training.offline_phase import is_offline
from game_rl.training.train import TrainCommand, resume


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
    if (found := read_stretch_result(result)) is not None:
        return found
    check_claim(RunDir(root))
    started, speed = time.monotonic(), _Speed(others=listeners)
    command = TrainCommand(
        until=until, force=True, evaluates_at_end=False, stop=stop, listeners=[speed]
    )
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


def _trained(root: Path, command: TrainCommand, seed: int) -> int:
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


def _resume(root: Path, command: TrainCommand, seed: int) -> None:
    command = replace(command, asks_storage=False)  # the experiment has asked
    resume(root, command, overrides=[f"evaluation.seed={seed}"])


def _is_before_first_timestep(run_dir: RunDir) -> bool:
    checkpoint, _ = find_checkpoint(run_dir)
    return is_offline(load_config(run_dir.config, is_saved=True), checkpoint)


def _left(made: StretchResult, run_dir: RunDir, result: Path) -> StretchResult:
    check_claim(run_dir)
    write_saved(result, made)
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
    write_saved(result, played)
    return played


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
) -> FinishedRun:
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
        end = FinishedRun(failure="non_finite", text=str(error))
    return write_finished(result, end, root=root, seconds=time.monotonic() - started)


def _train(root: Path, stop: StopRequest, listeners: list[Listener]) -> None:
    """Train to the end, without the final evaluation unless it chooses student or teacher."""
    config = load_config(RunDir(root).config, is_saved=True)
    has_teacher = config.validation_episodes > 0
    command = TrainCommand(force=True, evaluates_at_end=has_teacher, stop=stop, listeners=listeners)
    resume(root, command)


def _tested(root: Path, test: FinalTest, stop: StopRequest) -> FinishedRun:
    run = open_trained_run(root, "best" if test.selection == "best" else "latest")
    try:
        evaluation = evaluate_run(run, episodes=test.episodes, seed=test.seed, stop=stop)
    except EvaluationInterrupted:
        raise stop.interrupted(f"{stop.reason}; the run is complete") from None
    newest = RunDir(root).checkpoints_newest_first()[0]
    return FinishedRun(
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


def copy_run(
    parent: Path,
    *,
    at: int,
    to: Path,
    values: Mapping[str, object],
    fork: Mapping[str, object] | None = None,
    run_id: str | None = None,
    known_as: Path | None = None,
) -> None:
    """Fork the checkpoint of timestep `at` into `to`, with these values at dotted keys.

    The folder appears in one rename. If it exists already, nothing is done.

    Args:
        fork: values of the config's section `fork`, apart from `run`; None: the defaults.
        run_id: see `RunDir.identity`.
        known_as: path under which the fork names its parent; None: `parent`.

    Raises:
        CheckpointError: there is no such checkpoint.
        UsageError: it cannot be forked in this way.
    """
    if (to / "config.yaml").exists():
        return
    source = find_source(parent, at)
    changed: dict[Key, object] = {tuple(key.split(".")): value for key, value in values.items()}
    plan = plan_fork(forked_config(source, to, changed, fork=fork), known_as=known_as)
    make_fork(plan, run_id=run_id)


_AT_ONCE = 64  # observations; with the network's activations they take some tens of megabytes


def compare_actions(
    members: Path,
    checkpoints: Mapping[str, int],
    *,
    lake: Path,
    observations: int,
    seed: int,
    result: Path,
) -> ActionDifferences:
    """Draw observations from a Lake, and write how often the runs act differently on them.

    The same Lake, checkpoints and seed give the same bytes, whatever else this machine does.

    Args:
        members: folder of the run directories.
        checkpoints: timestep of each run's checkpoint, by the name of its run directory.
        observations: number of observations to draw.
        result: file to write.

    Raises:
        LakeError: the Lake is missing or damaged.
        CheckpointError: a checkpoint is missing or damaged.
    """
    stacks = _drawn(lake, observations, seed)
    shares: list[list[float]] = []
    if len(stacks):  # one network at a time: there may be many, of 60 MB each
        actions = [_best_actions(members / name, at, stacks) for name, at in checkpoints.items()]
        shares = [[float(np.mean(one != other)) for other in actions] for one in actions]
    found = ActionDifferences(
        seed=seed,
        observations=len(stacks),
        runs=tuple(checkpoints),
        shares=tuple(map(tuple, shares)),
    )
    result.parent.mkdir(parents=True, exist_ok=True)
    write_saved(result, found)
    return found


def _drawn(lake: Path, n: int, seed: int) -> NDArray[np.uint8]:
    """Draw stacks [n, frame_stack * C, H, W], uint8, uniformly; an empty Lake gives none."""
    view, rng = Lake.open(lake).view(), np.random.default_rng(seed)
    stacks = np.empty((n if len(view) else 0, *view.schema.observation_shape), np.uint8)
    if not len(view):
        return stacks
    sampler = Sampler(view)
    for start in range(0, n, _AT_ONCE):  # in parts, because a batch also has the next stacks
        part = stacks[start : start + _AT_ONCE]
        part[:] = sampler.sample(rng, len(part)).stacks
    return stacks


def _best_actions(root: Path, timesteps: int, stacks: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the deterministic actions of a run's checkpoint, int64 [n]."""
    run = open_own_run(root, str(timesteps))
    actions = spaces.Discrete(len(run.game.action_names))
    policy = run.policy(spaces.Box(0, 255, stacks.shape[1:], np.uint8), actions)
    with torch_threads(1):
        found = [
            policy.predict(stacks[start : start + _AT_ONCE], deterministic=True)[0]
            for start in range(0, len(stacks), _AT_ONCE)
        ]
    return np.concatenate(found).astype(np.int64)
