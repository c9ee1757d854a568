"""`game-rl plot` and `game-rl report`, as a person calls them."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from tests.experiments.compare.fake_runs import write_run
from tests.test_layers import modules_needed, sources
from tests.viewer.html_page import read_page


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    roots = [tmp_path / f"run_{seed}" for seed in (1, 2)]
    for seed, root in enumerate(roots):
        write_run(root, seed=seed, final=0.9)
    return [str(root) for root in roots]


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("b.svg", b"<?xml")])
def test_plot_writes_a_picture(
    runs: list[str], tmp_path: Path, name: str, start: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new folder" / name
    assert main(["plot", *runs, "--x", "frames", "--output", str(output), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "file": str(output),
        "panels": ["success", "reward"],
    }
    assert output.read_bytes().startswith(start)


def test_plot_draws_the_panels_that_are_named_and_refuses_others(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "a.svg"
    arguments = ["plot", *runs, "--output", str(output), "--json"]
    assert main([*arguments, "--panels", "reward,success", "--title", "Two <seeds>"]) == 0
    assert json.loads(capsys.readouterr().out)["panels"] == ["reward", "success"]
    assert "Two &lt;seeds&gt;" in output.read_text(encoding="utf-8")
    assert main([*arguments, "--panels", "reward,speed"]) == 2
    found = capsys.readouterr().err
    assert "--panels speed: these runs have no such panel; they have success, reward" in found
    assert main([*arguments, "--panels", "reward,,"]) == 2
    assert "names no panels" in capsys.readouterr().err


def test_report_writes_a_page(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.html"
    assert main(["report", runs[0], "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert "run_1" in read_page(output.read_text(encoding="utf-8")).text


@pytest.mark.parametrize("command", ["plot", "report"])
def test_mistakes_name_what_was_found_and_the_way_out(
    command: str, runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = "x.png" if command == "plot" else "x.html"
    study = tmp_path / "study.yaml"
    study.write_text("question: x\n", encoding="utf-8")
    of_study = tmp_path / "study_runs"
    of_study.mkdir()
    (of_study / "registration.sha256").write_text("0", encoding="utf-8")
    write_run(of_study / "ppo-1", seed=1, final=None)
    expected = {
        "must end in": [runs[0], "--output", "x.pdf"],
        "and has no ending": [runs[0], "--output", "x"],
        "is not a run directory": [str(tmp_path), "--output", right],
        f"game-rl compare {study}": [str(study), "--output", right],
        f"such as {of_study / 'ppo-1'}": [str(of_study), "--output", right],
    }
    for text, arguments in expected.items():
        assert main([command, *arguments]) == 2
        assert text in capsys.readouterr().err


def test_a_plot_of_nothing_and_of_too_many_configs_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = write_run(tmp_path / "empty", seed=0, final=None, curve=())
    assert main(["plot", str(empty.root), "--output", str(tmp_path / "x.png")]) == 2
    assert "nothing is recorded yet" in capsys.readouterr().err
    roots = [tmp_path / f"gamma_{n}" for n in range(9)]
    for n, root in enumerate(roots):
        write_run(root, seed=0, final=None, overrides=[f"algorithm.gamma=0.{n + 1}"])
    assert main(["plot", *map(str, roots), "--output", str(tmp_path / "x.png")]) == 2
    assert "9 different configs, but one plot can show at most 8" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


def test_matplotlib_is_loaded_where_pictures_are_drawn_and_by_nobody_else() -> None:
    """It takes a third of a second and 50 MB, which no other command and no worker pays."""
    graph = {source.name: source for source in sources()}
    drawn_by = {"viewer/panel_figure.py", "viewer/comparison_plot.py"}
    loaders = {name for name in graph if drawn_by & modules_needed(name)}
    assert loaders <= drawn_by | {
        "hub/agent_folder.py",
        "viewer/report_sections.py",
        "viewer/run_report.py",
        "viewer/experiment_report.py",
        "viewer/exploration_report.py",
    }
