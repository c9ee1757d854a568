import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from game_rl.callbacks.checkpoint import load_policy, newest_valid_checkpoint, read_state
from game_rl.cli.main import main
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, DoesNotFitError, UsageError
from game_rl.run_dir import RunDir
from game_rl.runs.policy import open_trained_run
from game_rl.runs.training import TrainingResult, resume, train
from tests.runs.conftest import TINY, MakeConfig

HANG_GUARD_S = 120


def quiet() -> Console:
    return Console(file=StringIO())


def start(config: RunConfig) -> TrainingResult:
    return train(config, force=False, console=quiet())


def final_weights(run_dir: Path, timesteps: int = 192) -> dict[str, torch.Tensor]:
    return dict(load_policy(RunDir(run_dir).checkpoint(timesteps)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished run, made by the command line; the tests that use it only read."""
    folder = tmp_path_factory.mktemp("trained")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"))
    assert main(["train", "--config", str(config)]) == 0
    return folder / "run"


def test_a_run_leaves_everything_in_its_directory(trained: Path) -> None:
    run_dir = RunDir(trained)
    assert [int(p.name) for p in run_dir.checkpoints_newest_first()] == [192, 128]
    assert run_dir.config.is_file()
    assert json.loads(run_dir.preflight.read_text())["verdict"] == "fits"
    assert [row.split(",")[0] for row in run_dir.evaluations.read_text().splitlines()[1:]] == [
        "64",
        "128",
        "192",
    ]
    assert list(run_dir.tensorboard.glob("events.out.tfevents.*"))
    assert (run_dir.videos / "best.gif").is_file()
    assert not list(trained.rglob("*.tmp*"))


def test_the_footprint_holds_predicted_against_measured(trained: Path) -> None:
    footprint = json.loads(RunDir(trained).footprint.read_text())
    preflight = json.loads(RunDir(trained).preflight.read_text())
    ram, disk = footprint["ram_peak_bytes"], footprint["disk_total_bytes"]
    assert ram["predicted"] == preflight["ram"]["predicted_peak_bytes"]
    assert disk["predicted"] == preflight["disk"]["predicted_total_bytes"]
    assert ram["measured"] > 100e6
    written = sum(p.stat().st_size for p in trained.rglob("*") if p.is_file())
    assert disk["measured"] == pytest.approx(written, abs=2_000)  # footprint.json came last


def test_the_clip_shows_all_four_shades(trained: Path) -> None:
    with Image.open(RunDir(trained).videos / "best.gif") as clip:
        assert clip.size == (320, 288)
        assert clip.n_frames > 10
        clip.seek(5)
        shades = np.unique(np.asarray(clip.convert("RGB")))
    assert shades.tolist() == [0, 85, 170, 255]


def test_evaluate_prints_the_documented_json(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(trained), "--episodes", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {
        "episodes", "mean_reward", "std_reward", "success_rate", "mean_length",
    }  # fmt: skip
    assert found["episodes"] == 3


@pytest.mark.parametrize("name", ["clip.gif", "clip.mp4"])
def test_record_writes_the_kind_of_file_that_is_asked_for(
    trained: Path, tmp_path: Path, name: str
) -> None:
    output = tmp_path / name
    arguments = ["--checkpoint", "latest", "--episodes", "1", "--output", str(output)]
    assert main(["record", str(trained), *arguments]) == 0
    magic = {".gif": b"GIF89a", ".mp4": b"ftyp"}[output.suffix]
    assert magic in output.read_bytes()[:16]
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_checkpoints_are_found_by_name_and_by_timestep(trained: Path) -> None:
    assert open_trained_run(trained, "latest").state.num_timesteps == 192
    assert open_trained_run(trained, "128").state.num_timesteps == 128
    assert open_trained_run(trained, "best").state.num_timesteps in {64, 128, 192}
    with pytest.raises(CheckpointError, match="it has: 192, 128"):
        open_trained_run(trained, "64")
    with pytest.raises(UsageError, match="best, latest or a timestep"):
        open_trained_run(trained, "newest")


def test_a_second_training_does_not_overwrite_the_first(trained: Path) -> None:
    config = trained.parent / "run.yaml"
    before = {p: p.stat().st_mtime_ns for p in trained.rglob("*")}
    assert main(["train", "--config", str(config)]) == 2
    assert {p: p.stat().st_mtime_ns for p in trained.rglob("*")} == before


def test_the_same_seed_gives_the_same_weights_bit_for_bit(
    trained: Path, make_config: MakeConfig
) -> None:
    again = make_config("again")
    start(again)
    expected, found = final_weights(trained), final_weights(again.run_dir)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_another_seed_gives_other_weights(trained: Path, make_config: MakeConfig) -> None:
    other = make_config("other", "seed=1")
    start(other)
    expected, found = final_weights(trained), final_weights(other.run_dir)
    assert any(not torch.equal(expected[name], found[name]) for name in expected)


def test_what_does_not_fit_is_refused_and_leaves_no_directory(make_config: MakeConfig) -> None:
    config = make_config(
        "huge",
        "env.observation.size=full",
        "env.n_envs=64",
        "algorithm.n_steps=1_000_000",
        "algorithm.batch_size=1000",
        "total_timesteps=100_000_000",
        "evaluation.every_timesteps=100_000_000",
        "checkpoints.every_timesteps=100_000_000",
    )
    with pytest.raises(DoesNotFitError, match="--force"):
        start(config)
    assert not config.run_dir.exists()


def press_ctrl_c_after_a_checkpoint(config: Path) -> tuple[int, str]:
    """Train in a process of its own and interrupt it once it has saved something."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "game_rl", "train", "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:  # the evaluation of timestep 64 is told after its checkpoint
        if "evaluation of" in line:
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    _, errors = process.communicate(timeout=HANG_GUARD_S)
    return process.returncode, errors


def test_ctrl_c_saves_ends_with_130_and_resume_goes_on(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config("stopped", "total_timesteps=1_000_000")
    path = tmp_path / "stopped.yaml"
    path.write_text(path.read_text().replace("timesteps: 192", "timesteps: 1_000_000"))
    run_dir = RunDir(config.run_dir)
    status, errors = press_ctrl_c_after_a_checkpoint(path)
    assert (status, errors.strip().splitlines()[-1]) == (
        130,
        "interrupted; everything up to the last update is saved",
    )
    stopped_at = read_state(newest_valid_checkpoint(run_dir)[0]).num_timesteps
    assert stopped_at >= 64
    assert run_dir.footprint.is_file()

    written = run_dir.config.read_text()
    run_dir.config.write_text(written.replace("1000000", str(stopped_at + 64)))
    rows = len(run_dir.evaluations.read_text().splitlines())
    resume(run_dir.root, force=False, console=quiet())
    state = read_state(newest_valid_checkpoint(run_dir)[0])
    assert state.num_timesteps == stopped_at + 64
    assert len(run_dir.evaluations.read_text().splitlines()) > rows


def test_resume_continues_counters_optimiser_and_best(make_config: MakeConfig) -> None:
    config = make_config("first")
    start(config)
    run_dir = RunDir(config.run_dir)
    before = torch.load(run_dir.checkpoint(192) / "optimizer.pt", weights_only=True)["state"][0]
    text = run_dir.config.read_text()
    run_dir.config.write_text(text.replace("total_timesteps: 192", "total_timesteps: 256"))
    resume(run_dir.root, force=False, console=quiet())
    after = torch.load(run_dir.checkpoint(256) / "optimizer.pt", weights_only=True)["state"][0]
    assert after["step"] - before["step"] == 2 * 2  # two rollouts of two minibatches
    best = read_state(run_dir.checkpoint(256)).best_mean_reward
    means = [float(r.split(",")[2]) for r in run_dir.evaluations.read_text().splitlines()[1:]]
    assert best == pytest.approx(max(means), abs=1e-3)


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_is_used(
    make_config: MakeConfig,
) -> None:
    config = make_config("damaged")
    start(config)
    policy = RunDir(config.run_dir).checkpoint(192) / "policy.pt"
    policy.write_bytes(policy.read_bytes()[:-1])
    console = quiet()
    resume(config.run_dir, force=False, console=console)
    assert isinstance(console.file, StringIO)
    told = " ".join(console.file.getvalue().split())
    assert "policy.pt is damaged" in told
    assert "resuming from timestep 128" in told
