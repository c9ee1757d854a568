"""A study whose arms are experiments, on paper: what is carried out, kept, shown and refused."""

import pytest

from game_rl.config.experiments.experiment import load_experiment
from game_rl.config.experiments.study_config import load_study
from game_rl.errors import ExperimentError
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import ChampionRecord, read_record
from game_rl.experiments.study.study_registration import register, registered
from game_rl.experiments.study.study_report import study_findings, study_status
from game_rl.experiments.study.study_results import Pair, PairResult, pairs_of, study_dir
from game_rl.experiments.study.study_run import give_up
from tests.experiments.study.conftest import MakeStudy
from tests.experiments.study.paper_finisher import PaperFinisher
from tests.experiments.study.test_study_run import on_paper

FOUR, MIXED = 3 * 2 * 32 + 16, 2 * 2 * 32 + 2 * 16
"""Timesteps of everybody in the two experiments."""


def test_whoever_played_counts_and_the_report_says_who_was_tested(
    make_study_of_experiments: MakeStudy,
) -> None:
    study, finisher = make_study_of_experiments(), PaperFinisher()
    found = on_paper(study, finisher)
    assert finisher.started[:3] == ["alone, seed 5", "four, seed 5", "mixed, seed 5"]
    for result in found:
        played = {"alone": 192, "four": FOUR, "mixed": MIXED}[result.arm]
        assert (result.timesteps, result.total_timesteps) == (played, played)
    four = next(each for each in found if each.arm == "four")
    assert four.total_frames == FOUR * 8
    assert [point.total_timesteps for point in four.curve][:2] == [96, 192]
    findings = study_findings(study)
    assert "the test is played by the champion of four, mixed" in findings.notes
    assert not [note for note in findings.notes if "deviation" in note]
    totals = {s.name: s.total_timesteps for s in findings.comparison.summaries}
    assert totals == {"alone": 192, "four": FOUR, "mixed": MIXED}


def test_each_experiment_has_its_seed_and_folder_and_one_member_at_a_time(
    make_study_of_experiments: MakeStudy,
) -> None:
    study = make_study_of_experiments()
    on_paper(study)
    folder = study_dir(study.config)
    for name in ("four", "mixed"):
        for seed in (5, 6):
            root = folder.run(name, seed).root
            config = load_experiment(ExperimentDir(root).config, is_saved=True).config
            assert (config.seed, config.run_dir, config.executor.parallel) == (seed, root, 1)
            champion = read_record(ExperimentDir(root).champion_record, ChampionRecord)
            assert champion is not None
            test = study.config.test.seed
            assert test not in {each.validation.seed for each in champion.candidates}


def test_status_says_in_which_generation_an_experiment_is(
    make_study_of_experiments: MakeStudy,
) -> None:
    study = make_study_of_experiments()
    on_paper(study)
    folder = study_dir(study.config)
    for name in ("four", "mixed"):
        folder.result(name, 6).unlink()
    rows = {(row.arm, row.seed): row for row in study_status(study)}
    assert rows["four", 6].text == f"generation 2 of 2, {FOUR} of {FOUR} timesteps"
    assert rows["mixed", 6].text == f"round 2 of 2, {MIXED} of {MIXED} timesteps"


def test_an_experiment_that_is_given_up_counts_what_it_has_played(
    make_study_of_experiments: MakeStudy,
) -> None:
    study = make_study_of_experiments()
    register(study)
    results: list[PairResult] = [give_up(study, pair, "no time") for pair in pairs_of(study)]
    assert {result.total_timesteps for result in results} == {0}
    study = make_study_of_experiments("other")
    on_paper(study)
    study_dir(study.config).result("four", 6).unlink()
    result = give_up(study, Pair("four", 6), "it locks up")
    assert (result.played, result.total_timesteps) == (None, FOUR)


@pytest.mark.parametrize("name", ["four", "arm", "pqn", "dqn"])
def test_a_changed_file_of_an_experiment_or_its_runs_is_told(
    make_study_of_experiments: MakeStudy, name: str
) -> None:
    study = make_study_of_experiments()
    assert register(study).files.keys() == {"four.yaml", "arm.yaml", "pqn.yaml", "dqn.yaml"}
    file = study.file.with_name(f"{name}.yaml")
    file.write_text(f"# a comment\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(ExperimentError, match=rf"{name}\.yaml has changed"):
        registered(load_study(study.file))
