from pathlib import Path

import pytest

from game_rl.cli.main import main

Output = pytest.CaptureFixture[str]
SMALL = (
    "game: duel\ntotal_timesteps: 100_000\nrun_dir: {run_dir}\ndevice: cpu\n"
    "env: {{n_envs: 2}}\nalgorithm: {{n_steps: 256, batch_size: 16}}\n"
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(SMALL.format(run_dir=tmp_path / "run"), encoding="utf-8")
    return path


def test_a_smoke_test_goes_the_whole_way_and_leaves_nothing(
    config: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert main(["train", str(config), "--smoke"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for step in (
        "FITS",
        "algorithm.n_steps: 256 -> 8",
        "checkpoint of",
        "resuming from timestep 16",
        "evaluation of 2",
        "the smoke test passed",
        "a clip",
    ):
        assert step in printed
    assert sorted(tmp_path.iterdir()) == [config, scratch]
    assert not any(scratch.glob("game_rl_smoke_*"))


@pytest.mark.slow
def test_a_failure_on_the_way_is_the_smoke_test_s(
    config: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    from game_rl.errors import TrainingError

    def fail(*_: object, **__: object) -> None:
        raise TrainingError("the loss became NaN")

    monkeypatch.setattr("game_rl.training.train.resume", fail)
    assert main(["train", str(config), "--smoke"]) == 1
    assert "error: the smoke test failed: the loss became NaN" in capsys.readouterr().err


def test_a_study_is_tried_arm_by_arm(capsys: Output) -> None:
    study = Path(__file__).parents[2] / "configs" / "study_ppo_pqn.yaml"
    assert main(["train", str(study), "--smoke"]) == 2
    assert "test the files of its arms with --smoke one by one" in capsys.readouterr().err
