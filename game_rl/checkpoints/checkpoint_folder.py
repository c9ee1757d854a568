"""A checkpoint as far as it is read without torch, and which one of a run is the best."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from game_rl.checkpoints.checkpoint_files import (
    MANIFEST,
    FileEntry,
    FileName,
    Manifest,
    opened_verified,
    read_manifest,
)
from game_rl.checkpoints.checkpoint_state import Best, TrainingState
from game_rl.checkpoints.evaluation_files import seed_of, was_deterministic, with_ways
from game_rl.checkpoints.named import check_rom, read_checkpoint_state, read_model
from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError
from game_rl.features.feature_table import FEATURE_FILES
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import CheckpointFile, Content
from game_rl.games.definition import Game

_WORDS: dict[str, str] = {
    "policy.safetensors": "policy",
    "optimizer.safetensors": "optimiser",
    "play.json": "emulators, random numbers and curves",
    "replay.safetensors": "replay",
    **{name: file.words for name, file in FEATURE_FILES.items()},
}
_REPLAYS = {"replay.safetensors"} | {
    name for name, file in FEATURE_FILES.items() if file.holds_replay
}
_FILES = {"state.json", "arrays.safetensors", *_WORDS}


class CheckpointFolder:
    """A checkpoint on disk; each file is compared with the manifest before it is read.

    Raises (everywhere):
        CheckpointError: the checkpoint is missing, damaged, or of another run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest: Manifest = read_manifest(path)
        if unknown := self._manifest.files.keys() - _FILES:
            raise CheckpointError(
                f"{path / MANIFEST} is damaged, or from another version of game_rl: it names "
                f"{min(unknown)}; restore it from a copy, or use another checkpoint"
            )
        self.state = read_checkpoint_state(path)

    @property
    def nbytes(self) -> int:
        return sum(entry.bytes for entry in self._manifest.files.values())

    def nbytes_of(self, name: FileName) -> int:
        """Return the size of one file, or 0 if the checkpoint does not have it."""
        entry = self._manifest.files.get(name)
        return 0 if entry is None else entry.bytes

    @property
    def config(self) -> RunConfig:
        """The config that the checkpoint's run had when it was saved."""
        return saved_config(self.state.config, source=self.path)

    @property
    def is_offline(self) -> bool:
        """Whether the checkpoint is of the phase before the first timestep."""
        return self.path.parent.name == "offline"

    @property
    def name(self) -> str:
        """Name of the checkpoint's folder, as events have it."""
        return f"offline/{self.path.name}" if self.is_offline else self.path.name

    @property
    def contents(self) -> tuple[str, ...]:
        """Contents of the checkpoint, in words."""
        return tuple(words for name, words in _WORDS.items() if name in self._manifest.files)

    @property
    def has_envs(self) -> bool:
        """Whether running episodes continue; see `TrainingState.envs`."""
        return self.play().envs is not None

    @property
    def has_replay(self) -> bool:
        """Whether it has the replay, or refers to one."""
        return not _REPLAYS.isdisjoint(self._manifest.files)

    @property
    def draws_anew(self) -> bool:
        """Whether random generators start anew; see `TrainingState.random`."""
        return self.play().random is None

    @property
    def files(self) -> Mapping[FileName, FileEntry]:
        return self._manifest.files

    def play(self) -> TrainingState:
        """Read the state of everything around the network, apart from arrays."""
        return read_model(self.path, self._manifest, TrainingState, "play.json")

    def verify(self) -> Self:
        """Compare every file with the manifest, and return the checkpoint."""
        for name in self._manifest.files:
            with opened_verified(self.path, self._manifest, name):
                pass
        return self

    def check_game(self, game: Game) -> None:
        """Raise CheckpointError if the weights were learned on another ROM."""
        check_rom(self.path, self.state, game)

    def read(self, file: CheckpointFile[Content]) -> Content | None:
        """Read the file of a feature; None if the checkpoint has none."""
        if file.name not in self._manifest.files:
            return None
        return read_model(self.path, self._manifest, file.model, file.name)


def best_checkpoint(run_dir: RunDir, best: Best) -> Path:
    """Return the path of the best checkpoint, which may be lost."""
    if best.offline_gradient_steps:
        return run_dir.offline.checkpoint(best.offline_gradient_steps)
    return RunDir(run_dir.root).checkpoint(best.timesteps)


def best_of(run_dir: RunDir, newest: CheckpointFolder) -> Best | None:
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
