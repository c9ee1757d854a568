"""Members that something else has trained too far: they are brought back and trained again."""

import shutil
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.config.experiments.experiment import Experiment
from game_rl.errors import ExperimentError, UsageError
from game_rl.events import ExperimentEvent, ExperimentWarned
from game_rl.experiments import controller
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import StretchRequest
from game_rl.experiments.kept_generations import go_back
from tests.experiments.broken_off import account_of, record
from tests.experiments.conftest import MakePopulation
from tests.experiments.paper_executor import PaperExecutor
from tests.experiments.plans.test_population_plan import carry_out

SHORT = ("generations=3", "train_on={timesteps: 50}")
TOO_FAR = 400


def broken_off(population: Experiment, job: str) -> ExperimentDir:
    """Carry a population out until a job of this name fails."""
    with pytest.raises(ExperimentError, match=job):
        carry_out(population, PaperExecutor(exit_codes={job: [1]}))
    return ExperimentDir(population.config.run_dir)


def train_by_hand(folder: ExperimentDir, name: str, result: Path) -> None:
    """Train a member as `train --resume` of it once did: to its total, keeping the last."""
    run_dir = folder.member(name)
    PaperExecutor()._train(
        StretchRequest(root=folder.root, run=run_dir.root, until=TOO_FAR, seed=1, result=result)
    )
    for path in run_dir.checkpoints_newest_first()[1:]:
        shutil.rmtree(path)


@pytest.mark.slow
@pytest.mark.parametrize(("generation", "number"), [(1, 3), (2, 0), (2, 3)])
def test_what_a_member_learned_elsewhere_is_set_aside_and_nobody_else_trains_again(
    make_population: MakePopulation, tmp_path: Path, generation: int, number: int
) -> None:
    whole = carry_out(make_population("whole", *SHORT))
    name = record(whole, generation).members[number].folder
    population = make_population("broken", *SHORT)
    folder = broken_off(population, f"member {name} in generation {generation}")
    train_by_hand(folder, name, tmp_path / "result.json")
    others = {path: path.read_bytes() for path in folder.generations.glob("*/??.json")}
    heard: list[ExperimentEvent] = []
    carry_out(population, None, heard.append)
    assert account_of(folder) == account_of(whole)
    assert {path: path.read_bytes() for path in others} == others
    (warned,) = (event for event in heard if isinstance(event, ExperimentWarned))
    assert f"{name} learned in that generation was moved to" in warned.text
    assert list(folder.superseded.rglob(f"{TOO_FAR:012d}"))


@pytest.mark.parametrize("goes_back", [False, True])
def test_a_record_that_ranks_such_a_member_is_made_again(
    make_population: MakePopulation, monkeypatch: pytest.MonkeyPatch, goes_back: bool
) -> None:
    whole = carry_out(make_population("whole", *SHORT))
    population = make_population("broken", *SHORT)
    folder = ranked_too_far(population, monkeypatch, copies={"copy ": [1]})
    if goes_back:
        go_back(folder, 1)
    carry_out(population)
    assert account_of(folder) == account_of(whole)


def test_a_decision_that_was_carried_out_is_history_until_the_experiment_goes_back(
    make_population: MakePopulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = carry_out(make_population("whole", *SHORT))
    population = make_population("broken", *SHORT)
    folder = ranked_too_far(population, monkeypatch, copies={"generation 2": [1]})
    with pytest.raises(ExperimentError, match=rf"--resume {folder.root} --generation 1, which"):
        carry_out(population)
    go_back(folder, 1)
    carry_out(population)
    assert account_of(folder) == account_of(whole)


def ranked_too_far(
    population: Experiment, monkeypatch: pytest.MonkeyPatch, *, copies: dict[str, list[int]]
) -> ExperimentDir:
    """Leave what versions left that ranked whatever a member had reached, in generation 1."""
    folder = broken_off(population, "member 00 in generation 1")
    train_by_hand(folder, "00", folder.generation(1).result(0))
    with monkeypatch.context() as patched:
        patched.setattr(controller, "undo_excess", lambda *_: "")
        with pytest.raises(ExperimentError):
            carry_out(population, PaperExecutor(exit_codes=copies))
    assert [m.timesteps for m in record(folder, 1).members] == [TOO_FAR, 100, 100, 100]
    return folder


def test_a_run_that_somebody_trains_at_this_moment_is_not_moved(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population("broken", *SHORT)
    folder = broken_off(population, "member 01 in generation 1")
    train_by_hand(folder, "01", tmp_path / "result.json")
    with folder.member("01").locked(), pytest.raises(UsageError, match="another training"):
        carry_out(population)


@pytest.mark.parametrize("name", ["members/01", "members/02.g0001", "champion"])
def test_a_run_of_an_experiment_is_resumed_with_it_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    folder = ExperimentDir(tmp_path / "an experiment")
    (folder.root / name).mkdir(parents=True)
    folder.config.touch()
    monkeypatch.chdir(tmp_path)
    for place in (Path("an experiment"), folder.root):
        assert main(["train", "--resume", str(place / name), "--until", "5"]) == 2
        error = capsys.readouterr().err
        assert f"continue the experiment with game-rl train --resume '{place}'," in error
        assert f"--fork '{place / name}' --set run_dir=" in error
    elsewhere = folder.root / "superseded" / "000" / "members" / "copies" / "01"
    assert main(["train", "--resume", str(elsewhere)]) == 2
    assert "is not a run directory" in capsys.readouterr().err
