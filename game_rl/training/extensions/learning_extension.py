"""Learning from others' Lakes: opened, drawn from, reported."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Self

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.mixed_replay import (
    MOST_CURVES,
    SHOWN_CHARACTERS,
    MixedReplay,
    make_mixed_replay,
)
from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.evaluation import Values
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.learn_from import LearnFromConfig
from game_rl.events import LakesFollowed
from game_rl.events.event_log import EventLog
from game_rl.events.lineage import Source
from game_rl.files.saved import Saved
from game_rl.lake.lake_pool import Following, LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.origin import check_agreement
from game_rl.seeds import seed_for
from game_rl.training.extension import Extension, FirstPhase, RunParts
from game_rl.training.offline_phase import make_offline_phase

_MB = 10**6


class LearningExtension(Extension):
    """The Lakes of others from which a DQN draws a part of each batch."""

    opening = "opening the Lake"

    def __init__(self, parts: RunParts, model: LeanDQN, pool: LakePool, mixed: MixedReplay) -> None:
        self._run_dir = parts.run_dir
        self._frame_skip = parts.config.env.frame_skip
        self._model = model
        self._pool = pool
        self._mixed_replay = mixed
        # Q-values become too high where a run learns from others' play
        self.values = Values(model.values, model.gamma, model.reward_scaling)

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Open the Lakes that the run learns from, if any, and give its model a replay with them.

        Raises:
            LakeError: a Lake is missing, or its rows are of another game or another observation.
        """
        config = parts.config
        game = parts.game
        model = parts.model
        tell = parts.events.warn
        settings = config.algorithm.lakes
        if settings is None:
            return None
        assert isinstance(model, LeanDQN)
        schema = LakeSchema.of(parts.observation_format, n_actions=len(game.action_names))
        check = partial(check_agreement, settings, schema, config, game, tell)
        check()
        following = None
        if settings.follow_every_s is not None:
            following = Following(settings.follow_every_s, check=check)
        pool = _pool(parts, model, settings, following)
        model.mixed_replay = make_mixed_replay(
            settings,
            pool,
            n_step=model.replay_buffer.n_step,
            gamma=model.gamma,
            seed=seed_for(config.seed, "learn_from"),
            tell=tell,
        )
        return cls(parts, model, pool, model.mixed_replay)

    def callbacks(
        self,
        parts: RunParts,
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        mixed = self._mixed_replay
        following = self._pool.following
        rhythm = parts.rhythm
        drawn = RowsDrawnCallback(mixed, parts.events, rhythm)
        if following is None:
            return [drawn]
        return [LakesFollowedCallback(mixed, following, parts.events, rhythm), drawn]

    def phase(self, parts: RunParts, extensions: Sequence[Extension]) -> FirstPhase | None:
        return make_offline_phase(parts, self._model, extensions)

    def begin(self) -> None:
        """Draw from now on, with the pins of existing checkpoints; other pins are removed."""
        offline = self._run_dir.offline.checkpoints_newest_first()
        names = [path.name for path in self._run_dir.checkpoints_newest_first()]
        self._pool.begin([*names, *(f"offline-{path.name}" for path in offline)])

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        self._pool.renew(name)
        return {}

    def forget(self, name: str) -> None:
        self._pool.unpin(name)

    def sources(self) -> Sequence[Source]:
        return self._pool.sources(frame_skip=self._frame_skip)

    def release(self) -> None:
        self._pool.release()

    def close(self) -> None:
        self._pool.close()


def _pool(
    parts: RunParts,
    model: LeanDQN,
    settings: LearnFromConfig,
    following: Following | None,
) -> LakePool:
    reader = partial(
        LakeReader,
        table_folder=parts.run_dir.root,
        pins=f"reads-{parts.run_dir.identity().id}",
        n_step=model.replay_buffer.n_step,
        gamma=model.gamma,
        cache_bytes=settings.cache_mb * _MB // len(settings.lakes),
        follows=following is not None,
        learned=model.reward_scaling,
        tell=parts.events.warn,
    )
    readers = [reader(path) for path in settings.lakes]
    return LakePool(readers, agents=settings.agents, following=following)


class RowsDrawnCallback(BoundaryCallback):
    """Writes `learn_from/drawn_own`, `learn_from/drawn_…` of each stream, and an event.

    The curves are shares of all rows in all batches since the run's first timestep. The event has
    the numbers of rows.

    Args:
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self, mixed_replay: MixedReplay, events: EventLog, every_timesteps: Sequence[int]
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._mixed_replay = mixed_replay
        self._events = events

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        drawn = self._mixed_replay.n_drawn
        streams = self._mixed_replay.n_of_streams
        if drawn:
            self.logger.record("learn_from/drawn_own", self._mixed_replay.n_own_drawn / drawn)
        if len(streams) <= MOST_CURVES:
            for stream, count in streams.items():
                self.logger.record(f"learn_from/drawn_{stream[:SHOWN_CHARACTERS]}", count / drawn)
        self._events.emit(self._mixed_replay.rows_drawn(self.boundary_timesteps))


class LakesFollowedCallback(BoundaryCallback):
    """Writes `learn_from/rows_followed` and `learn_from/newest_age_s`, and an event with both.

    Args:
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self,
        mixed_replay: MixedReplay,
        following: Following,
        events: EventLog,
        every_timesteps: Sequence[int],
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._mixed_replay = mixed_replay
        self._following = following
        self._events = events

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        age_s = self._following.newest_age_s
        self.logger.record("learn_from/rows_followed", self._following.n_rows)
        if age_s is not None:
            self.logger.record("learn_from/newest_age_s", age_s)
        self._events.emit(
            LakesFollowed(
                timesteps=self.boundary_timesteps,
                rows=self._following.n_rows,
                newest_age_s=age_s,
                own_drawn=self._mixed_replay.n_own_drawn,
                drawn=self._mixed_replay.n_drawn,
            )
        )
