import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3 import PPO

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.experiment import Experiment, load_experiment
from game_rl.config.schema import RunConfig
from game_rl.errors import TrainingError, WorkerError
from game_rl.games.definition import Game, load_game
from game_rl.measure import timed_training
from game_rl.measure.timed_training import (
    TimedTraining,
    VecStepTime,
    measure_at_once,
    measure_experiment_speed,
    measure_speed,
    median_of,
    median_of_means,
    shortened,
)
from game_rl.preflight.facts import run_facts
from game_rl.preflight.workload import MeasuredSpeed
from game_rl.system.machine import detect_machine, effective_cpus
from tests.preflight.conftest import make_config as config_of
from tests.tiny_run import MakeConfig

HALF_GREY_STACK, FULL_RGB_STACK = 4 * 72 * 80, 4 * 3 * 144 * 160
MIB = 2**20


@given(
    n_envs=st.integers(1, 64),
    n_steps=st.integers(1, 4_096),
    n_epochs=st.integers(1, 20),
    observation_bytes=st.sampled_from([HALF_GREY_STACK, FULL_RGB_STACK]),
    device=st.sampled_from(["cpu", "cuda", "cuda:1"]),
    data=st.data(),
)
def test_a_short_training_is_the_same_in_small(
    n_envs: int,
    n_steps: int,
    n_epochs: int,
    observation_bytes: int,
    device: str,
    data: st.DataObject,
) -> None:
    rollout = n_envs * n_steps
    batches = [n for n in range(1, rollout + 1) if rollout % n == 0]
    config = config_of(
        env={"n_envs": n_envs},
        algorithm={
            "n_steps": n_steps,
            "batch_size": data.draw(st.sampled_from(batches)),
            "n_epochs": n_epochs,
            "normalize_advantage": False,
        },
        evaluation={"every_timesteps": 1_000_000},
        checkpoints={"every_timesteps": 1_000_000},
    )
    short = shortened(config, observation_bytes=observation_bytes, device=device)
    RunConfig.model_validate(short.model_dump())
    was, now = config.algorithm, short.algorithm
    assert was.batch_size % now.batch_size == 0
    if was.batch_size * observation_bytes <= 32 * MIB:
        assert now.batch_size == was.batch_size
    assert now.n_steps <= was.n_steps
    assert now.n_epochs <= was.n_epochs
    steps = now.n_epochs * (short.rollout_timesteps // now.batch_size)
    assert steps >= 8 or now.n_epochs == was.n_epochs
    assert short.env == config.env


def test_a_batch_that_takes_seconds_becomes_a_part_of_it_on_a_cpu_only() -> None:
    config = config_of(
        env={"n_envs": 2}, algorithm={"n_steps": 8_192, "batch_size": 2_048, "n_epochs": 10}
    )
    short = shortened(config, observation_bytes=FULL_RGB_STACK, device="cpu")
    assert short.algorithm.batch_size == 64  # the next, 128, has 34 MiB
    assert short.rollout_timesteps == 512
    on_gpu = shortened(config, observation_bytes=FULL_RGB_STACK, device="cuda")
    assert on_gpu.algorithm.batch_size == 2_048


@pytest.mark.slow
@pytest.mark.parametrize("micro_batch_size", ["null", "8", "16"])
def test_pieces_take_most_of_the_time_that_passes(
    micro_batch_size: str, make_config: MakeConfig
) -> None:
    config = make_config("run", f"algorithm.micro_batch_size={micro_batch_size}")
    n_threads = torch.get_num_threads()
    with TimedTraining(config, load_game(config.game)) as training:
        training.warm_up()
        times = [time.perf_counter()]
        vec_step = training.collect()
        times.append(time.perf_counter())
        gradient_step_s = training.update()
        times.append(time.perf_counter())
    collected_s, updated_s = times[1] - times[0], times[2] - times[1]
    assert 0 < vec_step.emulation_s < vec_step.total_s
    assert collected_s / 2 < 16 * vec_step.total_s <= collected_s  # 16 vec steps
    assert updated_s / 2 < 2 * gradient_step_s <= updated_s  # two minibatches
    assert torch.get_num_threads() == n_threads


def test_dqn_plays_and_learns_in_turns_as_in_the_run(make_config: MakeConfig) -> None:
    dqn = "{name: dqn, replay: {capacity: 300}, train_freq: 2, learning_starts: 100, batch_size: 8"
    config = make_config("dqn", f"algorithm={dqn}, gradient_steps: 3}}")
    with TimedTraining(config, load_game(config.game)) as training:
        training.warm_up()
        weights = next(training.session.model.policy.parameters())
        before, played, updates = (
            weights.clone(),
            training.session.model.num_timesteps,
            n_of(training),
        )
        vec_step = training.collect()
        assert training.session.model.num_timesteps - played == 2 * config.env.n_envs
        assert torch.equal(weights, before)
        assert training.update() > 0
        assert n_of(training) - updates == 3
    assert not torch.equal(weights, before)
    assert 0 < vec_step.inference_s < vec_step.total_s


def test_dqn_looks_for_broken_weights_as_seldom_as_the_run_does(make_config: MakeConfig) -> None:
    dqn = "{name: dqn, replay: {capacity: 300}, train_freq: 2, learning_starts: 100, batch_size: 8}"
    with broken(make_config("dqn", f"algorithm={dqn}")) as training:
        training.collect()
    with broken(make_config("ppo")) as training, pytest.raises(TrainingError, match="non-finite"):
        training.collect()


@contextmanager
def broken(config: RunConfig) -> Iterator[TimedTraining]:
    """Whose update has just gone wrong."""
    with TimedTraining(config, load_game(config.game)) as training:
        training.warm_up()
        training.collect()
        with torch.no_grad():
            next(training.session.model.policy.parameters())[:] = torch.nan
        yield training


@pytest.mark.parametrize(
    ("seconds", "n_averaged", "expected"),
    [
        ([3, 1, 2], 1, 2),
        ([1, 1, 7, 1, 7, 1, 50, 50, 80], 3, 3),  # every third takes 7; a busy moment at the end
        ([1, 1, 7, 1, 7, 1, 50], 3, 3),  # what is left over does not count
        ([1, 7], 3, 4),
    ],
)
def test_what_happens_now_and_then_counts_and_a_busy_moment_does_not(
    seconds: list[float], n_averaged: int, expected: float
) -> None:
    assert median_of_means(seconds, n_averaged) == expected
    times = [VecStepTime(inference_s=s, emulation_s=2 * s) for s in seconds]
    assert median_of(times, n_averaged=n_averaged) == VecStepTime(expected, 2 * expected)


def n_of(training: TimedTraining) -> int:
    """Gradient steps that it made."""
    return training.session.model._n_updates


def test_its_rollouts_are_short_and_its_emulators_the_run_s_own(make_config: MakeConfig) -> None:
    config = make_config(
        "long",
        "env.n_envs=3",
        "algorithm.n_steps=200_000",
        "algorithm.batch_size=24",
        "total_timesteps=600_000",
        "evaluation.every_timesteps=600_000",
        "checkpoints.every_timesteps=600_000",
    )
    with TimedTraining(config, load_game(config.game)) as training:
        assert training.session.model.n_envs == 3
        assert isinstance(training.session.model, PPO)
        assert training.session.model.rollout_buffer.buffer_size == 344  # 43 batches of 24
        assert training.session.model.batch_size == 24


def test_nothing_is_left_when_it_is_closed(make_config: MakeConfig) -> None:
    config = make_config()
    with TimedTraining(config, load_game(config.game)) as training:
        training.warm_up()
    with pytest.raises(WorkerError, match="closed"):
        training.collect()


CONFIGS = Path(__file__).parents[2] / "configs"
_SMALL = ("member.env.n_envs=2", "learner.env.n_envs=2", "learner.algorithm.batch_size=8")


@pytest.mark.slow
def test_runs_are_measured_elsewhere(make_config: MakeConfig) -> None:
    config = make_config()
    environment = dict(os.environ)
    (measured,) = measure_at_once([config], load_game(config.game), cpus=1)
    assert all(figure > 0 for figure in asdict(measured).values())
    assert dict(os.environ) == environment


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["rounds", "live"])
def test_the_learner_is_measured_on_a_lake_after_the_members_or_beside_them(
    mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mixture = _mixture(mode, tmp_path)
    calls: list[list[str]] = []

    def measure(configs: Sequence[RunConfig], game: Game, *, cpus: int) -> list[MeasuredSpeed]:
        assert cpus == 1
        calls.append([config.algorithm.name for config in configs])
        for config in configs:
            if isinstance(config.algorithm, DQNConfig):
                _rows_can_be_drawn(config, game)
        return [_speed(len(calls) + number) for number in range(len(configs))]

    monkeypatch.setattr(timed_training, "measure_at_once", measure)
    game = load_game("duel")
    measured = measure_experiment_speed(mixture, game, members_at_once=3)
    assert calls == [["pqn"] * 3, ["dqn"]] if mode == "rounds" else [["pqn"] * 3 + ["dqn"]]
    assert measured.member == _speed(2)  # the mean of 1, 2 and 3
    assert measured.learner == _speed(2 if mode == "rounds" else 4)


def _mixture(mode: str, tmp_path: Path) -> Experiment:
    name = "duel_mixture.yaml" if mode == "rounds" else "duel_mixture_live.yaml"
    return load_experiment(CONFIGS / name, [*_SMALL, f"run_dir={tmp_path / 'mixture'}"])


def _rows_can_be_drawn(config: RunConfig, game: Game) -> None:
    facts = run_facts(config, game, detect_machine(Path()), None, None)
    assert facts.learned_lakes.transitions >= 200


def _speed(seconds: float) -> MeasuredSpeed:
    return MeasuredSpeed(**{field.name: seconds for field in fields(MeasuredSpeed)})


def _measured_by_number(folder: Path, _game: Game) -> MeasuredSpeed:
    """1 s for everything in one process, and 2 s in the other; both wait until both are there."""
    (folder / str(os.getpid())).touch()
    while len(pids := sorted(int(path.name) for path in folder.iterdir())) < 2:
        pass
    seconds = float(1 + pids.index(os.getpid()))
    return MeasuredSpeed(
        inference_s=seconds,
        emulation_s=seconds,
        gradient_step_s=seconds,
        evaluation_vec_step_s=seconds,
        checkpoint_s=float(effective_cpus()),
        start_s=float(os.environ["OMP_NUM_THREADS"]),
    )


@pytest.mark.slow
def test_runs_are_measured_at_once_each_with_its_own_cpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(timed_training, "measure_speed", _measured_by_number)
    folders: Any = [tmp_path, tmp_path]
    no_game: Any = None
    measured = measure_at_once(folders, no_game, cpus=3)
    figures = sorted(list(asdict(each).values()) for each in measured)
    assert figures == [[1, 1, 1, 1, 3, 3], [2, 2, 2, 2, 3, 3]]


def test_every_figure_is_measured_and_none_is_longer_than_the_probe(
    make_config: MakeConfig,
) -> None:
    config = make_config()
    started = time.perf_counter()
    measured = measure_speed(config, load_game(config.game), training_s=0.1)
    seconds = time.perf_counter() - started
    assert all(0 < figure < seconds for figure in asdict(measured).values())
