"""Populations on the command line."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.cli.experiment_console import ExperimentConsole
from game_rl.cli.main import main
from game_rl.event_log import ExperimentEventLog
from game_rl.events import ExperimentBegun, ExperimentEvent, StretchEnded
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.kept_generations import go_back
from tests.experiments.conftest import MakePopulation, make_population  # noqa: F401 - a fixture
from tests.experiments.plans.test_population import carry_out


@pytest.fixture
def folder(make_population: MakePopulation) -> ExperimentDir:  # noqa: F811
    """A population that has come to its end, with members on paper."""
    from game_rl.config.experiments.population_files import dump_population

    population = make_population()
    found = carry_out(population)
    found.config.write_text(dump_population(population), encoding="utf-8")
    return found


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_status_tells_where_every_member_is(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(folder.root), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["state"], status["generation"], status["generations"]) == ("complete", 5, 5)
    assert [member["number"] for member in status["members"]] == [0, 1, 2, 3]
    assert all(member["last"]["episodes"] == 8 for member in status["members"])
    assert main(["status", str(folder.root)]) == 0
    assert "generation 5/5" in told(capsys)


def test_status_while_a_controller_holds_the_folder_is_training(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    state = json.loads(folder.state.read_text(encoding="utf-8"))
    folder.state.write_text(json.dumps(state | {"complete": False}), encoding="utf-8")
    with folder.locked():
        main(["status", str(folder.root), "--json"])
    assert json.loads(capsys.readouterr().out)["state"] == "training"
    main(["status", str(folder.root), "--json"])
    assert json.loads(capsys.readouterr().out)["state"] == "not training"


@pytest.mark.parametrize(
    ("has_begun", "text"), [(True, "its controller was killed"), (False, "it has not begun")]
)
def test_status_says_killed_only_of_a_controller_that_has_begun(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str], has_begun: bool, text: str
) -> None:
    state = json.loads(folder.state.read_text(encoding="utf-8"))
    folder.state.write_text(json.dumps(state | {"complete": False}), encoding="utf-8")
    folder.events.unlink(missing_ok=True)
    if has_begun:
        with ExperimentEventLog(folder.events) as account:
            account.emit(ExperimentBegun(experiment="0", members=4, generations=5, slots=2))
    main(["status", str(folder.root), "--json"])
    assert json.loads(capsys.readouterr().out)["text"] == text


def test_lineage_of_an_experiment_is_its_descent(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lineage", str(folder.root), "--json"]) == 0
    trees = json.loads(capsys.readouterr().out)
    assert [tree["run"] for tree in trees] == ["00", "01", "02", "03"]


def test_an_experiment_without_a_champion_asks_for_a_member(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    shutil.rmtree(folder.champion)
    assert main(["evaluate", str(folder.root)]) == 2
    assert "has no champion yet; name one of its members" in told(capsys)


def test_a_folder_that_holds_an_experiment_is_not_begun_again(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder.root.with_suffix(".yaml")
    assert main(["train", "--config", str(file)]) == 2
    assert "already holds an experiment; continue it with game-rl train --resume" in told(capsys)


@pytest.mark.parametrize("change", ["members=6", "member.env.n_envs=4", "seed=3", "generations=9"])
def test_a_population_that_goes_on_does_not_become_another_one(
    folder: ExperimentDir, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--resume", str(folder.root), "--set", change]) == 2
    assert "cannot change" in told(capsys)


def test_arguments_of_a_run_are_refused_for_an_experiment_and_the_other_way_round(
    folder: ExperimentDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--resume", str(folder.root), "--until", "5"]) == 2
    assert "--generation N goes back" in told(capsys)
    assert main(["train", "--resume", str(tmp_path / "nothing"), "--generation", "5"]) == 2
    assert "goes back in an experiment" in told(capsys)


def test_preflight_of_a_population_prints_its_growth(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(folder.root.with_suffix(".yaml"))
    assert main(["preflight", "--config", file, "--on", "ram=16GiB,cpus=4", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["slots"] == 4
    assert len(report["growth"]) == 5
    assert main(["preflight", "--config", file, "--on", "ram=200MiB"]) == 3
    assert "DOES NOT FIT" in told(capsys)


def test_a_mistake_in_a_population_is_told_with_its_line(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder.root.with_suffix(".yaml")
    file.write_text(
        file.read_text(encoding="utf-8").replace("generations: 5", "generation: 5"),
        encoding="utf-8",
    )
    assert main(["train", "--config", str(file)]) == 2
    assert "line 5  generation: unknown key; did you mean generations?" in told(capsys)


def test_a_table_of_a_generation_has_no_empty_column(
    make_population: MakePopulation,  # noqa: F811
) -> None:
    def listen(event: ExperimentEvent) -> None:
        if isinstance(event, StretchEnded):
            event = event.model_copy(update={"timesteps_per_s": 700.0, "host": "here"})
        console(event)

    output = Console(file=StringIO(), width=200)
    console = ExperimentConsole(output)
    folder = carry_out(population := make_population(), listener=listen)
    assert headings(output) == [[*HEADINGS, "timesteps/s", "where"]] * 5
    go_back(folder, 4)
    output.file = StringIO()
    carry_out(population, listener=listen)
    assert headings(output) == [HEADINGS, [*HEADINGS, "timesteps/s", "where"]]


HEADINGS = ["member", "fitness", "reward", "goes on as"]


def headings(console: Console) -> list[list[str]]:
    """The headings of the tables of generations."""
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    tables = [[cell.strip() for cell in line.strip("\u2503").split("\u2503")] for line in lines]
    return [cells for cells in tables if cells[0] == "member"]
