"""The trainings of benchmarks.gpu have configs that load, and time that is over is not used."""

import argparse
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import Clock, memory_cases, parts_rows, speed_commands, works_of
from benchmarks.trainings.work import Work
from game_rl.config.loader import load_config

OPTIONS = argparse.Namespace(device="cuda", n_envs=[16, 64, 256], n_steps=64, updates=4)


@pytest.mark.parametrize("work", works_of(OPTIONS), ids=lambda work: str(work.n_envs))
def test_each_training_has_a_valid_config(work: Work, tmp_path: Path) -> None:
    for name, (file, *words) in parts_rows(work):
        config = load_config(Path(file), words)
        assert config.device == "cuda", name
        assert config.env.n_envs == work.n_envs
        assert (config.algorithm.memory is not None) == ("lstm" in name)
    for name, case in memory_cases(work).items():
        words = case.overrides(tmp_path / "run", tmp_path, device="cuda")
        config = load_config(case.path, words[1::2])
        assert (config.algorithm.memory is not None) == ("lstm" in name)
    assert len(speed_commands(work)) == 6


def test_what_there_is_no_time_for_is_listed() -> None:
    printing = [sys.executable, "-c", "print(3)"]
    failing = [sys.executable, "-c", "raise SystemExit('no emulator')"]
    waiting = [sys.executable, "-c", "import time; time.sleep(60)"]
    clock = Clock(1)
    assert clock.output_of("prints", printing) == "3\n"
    assert clock.output_of("fails", failing) is None
    over = Clock(0)
    assert over.output_of("never begins", printing) is None
    short = Clock(0.01)
    assert short.output_of("waits", waiting) is None
    assert clock.left_out == ["fails (failed: no emulator)"]
    assert over.left_out == ["never begins"]
    assert short.left_out == ["waits (stopped)"]
