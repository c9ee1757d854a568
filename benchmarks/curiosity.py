"""Random network distillation of some values of an observation, as a callback.

`algorithm.curiosity` sees all of them. `benchmarks.far_rewards` compares both on beacon.
"""

from collections.abc import Mapping
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.buffers.rollout_buffer import Indices, PackedRolloutBuffer
from game_rl.config.algorithms import CuriosityConfig
from game_rl.curiosity.curiosity_feature import n_numbers
from game_rl.curiosity.distillation import Distillation
from game_rl.envs.observation import ObservationFormat


class PartialDistillation(Distillation):
    """Distillation to which all numbers but some of the parts' are always 0, so never new.

    Args:
        form: of observations without a screen.
        seen: the numbers of each part in which something may be new.
    """

    def __init__(self, form: ObservationFormat, seen: Mapping[str, slice], **keywords: Any) -> None:  # noqa: ANN401
        super().__init__(form, **keywords)
        parts = []
        for name, part in form.parts:
            shown = torch.zeros(n_numbers(part, form.stack))
            shown[seen.get(name, slice(0))] = 1.0
            parts.append(shown)
        self._shown = torch.cat(parts).to(keywords["device"])

    def _rows(self, buffer: PackedRolloutBuffer, timesteps: Indices) -> torch.Tensor:
        return super()._rows(buffer, timesteps) * self._shown


class PartialCuriosity(BaseCallback):
    """As the callback of `algorithm.curiosity`; its networks begin anew in a resumed run."""

    def __init__(self, form: ObservationFormat, seen: Mapping[str, slice]) -> None:
        super().__init__()
        self._form = form
        self._seen = seen

    def _on_training_start(self) -> None:
        config = CuriosityConfig()
        self._distillation = PartialDistillation(
            self._form,
            self._seen,
            coef=config.coef,
            gamma=config.gamma,
            n_envs=self.training_env.num_envs,
            seed=self.model.seed or 0,
            device=self.model.device,
        )

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.model.rollout_buffer  # type: ignore[attr-defined]  # PPO has one
        assert isinstance(buffer, PackedRolloutBuffer)
        self._distillation.act(buffer)
