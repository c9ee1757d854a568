"""Curiosity of PPO: a reward for what is new, by random network distillation."""

from collections.abc import Mapping, Sequence
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.algorithms.ppo import LeanPPO
from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.algorithms import CuriosityConfig
from game_rl.curiosity.curiosity_feature import CURIOSITY_FILE
from game_rl.curiosity.distillation import Distillation
from game_rl.files.saved import Saved
from game_rl.seeds import seed_for
from game_rl.training.extension import Extension, RunParts


class CuriosityCallback(BaseCallback):
    """Changes the advantages of each rollout before PPO learns from it."""

    def __init__(self, distillation: Distillation) -> None:
        super().__init__()
        self._distillation = distillation

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        assert isinstance(self.model, LeanPPO)
        buffer = self.model.rollout_buffer
        assert isinstance(buffer, PackedRolloutBuffer)
        self._distillation.act(buffer)
        self.logger.record("curiosity/error", self._distillation.error)
        self.logger.record("curiosity/advantages", self._distillation.share)


class CuriosityExtension(Extension):
    """Rewards what is new, and keeps the networks that know what is."""

    def __init__(self, parts: RunParts, config: CuriosityConfig) -> None:
        self._events = parts.events
        self._distillation = Distillation(
            parts.observation_format,
            coef=config.coef,
            gamma=config.gamma,
            n_envs=parts.config.env.n_envs,
            seed=seed_for(parts.config.seed, "curiosity"),
            device=parts.model.device,
        )

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        config = parts.config.algorithm.curiosity
        if config is None or parts.is_offline or not parts.config.learns:
            return None
        return cls(parts, config)

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (CuriosityCallback(self._distillation),)

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        return {CURIOSITY_FILE.name: self._distillation.saved()}

    def restore(self, checkpoint: Checkpoint) -> int:
        """Go on from the checkpoint's networks; a fork that sees something else begins anew."""
        saved = checkpoint.read(CURIOSITY_FILE)
        if saved is not None and not self._distillation.load(saved):
            self._events.warn(
                "curiosity begins anew: the checkpoint's is of other observations or of another "
                "number of envs"
            )
        return 0
