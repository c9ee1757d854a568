"""The checkpoints of a run: which to use, which to keep, and which to set aside."""

import csv
import io
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.checkpoints.checkpoint import Checkpoint, save_checkpoint
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState
from game_rl.checkpoints.evaluation_files import seed_of, was_deterministic, with_ways
from game_rl.checkpoints.model_state import replay_bytes, unpacked_replay_bytes
from game_rl.checkpoints.named import kept_path
from game_rl.config.schema import EnvConfig
from game_rl.durable_files import remove_directory, replaced_directory
from game_rl.errors import CheckpointError, NoCheckpointError
from game_rl.lake.lake_feed import LakeFeed
from game_rl.lake.lake_pool import LakePool
from game_rl.lake.mark import LakeState
from game_rl.lake.pond_refill import save_lake
from game_rl.lineage import add_sources
from game_rl.run_dir import RunDir, check_claim
from game_rl.vec_env.vec_env_state import VecEnvState


def newest_valid_checkpoint(run_dir: RunDir) -> tuple[Checkpoint, list[CheckpointError]]:
    """Return the newest checkpoint that verifies, and the errors of newer ones.

    If the run has no checkpoint of timesteps yet, those of the phase before the first timestep
    count.

    Raises:
        CheckpointError: the run has no usable checkpoint.
    """
    damaged: list[CheckpointError] = []
    offline = run_dir.offline.checkpoints_newest_first()
    for path in run_dir.checkpoints_newest_first() or offline:
        try:
            checkpoint = Checkpoint(path)
            checkpoint.verify()
        except CheckpointError as error:
            damaged.append(error)
        else:
            return checkpoint, damaged
    found = "".join(f"\n  {error}" for error in damaged)
    raise (CheckpointError if damaged else NoCheckpointError)(
        f"{run_dir.checkpoints} holds no usable checkpoint; start a new run with --config in "
        f"another directory (--set run_dir=...), or delete {run_dir.root} first{found}"
    )


def set_aside_newer(run_dir: RunDir, timesteps: int, place: Path) -> list[Path]:
    """Move checkpoints after `timesteps` to the folder `place`, to make room for new ones.

    Returns:
        Their paths after the move.
    """
    moved = []
    for path in run_dir.checkpoints_newest_first():
        if int(path.name) > timesteps:
            place.mkdir(parents=True, exist_ok=True)
            names = (f"{path.name}{f'_{n}' if n else ''}" for n in itertools.count())
            free = next(p for name in names if not (p := place / name).exists())
            path.rename(free)
            moved.append(free)
    return moved


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint that was written and read back.

    Attributes:
        contents: contents of the checkpoint, in words.
        compression_saved: see `events.CheckpointSaved`.
    """

    path: Path
    n_bytes: int
    contents: tuple[str, ...]
    compression_saved: float | None

    @property
    def name(self) -> str:
        """See `Checkpoint.name`."""
        return Checkpoint(self.path).name


class CheckpointStore:
    """Writes a run's checkpoints and deletes old ones.

    It keeps the best, the newest `keep_last` others, and the first after each multiple of
    `keep_every_timesteps`. A checkpoint is deleted only after a new one was read back. The rows of
    Lakes that a checkpoint needs, of the run's own Lake and of those from which it learns, stay
    there as long as the checkpoint.

    Args:
        is_offline: whether this is the store of the phase before the first timestep; see
            `RunDir.offline`.
        held: returns the timesteps of checkpoints that are being uploaded. They are not deleted
            before the next save.
    """

    def __init__(
        self,
        run_dir: RunDir,
        *,
        keep_last: int,
        keep_every_timesteps: int | None,
        with_replay: bool = False,
        feed: LakeFeed | None = None,
        pool: LakePool | None = None,
        is_offline: bool = False,
        held: Callable[[], set[int]] = set,
    ) -> None:
        self._held = held
        self._run_dir = run_dir.offline if is_offline else run_dir
        self._pool, self._is_offline = pool, is_offline
        self._keep_last = keep_last
        self._keep_every = keep_every_timesteps
        self._with_replay = with_replay
        self._feed = feed

    def save(
        self, model: BaseAlgorithm, state: CheckpointState, envs: VecEnvState | None
    ) -> SavedCheckpoint:
        """Write the checkpoint of this state, and replace an existing one.

        Raises:
            CheckpointError: it could not be written. Nothing of it is left then.
            ExperimentError: a newer process has taken the claim to the run.
        """
        path = self._run_dir.checkpoint(
            state.offline_gradient_steps if self._is_offline else state.num_timesteps
        )
        if not self._run_dir.root.is_dir():
            raise CheckpointError(
                f"the run directory {self._run_dir.root} is gone, and with it all that was learned"
            )
        check_claim(self._run_dir)
        try:
            path.parent.mkdir(exist_ok=True)
            lake = self._kept_lakes(model, path.name)
            self._note_sources(state)
            with replaced_directory(path):
                save_checkpoint(
                    path,
                    model,
                    state,
                    envs,
                    self._run_dir,
                    with_replay=self._with_replay,
                    lake=lake,
                )
        except OSError as error:
            self._forget_lake(path.name)
            raise CheckpointError(self._unsaved(state, error)) from error
        checkpoint = Checkpoint(path)
        checkpoint.verify()
        self._prune(None if state.best is None else best_checkpoint(self._run_dir, state.best))
        return SavedCheckpoint(
            path, checkpoint.nbytes, checkpoint.contents, self._compression(model, checkpoint, lake)
        )

    def replay_bytes(self, model: BaseAlgorithm) -> int:
        """Return the approximate bytes of the replay in a checkpoint."""
        return replay_bytes(model) if self._with_replay else 0

    def _compression(
        self, model: BaseAlgorithm, checkpoint: Checkpoint, lake: LakeState | None
    ) -> float | None:
        """Return the share of whole stacks' bytes that packing and compression saved."""
        if lake is not None and self._feed is not None:
            mark = lake.parsed_mark(checkpoint.path)
            stored = sum(segment.n_bytes for segment in mark.segments)
            whole = mark.n_transitions * self._feed.lake.schema.raw_bytes
        else:
            stored = checkpoint.nbytes_of("replay.safetensors")
            whole = unpacked_replay_bytes(model) if stored else 0
        return max(0.0, round(1 - stored / whole, 4)) if whole else None

    def _prune(self, best: Path | None) -> None:
        existing = sorted(int(path.name) for path in self._run_dir.checkpoints_newest_first())
        is_here = best is not None and best.parent == self._run_dir.checkpoints
        kept = kept_checkpoints(
            existing,
            best=int(best.name) if best is not None and is_here else None,
            keep_last=self._keep_last,
            keep_every=self._keep_every,
        )
        for timesteps in set(existing) - kept - self._held():
            self.delete(self._run_dir.checkpoint(timesteps))

    def delete(self, path: Path) -> None:
        """Delete a checkpoint, and release the rows that Lakes keep for it."""
        remove_directory(path)
        self._forget_lake(path.name)

    def _kept_lakes(self, model: BaseAlgorithm, name: str) -> LakeState | None:
        if self._pool is not None:
            self._pool.renew(self._pin(name))
        return None if self._feed is None else save_lake(model, self._feed, name)

    def _note_sources(self, state: CheckpointState) -> None:
        if self._pool is not None:
            env = EnvConfig.model_validate(state.config["env"])
            add_sources(self._run_dir, *self._pool.sources(frame_skip=env.frame_skip))

    def _forget_lake(self, name: str) -> None:
        if self._feed is not None:
            self._feed.unpin(name)
        if self._pool is not None:
            self._pool.unpin(self._pin(name))

    def _pin(self, name: str) -> str:
        return f"offline-{name}" if self._is_offline else name

    def _unsaved(self, state: CheckpointState, error: OSError) -> str:
        saved = self._run_dir.checkpoints_newest_first()
        newest = (
            f"the newest one saved is of timestep {int(saved[0].name):,}"
            if saved
            else "none was saved before"
        )
        return (
            f"the checkpoint of timestep {state.num_timesteps:,} could not be written to "
            f"{self._run_dir.checkpoints} ({error.strerror or error}); {newest}; free some space "
            f"or allow writing there, then continue with {self._run_dir.way_on}"
        )


def kept_checkpoints(
    existing: Sequence[int], *, best: int | None, keep_last: int, keep_every: int | None
) -> set[int]:
    """Return the timesteps of the checkpoints to keep; `existing` must ascend."""
    others = [timesteps for timesteps in existing if timesteps != best]
    kept = set(others[-keep_last:]) | (set(existing) - set(others))
    if keep_every is not None:
        before = (0, *existing)
        kept |= {
            timesteps
            for previous, timesteps in zip(before, existing, strict=False)
            if timesteps // keep_every > previous // keep_every
        }
    return kept


def best_checkpoint(run_dir: RunDir, best: Best) -> Path:
    """Return the path of the best checkpoint, which may be lost."""
    if best.offline_gradient_steps:
        return run_dir.offline.checkpoint(best.offline_gradient_steps)
    return RunDir(run_dir.root).checkpoint(best.timesteps)


def best_of(run_dir: RunDir, newest: Checkpoint) -> Best | None:
    """Return the best evaluation of the run with this newest checkpoint, or None if there is none.

    An evaluation that a stop interrupted is played after the resume, when the checkpoint has been
    written. If the run ends with it, its result is only in the table of evaluations.
    """
    if newest.state.evaluation_due and run_dir.evaluations.exists():
        way = was_deterministic(newest.state.config)
        table = with_ways(run_dir.evaluations.read_text(encoding="utf-8"), deterministic=way)
        rows = list(csv.DictReader(io.StringIO(table)))
        now = str(newest.state.num_timesteps)
        for row in rows:
            if row["timesteps"] == now and row["is_best"] == "True":
                return Best(
                    timesteps=int(now),
                    mean_reward=float(row["mean_reward"]),
                    deterministic=row["deterministic"] == "True",
                    seed=seed_of(newest.state.config),
                )
    return newest.state.best


def kept_checkpoint(run_dir: RunDir, timesteps: int) -> Checkpoint:
    """Return the checkpoint of timestep `timesteps`, after verifying it.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    checkpoint = Checkpoint(kept_path(run_dir, timesteps))
    checkpoint.verify()
    return checkpoint


def find_checkpoint(run_dir: RunDir, at: int | None = None) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest valid checkpoint, and a description of each newer, damaged one.

    The checkpoint is None if the run has never saved one.

    Args:
        at: timestep of the checkpoint that must be used; None: the newest.

    Raises:
        CheckpointError: the checkpoint of timestep `at`, or each existing one, cannot be used.
    """
    if at is not None:
        return kept_checkpoint(run_dir, at), []
    if not run_dir.has_checkpoints():
        return None, []
    checkpoint, damaged = newest_valid_checkpoint(run_dir)
    return checkpoint, [str(error) for error in damaged]
