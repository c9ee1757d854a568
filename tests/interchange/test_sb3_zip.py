"""Files of plain Stable-Baselines3: it reads ours, and a stranger's are only data to us."""

import base64
import io
import json
import pickle
import shutil
import subprocess
import sys
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.policies import ActorCriticCnnPolicy
from stable_baselines3.dqn import CnnPolicy

from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.checkpoints.model_state import load_module_tensors
from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.events.event_log import final_evaluation, read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.interchange.sb3_zip import export_policy, import_policy, plain_model, read_sb3_zip
from game_rl.playback.trained_run import open_trained_run
from game_rl.training.train import resume
from game_rl.vec_env.make_vec_env import SpacesVecEnv
from tests.tiny_run import TINY, MakeConfig, command, train_once

PREDICT = """\
import sys
sys.modules["game_rl"] = None  # as where it is not installed
import numpy as np
from stable_baselines3 import DQN, PPO
kind = {"ppo": PPO, "dqn": DQN}[sys.argv[4]]
model = kind.load(sys.argv[1], device="cpu")
stacks = np.load(sys.argv[2])
np.save(sys.argv[3], model.predict(stacks, deterministic=True)[0])
n_gradient_steps = model.policy.optimizer.state_dict()["state"][0]["step"]
print(model.num_timesteps, model.batch_size, n_gradient_steps)
"""


DQN_SECTION = "{name: dqn, learning_starts: 32, batch_size: 16, replay: {capacity: 500}}"


def train_one(folder: Path, *overrides: str) -> Path:
    (folder / "run.yaml").write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    values = ["recording.episodes=0", "total_timesteps=96", *overrides]
    config = load_config(folder / "run.yaml", values)
    return train_once(config).root


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_one(tmp_path_factory.mktemp("sb3"))


@pytest.fixture(scope="module")
def dqn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_one(tmp_path_factory.mktemp("sb3_dqn"), f"algorithm={DQN_SECTION}")


@pytest.fixture
def exported(run: Path, tmp_path: Path) -> Path:
    return export(run, tmp_path / "model.zip")


def export(run: Path, output: Path) -> Path:
    arguments = ["--format", "sb3", "--checkpoint", "latest", "--output", str(output)]
    assert main(["export", str(run), *arguments]) == 0
    return output


@pytest.mark.parametrize(
    ("kind", "n_gradient_steps"),
    [
        ("ppo", 96 // 32 * 2),  # rollouts of two minibatches
        ("dqn", (96 - 32) // 8),  # every four vec steps of two envs
    ],
)
@pytest.mark.slow
def test_plain_sb3_plays_an_exported_policy_without_game_rl(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, n_gradient_steps: int
) -> None:
    run: Path = request.getfixturevalue("run" if kind == "ppo" else "dqn_run")
    exported, trained = export(run, tmp_path / "model.zip"), open_trained_run(run, "latest")
    env = SpacesVecEnv(trained.config.env, trained.game, n_envs=1)
    stacks = np.random.default_rng(0).integers(0, 256, (50, *env.observation_space.shape), np.uint8)
    np.save(tmp_path / "stacks.npy", stacks)
    found = subprocess.run(
        [
            sys.executable, "-c", PREDICT, str(exported),
            str(tmp_path / "stacks.npy"), str(tmp_path / "actions.npy"), kind,
        ],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    sb3s = {"ppo": ActorCriticCnnPolicy, "dqn": CnnPolicy}[kind]
    policy = sb3s(env.observation_space, env.action_space, lambda _: 0.0)
    load_module_tensors(policy, trained.checkpoint.policy(), "policy")
    expected = policy.predict(stacks, deterministic=True)[0]
    np.testing.assert_array_equal(np.load(tmp_path / "actions.npy"), expected)
    assert found.stdout.split() == ["96", "16", f"tensor({n_gradient_steps}.)"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_an_exported_policy_comes_back_bit_for_bit(
    request: pytest.FixtureRequest, make_config: MakeConfig, tmp_path: Path, kind: str
) -> None:
    run: Path = request.getfixturevalue("run" if kind == "ppo" else "dqn_run")
    overrides = [] if kind == "ppo" else [f"algorithm={DQN_SECTION}"]
    run_dir = import_policy(
        export(run, tmp_path / "model.zip"), make_config("imported", *overrides)
    )
    before, after = newest_valid_checkpoint(RunDir(run))[0], newest_valid_checkpoint(run_dir)[0]
    for found, expected in (
        (after.policy(), before.policy()),
        (after.optimizer(), before.optimizer()),
    ):
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert after.state.num_timesteps == 96
    resume(run_dir.root, command(Console(file=StringIO())))
    assert newest_valid_checkpoint(run_dir)[0].state.num_timesteps == 192


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            "{name: dqn, layer_norm: channels, learning_starts: 32, replay: {capacity: 500}}",
            "layer_norm is channels, and Stable-Baselines3's Q-network has no layers",
        ),
        ("{name: pqn, n_steps: 16, batch_size: 16}", "has no PQN"),
    ],
)
def test_networks_that_sb3_does_not_have_are_refused_both_ways(
    exported: Path, tmp_path: Path, make_config: MakeConfig, section: str, message: str
) -> None:
    run = train_one(tmp_path, f"algorithm={section}")
    with pytest.raises(UsageError, match=message):
        export_policy(open_trained_run(run, "latest"), tmp_path / "never.zip")
    assert not (tmp_path / "never.zip").exists()
    config = make_config("never", f"algorithm={section}")
    with pytest.raises(UsageError, match=message):
        import_policy(exported, config)
    assert not config.run_dir.exists()


def test_an_imported_policy_that_has_learned_enough_is_evaluated(
    make_config: MakeConfig, exported: Path
) -> None:
    run_dir = import_policy(exported, make_config("enough", "total_timesteps=64"))
    result = resume(run_dir.root, command(Console(file=StringIO())))
    assert result.evaluation is not None
    assert result.evaluation.episodes == 2
    found = final_evaluation(read_events(run_dir))
    assert found is not None
    assert found.policy_timesteps == 96


def test_a_run_goes_on_from_what_plain_sb3_saved(make_config: MakeConfig, tmp_path: Path) -> None:
    config = make_config("imported")
    env = SpacesVecEnv(config.env, load_game(config.game), n_envs=1)
    plain = PPO("CnnPolicy", env, n_steps=2, batch_size=2, device="cpu")
    plain.num_timesteps = 128
    plain.save(tmp_path / "plain.zip")
    run_dir = import_policy(tmp_path / "plain.zip", config)
    weights = newest_valid_checkpoint(run_dir)[0].policy()
    assert all(torch.equal(weights[n], plain.policy.state_dict()[n]) for n in weights)
    resume(run_dir.root, command(Console(file=StringIO())))
    assert newest_valid_checkpoint(run_dir)[0].state.num_timesteps == 192


class Bomb:
    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self._target,)


def replaced(source: Path, target: Path, **members: bytes | None) -> Path:
    """A copy of the zip with members replaced, added, or (None) left out."""
    wanted = {name.replace("__", "."): content for name, content in members.items()}
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            if info.filename not in wanted:
                new.writestr(info.filename, old.read(info))
        for name, content in wanted.items():
            if content is not None:
                new.writestr(name, content, zipfile.ZIP_DEFLATED)
    return target


def torch_file(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_code_in_a_zip_is_never_run(
    exported: Path, tmp_path: Path, make_config: MakeConfig
) -> None:
    sign = tmp_path / "it_ran"
    pickled = pickle.dumps(Bomb(sign))
    data = json.loads(zipfile.ZipFile(exported).read("data"))
    data["policy_class"] = {":type:": "x", ":serialized:": base64.b64encode(pickled).decode()}
    innocent = replaced(exported, tmp_path / "data.zip", data=json.dumps(data).encode())
    import_policy(innocent, make_config("one"))  # SB3's own loader would have run it
    for name, content in (("pickle", pickled), ("torch", torch_file(Bomb(sign)))):
        armed = replaced(exported, tmp_path / f"{name}.zip", policy__pth=content)
        with pytest.raises(CheckpointError, match="cannot be read as tensors"):
            import_policy(armed, make_config("two"))
    assert not sign.exists()


def test_names_that_climb_out_of_a_zip_lead_nowhere(exported: Path, tmp_path: Path) -> None:
    climbing = tmp_path / "climbing.zip"
    climbing.write_bytes(exported.read_bytes())
    with zipfile.ZipFile(climbing, "a") as archive:
        archive.writestr("../escaped.txt", "x")
    before = set(tmp_path.parent.rglob("*"))
    read_sb3_zip(climbing, weights_bytes=10**8)
    assert set(tmp_path.parent.rglob("*")) == before


@pytest.mark.slow
def test_a_zip_that_unpacks_to_gigabytes_is_refused_unread(exported: Path, tmp_path: Path) -> None:
    huge = replaced(exported, tmp_path / "huge.zip", policy__pth=b"\0" * 400_000_000)
    with pytest.raises(CheckpointError, match="far more than this network needs"):
        read_sb3_zip(huge, weights_bytes=10**6)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("policy__pth", None, "has no policy.pth"),
        ("data", None, "has no data"),
        ("data", b"[" * 100_000, "not a JSON object"),
        ("data", b"[]", "not a JSON object"),
        ("data", b'{"num_timesteps": -1}', "a counter of -1"),
        ("data", b'{"num_timesteps": "1"}', "a counter of '1'"),
        ("policy__pth", torch_file([1]), "holds a list"),
        ("policy__pth", torch_file({"a": 1}), "has a, which is not a tensor"),
        ("policy__pth", torch_file({"a": torch.zeros(1)}), "to another network: a is unknown"),
    ],
)
def test_a_damaged_zip_is_told_what_is_wrong(
    exported: Path, tmp_path: Path, make_config: MakeConfig, name: str, content: bytes | None,
    message: str,
) -> None:  # fmt: skip
    damaged = replaced(exported, tmp_path / "damaged.zip", **{name: content})
    config = make_config("never")
    with pytest.raises(CheckpointError, match=message):
        import_policy(damaged, config)
    assert not config.run_dir.joinpath("config.yaml").exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all"])
def test_what_is_no_zip_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.zip").write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a zip of Stable-Baselines3"):
        read_sb3_zip(tmp_path / "no.zip", weights_bytes=10**6)


def test_checkpoints_are_listed_and_the_damaged_one_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    assert main(["checkpoints", str(copy), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [f["timesteps"] for f in found] == [96, 64]
    assert sum(f["is_best"] for f in found) == 1
    assert [f["damage"] for f in found] == [None, None]
    file = copy / "checkpoints" / "000000000064" / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    assert main(["checkpoints", str(copy)]) == 1
    assert "policy.safetensors is" in " ".join(capsys.readouterr().out.split())


PPO_SECTION = (
    "{name: ppo, n_steps: 16, batch_size: 8, n_epochs: 3, learning_rate: {start: 0.01, end: 0.001},"
    " clip_range: 0.3, clip_range_vf: {start: 0.4, end: 0.2}, normalize_advantage: false,"
    " gamma: 0.9, gae_lambda: 0.8, ent_coef: 0.07, vf_coef: 0.6, max_grad_norm: 0.7,"
    " target_kl: 0.02, stats_window_size: 7}"
)
DQN_MODEL = (
    "{name: dqn, learning_rate: {start: 0.02, end: 0.002}, batch_size: 16, learning_starts: 40,"
    " gamma: 0.8, tau: 0.5, train_freq: 3, gradient_steps: 2, target_update_interval: 77,"
    " max_grad_norm: 4.0, stats_window_size: 9,"
    " exploration: {start: 0.9, end: 0.1, fraction: 0.3}, replay: {capacity: 500}}"
)
SAME_NAME = (
    *("n_steps", "batch_size", "n_epochs", "normalize_advantage", "gamma", "gae_lambda"),
    *("ent_coef", "vf_coef", "max_grad_norm", "target_kl", "learning_starts", "tau"),
    *("gradient_steps", "target_update_interval"),
)
LOADED = """\
import sys
sys.modules["game_rl"] = None  # as where it is not installed
from stable_baselines3 import DQN, PPO
model = {"ppo": PPO, "dqn": DQN}[sys.argv[2]].load(sys.argv[1], device="cpu")
names = [name for name in ("lr_schedule", "clip_range", "clip_range_vf") if hasattr(model, name)]
print([getattr(model, name)(p) for name in names for p in (1, 0.5, 0)])
"""
SCHEDULES = {  # at the beginning, half way and at the end
    "ppo": [0.01, 0.0055, 0.001, 0.3, 0.3, 0.3, 0.4, 0.3, 0.2],
    "dqn": [0.02, 0.011, 0.002],
}


def plain(config: RunConfig) -> PPO | DQN:
    return plain_model(config, SpacesVecEnv(config.env, load_game(config.game), n_envs=1))


@pytest.mark.parametrize("section", [PPO_SECTION, DQN_MODEL], ids=["ppo", "dqn"])
def test_settings_of_the_same_name_are_the_runs(make_config: MakeConfig, section: str) -> None:
    config = make_config("run", f"algorithm={section}")
    model: Any = plain(config)
    known = [name for name in SAME_NAME if name in type(config.algorithm).model_fields]
    assert {name: getattr(model, name) for name in known} == {
        name: getattr(config.algorithm, name) for name in known
    }
    assert model._stats_window_size == config.algorithm.stats_window_size


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_schedules_are_the_runs_where_game_rl_is_not_installed(
    make_config: MakeConfig, tmp_path: Path, kind: str
) -> None:
    section = {"ppo": PPO_SECTION, "dqn": DQN_MODEL}[kind]
    plain(make_config("run", f"algorithm={section}")).save(tmp_path / "model.zip")
    found = subprocess.run(
        [sys.executable, "-c", LOADED, str(tmp_path / "model.zip"), kind],
        capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    values = [float(text) for text in found.stdout.strip("[]\n").split(",")]
    assert values == pytest.approx(SCHEDULES[kind])
