"""Trained policies as SB3's zip files, written and read.

A zip from a stranger is treated as data. Only the weights are read, with torch's safe reader, and
two counters from the JSON. `PPO.load` would run code that is pickled in it.
"""

import importlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.automatic import resolve_auto
from game_rl.algorithms.make_algorithm import make_algorithm
from game_rl.algorithms.policies import choose_network, is_of_sb3
from game_rl.checkpoints.checkpoint import save_checkpoint
from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.model_state import (
    Tensors,
    load_module_tensors,
    load_optimizer_tensors,
    module_tensors,
)
from game_rl.config import values
from game_rl.config.algorithms import DQNConfig, PPOConfig
from game_rl.config.custom_class import OWN_MODULE
from game_rl.config.loader import dump_config
from game_rl.config.network import NATURE, Network, hidden_layers
from game_rl.config.schema import RunConfig
from game_rl.config.values import Schedule
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import CheckpointError
from game_rl.files.durable_files import rename, write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_limits import check_zip_to_read, check_zip_to_write, exchangeable
from game_rl.playback.trained_run import TrainedRun
from game_rl.training.resuming import fixed_state
from game_rl.vec_env.make_vec_env import SpacesVecEnv

_CONTRIB = "sb3_contrib"
_OVERHEAD_BYTES = 16 * 2**20  # allowance for names, system info and SB3's data


def export_policy(run: TrainedRun, output: Path) -> str | None:
    """Write a zip that SB3's `PPO.load` or `DQN.load` reads, or sb3-contrib's `RecurrentPPO.load`.

    Its observations are the run's: uint8 [stack * C, H, W], the newest frame last, or a dict of
    parts.

    Returns:
        The package besides SB3 that must be installed where the zip is read; None if there is none,
        as SB3 has the network itself, or the zip holds a custom class.

    Raises:
        UsageError: `output` does not end in .zip or already exists, or SB3 has no such network.
    """
    check_zip_to_write(output)
    model = plain_model(run.config, SpacesVecEnv(run.config.env, run.game, n_envs=1))
    file = str(run.checkpoint.path / "policy.safetensors")
    load_module_tensors(model.policy, run.checkpoint.policy(), file)
    name = str(run.checkpoint.path / "optimizer.safetensors")
    load_optimizer_tensors(model.policy.optimizer, run.checkpoint.optimizer(), name)
    model.num_timesteps = run.state.num_timesteps
    model._n_updates = run.state.n_updates
    write_zip(model, output)
    return needed_package(model)


def write_zip(model: PPO | DQN, output: Path) -> None:
    """Write the model as SB3 does, whole or not at all."""
    temporary = output.with_name(f".{output.name}.tmp")
    try:
        with temporary.open("wb") as file_object, _by_value(_extractor_module(model)):
            model.save(file_object)
            file_object.flush()
            os.fsync(file_object.fileno())
        rename(temporary, output)
    finally:
        temporary.unlink(missing_ok=True)


def import_policy(path: Path, config: RunConfig) -> RunDir:
    """Begin the run of `config` with the policy, optimiser and counters of an SB3 zip.

    The result is a run directory with one checkpoint, which can be resumed, evaluated or recorded.

    Raises:
        UsageError: the run directory already holds a run, or SB3 has no network like the config's.
        CheckpointError: the file is not an SB3 zip, is damaged, or is of another network.
    """
    run_dir = RunDir(config.run_dir)
    check_zip_to_read(path, run_dir.root)
    game = load_game(config.game)
    config = resolve_auto(config, game)
    model = make_algorithm(
        shrunk(config),
        SpacesVecEnv(config.env, game, n_envs=1),
        run_dir,
        observation_format=make_observation_format(config.env, game),
        stream="algorithm",
    )
    try:
        weights = module_tensors(model.policy).values()
        zipped = read_sb3_zip(path, weights_bytes=sum(weight.nbytes for weight in weights))
        _load(zipped, model, path)
        run_dir.checkpoints.mkdir(parents=True)
        place = run_dir.checkpoint(zipped.num_timesteps)
        fixed = fixed_state(config, game, config.total_timesteps, device=str(model.device))
        state = CheckpointState(
            num_timesteps=zipped.num_timesteps, n_updates=zipped.n_updates, best=None, **vars(fixed)
        )
        save_checkpoint(place, model, state, None, run_dir)
    finally:
        model.logger.close()
    run_dir.identity()  # so that it can be forked
    write_atomic(run_dir.config, dump_config(config))  # last: it makes the directory a run
    return run_dir


@dataclass(frozen=True)
class Sb3Zip:
    """The contents of an SB3 zip that are read."""

    policy: Tensors
    optimizer: Tensors
    num_timesteps: int
    n_updates: int


def read_sb3_zip(path: Path, *, weights_bytes: int) -> Sb3Zip:
    """Read the tensors and counters in the file, for a network of `weights_bytes` bytes.

    Raises:
        CheckpointError: the file is not an SB3 zip, or is too large for a network of that size.
    """
    limit = 8 * weights_bytes + _OVERHEAD_BYTES
    try:
        if not path.is_file():
            raise CheckpointError(f"there is no file {path}")
        with zipfile.ZipFile(path) as archive:
            policy = _read_tensors(archive, "policy.pth", limit, path)
            optimizer: Mapping[str, Any] = {}
            if "policy.optimizer.pth" in archive.namelist():
                optimizer = _read_tensors(archive, "policy.optimizer.pth", limit, path)
            counters = _read_counters(archive, limit, path)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"{path} is not a zip of Stable-Baselines3: {error}") from None
    for name, value in policy.items():
        if not isinstance(value, torch.Tensor):
            raise CheckpointError(f"{path}: policy.pth has {name}, which is not a tensor")
    return Sb3Zip(policy, _moments(optimizer), *counters)


def _read(archive: zipfile.ZipFile, name: str, limit: int, path: Path) -> bytes:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise CheckpointError(
            f"{path} has no {name}, so it is not a model that Stable-Baselines3 saved"
        ) from None
    if info.file_size > limit:
        raise CheckpointError(
            f"{path}: {name} has {info.file_size:,} bytes, far more than this network needs; "
            "it belongs to another network, or was made to exhaust the memory"
        )
    return archive.read(info)


def _read_tensors(archive: zipfile.ZipFile, name: str, limit: int, path: Path) -> Mapping[str, Any]:
    content = _read(archive, name, limit, path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            if sum(info.file_size for info in inner.infolist()) > limit:
                raise CheckpointError(f"{path}: {name} unpacks to more than this network needs")
        loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except CheckpointError:
        raise
    except Exception as error:  # noqa: BLE001 - torch raises a dozen kinds for a damaged file
        first_line = str(error).partition("\n")[0]
        raise CheckpointError(f"{path}: {name} cannot be read as tensors: {first_line}") from None
    if not isinstance(loaded, Mapping):
        raise CheckpointError(f"{path}: {name} holds a {type(loaded).__name__}, not a state dict")
    return loaded


def _read_counters(archive: zipfile.ZipFile, limit: int, path: Path) -> tuple[int, int]:
    try:
        data = json.loads(_read(archive, "data", limit, path))
        counters = [data.get(name, 0) for name in ("num_timesteps", "_n_updates")]
    except (ValueError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path}: data is not a JSON object: {error}") from None
    for value in counters:
        if not isinstance(value, int) or not 0 <= value < 10**12:
            raise CheckpointError(f"{path}: data has a counter of {value!r:.50}")
    return counters[0], counters[1]


def _moments(state: Mapping[str, Any]) -> Tensors:
    """Convert an optimiser's state dict to `INDEX.NAME` tensors; other entries are left out."""
    by_weight = state.get("state", {})
    if not isinstance(by_weight, Mapping):
        return {}
    return {
        f"{index}.{name}": torch.as_tensor(value)
        for index, values in by_weight.items()
        if isinstance(values, Mapping)
        for name, value in values.items()
        if isinstance(value, torch.Tensor | int | float)
    }


def _check_critic(zipped: Sb3Zip, path: Path) -> None:
    """Refuse a policy with an LSTM whose value function has none of its own."""
    names = zipped.policy.keys()
    if "lstm_actor.weight_ih_l0" not in names or "lstm_critic.weight_ih_l0" in names:
        return
    setting = "enable_critic_lstm=False" if "critic.weight" in names else "shared_lstm=True"
    raise CheckpointError(
        f"{path}: its RecurrentPPO was made with {setting} in policy_kwargs, so its value function "
        "has no LSTM of its own, as that of a run with algorithm.memory has; only policies of the "
        "defaults, shared_lstm=False and enable_critic_lstm=True, can be imported: train one so"
    )


def _load(zipped: Sb3Zip, model: BaseAlgorithm, path: Path) -> None:
    _check_critic(zipped, path)
    known = model.policy.state_dict().keys()
    names = module_tensors(model.policy).keys()
    # SB3 names a shared weight more than once
    kept = {n: t for n, t in zipped.policy.items() if n in names or n not in known}
    load_module_tensors(model.policy, kept, f"{path}: policy.pth")
    ours = {"step", "exp_avg", "exp_avg_sq"}
    if {key.partition(".")[2] for key in zipped.optimizer} == ours:
        name = f"{path}: policy.optimizer.pth"
        load_optimizer_tensors(model.policy.optimizer, zipped.optimizer, name)
    model.num_timesteps = zipped.num_timesteps
    model._n_updates = zipped.n_updates


def plain_model(config: RunConfig, env: VecEnv) -> PPO | DQN:
    """Return an untrained SB3 model with the run's settings, for the spaces of `env`.

    Its network is SB3's if SB3 has it, and otherwise ours or the custom one within SB3's policy.

    A DQN has a replay of one timestep, because SB3 allocates the whole replay when it loads the
    zip; `DQN.load(..., buffer_size=...)` chooses another size. `n_step` is left out, as SB3 warns
    about a saved one, and so is `double_q`, which SB3 does not have.
    """
    algorithm = exchangeable(config)
    model = PLAIN_MODELS[algorithm.name](algorithm, env)
    model.n_envs = config.env.n_envs
    model.batch_size = algorithm.batch_size
    model.gamma = algorithm.gamma
    model.max_grad_norm = algorithm.max_grad_norm
    return model


def _policy_kwargs(network: Network, space: spaces.Space[Any]) -> dict[str, Any]:
    """Return SB3's `policy_kwargs` for the network, without those that are SB3's defaults."""
    chosen = choose_network(network, space)
    if not is_of_sb3(network, space):
        return {"net_arch": chosen.hidden, **chosen.policy_arguments}
    has_parts = isinstance(space, spaces.Dict)
    features = chosen.arguments["features_dim"]
    arguments: dict[str, Any] = {}
    if chosen.hidden != list(hidden_layers(NATURE, has_parts=has_parts)):
        arguments["net_arch"] = chosen.hidden
    if has_parts:
        arguments["features_extractor_kwargs"] = {"cnn_output_dim": features}
    elif features != NATURE.features:
        arguments["features_extractor_kwargs"] = {"features_dim": features}
    return arguments


def _policy_name(env: VecEnv) -> str:
    return "MultiInputPolicy" if isinstance(env.observation_space, spaces.Dict) else "CnnPolicy"


def needed_package(model: PPO | DQN) -> str | None:
    """Return the package besides SB3 that reading the model's zip needs; see `export_policy`."""
    module = _extractor_module(model)
    if module.startswith(("stable_baselines3.", OWN_MODULE)):
        package = type(model).__module__.partition(".")[0]
        return package if package == _CONTRIB else None
    return module.partition(".")[0]


def _extractor_module(model: PPO | DQN) -> str:
    return model.policy.features_extractor_class.__module__


@contextmanager
def _by_value(module: str) -> Iterator[None]:
    """Let a custom class file be part of the zip, as nobody else can import it."""
    if not module.startswith(OWN_MODULE):
        yield
        return
    cloudpickle.register_pickle_by_value(sys.modules[module])
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[module])


def _plain_ppo(algorithm: PPOConfig, env: VecEnv) -> PPO:
    """Return SB3's PPO, or sb3-contrib's RecurrentPPO for an agent with a memory."""
    clip_vf = algorithm.clip_range_vf
    kind = PPO
    name = _policy_name(env)
    memory: dict[str, Any] = {}
    if algorithm.memory is not None:
        kind = importlib.import_module(_CONTRIB).RecurrentPPO  # by who has one alone
        name = name.replace("Policy", "LstmPolicy")
        memory["lstm_hidden_size"] = algorithm.memory.size
        memory["n_lstm_layers"] = algorithm.memory.layers
    model = kind(
        name,
        env,
        n_steps=2,
        batch_size=2,
        learning_rate=_sb3_schedule(algorithm.learning_rate),
        clip_range=_sb3_schedule(algorithm.clip_range),
        clip_range_vf=None if clip_vf is None else _sb3_schedule(clip_vf),
        normalize_advantage=algorithm.normalize_advantage,
        stats_window_size=algorithm.stats_window_size,
        policy_kwargs=memory | _policy_kwargs(algorithm.network, env.observation_space),
        device="cpu",
    )
    model.n_steps = algorithm.n_steps
    model.n_epochs = algorithm.n_epochs
    model.gae_lambda = algorithm.gae_lambda
    model.target_kl = algorithm.target_kl
    model.ent_coef = algorithm.ent_coef
    model.vf_coef = algorithm.vf_coef
    return model


def _plain_dqn(algorithm: DQNConfig, env: VecEnv) -> DQN:
    model = DQN(
        _policy_name(env),
        env,
        learning_rate=_sb3_schedule(algorithm.learning_rate),
        buffer_size=1,
        train_freq=algorithm.train_freq,
        target_update_interval=algorithm.target_update_interval,
        exploration_fraction=algorithm.exploration.fraction,
        exploration_initial_eps=algorithm.exploration.start,
        exploration_final_eps=algorithm.exploration.end,
        stats_window_size=algorithm.stats_window_size,
        policy_kwargs=_policy_kwargs(algorithm.network, env.observation_space),
        device="cpu",
    )
    model.learning_starts = algorithm.learning_starts
    model.tau = algorithm.tau
    model.gradient_steps = algorithm.gradient_steps
    return model


PLAIN_MODELS: Mapping[str, Callable[[Any, VecEnv], PPO | DQN]] = {
    "ppo": _plain_ppo,
    "dqn": _plain_dqn,
}
"""What makes SB3's algorithm of a section of the config, for those that SB3 has."""


def _sb3_schedule(value: Schedule) -> float | LinearSchedule:
    """Convert a schedule to SB3's class, so the zip can be read where game_rl is not installed."""
    if isinstance(value, values.LinearSchedule):
        return LinearSchedule(value.start, value.end, end_fraction=1.0)
    return value


def shrunk(config: RunConfig) -> RunConfig:
    """Return the config with a minimal rollout or replay, for a model that will not be trained."""
    least = exchangeable(config).with_least_storage(config.env.n_envs)
    return config.model_copy(update={"algorithm": least})
