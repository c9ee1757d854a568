"""What a pool costs: memory in the training and its workers, bytes of each checkpoint."""

from collections.abc import Iterable

from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.pool.pool import POOL_FILE

_STATE_BYTES = 4_000
_SAVED_STATE_BYTES = 300
_BASE64_FACTOR = 4 / 3


class PoolFeature(Feature):
    """The pool of states of `env.pool`."""

    file = POOL_FILE

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        pool = run.config.env.pool
        if pool is None:
            return ()
        n_workers = run.config.env.n_workers or run.config.env.n_envs
        return (Part("pool of states", (1 + n_workers) * pool.size * _STATE_BYTES),)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        pool = run.config.env.pool
        if pool is None:
            return 0
        return round(pool.size * (_STATE_BYTES * _BASE64_FACTOR + _SAVED_STATE_BYTES))
