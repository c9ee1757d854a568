"""A checkpoint from a stranger is data: hashes that fit prove nothing, and nothing in it runs."""

import hashlib
import json
import os
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure

from game_rl.buffers.array_file import PIECE_BYTES
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.checkpoints.checkpoint import Checkpoint, save_checkpoint
from game_rl.checkpoints.model_state import (
    dump_tensors,
    load_module_tensors,
    load_optimizer_tensors,
    module_tensors,
    optimizer_tensors,
    parse_tensors,
)
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.errors import CheckpointError
from game_rl.files.run_dir import RunDir
from tests.callbacks.conftest import FIXED_STATE, tiny_vec_env
from tests.examples import examples


def tiny_ppo(seed: int = 0, features: int = 8) -> PPO:
    model = PPO(
        "CnnPolicy",
        tiny_vec_env(),
        n_steps=4,
        batch_size=4,
        n_epochs=1,
        seed=seed,
        device="cpu",
        policy_kwargs={"features_extractor_kwargs": {"features_dim": features}},
    )
    model.set_logger(configure(None, []))
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    model = tiny_ppo()
    model.learn(8)
    save_checkpoint(folder / "checkpoint", model, FIXED_STATE, None, RunDir(folder))
    return folder / "checkpoint"


@pytest.fixture
def forged(saved: Path, tmp_path: Path) -> Callable[[str, bytes], Path]:
    """A copy with one file replaced, and a manifest that fits."""

    def make(name: str, content: bytes) -> Path:
        path = tmp_path / "checkpoint"
        path.mkdir()
        for file in saved.iterdir():
            (path / file.name).write_bytes(file.read_bytes())
        (path / name).write_bytes(content)
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        digest = hashlib.sha256(content).hexdigest()
        manifest["files"][name] = {"bytes": len(content), "sha256": digest}
        (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        return path

    return make


class Bomb:
    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._target,)


@pytest.mark.parametrize(
    "name", ["policy.safetensors", "optimizer.safetensors", "arrays.safetensors", "play.json"]
)
def test_a_pickle_in_the_place_of_a_file_does_not_run(
    forged: Callable[[str, bytes], Path], tmp_path: Path, name: str
) -> None:
    sign = tmp_path / "it_ran"
    checkpoint = Checkpoint(forged(name, pickle.dumps(Bomb(sign))))
    checkpoint.verify()  # the hashes are a stranger's, too
    with pytest.raises(CheckpointError, match=name):
        checkpoint.restore(tiny_ppo())
    assert not sign.exists()


@pytest.mark.parametrize("header_bytes", [10 * 2**30, 2**63, 200 * 2**20, 1])
def test_a_header_that_claims_gigabytes_takes_no_memory(
    forged: Callable[[str, bytes], Path], header_bytes: int
) -> None:
    content = struct.pack("<Q", header_bytes) + b"{" * 1000
    checkpoint = Checkpoint(forged("policy.safetensors", content))
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="not a safetensors file"):
            checkpoint.policy()
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def with_replay(seed: int, vec_steps: int) -> PPO:
    """A model that has a replay beside it, 5 MB for each hundred vec steps."""
    rng = np.random.default_rng(seed)
    frame = (1, 60, 100)
    model = tiny_ppo()
    model.replay_buffer = PackedReplayBuffer(  # type: ignore[attr-defined]  # PPO has none
        8_000,
        spaces.Box(0, 255, frame, np.uint8),
        spaces.Discrete(4),
        n_envs=8,
        observation_format=ObservationFormat(FramePacking(frame, bits=8), 1),
        sampling_seed=seed,
    )
    model._setup_learn(8)
    obs = rng.integers(0, 255, (8, *frame), np.uint8)
    for _ in range(vec_steps):
        new_obs = rng.integers(0, 255, obs.shape, np.uint8)
        actions, rewards = rng.integers(0, 4, 8), rng.random(8).astype(np.float32)
        over = (rng.random(8) < 0.1).astype(np.float32)
        model.replay_buffer.add(obs, new_obs, actions, rewards, over, [{}] * 8)  # type: ignore[attr-defined]
        obs = new_obs
    return model


def test_a_replay_is_saved_verified_and_restored_without_a_copy_of_it(tmp_path: Path) -> None:
    model, fresh = with_replay(0, 900), with_replay(1, 0)
    path = tmp_path / "checkpoint"
    tracemalloc.start()
    try:
        save_checkpoint(path, model, FIXED_STATE, None, RunDir(tmp_path), with_replay=True)
        checkpoint = Checkpoint(path)
        checkpoint.verify()
        checkpoint.restore(fresh)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (path / "replay.safetensors").stat().st_size > 40e6
    assert peak < 20e6
    ours, theirs = (m.replay_buffer.sample(256) for m in (model, fresh))  # type: ignore[attr-defined]
    assert ours.rewards.abs().sum() > 0
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_replay_that_claims_more_slots_than_there_are_is_refused(tmp_path: Path) -> None:
    model, path = with_replay(0, 3), tmp_path / "checkpoint"
    pond = model.replay_buffer.store  # type: ignore[attr-defined]
    longer = {name: np.asarray(array) for name, array in pond.state_dict().items()}
    longer["frames"] = np.zeros((pond.n_slots + 1, *longer["frames"].shape[1:]), np.uint8)
    pond.state_dict = lambda: longer
    save_checkpoint(path, model, FIXED_STATE, None, RunDir(tmp_path), with_replay=True)
    with pytest.raises(CheckpointError, match=r"replay.safetensors does not hold a replay"):
        Checkpoint(path).restore(with_replay(1, 0))


@pytest.mark.parametrize("name", ["../../escaped", "/etc/passwd", "other.bin", "other.json", ""])
def test_only_known_names_are_read(forged: Callable[[str, bytes], Path], name: str) -> None:
    path = forged("play.json", b"{}")
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"manifest.json is damaged"):
        Checkpoint(path)


def test_a_pipe_is_not_waited_for(forged: Callable[[str, bytes], Path]) -> None:
    path = forged("play.json", b"{}")
    (path / "policy.safetensors").unlink()
    os.mkfifo(path / "policy.safetensors")
    with pytest.raises(CheckpointError, match=r"no file policy\.safetensors"):
        Checkpoint(path).verify()


def test_a_file_that_has_grown_is_not_read(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.mkdir()
    for file in saved.iterdir():
        (path / file.name).write_bytes(file.read_bytes())
    os.truncate(path / "policy.safetensors", 4 * 2**40)  # sparse
    with pytest.raises(CheckpointError, match=r"has 4,398,046,511,104 bytes"):
        Checkpoint(path).verify()


@settings(max_examples=examples(60))
@given(place=st.integers(0, 10**9), bit=st.integers(0, 7), keep=st.floats(0, 1))
@pytest.mark.parametrize("name", ["state.json", "play.json", "policy.safetensors", "manifest.json"])
def test_damage_anywhere_is_refused_or_was_none(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, name: str, place: int, bit: int,
    keep: float,
) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("damaged") / "checkpoint"
    path.mkdir()
    for file in saved.iterdir():
        os.link(file, path / file.name)
    content = bytearray((saved / name).read_bytes())
    content[place % len(content)] ^= 1 << bit
    if keep < 0.3:
        del content[int(keep * len(content)) :]
    (path / name).unlink()
    (path / name).write_bytes(content)
    with pytest.raises(CheckpointError):
        Checkpoint(path).verify()


def test_weights_and_moments_come_back_bit_for_bit(saved: Path) -> None:
    trained = tiny_ppo()
    trained.learn(8)
    model = tiny_ppo(seed=5)
    assert Checkpoint(saved).restore(model) is False  # its envs were none of ours
    for name, weight in trained.policy.state_dict().items():
        assert torch.equal(model.policy.state_dict()[name], weight)
    ours = model.policy.optimizer.state_dict()["state"]
    theirs = trained.policy.optimizer.state_dict()["state"]
    for index, values in theirs.items():
        for name, value in values.items():
            assert torch.equal(ours[index][name], value)


def test_a_checkpoint_of_another_network_is_named_weight_by_weight(saved: Path) -> None:
    with pytest.raises(CheckpointError, match=r"belongs to another network: .* not torch.float32"):
        Checkpoint(saved).restore(tiny_ppo(features=16))


def test_no_tensor_is_copied_whole_to_be_written() -> None:
    wide = torch.nn.Linear(3_000, 1_000)
    pieces = list(dump_tensors(module_tensors(wide)))
    assert max(map(len, pieces)) <= PIECE_BYTES < wide.weight.nbytes
    found = parse_tensors(b"".join(pieces), "w")  # by the library
    assert torch.equal(found["weight"], wide.weight)
    assert torch.equal(found["bias"], wide.bias)


def test_the_same_tensors_are_the_same_file_in_whatever_order_they_come() -> None:
    one, two = torch.arange(3.0), torch.arange(4.0)
    assert list(dump_tensors({"a": one, "b": two})) == list(dump_tensors({"b": two, "a": one}))


def test_moments_take_the_memory_layout_of_their_weights() -> None:
    """Fused Adam wants them alike, and safetensors keeps no strides."""
    layer = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 3, 5, 5)).sum().backward()
    optimizer.step()
    weights = b"".join(dump_tensors(module_tensors(layer)))
    moments = b"".join(dump_tensors(optimizer_tensors(optimizer)))
    other = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    resumed = torch.optim.Adam(other.parameters())
    load_module_tensors(other, parse_tensors(weights, "w"), "w")
    load_optimizer_tensors(resumed, parse_tensors(moments, "m"), "m")
    assert torch.equal(other.weight, layer.weight)
    moment = resumed.state[other.weight]["exp_avg"]
    assert torch.equal(moment, optimizer.state[layer.weight]["exp_avg"])
    assert moment.stride() == other.weight.stride()
