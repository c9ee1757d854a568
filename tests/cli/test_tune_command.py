"""What `game-rl tune` says of what it found."""

from argparse import Namespace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.cli.main import main
from game_rl.cli.tune_command import _print_found, refuse_experiment
from game_rl.errors import UsageError
from game_rl.measure.settings import EnvSetting
from game_rl.measure.tune import Tuning
from tests.experiments.conftest import PQN
from tests.measure.test_tune import MEASURED, found, measure, tuning_of
from tests.tiny_run import MakeConfig


@pytest.fixture
def tuning(make_config: MakeConfig) -> Tuning:
    tuning = tuning_of(make_config())  # 2 envs of 16 steps
    tuning.measured = MEASURED
    return tuning


def printed(tuning: Tuning, folder: Path) -> str:
    file = StringIO()
    arguments = Namespace(config=folder / "run.yaml", set=[])
    _print_found(tuning, arguments, Console(file=file, width=1_000))
    return file.getvalue()


def test_a_shorter_n_steps_is_said_to_cut_returns(tuning: Tuning, tmp_path: Path) -> None:
    measure(tuning.present, 0.010, 0.010)
    found(tuning, EnvSetting(4, 1, 8), 0.010, 0.010)
    text = printed(tuning, tmp_path)
    assert "with n_steps 8 instead of 16 returns are cut sooner" in text
    assert "Stopped before" not in text


def test_other_workers_alone_cut_nothing(tuning: Tuning, tmp_path: Path) -> None:
    measure(tuning.present, 0.010, 0.010)
    found(tuning, EnvSetting(2, 2, 16), 0.001, 0.001)
    text = printed(tuning, tmp_path)
    assert "batches and updates are the same." in text
    assert "returns" not in text


@pytest.mark.parametrize("seconds", [0.02, 0.001], ids=["slower", "faster"])
def test_what_was_stopped_before_the_finals_is_said_to_be_unsure(
    tuning: Tuning, tmp_path: Path, seconds: float
) -> None:
    measure(tuning.present, 0.010)
    found(tuning, EnvSetting(2, 2, 16), seconds)
    text = printed(tuning, tmp_path)
    assert "Stopped before the fastest settings were compared in turn:" in text
    assert "keep it" not in text


def said(file: Path, *overrides: str) -> str:
    with pytest.raises(UsageError) as error:
        refuse_experiment(file, overrides)
    return str(error.value)


def test_a_run_s_config_passes(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(PQN, encoding="utf-8")
    refuse_experiment(file, ())


def test_of_an_experiment_the_command_for_its_members_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pqn.yaml").write_text(PQN, encoding="utf-8")
    file = tmp_path / "mixture.yaml"
    file.write_text(
        "kind: mixture\nmember: {config: pqn.yaml, env: {n_envs: 8, start_states: [level_1]}}\n",
        encoding="utf-8",
    )
    assert said(file) == (
        f"{file} is a mixture, and game-rl tune is for a single run; name the config of a run: "
        "game-rl tune "
        f"--config {tmp_path}/pqn.yaml --set env.n_envs=8 --set 'env.start_states=[\"level_1\"]'"
    )
    assert main(["tune", "--config", str(file)]) == 2
    assert "name the config of a run" in " ".join(capsys.readouterr().err.split())


def test_the_command_names_a_game_by_a_path_that_works_where_it_is_typed(tmp_path: Path) -> None:
    (tmp_path / "pqn.yaml").write_text(PQN, encoding="utf-8")
    file = tmp_path / "mixture.yaml"
    file.write_text(
        "kind: mixture\nmember: {config: pqn.yaml, game: my/game.yaml}\n", encoding="utf-8"
    )
    assert said(file).endswith(f"{tmp_path}/pqn.yaml --set game={tmp_path}/my/game.yaml")
    assert said(file, "member.game=beacon").endswith("--set game=beacon")


def test_members_that_are_written_out_have_no_file(tmp_path: Path) -> None:
    file = tmp_path / "population.yaml"
    file.write_text("kind: population\nmember: {game: duel}\n", encoding="utf-8")
    assert "write the config of a run into a file of its own" in said(file)


def test_of_a_study_the_arms_that_are_runs_are_named(tmp_path: Path) -> None:
    (tmp_path / "pqn.yaml").write_text(PQN, encoding="utf-8")
    (tmp_path / "mixture.yaml").write_text(
        "kind: mixture\nmember: {config: pqn.yaml}\n", encoding="utf-8"
    )
    file = tmp_path / "study.yaml"
    file.write_text(
        "kind: study\narms:\n  one: {config: pqn.yaml}\n  two: {config: mixture.yaml}\n"
        "  three: {config: pqn.yaml}\n",
        encoding="utf-8",
    )
    text = said(file)
    assert text.endswith(f"name the config of a run: game-rl tune --config {tmp_path}/pqn.yaml")
