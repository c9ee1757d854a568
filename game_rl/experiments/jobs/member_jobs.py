"""What a member's process does: train a stretch, play, copy, finish, compare actions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from game_rl.algorithms.data_parallel import torch_threads
from game_rl.callbacks.evaluation import Evaluation, EvaluationInterrupted
from game_rl.checkpoints.checkpoint import Checkpoint, is_offline
from game_rl.checkpoints.checkpoint_files import read_manifest
from game_rl.checkpoints.checkpoint_folder import best_of
from game_rl.checkpoints.checkpoint_store import find_checkpoint
from game_rl.checkpoints.evaluation_files import read_episodes
from game_rl.config.loader import load_config
from game_rl.config.strict_model import Key
from game_rl.envs.observation import Observation, rows_of
from game_rl.errors import ExperimentError, NonFiniteError
from game_rl.events import Event, Listener, Progress, RolloutEnded
from game_rl.experiments.jobs.job_files import (
    ActionDifferences,
    CompareActionsRequest,
    CopyRequest,
    FinishedRun,
    FinishRequest,
    Played,
    PlayRequest,
    StretchRequest,
    StretchResult,
    finished_once,
    made_once,
)
from game_rl.files.durable_files import write_saved
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import measured_ram_peak_bytes
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler, observation_format_of
from game_rl.lake.view import LakeView
from game_rl.playback.trained_run import evaluate_run, open_own_run, open_trained_run
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork
from game_rl.training.train import TrainCommand, resume


@dataclass
class _Speed:
    """A Listener that keeps the latest speed of the training and passes events on."""

    timesteps_per_s: float = 0.0
    others: Sequence[Listener] = ()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Progress | RolloutEnded):
            self.timesteps_per_s = event.timesteps_per_s
        for other in self.others:
            other(event)


def run_stretch(
    request: StretchRequest, stop: StopRequest, listeners: Sequence[Listener] = ()
) -> StretchResult:
    """Train a run up to a timestep, and evaluate it there.

    The result is the same however often the function is interrupted and called again. If there is
    a result already, nothing is done. Non-finite weights after an update are a result, too.

    Raises:
        Interrupted: a signal stopped the training; everything learned is saved.
        GameRLError: see `train.resume`.
    """
    until = request.until
    speed = _Speed(others=listeners)
    command = TrainCommand(
        until=until, force=True, evaluates_at_end=False, stop=stop, listeners=[speed]
    )

    def make() -> StretchResult:
        ram_peak = 0
        try:
            ram_peak = _trained(request.run, command, request.seed)
            end = _end_of(RunDir(request.run), until, request.seed)
        except NonFiniteError as error:
            end = StretchResult(timesteps=until, failure="non_finite", text=str(error))
        return end.model_copy(
            update={"timesteps_per_s": speed.timesteps_per_s, "ram_peak_bytes": ram_peak}
        )

    return made_once(StretchResult, request, make)


def _trained(root: Path, command: TrainCommand, seed: int) -> int:
    """Train, and return the run's peak of memory in bytes.

    The seed's games are played only at the end of the stretch. Evaluations during the phase before
    the first timestep use other games. So the best policy is always that of a stretch's end, which
    is what an experiment keeps.
    """
    run_dir = RunDir(root)
    command = replace(command, asks_storage=False)  # the experiment has asked
    checkpoint, _ = find_checkpoint(run_dir)
    if is_offline(load_config(run_dir.config, is_saved=True), checkpoint):
        others = seed_for(seed, "before the first timestep")
        resume(root, replace(command, until=0), overrides=[f"evaluation.seed={others}"])
    resume(root, command, overrides=[f"evaluation.seed={seed}"])
    return measured_ram_peak_bytes(run_dir.footprint)


def _end_of(run_dir: RunDir, until: int, seed: int) -> StretchResult:
    """Return the part of the result that follows from the run directory alone."""
    newest = Checkpoint(run_dir.checkpoints_newest_first()[0])
    episodes = read_episodes(run_dir)
    best = best_of(run_dir, newest)
    timesteps = newest.state.num_timesteps
    if timesteps >= until + load_config(run_dir.config, is_saved=True).rollout_timesteps:
        raise ExperimentError(
            f"{run_dir.root} is at timestep {timesteps:,}, beyond the end of the stretch at "
            f"{until:,}; continue the experiment with --resume, which brings it back"
        )
    if met := newest.state.stop_counters.met:
        raise ExperimentError(
            f"{run_dir.root} was ended at timestep {timesteps:,}: {met}; "
            "members train for equal times, so let the callback return True in an experiment"
        )
    if not episodes.timesteps or episodes.timesteps[-1] != timesteps or best is None:
        raise ExperimentError(
            f"{run_dir.root} has no evaluation at timestep {timesteps:,}; "
            "evaluation.every_timesteps must be the length of a stretch"
        )
    return StretchResult(
        timesteps=timesteps,
        waited_frames=newest.state.waited_frames,
        checkpoint=newest.path.name,
        weights_sha256=read_manifest(newest.path).files["policy.safetensors"].sha256,
        played=Played(
            seed=seed,
            deterministic=best.deterministic,
            rewards=tuple(map(float, episodes.results[-1])),
            successes=tuple(map(bool, episodes.successes[-1] if episodes.successes else ())),
        ),
    )


def play_checkpoint(request: PlayRequest) -> Played:
    """Play episodes with a kept checkpoint, and write their results."""
    run = open_trained_run(request.run, str(request.checkpoint))
    played = _played(evaluate_run(run, episodes=request.episodes, seed=request.seed), request.seed)
    write_saved(request.result, played)
    return played


def _played(evaluation: Evaluation, seed: int) -> Played:
    return Played(
        seed=seed,
        deterministic=evaluation.deterministic,
        rewards=evaluation.rewards,
        successes=evaluation.successes,
    )


def finish_run(request: FinishRequest, stop: StopRequest) -> FinishedRun:
    """Train a run to its end, test it, and write the result.

    The result is the same however often the function is interrupted and called again. If there is
    a result already, nothing is done. Non-finite weights after an update are a result, too.

    Raises:
        Interrupted: a signal stopped it; everything learned is saved.
        GameRLError: see `train.resume`.
    """
    return finished_once(request, lambda: _finished(request, stop), NonFiniteError)


def _finished(request: FinishRequest, stop: StopRequest) -> FinishedRun:
    """Train to the end, without the final evaluation unless it chooses student or teacher."""
    config = load_config(RunDir(request.run).config, is_saved=True)
    has_teacher = config.validation_episodes > 0
    resume(request.run, TrainCommand(force=True, evaluates_at_end=has_teacher, stop=stop))
    run = open_trained_run(request.run, "best" if request.selection == "best" else "latest")
    try:
        evaluation = evaluate_run(run, episodes=request.episodes, seed=request.seed, stop=stop)
    except EvaluationInterrupted:
        raise stop.interrupted(f"{stop.reason}; the run is complete") from None
    newest = RunDir(request.run).checkpoints_newest_first()[0]
    return FinishedRun(
        timesteps=int(newest.name),
        policy_timesteps=run.state.num_timesteps,
        weights_sha256=read_manifest(run.checkpoint.path).files["policy.safetensors"].sha256,
        played=_played(evaluation, request.seed),
    )


def copy_run(request: CopyRequest) -> None:
    """Fork a checkpoint into a new run directory, with other values.

    The folder appears in one rename. If it exists already, nothing is done.

    Raises:
        CheckpointError: there is no such checkpoint.
        UsageError: it cannot be forked in this way.
    """
    if (request.to / "config.yaml").exists():
        return
    source = find_source(request.run, request.at)
    changed: dict[Key, object] = {tuple(key.split(".")): v for key, v in request.values.items()}
    known_as = None if request.known_as is None else Path(request.known_as)
    config = forked_config(source, request.to, changed, fork=request.fork)
    make_fork(plan_fork(config, known_as=known_as), run_id=request.run_id)


_AT_ONCE = 64  # observations; with the network's activations they take some tens of megabytes


def compare_actions(request: CompareActionsRequest) -> ActionDifferences:
    """Draw observations from a Lake, and write how often the runs act differently on them.

    The same Lake, checkpoints and seed give the same bytes, whatever else this machine does.

    Raises:
        LakeError: the Lake is missing or damaged.
        CheckpointError: a checkpoint is missing or damaged.
    """
    view = Lake.open(request.lake).view()
    asked = request.checkpoints
    parts = _drawn(view, request.observations, request.seed)
    shares: list[list[float]] = []
    if parts:  # one network at a time: there may be many, of 60 MB each
        space = observation_format_of(view.schema).space
        roots = [(request.members / name, at) for name, at in asked.items()]
        actions = [_best_actions(root, at, space, parts) for root, at in roots]
        shares = [[float(np.mean(one != other)) for other in actions] for one in actions]
    found = ActionDifferences(
        seed=request.seed,
        observations=request.observations if parts else 0,
        runs=tuple(asked),
        shares=tuple(map(tuple, shares)),
    )
    write_saved(request.result, found)
    return found


def _drawn(view: LakeView, n: int, seed: int) -> list[Observation]:
    """Draw `n` observations uniformly, in batches; an empty Lake gives none."""
    rng = np.random.default_rng(seed)
    if not len(view):
        return []
    sampler = Sampler(view)
    sizes = [min(_AT_ONCE, n - start) for start in range(0, n, _AT_ONCE)]
    return [rows_of(sampler.sample(rng, m).stacks, np.arange(m)) for m in sizes]  # copies


def _best_actions(
    root: Path, timesteps: int, space: spaces.Space[Any], parts: list[Observation]
) -> NDArray[np.int64]:
    """Return the deterministic actions of a run's checkpoint, int64 [n]."""
    run = open_own_run(root, str(timesteps))
    policy = run.policy(space, spaces.Discrete(len(run.game.action_names)))
    with torch_threads(1):
        found = [policy.predict(part, deterministic=True)[0] for part in parts]  # type: ignore[arg-type]  # a Mapping
    return np.concatenate(found).astype(np.int64)
