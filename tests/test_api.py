"""The public API: the same answers as the modules below, loaded only when it is used."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecEnv

import game_rl
from game_rl import api
from game_rl.config import loader
from game_rl.games.definition import load_game
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.preflight.preflight import preflight
from game_rl.system.machine import detect_machine, parse_machine
from tests.test_layers import run_python
from tests.tiny_run import TINY, MakeConfig, train_once

CONFIGS = Path(__file__).parents[1] / "configs"


def test_the_package_and_the_module_offer_the_same_names() -> None:
    assert game_rl.__all__ == api.__all__ == sorted(api.__all__)
    assert set(game_rl.__all__) <= set(dir(game_rl))
    for name in game_rl.__all__:
        assert getattr(game_rl, name) is getattr(api, name)


def test_a_name_that_it_does_not_have_is_an_attribute_error() -> None:
    name = "nothing"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(game_rl, name)


def test_nothing_is_loaded_before_a_name_is_used() -> None:
    code = """
import sys, game_rl
before = sorted(m for m in sys.modules if m.startswith("game_rl."))
dir(game_rl), game_rl.__all__, hasattr(game_rl, "nothing")
assert sorted(m for m in sys.modules if m.startswith("game_rl.")) == before
print(*before, "torch" in sys.modules)
"""
    assert run_python(code) == "game_rl.envs game_rl.envs.registration False"


@pytest.mark.parametrize(
    "module", ["game_rl.vec_env.worker", "game_rl.envs.make_env", "game_rl.storage.background"]
)
def test_workers_and_the_upload_load_nothing_of_it(module: str) -> None:
    assert run_python(f"import sys, {module}; print('game_rl.api' in sys.modules)") == "False"


def test_a_config_is_loaded_by_name_or_file_with_changes(tmp_path: Path) -> None:
    expected = loader.load_config(CONFIGS / "duel_ppo.yaml", ["seed=3", "env.n_envs=8"])
    assert game_rl.load_config("duel_ppo", "seed=3", "env.n_envs=8") == expected
    file = tmp_path / "run.yaml"
    file.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    assert game_rl.load_config(file) == loader.load_config(file)
    file.write_text("game: duel\nsead: 3\n", encoding="utf-8")
    with pytest.raises(game_rl.GameRLError, match="line 2"):
        game_rl.load_config(str(file))


def test_the_forecast_is_that_of_the_preflight() -> None:
    config = game_rl.load_config("duel_ppo")
    machine = "ram=16GiB,vram=0,disk=100GiB,cpus=4"
    there = parse_machine(machine, here=detect_machine(Path()))
    found = game_rl.forecast(config, machine=machine)
    assert found.to_json() == preflight(config, load_game("duel"), there).to_json()
    assert game_rl.forecast(config).verdict in ("fits", "tight", "does_not_fit")


def test_an_env_and_a_vec_env_show_the_same(make_config: MakeConfig) -> None:
    config = make_config()
    env = game_rl.make_env(config, info="variables")
    vec_env = game_rl.make_vec_env(config, n_envs=2, seed=5, info="variables")
    try:
        assert env.action_names == load_game(config.game).action_names
        assert isinstance(env, gymnasium.Env)
        assert isinstance(vec_env, VecEnv)
        assert vec_env.num_envs == 2
        assert env.observation_space.shape == vec_env.observation_space.shape
        one, _ = env.reset(seed=5)
        many = vec_env.reset()
        assert isinstance(many, np.ndarray)
        np.testing.assert_array_equal(one, many[0])
        one, reward, *_, info = env.step(1)
        many, rewards, _, infos = vec_env.step(np.array([1, 0]))
        assert info["variables"] == infos[0]["variables"] == env.read_variables()
        assert isinstance(many, np.ndarray)
        np.testing.assert_array_equal(one, many[0])
        assert reward == rewards[0]
    finally:
        env.close()
        vec_env.close()


def test_a_run_is_trained_in_parts_evaluated_played_and_recorded(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[game_rl.Event] = []
    config = make_config("parts", "lake={}", "recording.episodes=1", "recording.max_s=1")
    first = game_rl.train(config, until=64, progress=False, listeners=[heard.append])
    assert (first.timesteps, first.evaluation) == (64, None)
    assert not capsys.readouterr().out
    result = game_rl.resume(config.run_dir)
    assert "resuming from timestep 64" in capsys.readouterr().out
    assert result.timesteps == 192
    assert result.evaluation is not None
    assert result.video is not None
    assert result.video.is_file()
    kinds = [type(event).__name__ for event in heard]
    assert kinds[0] == "Begun"
    assert kinds[-1] == "Ended"

    whole = train_once(make_config("whole", "lake={}", "recording.episodes=1", "recording.max_s=1"))
    state = open_trained_run(config.run_dir, "latest").checkpoint.policy()
    for name, tensor in open_trained_run(whole.root, "latest").checkpoint.policy().items():
        assert tensor.equal(state[name])

    found = game_rl.evaluate(config.run_dir, episodes=3, seed=7)
    assert found == evaluate_run(open_trained_run(config.run_dir, "best"), episodes=3, seed=7)
    clip = game_rl.record(config.run_dir, config.run_dir / "clip.gif", episodes=1)
    assert clip.read_bytes().startswith(b"GIF89a")

    lake = game_rl.open_lake(config.run_dir)
    assert isinstance(lake, game_rl.Lake)
    assert lake.path == game_rl.open_lake(config.run_dir / "lake").path
    batch = game_rl.Sampler(lake.view()).sample(np.random.default_rng(0), 8)
    assert len(batch.actions) == 8
    assert len(lake.view()) == 192


def test_a_policy_acts_as_in_its_evaluation(make_config: MakeConfig) -> None:
    run = train_once(make_config("played"))
    policy = game_rl.load_policy(run.root, checkpoint="latest")
    assert policy.timesteps == 192
    assert policy.action_names == load_game(policy.config.game).action_names
    vec_env = game_rl.make_vec_env(policy.config, n_envs=1, seed=11)
    total, rewards = 0.0, list[float]()
    observation = vec_env.reset()
    while not rewards:
        assert isinstance(observation, np.ndarray)
        observation, reward, dones, _ = vec_env.step(policy.act(observation))
        total += float(reward[0])
        rewards += [total] if dones[0] else []
    vec_env.close()
    expected = game_rl.evaluate(run.root, checkpoint="latest", episodes=1, seed=11)
    assert policy.deterministic == expected.deterministic is True  # as the config says
    np.testing.assert_allclose(rewards, expected.rewards, rtol=1e-5)


def test_a_run_without_a_lake_says_how_to_get_one(make_config: MakeConfig) -> None:
    run = train_once(make_config("played"))
    with pytest.raises(game_rl.GameRLError, match="a run without a Lake; train it with lake="):
        game_rl.open_lake(run.root)


def test_a_part_of_ones_own_that_cannot_be_used_is_an_error_before_a_folder_is_made(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "number.py").write_text("one = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    config = make_config("run", "callbacks=[number:one]")
    with pytest.raises(game_rl.GameRLError, match=r"^callbacks.0: .*number.py has no class one"):
        game_rl.train(config, progress=False)
    assert not config.run_dir.exists()


def test_a_run_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Its rollout takes 400 GB."""
    changes = ["env.n_envs=128", "algorithm.n_steps=524_288", "total_timesteps=1_000_000_000"]
    rare = [f"{name}.every_timesteps=100_000_000" for name in ("evaluation", "checkpoints")]
    place = f"run_dir={tmp_path / 'run'}"
    config = game_rl.load_config("fighter_32gb", *changes, *rare, place)
    with pytest.raises(game_rl.GameRLError, match="does not fit this machine"):
        game_rl.train(config, progress=False)
    assert not config.run_dir.exists()
