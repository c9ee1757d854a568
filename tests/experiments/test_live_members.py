"""The members of a population can be watched while they train."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.files.run_dir import RunDir
from game_rl.live.live_file import LiveReader, LiveScreen
from tests.faults.population_faults import write_population

WAIT_S = 200.0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[ExperimentDir]:
    """A population that trains in a process of its own."""
    file = write_population(tmp_path, tmp_path / "population")
    with (tmp_path / "run.yaml").open("a", encoding="utf-8") as config:
        config.write("live: {fps: 30}\n")
    text = file.read_text(encoding="utf-8")
    file.write_text(
        text.replace("timesteps_per_generation: 64", "timesteps_per_generation: 1024"),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "game_rl", "train", "--config", str(file)]
    with (tmp_path / "output.log").open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield ExperimentDir(tmp_path / "population")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def seen_of(run_dir: RunDir, most_s: float) -> list[LiveScreen]:
    """Watch a member until each of its envs has shown something; empty if it does not train."""
    until = time.monotonic() + most_s
    reader = LiveReader.open(run_dir)
    if reader is None:
        return []
    with reader:
        while time.monotonic() < until and reader.is_current:
            reader.want()
            if len(found := reader.read()) == reader.layout.n_envs:
                return found
            time.sleep(0.01)
    return []


@pytest.mark.slow
def test_each_member_has_live_frames_of_its_own(folder: ExperimentDir) -> None:
    seen: dict[str, list[LiveScreen]] = {}
    until = time.monotonic() + WAIT_S
    while len(seen) < 3 and time.monotonic() < until:
        for member in folder.members.glob("*"):
            if member.name not in seen and (found := seen_of(RunDir(member), 5.0)):
                assert found[0].layout.run_id == RunDir(member).identity().id
                seen[member.name] = found
        time.sleep(0.02)
    assert len(seen) == 3, (folder.root.parent / "output.log").read_text(encoding="utf-8")
    for screens in seen.values():
        assert [screen.env for screen in screens] == [0, 1]
        for screen in screens:
            assert screen.pixels.shape == (144, 160)
            assert screen.pixels.any()
            assert screen.variables["player_health"] > 0
            assert screen.start_state == "level_1"
            assert 0 < screen.episode_timestep <= 25
    assert len({screens[0].layout.run_id for screens in seen.values()}) == 3
    assert not folder.root.joinpath("live.frames").exists()
