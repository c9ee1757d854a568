"""`game-rl compare` of runs."""

import json
from io import StringIO
from pathlib import Path

import pytest
from PIL import Image
from rich.console import Console

from game_rl.cli.main import main
from game_rl.cli.printing import print_table
from game_rl.config.experiments.study_config import load_study
from tests.experiments.compare.fake_runs import write_run
from tests.experiments.study.conftest import (
    MakeStudy,
    make_study,  # noqa: F401 - a fixture
)
from tests.experiments.study.paper_finisher import PaperFinisher
from tests.experiments.study.test_study_run import on_paper


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Eight seeds of two arms, of which the second wins 20 points more."""
    folders = []
    for seed in range(8):
        for name, gain in (("slow", 0.0), ("fast", 0.2)):
            folder = tmp_path / f"{name}_{seed}"
            rate = 0.5 + 0.01 * (seed % 3) + gain
            overrides = [f"algorithm.gamma={0.9 + gain / 10}"]
            write_run(folder, seed=seed, final=rate, curve=(0.1, rate), overrides=overrides)
            folders.append(str(folder))
    return folders


def test_the_report_has_a_verdict_a_table_a_picture_and_json(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report"
    assert main(["compare", *runs, "--output", str(output), "--x", "frames", "--markdown"]) == 0
    printed = capsys.readouterr().out
    assert "fast against slow: **better** (+20.0 points, p 0.0078)" in printed
    assert "| fast - slow | +20.0 points | +20.0 to +20.0 | 0.0078 (exact, 256 patterns)" in printed
    assert printed.strip() in (output / "report.md").read_text(encoding="utf-8")
    report = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert [arm["name"] for arm in report["arms"]] == ["slow", "fast"]
    assert report["differences"][0]["verdict"] == "better"
    assert len(report["seeds"]) == 16
    with Image.open(output / "report.png") as picture:
        assert min(picture.size) > 500


def test_the_baseline_the_metric_and_the_pairing_can_be_chosen(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--against", "fast", "--metric", "mean_reward", "--unpaired", "--json"]
    assert main(["compare", *runs, *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rule"]["metric"], report["rule"]["paired"]) == ("mean_reward", False)
    assert report["differences"][0]["arm"] == "slow"
    assert report["differences"][0]["verdict"] == "worse"


def test_few_seeds_are_told_that_they_can_decide_nothing(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *runs[:6]]) == 0
    printed = capsys.readouterr().out
    assert ": undecided (" in printed
    assert "so few seeds can never give a p below 0.2500" in printed
    assert "an interval needs at least 8 seeds" in printed


def test_one_arm_has_tables_and_nothing_to_decide(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report"
    assert main(["compare", *(run for run in runs if "fast" in run), "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert ["fast", "8", "0"] in [line.split()[:3] for line in printed.splitlines()]
    assert "Rule:" not in printed
    assert "verdict" not in printed
    with Image.open(output / "report.png") as picture:
        assert picture.width > 2 * picture.height


def test_a_run_that_failed_counts_and_is_named(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fast_8"
    write_run(
        folder, seed=8, final=None, failure="a loss became NaN", overrides=["algorithm.gamma=0.92"]
    )
    write_run(tmp_path / "slow_8", seed=8, final=0.5, overrides=["algorithm.gamma=0.9"])
    assert main(["compare", *runs, str(folder), str(tmp_path / "slow_8")]) == 0
    printed = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert any(line.startswith("fast 8 0.0 % (failed) ") for line in lines)
    assert "fast, seed 8 failed and counts as the worst value: a loss became NaN" in printed


def test_tables_are_aligned_text_where_nobody_asks_for_markdown(
    runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *runs]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "|" not in "".join(lines)
    assert "**" not in "".join(lines)
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("arm   seeds")) :][:3]
    ends = {
        line.index(cell) + len(cell) for line, cell in zip(table, ("seeds", "8", "8"), strict=True)
    }
    assert len(ends) == 1  # numbers are flush right
    assert lines[2].startswith("- fast against slow: better (+20.0 points, p 0.0078)")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_tables_fit_a_terminal_with_whole_words(width: int) -> None:
    output = StringIO()
    console = Console(file=output, width=width, force_terminal=True, color_system=None)
    header = ["arm", "success rate, mean", "95 % over seeds", "timesteps of all runs", "where"]
    row = ["duel_ppo", "97.5 %", "none: fewer than 8 seeds", "60,416", "runs/duel_ppo_seed_0"]
    print_table(console, header, [row, row])
    shown = output.getvalue()
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    assert {*" ".join([*header, *row]).split()} == {*shown.split()}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere is not a run directory"),
        (["RUN", "--against", "x"], "no such arm; there are slow"),
        (["RUN", "--arm", "x"], "write a name and a pattern"),
        (["RUN", "--alpha", "5"], "--alpha 5 is not between 0 and 1"),
        (["RUN", "--margin", "-1"], "--margin -1 is negative"),
    ],
)
def test_mistakes_are_told_with_the_way_out(
    arguments: list[str], said: str, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *(runs[0] if word == "RUN" else word for word in arguments)]) == 2
    assert said in capsys.readouterr().err


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
    assert printed.startswith("Is the fast one better?")
    assert ["fast", "6"] in [line.split()[:2] for line in printed.splitlines()]
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
