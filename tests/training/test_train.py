import csv
import dataclasses
import gc
import json
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from PIL.GifImagePlugin import GifImageFile
from rich.console import Console

from game_rl.algorithms.ppo import LeanPPO
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, DoesNotFitError, UsageError
from game_rl.events import Event, Warned
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.playback.trained_run import open_trained_run
from game_rl.training.train import FinalEvaluation, TrainingResult, evaluate_best, train
from tests.tiny_run import TINY, MakeConfig, command

HANG_GUARD_S = 120


def quiet() -> Console:
    return Console(file=StringIO())


def start(config: RunConfig) -> TrainingResult:
    return train(config, command(quiet()))


def final_weights(run_dir: Path, timesteps: int = 192) -> dict[str, torch.Tensor]:
    return dict(Checkpoint(RunDir(run_dir).checkpoint(timesteps)).policy())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished run, made by the command line; the tests that use it only read."""
    folder = tmp_path_factory.mktemp("trained")
    config = folder / "run.yaml"
    config.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    changes = ("--set", "evaluation.deterministic=auto", "--set", "recording.episodes=1")
    assert main(["train", "--config", str(config), *changes]) == 0
    return folder / "run"


@pytest.mark.parametrize(
    ("algorithm", "loads_contrib"),
    [
        ("{n_steps: 16, batch_size: 16, n_epochs: 1}", False),
        ("{n_steps: 16, batch_size: 16, n_epochs: 1, memory: {size: 8, sequence: 8}}", True),
        ("{name: pqn, n_steps: 16, batch_size: 16}", False),
        ("{name: dqn, learning_starts: 32, batch_size: 8, replay: {capacity: 100}}", False),
    ],
    ids=["ppo", "ppo with a memory", "pqn", "dqn"],
)
@pytest.mark.slow
def test_a_run_and_its_resume_load_no_compiler_and_sb3_contrib_only_with_a_memory(
    tmp_path: Path, algorithm: str, loads_contrib: bool
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(TINY.format(run_dir=tmp_path / "run"), encoding="utf-8")
    begin = ["train", "--config", str(config), "--set", f"algorithm={algorithm}"]
    go_on = ["train", "--resume", str(tmp_path / "run"), "--set", "total_timesteps=256"]
    code = (
        "import sys; from game_rl.cli.main import main\n"
        f"for words in ({begin}, {go_on}):\n"
        "    assert main(words) == 0\n"
        "assert 'torch' in sys.modules and not {'torch._dynamo', 'sympy'} & sys.modules.keys()\n"
        f"assert ('sb3_contrib' in sys.modules) == {loads_contrib}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_GUARD_S)


def test_a_run_leaves_everything_in_its_directory(trained: Path) -> None:
    run_dir = RunDir(trained)
    # the best, and two beside it
    assert [int(p.name) for p in run_dir.checkpoints_newest_first()] == [192, 128, 64]
    assert run_dir.config.is_file()
    assert json.loads(run_dir.preflight.read_text(encoding="utf-8"))["verdict"] == "fits"
    with run_dir.evaluations.open(encoding="utf-8") as file:
        rows = [(row["timesteps"], row["deterministic"]) for row in csv.DictReader(file)]
    assert rows == [(at, way) for at in ("64", "128", "192") for way in ("True", "False")]
    with np.load(run_dir.evaluation_episodes) as found:
        assert found["timesteps"].tolist() == [64, 128, 192]
        assert found["results"].shape == (3, 2)
    assert list(run_dir.tensorboard.glob("events.out.tfevents.*"))
    assert (run_dir.videos / "best.gif").is_file()
    assert not list(trained.rglob("*.tmp*"))


def test_the_footprint_holds_predicted_against_measured(trained: Path) -> None:
    footprint = json.loads(RunDir(trained).footprint.read_text(encoding="utf-8"))
    preflight = json.loads(RunDir(trained).preflight.read_text(encoding="utf-8"))
    ram, disk = footprint["ram_peak_bytes"], footprint["disk_total_bytes"]
    assert ram["predicted"] == preflight["ram"]["predicted_peak_bytes"]
    assert disk["predicted"] == preflight["disk"]["predicted_total_bytes"]
    assert ram["measured"] > 100e6
    written = sum(p.stat().st_size for p in trained.rglob("*") if p.is_file())
    assert disk["measured"] == pytest.approx(written, abs=2_000)  # footprint.json came last


def test_the_clip_shows_all_four_shades(trained: Path) -> None:
    with Image.open(RunDir(trained).videos / "best.gif") as clip:
        assert clip.size == (320, 288)
        assert isinstance(clip, GifImageFile)
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
        "deterministic", "policy_timesteps", "policy_frames", "q_minus_return",
        "by_start_state", "success_interval", "reward_interval", "endings", "variables",
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
    with pytest.raises(CheckpointError, match="it has: 192, 128, 64"):
        open_trained_run(trained, "32")
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


@pytest.mark.slow
def test_another_seed_gives_other_weights(trained: Path, make_config: MakeConfig) -> None:
    other = make_config("other", "seed=1")
    start(other)
    expected, found = final_weights(trained), final_weights(other.run_dir)
    assert any(not torch.equal(expected[name], found[name]) for name in expected)


def algorithms() -> list[LeanPPO]:
    return [found for found in gc.get_objects() if type(found) is LeanPPO]


@pytest.mark.slow
@pytest.mark.parametrize("ended_early", [False, True])
def test_the_algorithm_is_gone_before_the_best_policy_takes_its_memory(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, ended_early: bool
) -> None:
    gc.collect()
    of_other_tests, left = algorithms(), []

    def evaluate(*words: Any) -> FinalEvaluation:
        left.extend([found for found in algorithms() if found not in of_other_tests])
        return evaluate_best(*words)

    monkeypatch.setattr("game_rl.training.train.evaluate_best", evaluate)
    condition = "{mean_reward: -100, evaluations: 1, confirm_episodes: 2}"
    words = [f"stop_when={condition}"] if ended_early else []
    result = start(make_config("run", *words))
    assert result.evaluation is not None
    assert bool(result.ended_by) == ended_early
    assert not left


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


@pytest.mark.slow
def test_whose_python_the_reward_is_is_said_once_before_it_runs(
    make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, sign = tmp_path / "strange", tmp_path / "it_ran"
    shutil.copytree(load_game("duel").folder, folder)
    description = (folder / "game.yaml").read_text(encoding="utf-8")
    title = next(line for line in description.splitlines() if line.startswith("title:"))
    description = description.replace(title, 'title: "A [red] game"')
    (folder / "game.yaml").write_text(f"{description}\nreward: strange:Reward\n", encoding="utf-8")
    (folder / "strange.py").write_text(
        f"open({str(sign)!r}, 'w').close()\n"
        "class Reward:\n"
        "    def reset(self, variables): ...\n"
        "    def step(self, variables): return 0.0\n",
        encoding="utf-8",
    )
    config = make_config("run", f"game={folder}", "recording.episodes=0", "total_timesteps=32")
    run_yaml = str(tmp_path / "run.yaml")
    assert main(["preflight", "--config", run_yaml, "--set", f"game={folder}"]) == 0
    assert not sign.exists()
    before: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, Warned) and "which runs with your rights" in event.text:
            assert str(folder / "strange.py") in event.text
            before.append(sign.exists())

    train(config, dataclasses.replace(command(quiet()), listeners=[listen]))
    assert before == [False]
    assert sign.exists()
    arguments = ["--timesteps", "2", "--sheet", str(tmp_path / "sheet.png")]
    assert main(["check-game", str(folder), *arguments]) == 0
    assert "A [red] game" in capsys.readouterr().out
