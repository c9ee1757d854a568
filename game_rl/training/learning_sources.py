"""Open the Lakes of other runs from which a run learns."""

from collections.abc import Callable
from functools import partial

from game_rl.algorithms.dqn import LeanDQN
from game_rl.algorithms.mixed_replay import make_mixture
from game_rl.config.algorithms import DQNConfig
from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.schema import RunConfig
from game_rl.envs.packing import FramePacking
from game_rl.games.definition import Game
from game_rl.lake.lake_pool import Following, LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.lake_schema import lake_schema
from game_rl.lake.origin import check_agreement
from game_rl.run_dir import RunDir
from game_rl.seeds import seed_for

_MB = 10**6


def open_lakes(
    config: RunConfig,
    game: Game,
    run_dir: RunDir,
    model: object,
    packing: FramePacking,
    tell: Callable[[str], None],
) -> LakePool | None:
    """Open the Lakes and give `model` a mixture that draws from them; None if it learns from none.

    Raises:
        LakeError: a Lake is missing, or its rows are of another game or another observation.
    """
    algorithm = config.algorithm
    if not isinstance(algorithm, DQNConfig) or algorithm.learn_from is None:
        return None
    assert isinstance(model, LeanDQN)
    settings = algorithm.learn_from
    schema = lake_schema(
        packing, frame_stack=config.env.frame_stack, n_actions=len(game.action_names)
    )
    check = partial(check_agreement, settings, schema, config, game, tell)
    check()
    following = None
    if settings.follow_every_s is not None:
        following = Following(settings.follow_every_s, check=check)
    pool = _pool(algorithm, settings, run_dir, following, tell)
    model.mixture = make_mixture(
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
