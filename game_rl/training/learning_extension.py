"""Learning from others' Lakes: opened, drawn from, reported."""

from collections.abc import Callable, Sequence
from functools import partial

from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.mixed_replay import (
    MOST_CURVES,
    SHOWN_CHARACTERS,
    MixedReplay,
    make_mixed_replay,
)
from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.config.algorithms import DQNConfig
from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.observation import ObservationFormat
from game_rl.event_log import EventLog
from game_rl.events import LakesFollowed, RowsDrawn
from game_rl.games.definition import Game
from game_rl.lake.lake_pool import Following, LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.origin import check_agreement
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for

_MB = 10**6


def open_lakes(
    config: RunConfig,
    game: Game,
    run_dir: RunDir,
    model: object,
    observation_format: ObservationFormat,
    tell: Callable[[str], None],
) -> LakePool | None:
    """Open the Lakes that the run learns from, if any, and give `model` a replay with their rows.

    Raises:
        LakeError: a Lake is missing, or its rows are of another game or another observation.
    """
    algorithm = config.algorithm
    if not isinstance(algorithm, DQNConfig) or algorithm.learn_from is None:
        return None
    assert isinstance(model, LeanDQN)
    settings = algorithm.learn_from
    schema = LakeSchema.of(observation_format, n_actions=len(game.action_names))
    check = partial(check_agreement, settings, schema, config, game, tell)
    check()
    following = None
    if settings.follow_every_s is not None:
        following = Following(settings.follow_every_s, check=check)
    pool = _pool(algorithm, settings, run_dir, following, tell)
    model.mixed_replay = make_mixed_replay(
        settings,
        pool,
        n_step=algorithm.n_step,
        gamma=algorithm.gamma,
        seed=seed_for(config.seed, "learn_from"),
        tell=tell,
    )
    return pool


def _pool(
    algorithm: DQNConfig,
    settings: LearnFromConfig,
    run_dir: RunDir,
    following: Following | None,
    tell: Callable[[str], None],
) -> LakePool:
    reader = partial(
        LakeReader,
        table_folder=run_dir.root,
        pins=f"reads-{run_dir.identity().id}",
        n_step=algorithm.n_step,
        gamma=algorithm.gamma,
        cache_bytes=settings.cache_mb * _MB // len(settings.lakes),
        follows=following is not None,
        tell=tell,
    )
    readers = [reader(path) for path in settings.lakes]
    return LakePool(readers, agents=settings.agents, following=following)


def begin_to_draw(pool: LakePool, run_dir: RunDir) -> None:
    """Let the pool begin, with the pins of existing checkpoints; other pins are removed.

    If the model is restored from a checkpoint, that must come first.
    """
    offline = run_dir.offline.checkpoints_newest_first()
    names = [path.name for path in run_dir.checkpoints_newest_first()]
    pool.begin([*names, *(f"offline-{path.name}" for path in offline)])


def rows_drawn(mixed_replay: MixedReplay, timesteps: int) -> RowsDrawn:
    """Return an event with the present numbers."""
    return RowsDrawn(
        timesteps=timesteps,
        own=mixed_replay.n_own_drawn,
        streams=dict(mixed_replay.n_of_streams),
        offline_streams=dict(mixed_replay.n_offline),
    )


class RowsDrawnCallback(BoundaryCallback):
    """Writes `learn_from/drawn_own`, `learn_from/drawn_…` of each stream, and an event.

    The curves are shares of all rows in all batches since the run's first timestep. The event has
    the numbers of rows.

    Args:
        every_timesteps: see BoundaryCallback.
    """

    def __init__(
        self, mixed_replay: MixedReplay, events: EventLog, *, every_timesteps: Sequence[int] = ()
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._mixed_replay, self._events = mixed_replay, events

    def on_boundary(self, *, is_last: bool) -> None:  # noqa: ARG002
        drawn, streams = self._mixed_replay.n_drawn, self._mixed_replay.n_of_streams
        if drawn:
            self.logger.record("learn_from/drawn_own", self._mixed_replay.n_own_drawn / drawn)
        for stream, count in streams.items() if len(streams) <= MOST_CURVES else ():
            self.logger.record(f"learn_from/drawn_{stream[:SHOWN_CHARACTERS]}", count / drawn)
        self._events.emit(rows_drawn(self._mixed_replay, self.boundary_timesteps))


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
        *,
        every_timesteps: Sequence[int] = (),
    ) -> None:
        super().__init__(every_timesteps=every_timesteps)
        self._mixed_replay, self._following, self._events = mixed_replay, following, events

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
