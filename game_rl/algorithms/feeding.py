"""Passing the vec steps of a rollout on to feeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.algorithms.vec_steps import VecStep
from game_rl.buffers.feed import Feed


def feed_vec_step(feeds: Sequence[Feed], observations: NDArray[Any], step: VecStep) -> None:
    """Append a vec step to each of `feeds`.

    Args:
        observations: stacks for which the actions of `step` were chosen.
        step: the vec step, with the rewards as the envs gave them.
    """
    if not feeds:
        return
    _, rewards, dones, infos = step.outcome
    truncated = np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & dones
    for feed in feeds:
        feed.append(
            observations=observations,
            frames=step.frames,
            actions=step.decision.actions,
            rewards=rewards,
            next_frames=step.next_frames,
            terminated=dones & ~truncated,
            truncated=truncated,
        )
