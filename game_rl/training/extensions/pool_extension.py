"""The pool: states in which episodes begin, counted by what came of them, handed to the envs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Self, cast

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.pool_config import PoolConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.envs.game_boy_env import POOL_STATE
from game_rl.events import PoolCounted
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.pool.pool import POOL_FILE, NewState, Pool, PoolEnding, SavedPool
from game_rl.pool.pool_source import PlayedRoute, RoutePlay, new_states, played_route
from game_rl.pool.pool_watch import PoolWatch, hand_pool, take_found
from game_rl.training.admission import check_pool_named
from game_rl.training.extension import Extension, RunParts
from game_rl.training.fork_parts import ForkPlan

_TOLD = 100  # times in a run that ends at its `total_timesteps`


class PoolCallback(BoundaryCallback):
    """Counts how the training's episodes end, and hands the pool to the envs at boundaries.

    What a rollout has counted and found takes effect at the next boundary at which it acts. It must
    come before the callback that saves checkpoints.

    Args:
        pool: the states; they are updated.
        waiting: ends of episodes that a checkpoint has not counted yet.
        every_timesteps: see BoundaryCallback.
        events: gets what came of the episodes, each time that `told_every` timesteps have passed.
        potentials: names of the reward terms with a potential. They are paid for each step towards
            the end, so that with `goal: reward` nearly every episode would be a success.
    """

    def __init__(
        self,
        pool: Pool,
        settings: PoolConfig,
        waiting: Sequence[PoolEnding] = (),
        *,
        events: EventLog,
        told_every: int,
        every_timesteps: Sequence[int] = (),
        potentials: Collection[str] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self.pool = pool
        self.waiting = list(waiting)
        self._settings = settings
        self._potentials = frozenset(potentials)
        self._events = events
        self._told_every = told_every
        self._told_at = 0
        self._rollout: list[PoolEnding] = []
        self._handed: set[int] = set()

    def hand_out(self) -> None:
        """Give the envs the states that they lack, and the weights by which they draw."""
        pool = self.pool
        draw = pool.draw()
        states = {each.beginning.number: each.beginning for each in pool.states}
        new = [each for number, each in states.items() if number not in self._handed]
        env = self.training_env
        answers: list[Sequence[int]] = env.env_method("call", hand_pool, draw, new, pool.highest)
        for index, missing in enumerate(answers):
            if missing:  # its process has died, and the new one has no states
                everything = tuple(states.values())
                env.env_method("call", hand_pool, draw, everything, pool.highest, indices=[index])
        self._handed = set(states)

    def _take_in(self) -> None:
        """Add the states that the envs have found, in the order of the envs."""
        new: list[NewState] = []
        for found in self.training_env.env_method("call", take_found):
            for each in found:
                new.append(NewState(each.state, each.start_state, each.reward, each.timesteps))
                highest = self.pool.highest
                self.pool.highest = each.value if highest is None else max(highest, each.value)
        self.pool.add(new)

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._told_at = self.num_timesteps
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
        success = reward > 0
        if self._potentials:
            terms = info["reward_terms"].items()
            success = sum(earned for name, earned in terms if name not in self._potentials) > 0
        if self._settings.goal == "success":
            success = bool(info.get("is_success", success))
        ending = PoolEnding(began=info.get(POOL_STATE), success=success, reward=reward)
        self._rollout.append(ending)
        is_of_pool = ending.began is not None
        of_starts = "" if is_of_pool else "_from_start"
        record = self.logger.record_mean
        record("pool/share", float(is_of_pool))
        record(f"pool/success_rate{of_starts}", float(success))
        record(f"pool/reward{of_starts}", reward)

    def _on_rollout_end(self) -> None:
        super()._on_rollout_end()
        self.waiting += self._rollout
        self._rollout.clear()

    def on_boundary(self, *, is_last: bool) -> None:
        if self.num_timesteps != self.boundary_timesteps:  # in the middle of a rollout
            return
        self.pool.count(self.waiting)
        self.waiting.clear()
        if self._settings.save_on is not None:
            self._take_in()
        self.hand_out()
        self.logger.record("pool/states", len(self.pool.states))
        if self._settings.choose == "backward":
            self.logger.record("pool/passed", self.pool.share_passed)
        now = self.num_timesteps
        if is_last or now // self._told_every > self._told_at // self._told_every:
            self._told_at = now
            self._events.emit(PoolCounted(timesteps=now, levels=self.pool.levels()))


class PoolExtension(Extension):
    """Lets episodes of the training begin in a pool, if the run has `env.pool`."""

    opening = "filling the pool"

    def __init__(self, parts: RunParts, settings: PoolConfig) -> None:
        checkpoint = parts.checkpoint
        self._parts = parts
        self._settings = settings
        saved = None if checkpoint is None else checkpoint.read(POOL_FILE)
        waiting: Sequence[PoolEnding] = ()
        if saved is None or saved.source != settings.from_:
            pool = self._new_pool(saved)
        else:
            pool = Pool.of(saved, settings)
            waiting = saved.waiting
        terms = parts.game.rewards_of(parts.config.env).items()
        self._callback = PoolCallback(
            pool,
            settings,
            waiting,
            events=parts.events,
            told_every=-(-parts.config.total_timesteps // _TOLD),
            every_timesteps=parts.rhythm,
            potentials=[name for name, term in terms if term.potential is not None],
        )

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Return None if the run has no pool, or the phase to come plays nothing."""
        settings = parts.config.env.pool
        return None if settings is None or parts.is_offline else cls(parts, settings)

    def _new_pool(self, former: SavedPool | None) -> Pool:
        """Return a pool with the states that `env.pool.from` names.

        Args:
            former: the pool that the run had before; episodes from its states may still go on.

        Raises:
            UsageError: there are no states of this game.
        """
        settings = self._settings
        pool = Pool(settings, next_number=0 if former is None else former.next_number)
        if settings.from_ is not None:
            pool.add(new_states(settings, self._parts.game, self._play))
        return pool

    def _play(self, route: RoutePlay) -> PlayedRoute:
        """Play a route in the process of the first env, as this one has no emulator."""
        env = self._parts.model.get_env()
        assert env is not None
        (found,) = env.env_method("call", played_route, route, indices=[0])
        return cast("PlayedRoute", found)

    @classmethod
    def check_new(cls, config: RunConfig, game: Game) -> None:
        check_pool_named(config, game)

    @classmethod
    def trackers(cls, config: RunConfig, *, is_training: bool) -> Sequence[TrackerMaker]:
        return (PoolWatch.of,) if is_training and config.env.pool is not None else ()

    @classmethod
    def forked(cls, plan: ForkPlan, run_dir: RunDir) -> Mapping[FileName, Saved]:  # noqa: ARG003
        """Let a fork whose counters are new fill its pool anew, with other numbers of states."""
        former = plan.source.checkpoint.read(POOL_FILE)
        if former is None or plan.config.env.pool is None or not plan.new.counters:
            return {}
        return {POOL_FILE.name: SavedPool(states=(), next_number=former.next_number)}

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
