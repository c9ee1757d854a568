"""The complete state of a training between an update and the next rollout."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError
from stable_baselines3.common.base_class import BaseAlgorithm

from game_rl.checkpoints.checkpoint_files import (
    FileName,
    opened_verified,
    read_verified,
    write_files,
)
from game_rl.checkpoints.checkpoint_folder import CheckpointFolder
from game_rl.checkpoints.checkpoint_state import CheckpointState, Episode, TrainingState
from game_rl.checkpoints.evaluation_files import restore_evaluations, was_deterministic, with_ways
from game_rl.checkpoints.model_state import (
    Tensors,
    dump_replay,
    dump_tensors,
    load_module_tensors,
    load_optimizer_tensors,
    module_tensors,
    optimizer_tensors,
    parse_tensors,
    restore_env_arrays,
    restore_own_state,
    restore_random_numbers,
    restore_replay,
    save_env_arrays,
    save_own_state,
    save_random_numbers,
    with_present_names,
)
from game_rl.checkpoints.training_log import cut_log, restore_log, save_log
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.vec_env.frame_stacks import Space, in_parts, part_items
from game_rl.vec_env.make_vec_env import VecEnvState, restore_vec_env

_ARRAYS = {  # without the observations, and what an algorithm keeps of each env
    "episode_starts": np.dtype(np.bool_),
    "episode_returns": np.dtype(np.float32),
    "episode_lengths": np.dtype(np.int32),
}

_KEPT_BY_THE_ALGORITHM = {"memory": np.dtype(np.float32)}
_OBSERVATIONS = "observations"  # a single array; parts have their names after a dot


def save_checkpoint(
    path: Path,
    model: BaseAlgorithm,
    state: CheckpointState,
    envs: VecEnvState | None,
    run_dir: RunDir,
    *,
    with_replay: bool = False,
    more: Mapping[FileName, Saved] | None = None,
) -> None:
    """Write the directory `path`, as `checkpoints.files` describes.

    Args:
        path: must not exist.
        model: between an update and the next rollout.
        state: description of the checkpoint.
        envs: state of the envs, or None if they cannot be saved.
        run_dir: has the run's curves and its table of evaluations.
        with_replay: whether to save the model's replay buffer, if it has one.
        more: further files, by name.
    """

    def contents() -> Iterator[tuple[FileName, Iterable[bytes]]]:
        """Yield one file at a time, so that only one is in memory, and large files in pieces."""
        yield "state.json", (state.model_dump_json(indent=2).encode(),)
        yield "play.json", (_play(model, envs, run_dir).model_dump_json().encode(),)
        yield "arrays.safetensors", (safetensors.numpy.save(_arrays(model, envs)),)
        yield "policy.safetensors", dump_tensors(module_tensors(model.policy))
        yield "optimizer.safetensors", dump_tensors(optimizer_tensors(model.policy.optimizer))
        if with_replay and (replay := dump_replay(model)) is not None:
            yield "replay.safetensors", replay
        for name, content in (more or {}).items():
            yield name, (content.model_dump_json().encode(),)

    write_files(path, contents())


def _play(model: BaseAlgorithm, envs: VecEnvState | None, run_dir: RunDir) -> TrainingState:
    table = run_dir.evaluations
    episodes = run_dir.evaluation_episodes
    return TrainingState(
        random=save_random_numbers(),
        log=save_log(model.logger, run_dir),
        n_episodes=model._episode_num,
        episodes=tuple(
            Episode(reward=float(e["r"]), length=int(e["l"]), seconds=float(e["t"]))
            for e in model.ep_info_buffer or ()
        ),
        successes=tuple(map(float, model.ep_success_buffer or ())),
        envs=None if envs is None else tuple(envs.envs),
        seeds=() if envs is None else tuple(envs.seeds),
        evaluations=table.read_text(encoding="utf-8") if table.exists() else "",
        evaluation_episodes=episodes.read_bytes() if episodes.exists() else b"",
        algorithm=save_own_state(model),
    )


def _arrays(model: BaseAlgorithm, envs: VecEnvState | None) -> dict[str, NDArray[Any]]:
    if envs is None:
        return {}
    assert model._last_episode_starts is not None
    observations = {_key(name): array for name, array in part_items(envs.observations)}
    return observations | {
        "episode_starts": np.asarray(model._last_episode_starts, np.bool_),
        "episode_returns": envs.episode_returns,
        "episode_lengths": envs.episode_lengths,
        **save_env_arrays(model),
    }


def _key(part: str | int | None) -> str:
    return _OBSERVATIONS if part is None else f"{_OBSERVATIONS}.{part}"


class Checkpoint(CheckpointFolder):
    """A checkpoint with its weights, arrays and replay, from which a training continues.

    Raises (everywhere):
        CheckpointError: the checkpoint is missing, damaged, or of another run.
    """

    def policy(self) -> Tensors:
        """Read the policy's weights, on the CPU."""
        return with_present_names(self._tensors("policy.safetensors"))

    def optimizer(self) -> Tensors:
        """Read the optimiser's moments and counts of each weight, on the CPU."""
        return self._tensors("optimizer.safetensors")

    def restore(self, model: BaseAlgorithm) -> bool:
        """Restore everything, and return whether running episodes continue.

        The run's log must have been cut (see `cut_log`). A replay is restored if it was saved in
        the checkpoint; `refill_replay` restores one from a Lake.

        Args:
            model: new, built from the run's config, with new envs.
        """
        play = self.play()
        arrays = self._arrays()
        draws_anew = play.random is None
        load_module_tensors(model.policy, self.policy(), str(self.path / "policy.safetensors"))
        file = self.path / "optimizer.safetensors"
        load_optimizer_tensors(model.policy.optimizer, self.optimizer(), str(file))
        model.num_timesteps = self.state.num_timesteps
        model._n_updates = self.state.n_updates
        model._episode_num = play.n_episodes
        _restore_episodes(model, play)
        restore_log(model.logger, play.log)
        name: FileName = "play.json"
        restore_own_state(model, play.algorithm, str(self.path / name), draws_anew=draws_anew)
        name = "replay.safetensors"
        if name in self._manifest.files:
            with opened_verified(self.path, self._manifest, name) as opened:
                restore_replay(model, opened, str(self.path / name), draws_anew=draws_anew)
        if play.envs is not None:
            self._restore_envs(model, play, arrays)
        # last, because building and restoring may have drawn random numbers
        restore_random_numbers(play.random, otherwise=model.seed)
        return play.envs is not None

    def restore_reports(self, run_dir: RunDir) -> None:
        """Restore the curves and the evaluations in `run_dir`; no log may be open yet."""
        play = self.play()
        cut_log(run_dir, play.log)
        table = with_ways(play.evaluations, deterministic=was_deterministic(self.state.config))
        restore_evaluations(run_dir, table, play.evaluation_episodes)

    def _restore_envs(
        self, model: BaseAlgorithm, play: TrainingState, arrays: dict[str, NDArray[Any]]
    ) -> None:
        assert play.envs is not None
        assert model.env is not None
        n_envs = model.env.num_envs
        counts = {len(play.envs), len(play.seeds), *map(len, arrays.values())}
        if not arrays.keys() >= _ARRAYS.keys() or counts != {n_envs}:
            raise CheckpointError(
                f"{self.path} has the state of {len(play.envs)} envs, but the run has {n_envs}"
            )
        self._restore_kept(model, arrays)
        observations = self._observations(model.env.observation_space, arrays)
        state = VecEnvState(
            envs=play.envs,
            seeds=play.seeds,
            observations=observations,
            episode_returns=arrays["episode_returns"],
            episode_lengths=arrays["episode_lengths"],
        )
        try:
            restore_vec_env(model.env, state)
        except CheckpointError as error:
            raise CheckpointError(f"{self.path / 'play.json'}: {error}") from None
        model._last_obs = observations
        model._last_episode_starts = arrays["episode_starts"]

    def _restore_kept(self, model: BaseAlgorithm, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what the algorithm keeps of each env, and take it out of the arrays."""
        kept = {}
        for name, own in save_env_arrays(model).items():
            array = arrays.pop(name, None)
            if array is None or array.shape != own.shape:
                found = f"no {name}" if array is None else f"a {name} of shape {array.shape}"
                raise CheckpointError(f"{self.path} has {found}, but the run has {own.shape}")
            kept[name] = array
        restore_env_arrays(model, kept)

    def _observations(self, space: Space, arrays: dict[str, NDArray[Any]]) -> Any:  # noqa: ANN401
        """Return the saved observations, which are those of `space`, in its structure."""
        found: dict[Any, NDArray[Any]] = {}
        for name, part in part_items(in_parts(space)):
            what = _OBSERVATIONS if name is None else f"observations of part {name!r}"
            array = arrays.get(_key(name))
            if array is None:
                raise CheckpointError(f"{self.path} has no {what}, but the run does")
            if array.shape[1:] != part.shape or array.dtype != part.dtype:
                raise CheckpointError(
                    f"{self.path} has {what} with shape {array.shape[1:]} in {array.dtype}, "
                    f"but the run has shape {part.shape} in {part.dtype}"
                )
            found[name] = array
        if others := arrays.keys() - _ARRAYS.keys() - set(map(_key, found)):
            raise CheckpointError(f"{self.path} has {min(others)}, but the run does not")
        return found.get(None, found)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        name: FileName = "arrays.safetensors"
        try:
            arrays = safetensors.numpy.load(read_verified(self.path, self._manifest, name))
        except (SafetensorError, KeyError, ValueError, TypeError) as error:
            raise CheckpointError(
                f"{self.path / name} is not a safetensors file: {error}"
            ) from None
        if any(not array.ndim or _is_wrong(key, array) for key, array in arrays.items()):
            raise CheckpointError(f"{self.path / name} has arrays of the wrong type")
        return arrays

    def _tensors(self, name: FileName) -> Tensors:
        return parse_tensors(read_verified(self.path, self._manifest, name), str(self.path / name))


def _is_wrong(key: str, array: NDArray[Any]) -> bool:
    is_observed = key == _OBSERVATIONS or key.startswith(f"{_OBSERVATIONS}.")
    return not is_observed and array.dtype != (_ARRAYS | _KEPT_BY_THE_ALGORITHM).get(key)


def _restore_episodes(model: BaseAlgorithm, play: TrainingState) -> None:
    """Restore the last episodes as NumPy scalars, as SB3 keeps them, so that means round alike."""
    infos = (
        {"r": np.float32(e.reward), "l": np.int32(e.length), "t": e.seconds} for e in play.episodes
    )
    model.ep_info_buffer = deque(infos, maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(play.successes, maxlen=model._stats_window_size)


def is_offline(config: RunConfig, checkpoint: Checkpoint | None) -> bool:
    """Whether a run from this checkpoint, or a new run if it is None, is before timestep 0."""
    return config.learns_before_play if checkpoint is None else checkpoint.is_offline
