"""Carrying a study out, with runs on paper: what is made, what is kept, what is refused."""

import json
import math
import shutil
from pathlib import Path

import pytest

from game_rl.config.experiments.study_config import Study, load_study
from game_rl.config.loader import load_config
from game_rl.errors import ExperimentError, UsageError
from game_rl.experiments.study.study_forecast import StudyReport
from game_rl.experiments.study.study_registration import Registration, register
from game_rl.experiments.study.study_results import PairResult, study_dir, write_result
from game_rl.experiments.study.study_run import StudyCommand, StudyRun, run_study
from game_rl.system.stop_request import StopRequest
from tests.experiments.broken_off import Killed, killed_at
from tests.experiments.study.conftest import MakeStudy
from tests.experiments.study.paper_finisher import PaperFinisher


def on_paper(study: Study, finisher: PaperFinisher | None = None) -> list[PairResult]:
    """Carry the study out; the results that are new."""
    folder, found = study_dir(study.config), []
    if not folder.registration.exists():
        register(study)
    folder.runs.mkdir(exist_ok=True)
    command = StudyCommand(
        stop=StopRequest(math.inf), on_result=lambda result, *_: found.append(result)
    )
    registration = Registration.model_validate_json(folder.registration.read_bytes())
    StudyRun(study, folder, registration.sha256(), finisher or PaperFinisher(), command).run()
    return found


def results_of(study: Study) -> dict[str, str]:
    files = study_dir(study.config).results.glob("results/*.json")
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def test_every_arm_has_a_result_for_each_seed_and_arms_take_turns(make_study: MakeStudy) -> None:
    study, finisher = make_study(), PaperFinisher()
    found = on_paper(study, finisher)
    assert finisher.started[:4] == ["slow, seed 5", "fast, seed 5", "slow, seed 6", "fast, seed 6"]
    assert len(found) == len(results_of(study)) == 12
    result = found[0]
    assert (result.arm, result.seed, result.timesteps, result.total_frames) == (
        "slow",
        5,
        192,
        192 * 8,
    )
    assert [point.timesteps for point in result.curve] == [64, 128]
    assert result.played is not None
    assert len(result.played.rewards) == 20


def test_each_run_has_its_arms_config_its_seed_and_the_budget(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    folder = study_dir(study.config)
    config = load_config(folder.run("fast", 7).config, is_saved=True)
    assert (config.seed, config.total_timesteps) == (7, 192)
    assert config.algorithm.learning_rate == 1e-2
    assert config.recording.episodes == 0


@pytest.mark.slow
def test_killed_at_any_moment_it_comes_to_the_same_results(make_study: MakeStudy) -> None:
    whole = make_study("whole")
    on_paper(whole)
    kills = 0
    for operation in range(1, 2_000, 17):
        study = make_study(f"killed_{operation}")
        register(study)
        try:
            with killed_at(operation):
                on_paper(study)
            break  # it has so few operations
        except Killed:
            kills += 1
        on_paper(study)
        assert _without_registration(results_of(study)) == _without_registration(results_of(whole))
    assert kills > 5


def _without_registration(results: dict[str, str]) -> dict[str, object]:
    without = {"registration": "", "sha256": ""}
    return {name: json.loads(text) | without for name, text in results.items()}


def test_another_machine_goes_on_with_what_is_missing(
    make_study: MakeStudy, tmp_path: Path
) -> None:
    study = make_study()
    on_paper(study)
    folder = study_dir(study.config)
    for seed in (8, 9):
        folder.result("fast", seed).unlink()
    kept = results_of(study)
    elsewhere = load_study(study.file, [f"run_dir={tmp_path / 'other'}"])
    finisher = PaperFinisher(host="b")
    on_paper(elsewhere, finisher)
    assert finisher.started == ["fast, seed 8", "fast, seed 9"]
    assert {name: results_of(study)[name] for name in kept} == kept


def test_a_run_that_breaks_its_weights_is_a_result(make_study: MakeStudy) -> None:
    study = make_study()
    found = on_paper(study, PaperFinisher(non_finite=["fast-6"]))
    assert len(results_of(study)) == 12
    broken = next(result for result in found if (result.arm, result.seed) == ("fast", 6))
    assert (broken.played, broken.failure) == (None, "a loss became NaN")


def test_a_result_of_another_registration_is_refused(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    folder = study_dir(study.config)
    content = json.loads(folder.result("slow", 5).read_text(encoding="utf-8"))
    write_result(folder, PairResult.model_validate(content | {"registration": "0"}))
    with pytest.raises(ExperimentError, match=r"slow-5\.json belongs to another registration"):
        on_paper(study)


def test_a_result_under_another_name_is_refused(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    folder = study_dir(study.config)
    shutil.copyfile(folder.result("slow", 5), folder.result("fast", 5))
    with pytest.raises(ExperimentError, match="holds arm slow, seed 5"):
        on_paper(study)


def test_a_run_that_fails_otherwise_ends_the_command_and_is_no_result(
    make_study: MakeStudy,
) -> None:
    study = make_study()
    with pytest.raises(ExperimentError, match=r"fast, seed 6 failed with exit code 1.*continues"):
        on_paper(study, PaperFinisher(exit_codes={"fast, seed 6": 1}))
    assert "fast-6.json" not in results_of(study)
    on_paper(study)
    assert len(results_of(study)) == 12


def test_runs_of_another_registration_are_not_gone_on_with(make_study: MakeStudy) -> None:
    study = make_study()
    register(study)
    folder = study_dir(study.config)
    folder.runs.mkdir()
    folder.registration_of_runs.write_text("another\n", encoding="utf-8")
    with pytest.raises(UsageError, match="holds runs of another registration"):
        run_study(study, StudyCommand(stop=StopRequest(math.inf)))


@pytest.mark.slow
def test_the_lakes_of_arms_are_measured_before_a_study_starts(
    make_study_of_experiments: MakeStudy,
) -> None:
    study, shown = make_study_of_experiments(), list[StudyReport]()
    register(study)
    folder = study_dir(study.config)
    folder.runs.mkdir()
    folder.registration_of_runs.write_text("another\n", encoding="utf-8")
    for measures in (False, True):
        command = StudyCommand(
            stop=StopRequest(math.inf), force=True, measures_lakes=measures, show=shown.append
        )
        with pytest.raises(UsageError, match="another registration"):
            run_study(study, command)
    without, measured = shown
    assert without.unmeasured_lakes == ("mixed",)
    assert measured.unmeasured_lakes == ()
    assert measured.disk_bytes > without.disk_bytes
