"""A rollout's vec steps on their way to whoever else wants them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from game_rl.buffers.feed import Feed
from game_rl.vec_env.halved_vec_env import Outcome


def feed_vec_step(
    feeds: Sequence[Feed],
    observations: NDArray[Any],
    actions: NDArray[np.int64],
    outcome: Outcome,
) -> None:
    """Hand a vec step to each of `feeds`.

    Args:
        observations: stacks that the actions answer.
        outcome: as the vec env gave it, its rewards not yet changed.
    """
    if not feeds:
        return
    new_observations, rewards, dones, infos = outcome
    truncated = np.array([bool(info.get("TimeLimit.truncated")) for info in infos]) & dones
    for feed in feeds:
        feed.append(
            observations=observations,
            actions=actions,
            rewards=rewards,
            next_observations=_with_last_stacks(new_observations, dones, infos),
            terminated=dones & ~truncated,
            truncated=truncated,
        )


def _with_last_stacks(
    stacks: NDArray[np.uint8], dones: NDArray[np.bool_], infos: list[dict[str, Any]]
) -> NDArray[np.uint8]:
    """What came after each timestep: where an episode ended, not yet the next one's beginning."""
    if not dones.any():
        return stacks
    stacks = stacks.copy()
    for i in np.flatnonzero(dones):
        stacks[i] = infos[i]["terminal_observation"]
    return stacks
