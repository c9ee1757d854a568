"""The vec envs of training and evaluation: made from the config, saved, restored.

And one without envs, on which an algorithm can be built that does not play.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.envs.custom_wrappers import UnsavedEnv
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.envs.game_boy_env import EnvState
from game_rl.envs.make_env import env_maker, make_observation_format
from game_rl.envs.observation import Observation, rows_of
from game_rl.explore.potentials import with_potentials
from game_rl.games.definition import Game
from game_rl.system.machine import effective_cpus
from game_rl.vec_env.frame_stacks import each_part, frame_stack_of
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.workers import evaluation_workers, training_workers

_Indices = int | Iterable[int] | None


class SpacesVecEnv(VecEnv):
    """A vec env that has the spaces of a run's envs but no emulators.

    Methods that would play raise RuntimeError.
    """

    def __init__(self, config: EnvConfig, game: Game, *, n_envs: int) -> None:
        actions = spaces.Discrete(len(game.action_names))
        super().__init__(n_envs, make_observation_format(config, game).space, actions)

    def reset(self) -> NoReturn:
        raise _nothing_plays()

    def step_async(self, actions: Any) -> NoReturn:  # noqa: ANN401, ARG002
        raise _nothing_plays()

    def step_wait(self) -> NoReturn:
        raise _nothing_plays()

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: _Indices = None) -> list[Any]:
        """Return None for each env's `render_mode`, the only attribute that exists."""
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise AttributeError(f"{attr_name} of {indices}: there are no envs")

    def set_attr(self, attr_name: str, value: Any, indices: _Indices = None) -> NoReturn:  # noqa: ANN401, ARG002
        raise _nothing_plays()

    def env_method(
        self,
        method_name: str,  # noqa: ARG002
        *method_args: Any,  # noqa: ANN401, ARG002
        indices: _Indices = None,  # noqa: ARG002
        **method_kwargs: Any,  # noqa: ANN401, ARG002
    ) -> NoReturn:
        raise _nothing_plays()

    def env_is_wrapped(self, wrapper_class: Any, indices: _Indices = None) -> list[bool]:  # noqa: ANN401, ARG002
        return [False] * self.num_envs


def _nothing_plays() -> RuntimeError:
    return RuntimeError("nothing is played on spaces alone")


def make_vec_env(
    config: EnvConfig,
    game: Game,
    *,
    n_envs: int,
    seed: int,
    trackers: Sequence[TrackerMaker] = (),
) -> VecEnv:
    """Return a vec env with worker processes and episode returns in its infos.

    Observations are uint8 [n_envs, frame_stack * C, H, W], or dicts of their parts. The first reset
    of env i uses the seed `seed + i`. In evaluation, `n_envs` differs from `config.n_envs`.

    Args:
        trackers: what else follows the episodes, in the workers.
    """
    n_workers = evaluation_workers(config.n_workers, n_envs=n_envs, cpus=effective_cpus())
    part = _part(config, game, n_envs=n_envs, n_workers=n_workers, trackers=trackers)
    return _monitored(part, seed)


def _monitored(part: SharedMemoryVecEnv, seed: int) -> VecEnv:
    vec_env = VecMonitor(part)
    vec_env.seed(seed)
    return vec_env


def make_training_env(
    config: EnvConfig, game: Game, *, seed: int, trackers: Sequence[TrackerMaker] = ()
) -> VecEnv:
    """Return a vec env like `make_vec_env`'s, in two halves if there are workers for both.

    The halves can be stepped separately, and their workers also pack the frames for the buffers.
    With a single worker there is nothing to gain: it would pack while the training process waits,
    so that process packs the frames. Actions are chosen for the same halves, as those for a batch
    differ in their last bits and draws from those for its halves.
    """
    n_workers = training_workers(config.n_workers, n_envs=config.n_envs, cpus=effective_cpus())
    first = (config.n_envs + 1) // 2
    if n_workers < 2:
        part = _part(config, game, n_envs=config.n_envs, n_workers=n_workers, trackers=trackers)
        if config.n_envs > 1:
            part.rows_in_turn = (slice(0, first), slice(first, None))
        return _monitored(part, seed)
    first_workers = (n_workers + 1) // 2
    sizes = (first, first_workers), (config.n_envs - first, n_workers - first_workers)
    parts = []
    try:
        for n_envs, n in sizes:
            part = _part(config, game, n_envs=n_envs, n_workers=n, packs=True, trackers=trackers)
            parts.append(part)
    except BaseException:
        for part in parts:
            part.close()
        raise
    vec_env = HalvedVecEnv(*parts)
    vec_env.seed(seed)
    return vec_env


def _part(
    config: EnvConfig,
    game: Game,
    *,
    n_envs: int,
    n_workers: int,
    packs: bool = False,
    trackers: Sequence[TrackerMaker],
) -> SharedMemoryVecEnv:
    observation_format = make_observation_format(config, game)
    game = with_potentials(game, config)  # read once, not by each worker
    return SharedMemoryVecEnv(
        [env_maker(config, game, trackers)] * n_envs,
        frame_stack=frame_stack_of(observation_format),
        packing=observation_format if packs else None,
        n_workers=n_workers,
        timeout_s=config.worker_timeout_s,
        lost_info={} if game.definition.success is None else {"is_success": False},
    )


@dataclass(frozen=True)
class VecEnvState:
    """The state of a vec env of `make_training_env`, independent of its number of workers.

    Attributes:
        envs: the state of each env.
        seeds: the last seed of each env.
        observations: what the learner saw last, uint8 [n_envs, frame_stack * C, H, W], or a dict of
            the parts.
        episode_returns: returns so far of the running episodes, float32 [n_envs].
        episode_lengths: lengths so far of the running episodes in timesteps, int32 [n_envs].
    """

    envs: Sequence[EnvState]
    seeds: Sequence[int | None]
    observations: Observation
    episode_returns: NDArray[np.float32]
    episode_lengths: NDArray[np.int32]


def save_vec_env(vec_env: VecEnv, observations: Observation) -> VecEnvState | None:
    """Return the state after the vec step that gave `observations`.

    Returns:
        The state, or None if a worker has just died, a custom wrapper cannot be saved,
        or `vec_env` is not one of `make_training_env`.
    """
    if not isinstance(vec_env.unwrapped, SharedMemoryVecEnv | HalvedVecEnv):
        return None
    monitors = _monitors(vec_env)
    parts = [_state_of_part(monitor) for monitor in monitors]
    for part in parts:
        part.save_states_async()
    found = [part.save_states_wait() for part in parts]
    states = [state for part_states in found for state in part_states or ()]
    if len(states) < vec_env.num_envs or any(isinstance(each, UnsavedEnv) for each in states):
        return None
    return VecEnvState(
        envs=states,
        seeds=[seed for part in parts for seed in part.last_seeds],
        observations=each_part(np.copy, observations),
        episode_returns=np.concatenate([monitor.episode_returns for monitor in monitors]),
        episode_lengths=np.concatenate([monitor.episode_lengths for monitor in monitors]),
    )


def restore_vec_env(vec_env: VecEnv, state: VecEnvState) -> None:
    """Continue from `state`, which was saved with as many envs of the same game and settings.

    Raises:
        EmulatorError: an emulator's state is damaged, or of another game or version.
        CheckpointError: what else an env saved is damaged or missing.
    """
    first = 0
    for monitor in _monitors(vec_env):
        envs = slice(first, first + monitor.num_envs)
        _state_of_part(monitor).load_states(
            state.envs[envs], rows_of(state.observations, envs), state.seeds[envs]
        )
        monitor.episode_returns = state.episode_returns[envs].copy()
        monitor.episode_lengths = state.episode_lengths[envs].copy()
        first = envs.stop


def _monitors(vec_env: VecEnv) -> Sequence[VecMonitor]:
    """Return the VecMonitor of each half, or the only one of a vec env without halves."""
    if isinstance(vec_env, HalvedVecEnv):
        return vec_env.halves
    assert isinstance(vec_env, VecMonitor)
    return (vec_env,)


def _state_of_part(monitor: VecMonitor) -> SharedMemoryVecEnv:
    assert isinstance(monitor.venv, SharedMemoryVecEnv)
    return monitor.venv
