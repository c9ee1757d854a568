"""Checkpoints: a directory each, complete or absent, loaded without running any code from it."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from stable_baselines3 import PPO

from game_rl.callbacks.boundary import BoundaryCallback, Interval
from game_rl.errors import CheckpointError
from game_rl.run_dir import RunDir, new_directory

FORMAT = 1
_MANIFEST = "manifest.json"
_STATE = "state.json"
_POLICY = "policy.pt"
_OPTIMIZER = "optimizer.pt"


@dataclass(frozen=True)
class CheckpointState:
    """What a checkpoint holds beside tensors.

    Attributes:
        num_timesteps: timesteps that the weights have learned from.
        total_timesteps: what the run aimed at; schedules are stretched over it.
        n_updates: SB3's counter of epochs done.
        rom_sha256: the cartridge that it learned on.
        best_mean_reward: best evaluation so far, None before the first.
    """

    num_timesteps: int
    total_timesteps: int
    n_updates: int
    rom_sha256: str
    best_mean_reward: float | None


def save_checkpoint(model: PPO, state: CheckpointState, path: Path) -> None:
    """Write `model` as a directory at `path`; it appears in one rename."""
    with new_directory(path) as directory:
        torch.save(model.policy.state_dict(), directory / _POLICY)
        torch.save(model.policy.optimizer.state_dict(), directory / _OPTIMIZER)
        (directory / _STATE).write_text(json.dumps(asdict(state), indent=2))
        files = {name: _sha256(directory / name) for name in (_POLICY, _OPTIMIZER, _STATE)}
        manifest = {"format": FORMAT, "sha256": files}
        (directory / _MANIFEST).write_text(json.dumps(manifest, indent=2))


def checkpoint_bytes(model: PPO) -> int:
    """Tensors of one checkpoint: a float32 weight and Adam's two moments of it."""
    return 12 * sum(parameter.numel() for parameter in model.policy.parameters())


def verify_checkpoint(path: Path) -> None:
    """Raise CheckpointError unless every file of the checkpoint is as it was written."""
    if not path.is_dir():
        raise CheckpointError(f"{path} is no checkpoint: there is no such directory")
    try:
        manifest = json.loads((path / _MANIFEST).read_text())
        found_format, files = manifest["format"], dict(manifest["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} has no readable {_MANIFEST} ({error})") from None
    if found_format != FORMAT:
        raise CheckpointError(f"{path} has format {found_format}, this version reads {FORMAT}")
    for name in (_POLICY, _OPTIMIZER, _STATE):
        file = path / name
        if not file.is_file() or _sha256(file) != files.get(name):
            raise CheckpointError(
                f"{file} is damaged: its sha256 is not the one in {_MANIFEST}; "
                "use another checkpoint of the run"
            )


def read_state(path: Path) -> CheckpointState:
    try:
        return CheckpointState(**json.loads((path / _STATE).read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path / _STATE} cannot be read: {error}") from None


def load_policy(path: Path) -> Mapping[str, torch.Tensor]:
    """The weights of a verified checkpoint, on the CPU."""
    return cast("Mapping[str, torch.Tensor]", _load_tensors(path / _POLICY))


def restore(model: PPO, path: Path) -> CheckpointState:
    """Put a verified checkpoint's weights, optimiser and counters into `model`."""
    state = read_state(path)
    try:
        model.policy.load_state_dict(load_policy(path))
        model.policy.optimizer.load_state_dict(_load_tensors(path / _OPTIMIZER))
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path} does not match the run's network: {error}") from None
    model.num_timesteps = state.num_timesteps
    model._n_updates = state.n_updates
    return state


def newest_valid_checkpoint(run_dir: RunDir) -> tuple[Path, list[CheckpointError]]:
    """The newest checkpoint whose files verify, and what was wrong with newer ones.

    Raises:
        CheckpointError: the run has none.
    """
    damaged: list[CheckpointError] = []
    for path in run_dir.checkpoints_newest_first():
        try:
            verify_checkpoint(path)
        except CheckpointError as error:
            damaged.append(error)
        else:
            return path, damaged
    found = "".join(f"\n  {error}" for error in damaged)
    raise CheckpointError(
        f"{run_dir.checkpoints} holds no usable checkpoint; start anew with --config{found}"
    )


class CheckpointCallback(BoundaryCallback):
    """Saves at the first boundary after each multiple of `every_timesteps`, and at the end."""

    def __init__(
        self,
        run_dir: RunDir,
        *,
        every_timesteps: int,
        keep_last: int,
        total_timesteps: int,
        rom_sha256: str,
    ) -> None:
        super().__init__()
        self.best_mean_reward: float | None = None
        self.last_saved: Path | None = None
        self._run_dir = run_dir
        self._interval = Interval(every_timesteps)
        self._keep_last = keep_last
        self._total_timesteps = total_timesteps
        self._rom_sha256 = rom_sha256

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._interval.last_timesteps = self.num_timesteps

    def on_boundary(self, *, is_last: bool) -> None:
        due = self._interval.crossed(self.boundary_timesteps)
        if due or (is_last and self.boundary_timesteps > 0):
            self._save()

    def save_best(self, mean_reward: float) -> None:
        """Keep the present model as the run's best."""
        self.best_mean_reward = mean_reward
        save_checkpoint(self._ppo, self._state(), self._run_dir.best)

    def _save(self) -> None:
        path = self._run_dir.checkpoint(self.boundary_timesteps)
        if path != self.last_saved:
            save_checkpoint(self._ppo, self._state(), path)
            self.last_saved = path
            self._prune()

    def _prune(self) -> None:
        for old in self._run_dir.checkpoints_newest_first()[self._keep_last :]:
            shutil.rmtree(old)

    def _state(self) -> CheckpointState:
        return CheckpointState(
            num_timesteps=self.boundary_timesteps,
            total_timesteps=self._total_timesteps,
            n_updates=self._ppo._n_updates,
            rom_sha256=self._rom_sha256,
            best_mean_reward=self.best_mean_reward,
        )

    @property
    def _ppo(self) -> PPO:
        assert isinstance(self.model, PPO)
        return self.model


def _load_tensors(path: Path) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # noqa: BLE001 - torch raises a dozen kinds for a damaged file
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
