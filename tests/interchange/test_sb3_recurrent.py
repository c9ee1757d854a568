"""Policies with a memory, exchanged with sb3-contrib's RecurrentPPO."""

import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import DummyVecEnv

from game_rl.algorithms.make_algorithm import make_policy
from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.checkpoints.model_state import load_module_tensors, module_tensors
from game_rl.cli.main import main
from game_rl.config.network import MemoryConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.errors import CheckpointError, UsageError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_zip import export_policy, import_policy, plain_model, write_zip
from game_rl.playback.trained_policy import trained_policy
from game_rl.playback.trained_run import open_trained_run
from game_rl.training.train import resume
from game_rl.vec_env.make_vec_env import SpacesVecEnv
from tests.algorithms.observations import ACTIONS, AS_SB3, dict_space, drawn
from tests.interchange.test_sb3_networks import Spaces, config_of
from tests.interchange.test_sb3_zip import train_one
from tests.tiny_run import MakeConfig, command

MEMORY = "algorithm.memory={size: 12, sequence: 4, layers: 2}"
PREDICT = """
import sys
sys.modules["game_rl"] = None  # as where it is not installed
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
model = RecurrentPPO.load(sys.argv[1], device="cpu")
torch.manual_seed(1)
state = None
actions = []
for stack, begins in zip(np.load(sys.argv[2]), np.load(sys.argv[3])):
    action, state = model.predict(
        stack[None], state=state, episode_start=begins[None], deterministic=False
    )
    actions.append(action[0])
np.savez(sys.argv[4], actions=actions, state=state)
print(model.num_timesteps, model.batch_size, model.n_steps, model.policy.lstm_actor)
"""


@pytest.mark.slow
def test_sb3_contrib_plays_an_exported_policy_on_with_its_state(tmp_path: Path) -> None:
    run = open_trained_run(train_one(tmp_path, MEMORY), "latest")
    assert export_policy(run, tmp_path / "model.zip") == "sb3_contrib"
    policy = trained_policy(run)
    rng = np.random.default_rng(0)
    shape = make_observation_format(run.config.env, run.game).space.shape
    stacks = rng.integers(0, 256, (200, *shape), np.uint8)
    begins = rng.random(200) < 0.1
    np.save(tmp_path / "stacks.npy", stacks)
    np.save(tmp_path / "begins.npy", begins)
    names = [tmp_path / name for name in ("model.zip", "stacks.npy", "begins.npy", "played.npz")]
    found = subprocess.run(
        [sys.executable, "-c", PREDICT, *map(str, names)],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    state = None
    expected = []
    torch.manual_seed(1)
    for stack, begin in zip(stacks, begins, strict=True):
        action, state = policy.predict(stack[None], state, begin[None], deterministic=False)
        expected.append(action[0])
    played = np.load(tmp_path / "played.npz")
    assert played["actions"].tolist() == expected
    np.testing.assert_allclose(played["state"], state, atol=1e-5)
    assert len(set(expected)) > 1
    assert found.stdout.startswith("96 16 16 LSTM(512, 12, num_layers=2)")


@pytest.mark.slow
def test_a_run_goes_on_from_what_sb3_contrib_saved(make_config: MakeConfig, tmp_path: Path) -> None:
    config = make_config("imported", MEMORY)
    env = SpacesVecEnv(config.env, load_game(config.game), n_envs=1)
    kwargs = {"lstm_hidden_size": 12, "n_lstm_layers": 2}
    plain = RecurrentPPO(
        "CnnLstmPolicy", env, n_steps=4, batch_size=4, policy_kwargs=kwargs, device="cpu"
    )
    plain.num_timesteps = 128
    plain.save(tmp_path / "plain.zip")
    run_dir = import_policy(tmp_path / "plain.zip", config)
    weights = newest_valid_checkpoint(run_dir)[0].policy()
    assert all(torch.equal(weights[n], plain.policy.state_dict()[n]) for n in weights)
    resume(run_dir.root, command(Console(file=StringIO())))
    assert newest_valid_checkpoint(run_dir)[0].state.num_timesteps == 192


@pytest.mark.slow
def test_the_call_that_export_prints_plays_as_the_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = train_one(tmp_path, MEMORY)
    zipped = tmp_path / "model.zip"
    assert main(["export", f"{root}@96", "--output", str(zipped)]) == 0
    printed = capsys.readouterr().out
    assert "state is None at first, then the one returned" in printed
    call = re.search(r"it is \w+: action, state = (model\.predict\(.*\))$", printed, re.MULTILINE)
    assert call is not None
    run = open_trained_run(root, "96")
    model = RecurrentPPO.load(zipped, device="cpu")
    policy = trained_policy(run)
    shape = make_observation_format(run.config.env, run.game).space.shape
    rng = np.random.default_rng(0)
    state = None
    ours = None
    states = []
    for n in range(40):
        observation = rng.integers(0, 256, (1, *shape), np.uint8)
        episode_start = np.array([n in (0, 25)])
        action, state = eval(call[1], {}, locals())  # noqa: S307
        expected, ours = policy.predict(observation, ours, episode_start, deterministic=True)
        assert action.tolist() == expected.tolist()
        np.testing.assert_allclose(state, ours, atol=1e-5)
        states.append(state)
    assert not np.allclose(states[0], states[1])


@pytest.mark.slow
def test_sb3_contrib_plays_screen_and_part_before_a_memory_and_hidden_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space = dict_space(AS_SB3)
    config = config_of("ppo", {"hidden": [8, 7], "features": 24})
    memory = MemoryConfig(size=12, layers=2)
    config = config.model_copy(
        update={"algorithm": config.algorithm.model_copy(update={"memory": memory})}
    )
    ours = make_policy(config.algorithm, space, ACTIONS)
    model = plain_model(config, DummyVecEnv([lambda: Spaces(space)]))
    observations = drawn(AS_SB3, 150, seed=2)
    begins = np.random.default_rng(1).random((150, 1)) < 0.05

    def played(policy: Any) -> tuple[list[int], Any]:
        state = None
        actions = []
        for n, begin in enumerate(begins):
            seen = {name: values[n : n + 1] for name, values in observations.items()}
            action, state = policy.predict(seen, state, begin, deterministic=True)
            actions.append(int(action[0]))
        return actions, state

    torch.manual_seed(0)
    for parameter in ours.parameters():
        parameter.data.normal_(std=0.3 if parameter.ndim > 1 else 0.01)
    ours.set_training_mode(False)
    load_module_tensors(model.policy, module_tensors(ours), "ours")
    write_zip(model, Path("parts.zip"))
    loaded = RecurrentPPO.load("parts.zip", device="cpu")
    assert loaded.policy.net_arch == [8, 7]
    expected, memory_after = played(ours)
    actions, state = played(loaded)
    assert actions == expected
    np.testing.assert_allclose(state, memory_after, atol=1e-4)
    assert len(set(actions)) > 2


@pytest.mark.parametrize(
    ("kwargs", "setting"),
    [
        ({"shared_lstm": True, "enable_critic_lstm": False}, "shared_lstm=True"),
        ({"enable_critic_lstm": False}, "enable_critic_lstm=False"),
    ],
)
def test_a_zip_whose_value_function_has_no_lstm_is_refused_by_the_setting(
    make_config: MakeConfig, tmp_path: Path, kwargs: dict[str, Any], setting: str
) -> None:
    config = make_config("never", MEMORY)
    env = SpacesVecEnv(config.env, load_game(config.game), n_envs=1)
    kwargs |= {"lstm_hidden_size": 12, "n_lstm_layers": 2}
    RecurrentPPO(
        "CnnLstmPolicy", env, n_steps=4, batch_size=4, policy_kwargs=kwargs, device="cpu"
    ).save(tmp_path / "plain.zip")
    with pytest.raises(
        CheckpointError, match=f"was made with {setting} in policy_kwargs"
    ) as caught:
        import_policy(tmp_path / "plain.zip", config)
    assert "shared_lstm=False and enable_critic_lstm=True" in str(caught.value)
    assert "bias" not in str(caught.value)
    assert not RunDir(config.run_dir).exists()


GRU = "algorithm.memory={kind: gru, sequence: 4}"
NO_GRU = "kind is gru, and sb3-contrib's RecurrentPPO only has an LSTM"


def test_a_gru_is_not_imported(make_config: MakeConfig, tmp_path: Path) -> None:
    (tmp_path / "any.zip").touch()
    config = make_config("never", GRU)
    with pytest.raises(UsageError, match=NO_GRU):
        import_policy(tmp_path / "any.zip", config)
    assert not RunDir(config.run_dir).exists()


@pytest.mark.slow
def test_a_gru_is_not_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = train_one(tmp_path, GRU)
    capsys.readouterr()
    zipped = tmp_path / "model.zip"
    assert main(["export", f"{root}@96", "--output", str(zipped)]) == 2
    assert NO_GRU in " ".join(capsys.readouterr().err.split())
    with pytest.raises(UsageError, match=NO_GRU):
        export_policy(open_trained_run(root, "96"), zipped)
    assert not zipped.exists()
