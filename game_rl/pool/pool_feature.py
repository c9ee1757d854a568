"""What a pool costs: memory in the training and its workers, bytes of each checkpoint."""

from collections.abc import Iterable

from game_rl.emulator.saved_state import PACKED_STATE_BYTES
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.pool.pool import POOL_FILE

# In a checkpoint each state has numbers beside it, and is written in base64.
_SAVED_STATE_BYTES = 330
_BASE64_FACTOR = 4 / 3


class PoolFeature(Feature):
    """The pool of states of `env.pool`, which is forecast as if it were full."""

    file = POOL_FILE

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of the states, in the training process and in each worker."""
        pool = run.config.env.pool
        if pool is None:
            return ()
        return (Part("pool of states", (1 + run.n_workers) * pool.size * PACKED_STATE_BYTES),)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        pool = run.config.env.pool
        if pool is None:
            return 0
        return round(pool.size * (PACKED_STATE_BYTES * _BASE64_FACTOR + _SAVED_STATE_BYTES))
