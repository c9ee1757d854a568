"""Runs of DQN and PQN whose exploration begins again, in one stretch and with breaks."""

import csv
from collections.abc import Callable
from contextlib import closing
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

from game_rl.callbacks.curves import GameCheckCallback, WorkerRestartsCallback
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.algorithms import PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.errors import GameFileError
from game_rl.events import ExplorationRestarted
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import Game
from game_rl.training.train import resume, train
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.callbacks.conftest import N_STEPS
from tests.emulator import fake_emulator as fake
from tests.envs.example import fake_env, fake_game, fake_game_seeded_at, with_folder
from tests.tiny_env import TinyEnv
from tests.tiny_run import MakeConfig, command
from tests.vec_env.envs import processes_of

RESTARTS = "restarts: [{at: 70, start: 0.9, over: 60}, {at: 160, start: 1.0, over: 100}]"
SMALL = {
    "dqn": "algorithm={name: dqn, replay: {capacity: 150}, learning_starts: 40, "
    f"exploration: {{end: 0.0, {RESTARTS}}}}}",
    "pqn": "algorithm={name: pqn, n_steps: 16, batch_size: 16, "
    f"exploration: {{end: 0.0, {RESTARTS}}}}}",
}


def console() -> Console:
    return Console(file=StringIO(), width=200)


def restarts_of(config: RunConfig) -> list[ExplorationRestarted]:
    account = read_events(RunDir(config.run_dir))
    return [event for event in account if isinstance(event, ExplorationRestarted)]


def small(make_config: MakeConfig, folder: str, name: str) -> RunConfig:
    overrides = ["recording.episodes=0"]
    if name == "dqn":
        overrides.append("checkpoints.save_replay_buffer=true")
    return make_config(folder, SMALL[name], *overrides)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pqn", "dqn"])
def test_breaks_at_and_around_a_restart_change_nothing(name: str, make_config: MakeConfig) -> None:
    straight, broken = (small(make_config, folder, name) for folder in ("straight", "broken"))
    train(straight, command(console()))
    train(broken, command(console(), until=64))
    for until in (70, 160, 192):
        resume(broken.run_dir, command(console(), until=until))
    one, other = (
        Checkpoint(RunDir(c.run_dir).checkpoint(192)).policy() for c in (straight, broken)
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    found = [restarts_of(config) for config in (straight, broken)]
    assert [[(e.at, e.timesteps, e.share) for e in events] for events in found] == [
        [(e.at, e.timesteps, e.share) for e in found[0]]
    ] * 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "first"), [("dqn", 72), ("pqn", 96)])
def test_each_restart_is_told_once_with_the_share_of_its_first_rollout(
    name: str, first: int, make_config: MakeConfig
) -> None:
    config, output = small(make_config, "run", name), console()
    train(config, command(output))
    assert not isinstance(config.algorithm, PPOConfig)
    epsilon = config.algorithm.exploration.schedule(timesteps=192)
    events = restarts_of(config)
    assert [(event.at, event.timesteps) for event in events] == [(70, first), (160, 160)]
    assert [event.share for event in events] == [epsilon.at(first), 1.0]
    printed = output.file.getvalue()  # type: ignore[attr-defined]
    assert "160   exploration restarts: 100.0% of the actions are random" in printed


@pytest.mark.slow
def test_a_restart_that_is_given_to_a_run_on_resuming_has_an_effect(
    make_config: MakeConfig,
) -> None:
    config = make_config(
        "run", "algorithm={name: pqn, n_steps: 16, batch_size: 16}", "recording.episodes=0"
    )
    train(config, command(console(), until=96))
    override = "algorithm.exploration.restarts=[{at: 96, start: 0.5, over: 90}]"
    resume(config.run_dir, command(console()), overrides=[override])
    assert [(event.timesteps, event.share) for event in restarts_of(config)] == [(96, 0.5)]


class KillAt(BaseCallback):
    def __init__(self, *calls: int, worker: int = 0) -> None:
        super().__init__()
        self._calls, self._worker = calls, worker

    def _on_step(self) -> bool:
        if self.n_calls in self._calls:
            process = processes_of(self.training_env)[self._worker]
            process.kill()
            process.join()
        return True


def training(vec_env: VecEnv) -> PPO:
    return PPO(
        "CnnPolicy",
        vec_env,
        n_steps=N_STEPS,
        batch_size=N_STEPS,
        n_epochs=1,
        device="cpu",
        policy_kwargs={"features_extractor_kwargs": {"features_dim": 8}},
    )


def test_a_worker_that_dies_in_training_is_counted_and_told_once(run_dir: RunDir) -> None:
    warnings: list[str] = []
    vec_env = VecMonitor(SharedMemoryVecEnv([TinyEnv] * 2, n_workers=2))
    model = training(vec_env)
    model.set_logger(configure(str(run_dir.tensorboard), ["csv"]))
    rollout = 2 * N_STEPS
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    model.learn(4 * rollout, callback=[KillAt(6), WorkerRestartsCallback(events)])
    model.logger.close()
    vec_env.close()
    with (run_dir.tensorboard / "progress.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["resources/worker_restarts"] for row in rows] == ["", "0", "1", "1"]
    (warning,) = warnings
    assert warning.startswith("worker 0 (env 0) was killed (SIGKILL)")
    assert warning.endswith("it was restarted and its episodes were cut short")


def test_a_death_in_the_first_half_after_one_in_the_second_is_told() -> None:
    warnings: list[str] = []
    sizes = (1, 2)  # so that the halves' workers differ by their envs
    parts = (SharedMemoryVecEnv([TinyEnv] * n, n_workers=1) for n in sizes)
    vec_env = HalvedVecEnv(*parts)
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    callbacks = [KillAt(2, worker=1), KillAt(N_STEPS + 2), WorkerRestartsCallback(events)]
    training(vec_env).learn(3 * 3 * N_STEPS, callback=callbacks)
    vec_env.close()
    told = [warning.partition(" was killed")[0] for warning in warnings]
    assert told == ["worker 0 (envs 0-1)", "worker 0 (env 0)"]


def test_a_vec_env_without_workers_has_no_restarts(
    make_model: Callable[..., PPO], run_dir: RunDir
) -> None:
    make_model().learn(16, callback=WorkerRestartsCallback(EventLog()))
    header = (run_dir.tensorboard / "progress.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "resources/worker_restarts" in header


REWARD = """\
class Reward:
    def reset(self, variables):
        self.seen, self.timesteps = {}, 0

    def step(self, variables):
        self.timesteps += 1
        {step}
"""


def warnings_of(game: Game) -> list[str]:
    """Train two rollouts on one env of the game; return the warnings."""
    warnings: list[str] = []
    envs, others = (VecMonitor(DummyVecEnv([partial(fake_env, game)])) for _ in range(2))
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    with closing(envs), closing(others):
        training(envs).learn(2 * N_STEPS, callback=GameCheckCallback(others, events))
    return warnings


def trained(folder: Path, step: str) -> list[str]:
    (folder / "rewards.py").write_text(REWARD.replace("{step}", step), encoding="utf-8")
    return warnings_of(with_folder(fake_game(reward="rewards:Reward", rewards={}), folder))


def test_a_reward_that_cannot_be_saved_any_more_ends_the_first_rollout(tmp_path: Path) -> None:
    step = "self.seen[variables['x']] = {variables['level']}; return 0.0"
    with pytest.raises(GameFileError, match=r"the state\['seen'\]\[\d+\] is of type set; keep"):
        trained(tmp_path, step)


def test_an_absurd_reward_is_warned_of_once_and_before_the_first_update(tmp_path: Path) -> None:
    step = "self.seen[variables['x'], variables['level']] = 1; return {'bonus': 1e12}"
    (warning,) = trained(tmp_path, step)
    assert "reward term bonus has earned 1e+12 in one timestep" in warning


def test_a_sound_reward_is_not_spoken_of(tmp_path: Path) -> None:
    assert trained(tmp_path, "self.seen[variables['x'],] = 1; return 1.0") == []


def test_a_start_that_is_won_already_is_warned_of_once_when_a_run_begins() -> None:
    won = {"variable": "health", "at_least": 1}
    states = {"level_1": {"script": [{"wait": 10}]}}
    (warning,) = warnings_of(fake_game(success=won, start_states=states))
    assert warning.startswith("start_states.level_1: success holds already, so episodes from there")


def test_a_start_that_does_not_vary_is_warned_of_when_a_run_begins() -> None:
    (warning,) = warnings_of(fake_game_seeded_at(fake.HELD))
    assert warning.startswith("random_seed: other (0xC002) makes no difference")
