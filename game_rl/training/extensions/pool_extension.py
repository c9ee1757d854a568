"""The pool: states in which episodes begin, counted by what came of them, handed to the envs."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.pool_config import PoolConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.game_boy_env import POOL_STATE
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.pool.pool import POOL_FILE, Pool, PoolEnding, SavedPool
from game_rl.pool.pool_source import new_states
from game_rl.pool.pool_tracker import hand_pool
from game_rl.training.admission import check_pool_named
from game_rl.training.extension import Extension, RunParts
from game_rl.training.fork_parts import ForkPlan


class PoolCallback(BoundaryCallback):
    """Counts how the training's episodes end, and hands the pool to the envs at boundaries.

    What a rollout has counted takes effect at the next boundary at which it acts. It must come
    before the callback that saves checkpoints.

    Args:
        pool: the states; they are updated.
        waiting: ends of episodes that a checkpoint has not counted yet.
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        pool: Pool,
        settings: PoolConfig,
        waiting: Sequence[PoolEnding] = (),
        *,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self.pool = pool
        self.waiting = list(waiting)
        self._settings = settings
        self._rollout: list[PoolEnding] = []
        self._handed: set[int] = set()

    def hand_out(self) -> None:
        """Give the envs the states that they lack, and the weights by which they draw."""
        settings = self._settings
        draw = self.pool.draw(settings.share, settings.choose)
        states = {each.beginning.number: each.beginning for each in self.pool.states}
        new = [states[number] for number in states.keys() - self._handed]
        env = self.training_env
        answers: list[Sequence[int]] = env.env_method("call", hand_pool, draw, new)
        for index, missing in enumerate(answers):
            if missing:  # its process has died, and the new one has no states
                everything = tuple(states.values())
                env.env_method("call", hand_pool, draw, everything, indices=[index])
        self._handed = set(states)

    def _on_training_start(self) -> None:
        super()._on_training_start()
        for interval in self._rhythm:
            interval.last_timesteps = self.num_timesteps

    def _on_rollout_start(self) -> None:
        self._rollout.clear()  # of one that was broken off
        super()._on_rollout_start()

    def _on_step(self) -> bool:
        dones = self.locals["dones"]
        if dones.any():
            for is_done, info in zip(dones, self.locals["infos"], strict=True):
                if is_done and "start_state" in info:
                    self._note(info)
        return True

    def _note(self, info: Mapping[str, Any]) -> None:
        reward = float(info["episode"]["r"])
        ending = PoolEnding(
            began=info.get(POOL_STATE),
            success=bool(info.get("is_success", reward > 0)),
            reward=reward,
        )
        self._rollout.append(ending)
        is_of_pool = ending.began is not None
        of_starts = "" if is_of_pool else "_from_start"
        record = self.logger.record_mean
        record("pool/share", float(is_of_pool))
        record(f"pool/success_rate{of_starts}", float(ending.success))
        record(f"pool/reward{of_starts}", reward)

    def _on_rollout_end(self) -> None:
        super()._on_rollout_end()
        self.waiting += self._rollout
        self._rollout.clear()

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        if self.num_timesteps != self.boundary_timesteps:  # in the middle of a rollout
            return
        self.pool.count(self.waiting)
        self.waiting.clear()
        self.hand_out()
        self.logger.record("pool/states", len(self.pool.states))


def new_pool(settings: PoolConfig, game: Game, former: SavedPool | None) -> Pool:
    """Return a pool with the states that `env.pool.from` names.

    Args:
        former: the pool that the run had before, from whose states episodes may still be played.

    Raises:
        UsageError: there are no states of this game.
    """
    pool = Pool(settings.size, next_number=0 if former is None else former.next_number)
    if settings.from_ is not None:
        pool.add(new_states(settings.from_, game, settings.size))
    return pool


class PoolExtension(Extension):
    """Lets episodes of the training begin in a pool, if the run has `env.pool`."""

    def __init__(self, parts: RunParts, settings: PoolConfig) -> None:
        checkpoint = parts.checkpoint
        saved = None if checkpoint is None else checkpoint.read(POOL_FILE)
        waiting: Sequence[PoolEnding] = ()
        if checkpoint is None or saved is None or _source(checkpoint.config) != settings.from_:
            pool = new_pool(settings, parts.game, saved)
        else:
            pool = Pool.of(saved, settings.size)
            waiting = saved.waiting
        self._callback = PoolCallback(pool, settings, waiting, every_timesteps=parts.rhythm)

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Return None if the run has no pool, or the phase to come plays nothing."""
        settings = parts.config.env.pool
        return None if settings is None or parts.is_offline else cls(parts, settings)

    @classmethod
    def check_new(cls, config: RunConfig, game: Game) -> None:
        check_pool_named(config, game)

    @classmethod
    def forked(cls, plan: ForkPlan, run_dir: RunDir) -> Mapping[FileName, Saved]:  # noqa: ARG003
        """Let the fork go on with its parent's pool, unless its counters or `from` are new."""
        settings = plan.config.env.pool
        is_same = _source(plan.source.config) == _source(plan.config) and not plan.new.counters
        if settings is None or is_same:
            return {}
        former = plan.source.checkpoint.read(POOL_FILE)
        return {POOL_FILE.name: new_pool(settings, plan.game, former).saved()}

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (self._callback,)

    def begin(self) -> None:
        self._callback.hand_out()

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        return {POOL_FILE.name: self._callback.pool.saved(self._callback.waiting)}


def _source(config: RunConfig) -> str | None:
    return None if config.env.pool is None else config.env.pool.from_
