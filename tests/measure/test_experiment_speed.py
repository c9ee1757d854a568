import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.mixture_files import Mixture, load_mixture
from game_rl.config.schema import RunConfig
from game_rl.games.definition import Game, load_game
from game_rl.measure import timed_training
from game_rl.measure.timed_training import measure_at_once, measure_experiment_speed
from game_rl.preflight.facts import run_facts
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.system.machine import detect_machine, effective_cpus
from tests.tiny_run import MakeConfig

CONFIGS = Path(__file__).parents[2] / "configs"
_SMALL = ("member.env.n_envs=2", "learner.env.n_envs=2", "learner.algorithm.batch_size=8")


@pytest.mark.slow
def test_runs_are_measured_elsewhere(make_config: MakeConfig) -> None:
    config = make_config()
    environment = dict(os.environ)
    (measured,) = measure_at_once([config], load_game(config.game), cpus=1)
    assert all(figure > 0 for figure in asdict(measured).values())
    assert dict(os.environ) == environment


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


def _mixture(mode: str, tmp_path: Path) -> Mixture:
    name = "duel_mixture.yaml" if mode == "rounds" else "duel_mixture_live.yaml"
    return load_mixture(CONFIGS / name, [*_SMALL, f"run_dir={tmp_path / 'mixture'}"])


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
