"""`game-rl compare` of runs."""

import json
from pathlib import Path

import pytest
from PIL import Image

from game_rl.cli.main import main
from tests.experiments.compare.fake_runs import write_run


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
    assert main(["compare", *runs, "--output", str(output), "--x", "frames"]) == 0
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
    assert "**undecided**" in printed
    assert "so few seeds can never give a p below 0.2500" in printed
    assert "fewer than 8 seeds carry no interval" in printed


def test_one_arm_has_tables_and_nothing_to_decide(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report"
    assert main(["compare", *(run for run in runs if "fast" in run), "--output", str(output)]) == 0
    printed = capsys.readouterr().out
    assert "| fast | 8 | 0 |" in printed
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
    assert "| fast | 8 | 0.0 % (failed) |" in printed
    assert "fast, seed 8 failed and counts as the worst value: a loss became NaN" in printed


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
