"""Resuming: whether there is anything to do, what changed, what starts again, how to continue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from game_rl.algorithms.automatic import placement_of
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_folder import best_checkpoint
from game_rl.checkpoints.checkpoint_state import (
    Best,
    CheckpointState,
    FixedState,
    StopCounters,
)
from game_rl.checkpoints.checkpoint_store import set_aside_newer
from game_rl.checkpoints.evaluation_files import restore_evaluations
from game_rl.checkpoints.training_log import cut_log
from game_rl.config.schema import RunConfig
from game_rl.emulator.emulator import FRAMES_PER_SECOND
from game_rl.envs.episode_starts import game_changes
from game_rl.errors import CheckpointError, system_fault
from game_rl.events import Begun, Ended, PlannedEpisodes, Resumed
from game_rl.events.event_log import final_evaluation, read_events
from game_rl.files.run_dir import RunDir, RunIdentity
from game_rl.games.definition import Game
from game_rl.statistics import MOST_BATCHES
from game_rl.system.packages import (
    code_difference,
    installed_versions,
    source_sha256,
    version_differences,
)
from game_rl.system.units import with_frames
from game_rl.training.extension import GivenCallback


def usable_best(
    run_dir: RunDir, state: CheckpointState, warn: Callable[[str], None]
) -> Best | None:
    """Return the best evaluation so far; None, with a warning, if its checkpoint is lost."""
    if state.best is None:
        return None
    try:
        Checkpoint(best_checkpoint(run_dir, state.best)).verify()
    except CheckpointError as error:
        warn(
            f"the best policy so far, mean reward {state.best.mean_reward:.2f}, is lost: {error}; "
            "the best one from here on is kept"
        )
        return None
    return state.best


def go_back_to(checkpoint: Checkpoint, run_dir: RunDir, place: Path) -> list[Path]:
    """Undo what the run wrote after the checkpoint; return the new paths of later checkpoints.

    Args:
        place: folder to which later checkpoints are moved.
    """
    moved = set_aside_newer(run_dir, checkpoint.state.num_timesteps, place)
    offline = checkpoint.state.offline_gradient_steps
    moved += set_aside_newer(run_dir.offline, offline, place / "offline")
    checkpoint.restore_reports(run_dir)
    return moved


def begin_again(run_dir: RunDir) -> list[str]:
    """Undo everything that the run wrote before its first checkpoint; return warnings.

    A run that an experiment has laid out has written nothing yet: it starts, without a warning.
    """
    has_events = run_dir.events.exists()
    restore_evaluations(run_dir, "", b"")
    cut_log(run_dir, None)
    if not has_events:
        return []
    return ["there is no checkpoint yet: the run starts again"]


def begun(identity: RunIdentity, config: RunConfig, game: Game) -> Begun:
    placement = placement_of(config)
    return Begun(
        waited_frames=None if game.definition.step is None else 0,
        run=identity.id,
        algorithm=config.algorithm.name,
        total_timesteps=config.total_timesteps,
        frame_skip=config.env.frame_skip,
        device=placement.device,
        precision=placement.precision,
        version=installed_versions()["game_rl"],
        source_sha256=source_sha256(),
        stop_when=() if config.stop_when is None else config.stop_when.in_words,
        game_changes=game_changes(game, config.env),
        planned=_planned_episodes(config),
    )


def _planned_episodes(config: RunConfig) -> PlannedEpisodes:
    evaluation = config.evaluation
    recording = config.recording
    stop_when = config.stop_when
    confirm = 0
    if stop_when is not None and {stop_when.success_rate, stop_when.mean_reward} != {None}:
        confirm = MOST_BATCHES * stop_when.confirm_episodes
    return PlannedEpisodes(
        every_timesteps=evaluation.every_timesteps,
        episodes=evaluation.episodes * len(config.evaluation_ways),
        confirm_episodes=confirm,
        final_episodes=evaluation.final_episodes,
        clip_episodes=recording.episodes,
        clip_frames=None if recording.max_s is None else int(recording.max_s * FRAMES_PER_SECOND),
    )


def resumed(
    identity: RunIdentity,
    config: RunConfig,
    game: Game,
    checkpoint: Checkpoint,
    *,
    changed: Sequence[str],
    set_aside: Sequence[str] = (),
    not_restored: Sequence[str] = (),
) -> Resumed:
    """Return the event that says which parts continue from the checkpoint, and which do not.

    Args:
        not_restored: what of its features is not restored.
    """
    state = checkpoint.state
    placement = placement_of(config)
    # because of differences of versions and hardware, numbers round differently
    now = installed_versions() | computing(placement.device)
    no_waits = None if game.definition.step is None else 0
    return Resumed(
        timesteps=state.num_timesteps,
        waited_frames=state.waited_frames or no_waits,
        run=identity.id,
        checkpoint=checkpoint.name,
        total_timesteps=config.total_timesteps,
        frame_skip=config.env.frame_skip,
        device=placement.device,
        precision=placement.precision,
        version=installed_versions()["game_rl"],
        source_sha256=source_sha256(),
        stop_when=() if config.stop_when is None else config.stop_when.in_words,
        game_changes=game_changes(game, config.env),
        planned=_planned_episodes(config),
        superseded_from_bytes=state.events_bytes,
        restored=checkpoint.contents,
        not_restored=(
            *_begins_anew(config, checkpoint),
            *not_restored,
            *version_differences(state.versions | state.computing, now),
        ),
        other_code=code_difference(state.versions, state.source_sha256),
        changes=tuple(changed),
        set_aside=tuple(set_aside),
    )


def _begins_anew(config: RunConfig, checkpoint: Checkpoint) -> list[str]:
    algorithm = config.algorithm
    anew = []
    if checkpoint.state.num_timesteps == 0:
        return []  # nothing was played yet
    if algorithm.replay is not None and not checkpoint.has_replay:
        anew.append(
            "the replay: it was not saved, so learning waits until there are "
            f"{algorithm.learning_starts:,} timesteps again; checkpoints.save_replay_buffer: true, "
            "or a Lake, keeps it"
        )
    if not checkpoint.has_envs:
        why = "the checkpoint has no emulators"
        if config.env.wrappers:
            why += "; a wrapper whose attributes change needs state_dict and load_state_dict"
        anew.append(f"the episodes: {why}")
    return anew


def disk_fault(error: OSError, run_dir: RunDir) -> str:
    """Describe a fault of the run's disk, and what is saved."""
    if not run_dir.root.is_dir():
        return f"the run directory {run_dir.root} is gone, and what was learned with it"
    return f"{system_fault(error, run_dir.root)}; {what_is_saved(run_dir)}"


def what_is_saved(run_dir: RunDir) -> str:
    """Say up to where a run that ended early is saved, and how to continue it."""
    checkpoints = run_dir.checkpoints_newest_first()
    if not checkpoints and run_dir.has_checkpoints():
        offline = int(run_dir.offline.checkpoints_newest_first()[0].name)
        return (
            f"saved up to gradient step {offline:,} before the first timestep; continue with "
            f"{run_dir.way_on}"
        )
    if not checkpoints:
        return f"nothing was saved yet; start again with {run_dir.way_on}"
    return f"saved up to timestep {int(checkpoints[0].name):,}; continue with {run_dir.way_on}"


@dataclass(frozen=True)
class Asked:
    """What a command asks of a run.

    Attributes:
        until: timestep to bring it to; None: its end.
        evaluates_at_end: whether to play the final evaluation at its end.
        is_changed: whether the config is changed, so that the final evaluation is played again.
        given_callbacks: callbacks that Python code has given.
    """

    until: int | None
    evaluates_at_end: bool
    is_changed: bool
    given_callbacks: Sequence[GivenCallback] = ()


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
    state = checkpoint.state
    total = config.total_timesteps
    given = [each.reference for each in asked.given_callbacks]
    met = state.counters_with(config.model_dump(mode="json"), given).met
    is_newest = run_dir.checkpoints_newest_first()[:1] == [checkpoint.path]
    end = total if asked.until is None else min(asked.until, total)
    if not is_newest or state.evaluation_due or not (met or state.num_timesteps >= end):
        return None
    final = final_evaluation(read_events(run_dir))
    is_complete = final is not None and final.timesteps == state.num_timesteps
    final_is_due = asked.evaluates_at_end and (asked.is_changed or not is_complete)
    if final_is_due and (met or end == total):
        return None
    text = _words(run_dir, config, state, end, is_complete=is_complete)
    if met:
        text = _won(run_dir, config, state, met)
    return Ended(
        timesteps=state.num_timesteps,
        reason="completed" if is_complete else "until",
        exit_code=0,
        text=text,
    )


def _with_frames(state: CheckpointState, config: RunConfig) -> str:
    return with_frames(state.num_timesteps, config.env.frame_skip, state.waited_frames)


def _won(run_dir: RunDir, config: RunConfig, state: CheckpointState, met: str) -> str:
    counters = StopCounters(met=met)
    way_on = f"{run_dir.way_on} --set stop_when=null"
    if counters.is_by_callback:
        way_on = f"{run_dir.way_on} --set callbacks=[]"
    elif counters.given_callback:
        way_on = f"{run_dir.way_on}, which is without that callback"
    return (
        f"{run_dir.root} has ended at timestep {_with_frames(state, config)}: "
        f"{met}; nothing was trained and nothing was changed; train it on to its total with "
        f"{way_on}"
    )


def _words(
    run_dir: RunDir, config: RunConfig, state: CheckpointState, end: int, *, is_complete: bool
) -> str:
    """Say that nothing was done, and what can be done instead."""
    total = config.total_timesteps
    root = run_dir.root
    asked = f", and --until asks for {end:,}" if end < total else ", its end"
    way_on = f"continue with {run_dir.way_on}"
    if is_complete:
        way_on = f"train it on with {run_dir.way_on} --set total_timesteps={2 * total}"
    back = "; --at T goes back to an earlier checkpoint" if end < state.num_timesteps else ""
    return (
        f"{root} is already at timestep {_with_frames(state, config)}{asked}: "
        f"nothing was trained and nothing was changed; {way_on}{back}"
    )


def computing(device: str) -> dict[str, str]:
    """Return where and how the network is computed; any difference changes the rounding.

    Versions of packages are not included (see `system.versions`).
    """
    return {
        "device": device,
        "processor": torch.backends.cpu.get_cpu_capability(),
        "torch threads": str(torch.get_num_threads()),
    }


def fixed_state(
    config: RunConfig,
    game: Game,
    total: int,
    *,
    device: str,
    given_callbacks: Sequence[GivenCallback] = (),
) -> FixedState:
    """Return what all checkpoints of a session have in common.

    Args:
        total: timesteps over which schedules run.
        device: on which the network is computed.
        given_callbacks: callbacks that Python code has given.
    """
    return FixedState(
        schedule_timesteps=total,
        rom_sha256=game.rom.sha256,
        config=config.model_dump(mode="json"),
        game=game.definition.model_dump(mode="json", by_alias=True),
        versions=installed_versions(),
        source_sha256=source_sha256(),
        computing=computing(device),
        given_callbacks=tuple(each.reference for each in given_callbacks),
    )
