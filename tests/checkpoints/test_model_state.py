"""A checkpoint as the last release wrote it, put together by hand, in the place of today's."""

import hashlib
import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from game_rl.algorithms.make_algorithm import make_policy
from game_rl.algorithms.pqn import PQN, make_pqn
from game_rl.checkpoints.checkpoint import Checkpoint, save_checkpoint
from game_rl.checkpoints.model_state import load_module_tensors, with_present_names
from game_rl.config.algorithms import PQNConfig
from game_rl.files.run_dir import RunDir
from tests.callbacks.conftest import FIXED_STATE
from tests.tiny_context import tiny_context
from tests.tiny_env import TinyEnv

CONFIG = PQNConfig(name="pqn", n_steps=8, batch_size=4)
FORMER_NAMES = [
    *(f"features_extractor.cnn.{i}.{kind}" for i in (0, 2, 4) for kind in ("weight", "bias")),
    *(f"features_extractor.linear.0.{kind}" for kind in ("weight", "bias")),
    *(f"features_extractor.norms.{i}.{kind}" for i in range(4) for kind in ("weight", "bias")),
    *(f"head.{kind}" for kind in ("weight", "bias")),
]


def pqn(seed: int) -> PQN:
    model = make_pqn(CONFIG, tiny_context(VecMonitor(DummyVecEnv([TinyEnv] * 2)), seed=seed))
    model.set_logger(configure(None, []))
    return model


@pytest.fixture
def former(tmp_path: Path) -> tuple[PQN, Path]:
    """A trained PQN, and its checkpoint under the names of the last release."""
    model = pqn(seed=0)
    model.learn(32)
    path = tmp_path / "checkpoint"
    save_checkpoint(path, model, FIXED_STATE, None, RunDir(tmp_path))
    weights = (parameter.detach().contiguous() for parameter in model.policy.parameters())
    content = safetensors.torch.save(dict(zip(FORMER_NAMES, weights, strict=True)))
    (path / "policy.safetensors").write_bytes(content)
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    digest = hashlib.sha256(content).hexdigest()
    manifest["files"]["policy.safetensors"] = {"bytes": len(content), "sha256": digest}
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return model, path


def test_pqn_goes_on_from_a_checkpoint_of_the_last_release(former: tuple[PQN, Path]) -> None:
    model, path = former
    resumed = pqn(seed=1)
    Checkpoint(path).restore(resumed)
    for ours, theirs in zip(resumed.policy.parameters(), model.policy.parameters(), strict=True):
        assert torch.equal(ours, theirs)
        for name, moment in model.policy.optimizer.state[theirs].items():
            assert torch.equal(resumed.policy.optimizer.state[ours][name], moment), name


def test_a_policy_of_the_last_release_plays(former: tuple[PQN, Path]) -> None:
    model, path = former
    policy = make_policy(CONFIG, model.observation_space, model.action_space)
    load_module_tensors(policy, Checkpoint(path).policy(), "policy.safetensors")
    stacks = torch.randint(0, 256, (50, 1, 36, 36), dtype=torch.uint8)
    with torch.no_grad():
        torch.testing.assert_close(policy(stacks), model.policy(stacks), rtol=1e-4, atol=1e-5)


def test_names_of_today_and_of_other_algorithms_stay() -> None:
    one = torch.zeros(1)
    for names in (
        ("q_net.q_net.0.weight", "q_net.q_net.0.bias", "q_net.features_extractor.cnn.0.bias"),
        ("features_extractor.cnn.0.weight", "action_net.weight", "value_net.weight"),
    ):
        assert list(with_present_names(dict.fromkeys(names, one))) == list(names)
