"""The end of an experiment that is an arm of a study, where all its jobs are done already."""

import json
import math
from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.config.loader import dump_config, load_config
from game_rl.config.strict_model import with_changed
from game_rl.errors import Interrupted
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import FinishedRun, FinishRequest, Played, StretchResult
from game_rl.experiments.records import ChampionRecord, read_record
from game_rl.experiments.train_experiment import (
    ExperimentCommand,
    finish_experiment,
    follow_lake,
    resume_experiment,
)
from game_rl.system.stop_request import StopRequest
from tests.experiments.conftest import MakeMixture, MakePopulation
from tests.experiments.plans.test_population_plan import carry_out

TEST = Played(seed=77, deterministic=True, rewards=(1.0, 2.0), successes=())


def finish(folder: ExperimentDir, result: Path, stop: StopRequest | None = None) -> FinishedRun:
    command = ExperimentCommand(stop=stop or StopRequest(math.inf), force=True)
    root = folder.root
    request = FinishRequest(root=root, run=root, episodes=2, seed=77, result=result)
    return finish_experiment(request, command)


@pytest.fixture
def whole(make_population: MakePopulation) -> ExperimentDir:
    """A population whose champion was found, but has not played the test."""
    population = make_population("whole", "generations=1")
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    return folder


def champion_of(folder: ExperimentDir) -> ChampionRecord:
    found = read_record(folder.champion_record, ChampionRecord)
    assert found is not None
    return found


def test_the_champion_is_what_was_tested_and_the_result_is_written_once(
    whole: ExperimentDir, tmp_path: Path
) -> None:
    champion, result = champion_of(whole), tmp_path / "result.json"
    played = whole.validation / f"test-{champion.number:02d}.json"
    played.write_text(TEST.model_dump_json(), encoding="utf-8")
    made = finish(whole, result)
    (manifest,) = whole.champion.glob("checkpoints/*/manifest.json")
    weights = json.loads(manifest.read_text(encoding="utf-8"))["files"]["policy.safetensors"][
        "sha256"
    ]
    assert (made.played, made.weights_sha256) == (TEST, weights)
    assert made.policy_timesteps == int(champion.checkpoint)
    assert champion_of(whole) == champion
    whole.config.unlink()  # with the result there, nothing is looked at any more
    assert finish(whole, result) == made


def test_that_all_weights_became_non_finite_is_a_result(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population()
    folder = ExperimentDir(population.config.run_dir)
    for number in range(4):
        path = folder.generation(1).result(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        broken = StretchResult(timesteps=100, failure="non_finite", text="NaN")
        path.write_text(broken.model_dump_json(), encoding="utf-8")
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    made = finish(folder, tmp_path / "result.json")
    assert (made.failure, made.played) == ("non_finite", None)
    assert "the weights of all members became non-finite in generation 1" in made.text


def test_a_signal_before_the_test_leaves_no_result(whole: ExperimentDir, tmp_path: Path) -> None:
    stop = StopRequest(math.inf)
    stop.reason = Interrupted("stopped by SIGTERM", exit_code=143)
    with pytest.raises(Interrupted, match="stopped by SIGTERM; the experiment is comp") as raised:
        finish(whole, tmp_path / "result.json", stop)
    assert raised.value.exit_code == 143
    assert not (tmp_path / "result.json").exists()


def mixture_at(make_mixture: MakeMixture, root: Path) -> ExperimentDir:
    """With a member, and two learners: one that has a copy of its teacher, and one without."""
    mixture, folder = make_mixture(root.name), ExperimentDir(root)
    runs = {"00": mixture.run}
    for name in ("learner.g0001", "learner.g0002"):
        teacher = {"run": str(root / "members" / "00@128"), "keep_if_better": False}
        runs[name] = with_changed(mixture.learner, {("algorithm", "teacher"): teacher})
    for name, config in runs.items():
        run_dir = folder.member(name)
        run_dir.root.mkdir(parents=True)
        run_dir.config.write_text(dump_config(config), encoding="utf-8")
    folder.member("learner.g0001").teacher.mkdir()
    folder.config.write_text(dump_experiment(mixture), encoding="utf-8")
    return folder


def test_they_look_for_lake_and_teacher_where_the_folder_is_now(
    make_mixture: MakeMixture, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    mixture_at(make_mixture, here).root.rename(there)
    folder, expected = ExperimentDir(there), {}
    for name in ("00", "learner.g0001", "learner.g0002"):
        text = folder.member(name).config.read_text(encoding="utf-8")
        copy = tmp_path / f"{name}.yaml"
        copy.write_text(text.replace(str(here), str(there)), encoding="utf-8")
        expected[name] = load_config(copy, is_saved=True).model_dump(exclude={"run_dir"})
    # it goes on with its own copy, and its checkpoints name the old place
    expected["learner.g0001"]["algorithm"]["teacher"]["run"] = str(here / "members" / "00@128")
    follow_lake(folder)
    for name, values in expected.items():
        found = load_config(folder.member(name).config, is_saved=True)
        assert found.model_dump(exclude={"run_dir"}) == values


def test_where_nothing_was_moved_nothing_is_written(
    make_mixture: MakeMixture, make_population: MakePopulation, tmp_path: Path
) -> None:
    folder = mixture_at(make_mixture, tmp_path / "here")
    run_dir = folder.member("00")
    run_dir.config.write_text("as it was", encoding="utf-8")
    follow_lake(folder)
    assert run_dir.config.read_text(encoding="utf-8") == "as it was"
    folder.config.write_text(
        dump_experiment(make_population()), encoding="utf-8"
    )  # each member has its own
    follow_lake(folder)
    assert run_dir.config.read_text(encoding="utf-8") == "as it was"


def test_members_with_lakes_of_their_own_keep_them_when_the_population_goes_on(
    make_population: MakePopulation,
) -> None:
    population = make_population("whole", "generations=1", "member.lake={}")
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.members.rglob("config.yaml")}
    assert len(before) == 4
    champion = resume_experiment(
        folder.root, ExperimentCommand(stop=StopRequest(math.inf), force=True)
    )
    assert champion.number in range(4)
    assert {path: path.read_bytes() for path in before} == before
    assert not folder.lake.exists()
