import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from game_rl.callbacks.checkpoint import (
    CheckpointCallback,
    CheckpointState,
    checkpoint_bytes,
    newest_valid_checkpoint,
    read_state,
    restore,
    save_checkpoint,
    verify_checkpoint,
)
from game_rl.errors import CheckpointError
from game_rl.run_dir import RunDir
from tests.callbacks.conftest import N_STEPS

MakeModel = Callable[..., PPO]
STATE = CheckpointState(
    num_timesteps=8, total_timesteps=16, n_updates=1, rom_sha256="00", best_mean_reward=0.5
)


def checkpoints(run_dir: RunDir, every: int, keep_last: int = 100) -> CheckpointCallback:
    return CheckpointCallback(
        run_dir,
        every_timesteps=every,
        keep_last=keep_last,
        total_timesteps=64,
        rom_sha256="00",
    )


def saved_timesteps(run_dir: RunDir) -> list[int]:
    return sorted(int(path.name) for path in run_dir.checkpoints_newest_first())


class StopAfter(BaseCallback):
    def __init__(self, calls: int) -> None:
        super().__init__()
        self._calls = calls

    def _on_step(self) -> bool:
        return self.n_calls < self._calls


@pytest.mark.parametrize(("n_envs", "every"), [(1, 5), (2, 10), (3, 7), (2, 8), (2, 1)])
def test_saves_at_the_boundary_after_each_multiple_and_at_the_end(
    make_model: MakeModel, run_dir: RunDir, n_envs: int, every: int
) -> None:
    make_model(n_envs).learn(50, callback=checkpoints(run_dir, every))

    rollout = n_envs * N_STEPS
    boundaries = list(range(rollout, 50 + rollout, rollout))
    expected = {b for b in boundaries if any(m % every == 0 for m in range(b - rollout + 1, b + 1))}
    assert saved_timesteps(run_dir) == sorted(expected | {boundaries[-1]})


def test_only_the_newest_checkpoints_stay(make_model: MakeModel, run_dir: RunDir) -> None:
    make_model().learn(64, callback=checkpoints(run_dir, every=8, keep_last=3))
    assert saved_timesteps(run_dir) == [48, 56, 64]


def test_a_rollout_that_was_cut_short_is_not_counted(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    model = make_model()
    model.learn(64, callback=CallbackList([checkpoints(run_dir, every=1000), StopAfter(10)]))
    assert model.num_timesteps == 20
    assert saved_timesteps(run_dir) == [16]
    assert read_state(run_dir.checkpoint(16)).num_timesteps == 16


def test_restore_gives_back_weights_optimiser_and_counters(
    make_model: MakeModel, tmp_path: Path
) -> None:
    trained = make_model(seed=1)
    trained.learn(16)
    save_checkpoint(trained, STATE, tmp_path / "checkpoint")

    model = make_model(seed=2)
    assert restore(model, tmp_path / "checkpoint") == STATE

    for name, weight in trained.policy.state_dict().items():
        assert torch.equal(model.policy.state_dict()[name], weight)
    ours = model.policy.optimizer.state_dict()["state"]
    theirs = trained.policy.optimizer.state_dict()["state"]
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[i]["exp_avg"], theirs[i]["exp_avg"]) for i in theirs)
    assert (model.num_timesteps, model._n_updates) == (8, 1)


def test_predicted_size_is_that_of_the_tensor_files(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model()
    model.learn(8)
    path = tmp_path / "checkpoint"
    save_checkpoint(model, STATE, path)
    size = sum(file.stat().st_size for file in path.iterdir())
    assert checkpoint_bytes(model) <= size <= checkpoint_bytes(model) + 40_000


@pytest.mark.parametrize("name", ["policy.pt", "optimizer.pt", "state.json"])
def test_a_flipped_bit_is_found_and_the_older_checkpoint_taken(
    make_model: MakeModel, run_dir: RunDir, name: str
) -> None:
    make_model().learn(32, callback=checkpoints(run_dir, every=16))
    file = run_dir.checkpoint(32) / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)

    with pytest.raises(CheckpointError, match=f"{name} is damaged"):
        verify_checkpoint(run_dir.checkpoint(32))
    path, damaged = newest_valid_checkpoint(run_dir)
    assert path == run_dir.checkpoint(16)
    assert [name in str(error) for error in damaged] == [True]


def test_a_checkpoint_without_manifest_is_refused(make_model: MakeModel, run_dir: RunDir) -> None:
    make_model().learn(8, callback=checkpoints(run_dir, every=8))
    (run_dir.checkpoint(8) / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match="holds no usable checkpoint"):
        newest_valid_checkpoint(run_dir)


class Bomb:
    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._target,)


def test_loading_runs_no_code_from_the_file(
    make_model: MakeModel, run_dir: RunDir, tmp_path: Path
) -> None:
    model = make_model()
    model.learn(8, callback=checkpoints(run_dir, every=8))
    path = run_dir.checkpoint(8)
    (path / "policy.pt").write_bytes(pickle.dumps(Bomb(tmp_path / "pwned")))
    with pytest.raises(CheckpointError, match="cannot be read"):
        restore(model, path)
    assert not (tmp_path / "pwned").exists()


def test_a_checkpoint_of_another_network_is_named(make_model: MakeModel, tmp_path: Path) -> None:
    model = make_model()
    save_checkpoint(model, STATE, tmp_path / "checkpoint")
    other = PPO(
        "CnnPolicy", model.get_env(), n_steps=4, batch_size=4, device="cpu"
    )  # 512 features, not 8
    with pytest.raises(CheckpointError, match="does not match the run's network"):
        restore(other, tmp_path / "checkpoint")


def test_state_is_plain_json(make_model: MakeModel, tmp_path: Path) -> None:
    save_checkpoint(make_model(), STATE, tmp_path / "checkpoint")
    assert json.loads((tmp_path / "checkpoint/state.json").read_text())["num_timesteps"] == 8
