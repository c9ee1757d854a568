"""The public API: the same answers as the modules below, loaded only when it is used."""

import copy
import dataclasses
import importlib.metadata
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from pydantic import ValidationError
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecEnv

import game_rl
from game_rl import api
from game_rl.config import loader
from game_rl.events.event_log import read_events
from game_rl.games.definition import load_game
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.preflight.preflight import preflight
from game_rl.system.machine import detect_machine, parse_machine
from game_rl.training.train import TrainingResult
from tests.test_layers import run_python
from tests.tiny_run import TINY, TINY_GAME, MakeConfig, train_once

CONFIGS = Path(__file__).parents[1] / "configs"


BESIDE_THEM = {"__version__", "errors", "events"}


def test_the_package_and_the_module_offer_the_same_names() -> None:
    assert api.__all__ == sorted(api.__all__)
    assert sorted({*api.__all__, *BESIDE_THEM}) == game_rl.__all__
    assert set(game_rl.__all__) <= set(dir(game_rl))
    for name in api.__all__:
        assert getattr(game_rl, name) is getattr(api, name)
    assert game_rl.events.Evaluated.__module__ == "game_rl.events.run_events"
    assert issubclass(game_rl.errors.ConfigError, game_rl.GameRLError)
    assert game_rl.__version__ == importlib.metadata.version("game_rl")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("trian", "did you mean train?"),
        ("loadconfig", "did you mean load_config?"),
        ("runconfig", "did you mean RunConfig?"),
        ("Policy", "did you mean TrainedPolicy, which load_policy returns?"),
        ("learn", "did you mean train?"),
        ("nothing", "it has: Evaluation, Event, "),
    ],
)
def test_a_name_that_it_does_not_have_is_an_attribute_error_with_the_name_that_was_meant(
    name: str, meant: str
) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}; {meant}")):
        getattr(game_rl, name)


def test_a_function_is_not_hidden_by_the_folder_of_its_name() -> None:
    code = """
import game_rl.preflight.footprint, game_rl
from game_rl.preflight import disk
print(game_rl.preflight.__module__, game_rl.train.__module__, disk.__name__)
"""
    assert run_python(code) == "game_rl.api game_rl.api game_rl.preflight.disk"


def test_nothing_is_loaded_before_a_name_is_used() -> None:
    code = """
import sys, game_rl
before = sorted(m for m in sys.modules if m.startswith("game_rl."))
dir(game_rl), game_rl.__all__, hasattr(game_rl, "nothing")
assert sorted(m for m in sys.modules if m.startswith("game_rl.")) == before
print(*before, "torch" in sys.modules)
"""
    assert run_python(code) == "game_rl.envs game_rl.envs.registration False"


@pytest.mark.slow
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


def test_the_config_of_an_experiment_is_refused_with_the_command_that_takes_it() -> None:
    message = r"duel_population.yaml describes a population, not a run; train it with game-rl train"
    with pytest.raises(game_rl.GameRLError, match=message):
        game_rl.load_config("duel_population")


def test_no_episodes_are_refused(tmp_path: Path) -> None:
    for play in (game_rl.evaluate, game_rl.record):
        with pytest.raises(game_rl.GameRLError, match="episodes is 0; allowed: a whole number"):
            play(tmp_path, episodes=0)


def test_keys_are_changed_by_texts_or_keywords_of_a_name_or_a_config(tmp_path: Path) -> None:
    changes = ["seed=3", "env.n_envs=8", f"run_dir={tmp_path}", "total_timesteps=9_000"]
    expected = loader.load_config(CONFIGS / "duel_ppo.yaml", changes)
    keys = {"seed": 3, "run_dir": tmp_path, "total_timesteps": 9_000}
    assert game_rl.load_config("duel_ppo", "env.n_envs=8", **keys) == expected
    plain = game_rl.load_config("duel_ppo")
    assert game_rl.load_config(plain, "env.n_envs=8", **keys) == expected
    assert game_rl.load_config(plain, env=expected.env, **keys) == expected
    assert game_rl.load_config(expected) == expected
    with pytest.raises(game_rl.GameRLError, match=r"sead: unknown key; did you mean seed\?"):
        game_rl.load_config("duel_ppo", sead=3)
    with pytest.raises(game_rl.GameRLError, match=r"seed: found .three.; allowed: a whole number"):
        game_rl.load_config(plain, seed="three")


def test_the_game_file_of_a_config_made_in_python_is_found_again_by_the_saved_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved config has the game relative to its own folder."""
    monkeypatch.chdir(TINY_GAME.parent)
    run = tmp_path / "run"
    made = game_rl.RunConfig(game="./game.yaml", total_timesteps=64_000, run_dir=run)
    assert game_rl.load_config(made).game == str(TINY_GAME)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"env": {"n_envs": 0}}, "env.n_envs: found 0; allowed: a whole number from 1 to 1_024"),
        ({"env": {"n_env": 4}}, "env.n_env: unknown key; did you mean n_envs?"),
        ({"total_timesteps": 8}, "total_timesteps: 8 is less than one rollout"),
        ({"device": "mps"}, "device: found mps; write auto, cpu, cuda:0"),
        ({"game": None}, "game: found nothing; allowed: text"),
        ({"run_dir": Path("a\0b")}, "run_dir: "),
        ({"seed": object()}, "seed: found "),
    ],
)
def test_a_config_made_in_python_has_our_errors_and_within_ours_those_of_pydantic(
    keys: dict[str, Any], message: str
) -> None:
    right = {"game": "duel", "total_timesteps": 400_000, "run_dir": "runs/x"}
    assert game_rl.RunConfig(**right) == game_rl.RunConfig.model_validate(right)
    with pytest.raises(game_rl.GameRLError, match=re.escape(f"RunConfig: 1 problem\n  {message}")):
        game_rl.RunConfig(**right | keys)
    with pytest.raises(ValidationError):
        game_rl.RunConfig.model_validate(right | keys)
    assert copy.deepcopy(game_rl.RunConfig(**right)) == game_rl.RunConfig(**right)


def test_a_config_made_in_python_without_keys_says_which_it_needs() -> None:
    with pytest.raises(game_rl.GameRLError, match="RunConfig: 3 problems") as caught:
        game_rl.RunConfig()
    assert {line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]} == {
        "game",
        "run_dir",
        "total_timesteps",
    }


def test_the_preflight_is_that_of_the_command() -> None:
    config = game_rl.load_config("duel_ppo", "env.n_envs=2")
    machine = "ram=16GiB,vram=0,disk=100GiB,cpus=4"
    there = parse_machine(machine, here=detect_machine(Path()))
    found = game_rl.preflight("duel_ppo", "env.n_envs=2", machine=machine)
    assert found.to_json() == preflight(config, load_game("duel"), there).to_json()
    assert game_rl.preflight(config).verdict in ("fits", "tight", "does_not_fit")
    with pytest.warns(DeprecationWarning, match="write game_rl.preflight"):
        old = game_rl.forecast(config, machine=machine)
    assert old == found


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

    lake = game_rl.open_lake(result)
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
        actions, state = policy.predict(observation)
        assert state is None
        observation, reward, dones, _ = vec_env.step(actions)
        total += float(reward[0])
        rewards += [total] if dones[0] else []
    vec_env.close()
    expected = game_rl.evaluate(run.root, checkpoint="latest", episodes=1, seed=11)
    assert policy.deterministic == expected.deterministic is True  # as the config says
    np.testing.assert_allclose(rewards, expected.rewards, rtol=1e-5)


def test_a_policy_predicts_as_that_of_sb3_does(make_config: MakeConfig) -> None:
    run = train_once(make_config("played"))
    policy = game_rl.load_policy(run, "latest")
    env = game_rl.make_env(policy.config)
    observation, _ = env.reset(seed=3)
    action, state = policy.predict(observation, deterministic=True)
    assert (action.shape, action.dtype, state) == ((), np.int64, None)
    np.testing.assert_array_equal(
        action, policy.network.predict(observation, deterministic=True)[0]
    )
    env.step(action)
    many = np.stack([observation] * 5)
    np.testing.assert_array_equal(policy.predict(many, None, np.ones(5, bool), True)[0], action)
    set_random_seed(0)
    drawn = {int(policy.predict(observation, deterministic=False)[0]) for _ in range(100)}
    assert len(drawn) > 1
    rewards, _ = evaluate_policy(policy, env, 1, warn=False, return_episode_rewards=True)
    assert isinstance(rewards, list)
    with pytest.warns(DeprecationWarning, match="predict"):
        assert policy.act(observation) == action
    with pytest.raises(game_rl.GameRLError, match=r"a tuple, and the policy sees \(4, 36, 36\)"):
        policy.predict(env.reset(seed=3))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(game_rl.GameRLError, match=r"has the shape \(36, 36\), and the policy"):
        policy.predict(observation[0])
    env.close()


def test_a_run_is_named_by_path_directory_result_or_config(make_config: MakeConfig) -> None:
    config = make_config("played")
    run = train_once(config)
    result = TrainingResult(run, 192, 8, {})
    expected = game_rl.load_policy(str(run.root), "latest")
    for name in (run.root, run, f"{run.root}@192", result, config):
        checkpoint = "best" if "@" in str(name) else 192
        assert game_rl.load_policy(name, checkpoint).timesteps == expected.timesteps == 192
    assert f"{result.run_dir}" == str(run.root)
    assert result.run_dir / "config.yaml" == run.config
    with pytest.raises(game_rl.GameRLError, match="both name a checkpoint"):
        game_rl.evaluate(f"{run.root}@192", "latest")
    kinds = [event.event for event in game_rl.read_events(result)]
    assert kinds == [event.event for event in read_events(run)]
    assert kinds[0] == "begun"
    with pytest.raises(game_rl.GameRLError, match="is not a run directory"):
        game_rl.read_events(run.root / "nothing")


def test_episodes_are_played_by_likeliest_or_drawn_actions_as_asked(
    make_config: MakeConfig,
) -> None:
    run = train_once(make_config("played"))
    ways = {way: game_rl.evaluate(run, episodes=1, deterministic=way) for way in (True, False)}
    assert {way: found.deterministic for way, found in ways.items()} == {True: True, False: False}
    clip = game_rl.record(run, deterministic=False, episodes=1)
    assert clip.parent == run.videos
    assert clip.suffix == ".gif"


def test_the_policy_of_a_run_whose_game_was_moved_plays_it_where_it_is_now(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    game = tmp_path / "old" / "game.yaml"
    game.parent.mkdir()
    text = TINY_GAME.read_text(encoding="utf-8").replace("../..", str(TINY_GAME.parents[2]))
    game.write_text(text, encoding="utf-8")
    run = train_once(make_config("elsewhere", f"game={game}"))
    (tmp_path / "old").rename(tmp_path / "new")
    policy = game_rl.load_policy(run, "latest")
    assert policy.config.game == str(tmp_path / "new" / "game.yaml")
    given = game_rl.load_policy(run, "latest", game=TINY_GAME)
    assert given.config.game == str(TINY_GAME)
    env = game_rl.make_env(policy.config)
    env.step(policy.predict(env.reset(seed=0)[0])[0])
    env.close()


def test_a_policy_is_exported_for_sb3(make_config: MakeConfig, tmp_path: Path) -> None:
    run = train_once(make_config("played"))
    policy, file = game_rl.load_policy(run), tmp_path / "new" / "policy.zip"
    assert game_rl.export(run, file) == file
    model = PPO.load(file, device="cpu")
    observation = policy.network.observation_space.sample()
    want, _ = policy.predict(observation, deterministic=True)
    np.testing.assert_array_equal(model.predict(observation, deterministic=True)[0], want)
    with pytest.raises(game_rl.GameRLError, match="exists already"):
        game_rl.export(run, file)


def test_a_fork_trains_a_new_run_from_a_checkpoint(make_config: MakeConfig, tmp_path: Path) -> None:
    run = train_once(make_config("played"))
    made = game_rl.fork(
        run, tmp_path / "fork", at=192, until=192, progress=False, total_timesteps=300
    )
    assert made.timesteps == 192
    assert [event.event for event in game_rl.read_events(made)][-1] == "forked"
    assert game_rl.load_policy(made, "latest").config.total_timesteps == 300
    with pytest.raises(game_rl.GameRLError, match="exists and is not empty"):
        game_rl.fork(run, tmp_path / "fork", progress=False)


def test_every_parameter_and_all_that_a_result_has_is_documented() -> None:
    """A parameter that `train` has, too, may be documented there."""
    shared = str(api.train.__doc__)
    for name in set(api.__all__) - {"forecast"}:
        function = getattr(api, name)
        if inspect.isfunction(function):
            text = str(function.__doc__) + (shared if name in ("fork", "resume") else "")
            for parameter in inspect.signature(function).parameters:
                assert f" {parameter}:" in text or f"`{parameter}`" in text, (name, parameter)
    for result in (
        game_rl.TrainingResult,
        game_rl.TrainedPolicy,
        game_rl.Evaluation,
        game_rl.PreflightReport,
    ):
        assert result.__dataclass_params__.frozen
        for field in dataclasses.fields(result):
            assert f" {field.name}:" in str(result.__doc__), (result, field.name)
        for name, member in vars(result).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                assert member.__doc__, (result, name)


PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"


@pytest.mark.slow
def test_the_script_of_the_page_runs(tmp_path: Path) -> None:
    """As a person writes it who knows SB3, but for shorter trainings and fewer episodes."""
    text = PAGE.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    quick = (
        '"evaluation={episodes: 2, final_episodes: 2, baselines: false}", "recording.max_s=5", run'
    )
    for old, new in {
        '"duel_ppo", run': f'"duel_ppo", {quick}',
        "20_480": "1_024",
        "40_960": "2_048",
        "61_440": "3_072",
        "episodes=20)": "episodes=2)",
        "learn(1_024)": "learn(256)",
    }.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(game_rl.__version__)
    assert (tmp_path / "fight.gif").read_bytes().startswith(b"GIF89a")
    finals = [e for e in game_rl.read_events(tmp_path / "runs" / "fork") if e.event == "evaluated"]
    assert finals[-1].timesteps == 3_072


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
