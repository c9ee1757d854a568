"""What a pool costs: memory in the training and its workers, bytes of each checkpoint."""

from collections.abc import Iterable

from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.pool.pool import POOL_FILE

# Packed states of beacon and duel have 3,800 to 4,100 bytes, of seasons 3,150; a cartridge with
# much RAM takes more. In a checkpoint each has numbers beside it, and is written in base64.
_STATE_BYTES = 4_000
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
        return (Part("pool of states", (1 + run.n_workers) * pool.size * _STATE_BYTES),)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        pool = run.config.env.pool
        if pool is None:
            return 0
        return round(pool.size * (_STATE_BYTES * _BASE64_FACTOR + _SAVED_STATE_BYTES))
