"""Studies on the command line."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.config.experiments.study_config import load_study
from tests.experiments.study.conftest import MakeStudy, make_study  # noqa: F401 - a fixture
from tests.experiments.study.paper_finisher import PaperFinisher
from tests.experiments.study.test_carrying_out import on_paper


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_register_says_what_comes_next_and_refuses_a_second_time(
    make_study: MakeStudy,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(make_study().file)
    assert main(["train", "--config", file]) == 2
    assert f"game-rl study register {file}" in told(capsys)
    assert main(["study", "register", file]) == 0
    assert "commit it" in told(capsys)
    assert main(["study", "register", file]) == 2
    assert "exists already" in told(capsys)


def test_the_report_lies_in_the_results_folder_with_verdict_and_plan(
    make_study: MakeStudy,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = make_study()
    on_paper(study, PaperFinisher(non_finite=["fast-6"], gain=5.0))
    assert main(["compare", str(study.file)]) == 0
    printed = told(capsys)
    assert printed.startswith("# Is the fast one better?")
    assert "| fast | 6 |" in printed
    assert "(failed)" in printed
    assert "fast, seed 6 failed and counts as the worst value: a loss became NaN" in printed
    assert "played by the best checkpoint; budget 192 timesteps" in printed
    names = {path.name for path in study.config.results.iterdir()}
    assert names == {"registered.json", "results", "report.md", "report.json", "report.png"}


def test_status_says_which_results_are_missing(
    make_study: MakeStudy,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = make_study()
    on_paper(study)
    (study.config.results / "results" / "fast-9.json").unlink()
    assert main(["study", "status", str(study.file)]) == 0
    printed = told(capsys)
    assert "11 of 12 results" in printed
    assert main(["study", "status", str(study.file), "--json"]) == 0
    assert sum(row["is_done"] for row in json.loads(told(capsys))) == 11


def test_a_run_that_is_given_up_counts_as_failed_with_its_reason(
    make_study: MakeStudy,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = make_study()
    on_paper(study)
    command = ["study", "give-up", str(study.file), "--arm", "fast", "--reason", "it locks up"]
    assert main([*command, "--seed", "9"]) == 2
    assert "fast, seed 9 has a result" in told(capsys)
    assert main([*command, "--seed", "99"]) == 2
    assert "the study has no fast, seed 99; its arms are slow, fast" in told(capsys)
    (study.config.results / "results" / "fast-9.json").unlink()
    assert main([*command, "--seed", "9"]) == 0
    assert main(["compare", str(study.file)]) == 0
    assert "fast, seed 9 failed and counts as the worst value: given up: it" in told(capsys)


def test_a_changed_arm_is_refused_by_report_and_training(
    make_study: MakeStudy,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = make_study()
    on_paper(study)
    arm = study.file.with_name("arm.yaml")
    arm.write_text(arm.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    for command in (["compare", str(study.file)], ["train", "--config", str(study.file)]):
        assert main(command) == 1
        assert "arm.yaml has changed" in told(capsys)


def test_preflight_of_a_study_says_how_many_runs_fit(
    make_study: MakeStudy,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(make_study().file)
    assert load_study(Path(file)).config.executor.parallel == 2
    command = ["preflight", "--config", file, "--set", "executor.parallel=auto"]
    assert main([*command, "--on", "ram=16GiB,cpus=4,disk=50GiB", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["runs"], report["slots"]) == (12, 4)
    assert main([*command, "--on", "ram=200MiB"]) == 3
    assert "DOES NOT FIT" in told(capsys)


def test_a_file_that_is_no_study_is_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("game: duel\ntotal_timesteps: 1000\nrun_dir: x\n", encoding="utf-8")
    assert main(["compare", str(path)]) == 2
    assert "kind" in told(capsys)
