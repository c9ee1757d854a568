"""Populations on the command line."""

import json
import os
import shlex
import sys
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.cli.arguments import take_words
from game_rl.cli.experiment_console import ExperimentConsole
from game_rl.cli.main import main
from game_rl.cli.parser import make_parser
from game_rl.cli.train_command import _config, next_steps
from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.emulator.state_speed import describe_states
from game_rl.events import ExperimentBegun, ExperimentEvent, StretchEnded
from game_rl.events.event_log import EventFile, ExperimentEventLog, read_events
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.kept_generations import go_back
from game_rl.files.run_dir import RunDir
from game_rl.system.packages import installed_versions, source_sha256
from tests.cli.test_main import kept_run
from tests.experiments.conftest import (
    MakePopulation,
    make_population,  # noqa: F401 - a fixture
)
from tests.experiments.plans.test_population_plan import carry_out
from tests.tiny_run import TINY


@pytest.fixture
def folder(make_population: MakePopulation) -> ExperimentDir:  # noqa: F811
    """A population that has come to its end, with members on paper."""
    from game_rl.config.experiments.experiment import dump_experiment

    population = make_population()
    found = carry_out(population)
    found.config.write_text(dump_experiment(population), encoding="utf-8")
    return found


def told(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_status_tells_where_every_member_is(
    folder: ExperimentDir, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(folder.root), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["state"], status["generation"], status["generations"]) == ("completed", 5, 5)
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
    assert json.loads(capsys.readouterr().out)["state"] == "not begun"


@pytest.mark.parametrize(
    ("has_begun", "state", "text"),
    [(True, "killed", "its controller was killed"), (False, "not begun", "it has not begun")],
)
def test_status_says_killed_only_of_a_controller_that_has_begun(
    folder: ExperimentDir,
    capsys: pytest.CaptureFixture[str],
    has_begun: bool,
    state: str,
    text: str,
) -> None:
    saved = json.loads(folder.state.read_text(encoding="utf-8"))
    folder.state.write_text(json.dumps(saved | {"complete": False}), encoding="utf-8")
    folder.events.unlink(missing_ok=True)
    if has_begun:
        with EventFile(folder.events) as file:
            account = ExperimentEventLog(file)
            account.emit(ExperimentBegun(experiment="0", members=4, generations=5, slots=2))
    main(["status", str(folder.root), "--json"])
    status = json.loads(capsys.readouterr().out)
    assert (status["state"], status["text"]) == (state, text)
    main(["status", str(folder.root)])
    assert f": {state}, generation 5/5" in " ".join(told(capsys).split())
    assert main(["runs", str(folder.root.parent), "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["state"] == f"{state}, 5 of 5"


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


HEADINGS = ["member", "fitness", "reward", "continues as"]


def headings(console: Console) -> list[list[str]]:
    """The headings of the tables of generations."""
    assert isinstance(console.file, StringIO)
    lines = console.file.getvalue().splitlines()
    tables = [[cell.strip() for cell in line.strip("\u2503").split("\u2503")] for line in lines]
    return [cells for cells in tables if cells[0] == "member"]


def test_commands_work_for_a_path_with_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    run = Path("runs/my run")
    steps = dict(next_steps(run, run / "videos" / "best.gif"))
    assert shlex.split(steps["clip"]) == ["runs/my run/videos/best.gif"]
    assert shlex.split(steps["watch"]) == ["game-rl", "watch", "runs/my run", "--open"]
    assert shlex.split(steps["report"])[:3] == ["game-rl", "report", "runs/my run"]
    assert shlex.split(steps["status"]) == ["game-rl", "status", "runs/my run"]
    assert shlex.split(steps["curves"]) == ["tensorboard", "--logdir", "runs/my run"]
    assert shlex.split(steps["evaluate"])[:3] == ["game-rl", "evaluate", "runs/my run"]
    assert shlex.split(steps["record"])[:3] == ["game-rl", "record", "runs/my run"]
    assert "clip" not in dict(next_steps(run, None))


def test_a_program_of_an_environment_that_is_not_active_has_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "tensorboard").touch()
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.chdir(tmp_path)
    steps = dict(next_steps(Path("run"), None))
    assert steps["curves"] == ".venv/bin/tensorboard --logdir run"
    assert steps["evaluate"].startswith("game-rl ")  # not there either: as the docs name it


def tiny_config(folder: Path) -> Path:
    path = folder / "run.yaml"
    path.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_reader_that_leaves_does_not_end_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w", encoding="ascii") as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        os.close(reader)  # as `head` does
        assert main(["train", "--config", str(tiny_config(tmp_path))]) == 0
    errors = capsys.readouterr().err
    assert errors.count("the output can no longer be written (Broken pipe); the training") == 1
    newest, _ = newest_valid_checkpoint(RunDir(tmp_path / "run"))
    assert newest.state.num_timesteps == 192
    assert read_events(RunDir(tmp_path / "run"))[-1].event == "ended"


@pytest.mark.slow
def test_a_log_of_json_is_the_account_of_the_run_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--config", str(tiny_config(tmp_path)), "--log", "json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    run_dir = RunDir(tmp_path / "run")
    assert printed == [
        json.loads(line) for line in run_dir.events.read_text(encoding="utf-8").splitlines()
    ]
    assert (printed[0]["event"], printed[-1]["event"]) == ("begun", "ended")
    assert printed[0]["run"] == run_dir.identity().id


@pytest.mark.slow
def test_until_is_said_with_the_way_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tiny_config(tmp_path)
    assert main(["train", "--config", str(config), "--until", "50"]) == 0
    assert (
        "trained up to timestep 64 (512 frames) and saved; continue with game-rl train --resume"
        in capsys.readouterr().out
    )
    assert not (tmp_path / "run" / "videos").exists()
    assert main(["train", "--resume", str(tmp_path / "run"), "--until", "192"]) == 0
    assert "best policy, timestep" in capsys.readouterr().out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"game-rl {installed_versions()['game_rl']}"
    assert lines[1] == f"source {source_sha256()}"
    assert f"torch {torch.__version__}" in lines
    assert f"states {describe_states()}" in lines


@pytest.mark.slow
def test_a_seed_chooses_the_episodes_of_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(tmp_path)
    assert main(["train", "--config", str(config), "--until", "100"]) == 0
    capsys.readouterr()

    def evaluation(*more: str) -> str:
        words = ["evaluate", str(tmp_path / "run"), "--checkpoint", "latest", "--episodes", "6"]
        assert main([*words, "--json", *more]) == 0
        return capsys.readouterr().out

    found = [evaluation("--seed", seed) for seed in ("7", "7", "8")]
    assert found[0] == found[1]
    assert found[0] != found[2]
    assert evaluation() == evaluation()


@pytest.mark.slow
def test_a_folder_in_brackets_is_printed_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")  # tables shorten what is longer
    root = tmp_path / "[red]" / "[seed 1]"
    config, clip = tiny_config(tmp_path), ("--set", "recording.episodes=1")
    assert main(["train", "--config", str(config), "--set", f"run_dir={root}", *clip]) == 0
    told = capsys.readouterr().out
    for place in (f"run          {root}", f"--logdir '{root}'", f"clip       '{root}/videos"):
        assert place in told
    assert main(["evaluate", str(root), "--episodes", "1"]) == 0
    assert f"{root}, timestep" in capsys.readouterr().out.replace("\n", "")
    longer = ["--set", "total_timesteps=1_000", "--until", "200"]
    assert main(["train", "--resume", str(root), *longer]) == 0
    assert f"--resume '{root}'" in capsys.readouterr().out
    (root / "checkpoints" / "000000000192" / "policy.safetensors").unlink()
    assert main(["checkpoints", str(root)]) == 1
    assert f"{root}/checkpoints" in capsys.readouterr().out


def test_paths_in_the_changes_of_a_fork_are_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path in the parent's own config stays relative to the parent, wherever it is forked."""
    parent, here = tmp_path / "far" / "away" / "run", tmp_path / "here"
    kept_run(parent, timesteps=64)
    text = parent.joinpath("config.yaml").read_text(encoding="utf-8")
    copied = text.replace("game: duel", "game: game/game.yaml")  # as a fetched run has it
    parent.joinpath("config.yaml").write_text(copied, encoding="utf-8")
    (parent / "game").mkdir()
    (parent / "game" / "game.yaml").touch()
    here.mkdir()
    monkeypatch.chdir(here)
    words = ["train", "--fork", "../far/away/run@64", "run_dir=new", "algorithm={name: dqn}"]
    lakes = "algorithm.learn_from.lakes=[lakes/one, ../two]"
    changes = ["game=my_game/game.yaml", "lake={path: lakes/mine}", lakes]
    changes.append("algorithm.teacher.run=../teacher@5")

    config = forked([*words, *changes])
    assert config.run_dir == Path("new")
    assert config.game == str(here / "my_game" / "game.yaml")
    assert config.lake is not None
    assert config.lake.path == here / "lakes" / "mine"
    assert isinstance(config.algorithm, DQNConfig)
    assert config.algorithm.learn_from is not None
    assert config.algorithm.learn_from.lakes == (here / "lakes" / "one", here / ".." / "two")
    assert config.algorithm.teacher is not None
    assert config.algorithm.teacher.run == f"{here / '..' / 'teacher'}@5"
    assert config.fork is not None
    assert config.fork.run == f"{here / '..' / 'far' / 'away' / 'run'}@64"

    config = forked([word for word in words if word != "run_dir=new"] + ["--set", "run_dir=new"])
    assert Path(config.game).resolve() == parent / "game" / "game.yaml"


def forked(words: list[str]) -> RunConfig:
    """Return the config of the fork that a command line asks for."""
    arguments, left = make_parser(["train"])[0].parse_known_args(words)
    assert take_words(arguments, left) == []
    return _config(arguments, lambda _: None)
