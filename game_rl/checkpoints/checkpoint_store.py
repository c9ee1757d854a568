"""The checkpoints of a run: which to use, which to keep, and which to set aside."""

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.checkpoints.checkpoint import Checkpoint, save_checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_folder import best_checkpoint
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.model_state import replay_bytes, unpacked_replay_bytes
from game_rl.checkpoints.named import kept_path
from game_rl.errors import CheckpointError, NoCheckpointError
from game_rl.events import CheckpointSaved
from game_rl.events.lineage import Source, add_sources
from game_rl.files.durable_files import remove_directory, replaced_directory
from game_rl.files.run_dir import RunDir, check_claim
from game_rl.files.saved import Saved
from game_rl.vec_env.make_vec_env import VecEnvState


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
            return Checkpoint(path).verify(), damaged
        except CheckpointError as error:
            damaged.append(error)
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
    """A checkpoint that was written, in so many seconds, and read back.

    Attributes:
        run_bytes: size of the run directory with it, without a Lake.
    """

    checkpoint: Checkpoint
    seconds: float
    run_bytes: int
    compression_saved: float | None

    def event(self, *, is_best: bool, offline_gradient_steps: int | None = None) -> CheckpointSaved:
        return CheckpointSaved(
            timesteps=self.checkpoint.state.num_timesteps,
            checkpoint=self.checkpoint.name,
            n_bytes=self.checkpoint.nbytes,
            seconds=round(self.seconds, 3),
            contents=self.checkpoint.contents,
            run_bytes=self.run_bytes,
            compression_saved=self.compression_saved,
            is_best=is_best,
            offline_gradient_steps=offline_gradient_steps,
        )


class CheckpointCompanion:
    """What a feature of a run keeps along with each checkpoint. By default it keeps nothing.

    Checkpoints go by the name of their folder; those from before the first timestep have
    `offline-` before it.
    """

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        """Keep what a new checkpoint needs, and return the files that it gets for it.

        Raises:
            OSError: the disk fails.
        """
        return {}

    def forget(self, name: str) -> None:
        """Release what was kept for a checkpoint that is gone or could not be written."""

    def sources(self) -> Sequence[Source] | None:
        """Return the runs that this run has learned from so far; None if it learns from none."""
        return None

    def held(self) -> set[int]:
        """Return the timesteps of checkpoints that must not be deleted before the next save."""
        return set()

    def replay_sizes(self, path: Path) -> tuple[int, int] | None:  # noqa: ARG002
        """Return the bytes of the replay that a checkpoint refers to: as kept, and as SB3's."""
        return None


class CheckpointStore:
    """Writes a run's checkpoints and deletes old ones.

    It keeps the best, the newest `keep_last` others, and the first after each multiple of
    `keep_every_timesteps`. A checkpoint is deleted only after a new one was read back. What the
    companions keep for a checkpoint stays as long as the checkpoint.

    Args:
        is_offline: whether this is the store of the phase before the first timestep; see
            `RunDir.offline`.
    """

    def __init__(
        self,
        run_dir: RunDir,
        *,
        keep_last: int,
        keep_every_timesteps: int | None,
        with_replay: bool = False,
        companions: Sequence[CheckpointCompanion] = (),
        is_offline: bool = False,
    ) -> None:
        self._companions = companions
        self._run_dir = run_dir.offline if is_offline else run_dir
        self._is_offline = is_offline
        self._keep_last = keep_last
        self._keep_every = keep_every_timesteps
        self._with_replay = with_replay

    def save(
        self, model: BaseAlgorithm, state: CheckpointState, envs: VecEnvState | None
    ) -> SavedCheckpoint:
        """Write the checkpoint of this state, and replace an existing one.

        Raises:
            CheckpointError: it could not be written. Nothing of it is left then.
            ExperimentError: a newer process has taken the claim to the run.
        """
        started = time.monotonic()
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
            more = self._keep(model, path)
            with replaced_directory(path):
                save_checkpoint(
                    path,
                    model,
                    state,
                    envs,
                    self._run_dir,
                    with_replay=self._with_replay,
                    more=more,
                )
        except OSError as error:
            self._forget(path)
            raise CheckpointError(self._unsaved(state, error)) from error
        checkpoint = Checkpoint(path).verify()
        self._prune(None if state.best is None else best_checkpoint(self._run_dir, state.best))
        saved = self._compression(model, checkpoint)
        seconds = time.monotonic() - started
        return SavedCheckpoint(checkpoint, seconds, self._run_dir.size_bytes(), saved)

    def replay_bytes(self, model: BaseAlgorithm) -> int:
        """Return the approximate bytes of the replay in a checkpoint."""
        return replay_bytes(model) if self._with_replay else 0

    def _compression(self, model: BaseAlgorithm, checkpoint: Checkpoint) -> float | None:
        """Return the share of whole stacks' bytes that packing and compression saved."""
        found = (companion.replay_sizes(checkpoint.path) for companion in self._companions)
        stored, whole = next(filter(None, found), (checkpoint.nbytes_of("replay.safetensors"), 0))
        if stored and not whole:
            whole = unpacked_replay_bytes(model)
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
        held = {t for each in self._companions for t in each.held() if not self._is_offline}
        for timesteps in set(existing) - kept - held:
            self.delete(self._run_dir.checkpoint(timesteps))

    def delete(self, path: Path) -> None:
        """Delete a checkpoint, and release what is kept for it."""
        remove_directory(path)
        self._forget(path)

    def _keep(self, model: BaseAlgorithm, path: Path) -> dict[FileName, Saved]:
        """Have the companions keep what the checkpoint needs; return the files that it gets."""
        more: dict[FileName, Saved] = {}
        for companion in reversed(self._companions):  # `_forget` goes the other way
            more |= companion.keep(model, self._name(path))
        for companion in self._companions:
            if (sources := companion.sources()) is not None:
                add_sources(self._run_dir, *sources)
        return more

    def _forget(self, path: Path) -> None:
        for companion in self._companions:
            companion.forget(self._name(path))

    def _name(self, path: Path) -> str:
        return f"offline-{path.name}" if self._is_offline else path.name

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


def kept_checkpoint(run_dir: RunDir, timesteps: int) -> Checkpoint:
    """Return the checkpoint of timestep `timesteps`, after verifying it.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    return Checkpoint(kept_path(run_dir, timesteps)).verify()


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
