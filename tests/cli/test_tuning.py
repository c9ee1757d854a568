"""What `game-rl tune` says of what it found."""

from argparse import Namespace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.cli.tune_command import _print_found
from game_rl.measure.settings import EnvSetting
from game_rl.measure.tune import Tuning
from tests.measure.test_tune import MEASURED, found, measure, tuning_of
from tests.tiny_run import MakeConfig


@pytest.fixture
def tuning(make_config: MakeConfig) -> Tuning:
    tuning = tuning_of(make_config())  # 2 envs of 16 steps
    tuning.measured = MEASURED
    return tuning


def said(tuning: Tuning, folder: Path) -> str:
    file = StringIO()
    arguments = Namespace(config=folder / "run.yaml", set=[])
    _print_found(tuning, arguments, Console(file=file, width=1_000))
    return file.getvalue()


def test_a_shorter_n_steps_is_said_to_cut_returns(tuning: Tuning, tmp_path: Path) -> None:
    measure(tuning.present, 0.010, 0.010)
    found(tuning, EnvSetting(4, 1, 8), 0.010, 0.010)
    text = said(tuning, tmp_path)
    assert "with n_steps 8 instead of 16 returns are cut sooner" in text
    assert "Stopped before" not in text


def test_other_workers_alone_cut_nothing(tuning: Tuning, tmp_path: Path) -> None:
    measure(tuning.present, 0.010, 0.010)
    found(tuning, EnvSetting(2, 2, 16), 0.001, 0.001)
    text = said(tuning, tmp_path)
    assert "batches and updates are the same." in text
    assert "returns" not in text


@pytest.mark.parametrize("seconds", [0.02, 0.001], ids=["slower", "faster"])
def test_what_was_stopped_before_the_finals_is_said_to_be_unsure(
    tuning: Tuning, tmp_path: Path, seconds: float
) -> None:
    measure(tuning.present, 0.010)
    found(tuning, EnvSetting(2, 2, 16), seconds)
    text = said(tuning, tmp_path)
    assert "Stopped before the fastest settings were compared in turns" in text
    assert "keep it" not in text
