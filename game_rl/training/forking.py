"""A new run from another run's checkpoint: planned, then made in one rename.

`make_fork` writes a run directory from which `resume` continues. It has the other run's checkpoint,
without the parts that begin anew. The section `fork` stays in its config as a record and has no
further effect.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from game_rl.algorithms.automatic import resolve_auto
from game_rl.checkpoints.checkpoint import Checkpoint, is_offline
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_folder import best_checkpoint
from game_rl.checkpoints.checkpoint_state import CheckpointState, StopCounters
from game_rl.checkpoints.checkpoint_store import kept_checkpoint, newest_valid_checkpoint
from game_rl.checkpoints.named import find_run
from game_rl.config.allowed_changes import FORK_BEST
from game_rl.config.loader import dump_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.config.values import run_at
from game_rl.errors import CheckpointError, UsageError
from game_rl.events import Forked
from game_rl.events.event_log import EventFile
from game_rl.events.lineage import Lineage, Source, manifest_sha256, read_lineage, write_lineage
from game_rl.files.durable_files import (
    remove_directory,
    rename,
    sync_directory,
    write_atomic,
    write_synced,
)
from game_rl.files.run_dir import Parent, RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import load_game
from game_rl.training.admission import refuse_used_folder
from game_rl.training.fork_parts import (
    ForkPlan,
    ForkSource,
    find_differences,
    fitting_weights,
    link_for_play,
    new_parts,
    write_forked_checkpoint,
)
from game_rl.training.make_callbacks import EXTENSIONS


def forked_config(
    source: ForkSource,
    run_dir: Path,
    changed: Mapping[Key, object],
    *,
    fork: Mapping[str, object] | None = None,
) -> RunConfig:
    """Return the parent's config at the checkpoint, with these values at their keys.

    Args:
        fork: values of the config's section `fork`, apart from `run`; None: the defaults.

    Raises:
        ValidationError: the config is not valid, or has no such key.
    """
    section = {"run": f"{source.run_dir.root}@{source.timesteps}", **(fork or {})}
    place: Mapping[Key, object] = {("run_dir",): run_dir, ("fork",): section}
    return with_changed(source.config, {**changed, **place})


def plan_fork(config: RunConfig, *, known_as: Path | None = None) -> ForkPlan:
    """Check that the fork which `config.fork` describes can be made.

    Args:
        known_as: see `ForkSource`.

    Raises:
        UsageError: its folder is in use, or the parent cannot be forked in this way.
        CheckpointError: there is no such checkpoint, or its weights do not fit.
    """
    fork = config.fork
    assert fork is not None
    refuse_used_folder(config.run_dir)
    source = replace(find_source(*run_at(fork.run)), known_as=known_as)
    state = source.checkpoint.state
    game = load_game(config.game)
    source.checkpoint.check_game(game)
    config = resolve_auto(config, game)
    differences = find_differences(state, config, game)
    new = new_parts(differences, fork)
    if new.counters and is_offline(config, None):
        new = replace(new, replay=True, emulators=True)  # the offline phase has neither
    if not new.counters and source.timesteps >= config.total_timesteps:
        raise UsageError(
            f"{source.checkpoint.path} is at timestep {source.timesteps:,}, and the fork ends at "
            f"{config.total_timesteps:,}, which counts from its parent's beginning; raise "
            "total_timesteps, or start at 0 with --set fork.counters=new"
        )
    fork = fork.model_copy(update={"run": f"{source.place}@{source.timesteps}"})
    plan = ForkPlan(
        source=source,
        config=config.model_copy(update={"fork": fork}),
        game=game,
        differences=differences,
        new=new,
        policy=fitting_weights(source.checkpoint, source.config, config, game),
        keeps_best=not (new.counters or differences.bound_by(FORK_BEST)),
    )
    for kind in EXTENSIONS:
        kind.check_fork(plan)
    return plan


def make_fork(plan: ForkPlan, *, run_id: str | None = None) -> Forked:
    """Write the run directory, which appears in one rename.

    Args:
        run_id: see `RunDir.identity`.

    Returns:
        The event that the fork's events.jsonl records.

    Raises:
        UsageError: another process is writing there.
        OSError: the disk is full or fails. There is no fork then, unless the only failure was to
            make the rename durable.
    """
    root = plan.config.run_dir
    with _whole_run(root) as run_dir:
        parent = Parent(
            id=plan.source.identity.id,
            timesteps=plan.source.timesteps,
            sha256=manifest_sha256(plan.source.checkpoint.path),
        )
        identity = run_dir.identity(parent=parent, run_id=run_id)
        _write_lineage(run_dir, plan, parent)
        _copy_curves(run_dir, plan)
        event = Forked(
            timesteps=plan.timesteps,
            waited_frames=plan.waited_frames or None,
            run=identity.id,
            parent=parent.id,
            parent_path=str(plan.source.place),
            parent_timesteps=plan.source.timesteps,
            changes=plan.differences.told(),
            not_taken_over=plan.told_anew(),
        )
        if not plan.new.counters:
            n_bytes = plan.source.checkpoint.state.events_bytes
            write_synced(run_dir.events, _first_bytes(plan, "events.jsonl", n_bytes))
        with EventFile(run_dir.events) as file:
            file.add(event)
            events_bytes = file.synced_bytes()
        _write_checkpoints(run_dir, plan, events_bytes)
        Checkpoint(plan.first_checkpoint(run_dir)).restore_reports(run_dir)
        write_atomic(run_dir.config, dump_config(plan.config))
    return event


def _write_lineage(run_dir: RunDir, plan: ForkPlan, parent: Parent) -> None:
    source = plan.source
    lineage = read_lineage(source.run_dir)
    fork = Source(
        kind="fork",
        run=parent.id,
        path=str(source.place),
        timesteps=parent.timesteps,
        began_at=lineage.began_at,
        frame_skip=source.config.env.frame_skip,
        waited_frames=lineage.waited_since(source.checkpoint.state.waited_frames),
        sha256=parent.sha256,
        sources=lineage.sources,
    )
    ours = Lineage(began_at=plan.timesteps, began_waited_frames=plan.waited_frames, sources=(fork,))
    write_lineage(run_dir, ours)


def _copy_curves(run_dir: RunDir, plan: ForkPlan) -> None:
    """Copy the parent's logs; those that are longer than at its checkpoint are cut later."""
    run_dir.tensorboard.mkdir()
    if plan.new.counters:
        return
    log = plan.source.checkpoint.play().log
    for name, n_bytes in log.file_bytes.items():
        write_synced(run_dir.tensorboard / name, _first_bytes(plan, f"tensorboard/{name}", n_bytes))
    for name, n_bytes in log.appended_bytes.items():
        write_synced(run_dir.root / name, _first_bytes(plan, name, n_bytes))
    if log.table is not None:
        write_synced(run_dir.progress, _first_bytes(plan, run_dir.progress.name, -1))


def _first_bytes(plan: ForkPlan, name: str, n_bytes: int) -> bytes:
    """Return the first bytes of a file of the parent, which only ever grows; b"" if it is gone."""
    try:
        with (plan.source.run_dir.root / name).open("rb") as file:
            return file.read(n_bytes)
    except FileNotFoundError:
        return b""


def _write_checkpoints(run_dir: RunDir, plan: ForkPlan, events_bytes: int) -> None:
    source = plan.source
    state = _first_state(plan, events_bytes)
    path = plan.first_checkpoint(run_dir)
    path.parent.mkdir()
    more: dict[FileName, Saved] = {}
    for kind in EXTENSIONS:
        more |= kind.forked(plan, run_dir)
    write_forked_checkpoint(
        source.checkpoint, path, plan.new, state=state, policy=plan.policy, more=more
    )
    if state.best is None:
        return
    best = best_checkpoint(run_dir, state.best)
    if not best.exists():  # it is not the one that is forked
        with suppress(CheckpointError, FileNotFoundError):  # resuming warns that it is lost
            kept = Checkpoint(best_checkpoint(source.run_dir, state.best)).verify()
            best.parent.mkdir(exist_ok=True)
            link_for_play(kept, best)


def _first_state(plan: ForkPlan, events_bytes: int) -> CheckpointState:
    state = plan.source.checkpoint.state
    config = plan.config
    changes: dict[str, object] = {
        "config": config.model_dump(mode="json"),
        "game": plan.game.definition.model_dump(mode="json", by_alias=True),
        "events_bytes": events_bytes,
        "training_s": 0.0,
        "stop_counters": StopCounters(),
    }
    if not plan.keeps_best:
        changes["best"] = None
    if plan.new.counters:
        changes |= {"num_timesteps": 0, "n_updates": 0, "evaluation_due": False}
        changes |= {"offline_gradient_steps": 0, "waited_frames": 0}
    if plan.new.counters or plan.new.algorithm:
        changes["schedule_timesteps"] = config.total_timesteps
    return state.model_copy(update=changes)


_MOVES_WHAT_IS_OPEN = os.name != "nt"  # as the lock is


@contextmanager
def _whole_run(root: Path) -> Iterator[RunDir]:
    """Yield a temporary run directory that becomes `root` when the block ends.

    If the block raises, nothing is left. The remains of a killed process are deleted by the next
    fork to the same place. The directory's lock keeps other processes out meanwhile.
    """
    root.parent.mkdir(parents=True, exist_ok=True)
    begun = RunDir(root.with_name(f".{root.name}.fork"))
    begun.root.mkdir(exist_ok=True)
    with begun.locked():
        for path in begun.root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
        try:
            yield begun
            sync_directory(begun.root)
            if _MOVES_WHAT_IS_OPEN:
                begun.root.rename(root)
        except BaseException:
            remove_directory(begun.root)
            raise
    if not _MOVES_WHAT_IS_OPEN:
        rename(begun.root, root)
    sync_directory(root.parent)


def find_source(run: Path, timesteps: int | None) -> ForkSource:
    """Return a run's checkpoint of timestep `timesteps`, or its newest valid one if that is None.

    Raises:
        UsageError: there is no run, it has no identity, or it is still before its first timestep.
        CheckpointError: there is no such checkpoint, or it is damaged.
    """
    run_dir = find_run(run)
    if timesteps is None:
        checkpoint, _ = newest_valid_checkpoint(run_dir)
        if checkpoint.is_offline:  # a fork would treat that phase as finished
            raise UsageError(
                f"{run_dir.root} is still learning before its first timestep: its newest "
                f"checkpoint is {checkpoint.name}; fork it when it has reached timestep 0: "
                f"{run_dir.way_on} --until 0, then --fork {run_dir.root}@0"
            )
    else:
        checkpoint = kept_checkpoint(run_dir, timesteps)
    if not run_dir.identity_file.exists():
        raise UsageError(
            f"{run_dir.root} has no {run_dir.identity_file.name}, so its forks could not name it; "
            f"give it one with: {run_dir.way_on} --until "
            f"{max(1, checkpoint.state.num_timesteps)}"
        )
    return ForkSource(run_dir, checkpoint, run_dir.identity())
