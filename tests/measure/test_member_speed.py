import os
from dataclasses import asdict
from pathlib import Path

import pytest

from game_rl.games.definition import Game, load_game
from game_rl.measure import member_speed
from game_rl.measure.member_speed import measure_member_speed
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.system.machine import effective_cpus
from tests.tiny_run import MakeConfig


def test_members_are_measured_elsewhere(make_config: MakeConfig) -> None:
    config = make_config()
    environment = dict(os.environ)
    measured = measure_member_speed(config, load_game(config.game), cpus=1, members_at_once=2)
    assert all(figure > 0 for figure in asdict(measured).values())
    assert dict(os.environ) == environment


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


def test_members_are_measured_at_once_each_with_its_own_cpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(member_speed, "measure_speed", _measured_by_number)
    measured = measure_member_speed(tmp_path, None, cpus=3, members_at_once=2)  # type: ignore[arg-type]
    assert list(asdict(measured).values()) == [1.5, 1.5, 1.5, 1.5, 3, 3]
