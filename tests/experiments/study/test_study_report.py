"""What a study keeps and shows of the breaks of its experiments."""

import hashlib
import json

import pytest

from game_rl.errors import ExperimentError
from game_rl.events import Fitness
from game_rl.experiments.compare.comparison_report import Cells, markdown_lines
from game_rl.experiments.records import CopyRecord, GenerationRecord, LearnerRecord, TrainedMember
from game_rl.experiments.study.study_report import break_lines, study_findings, study_status
from game_rl.experiments.study.study_results import (
    Pair,
    PairResult,
    Reached,
    reached,
    read_study_result,
    study_dir,
    write_result,
)
from tests.experiments.study.conftest import MakeStudy
from tests.experiments.study.paper_finisher import PaperFinisher
from tests.experiments.study.test_study_run import on_paper


def member(number: int, rate: float | None) -> TrainedMember:
    fitness = None
    if rate is not None:
        fitness = Fitness(
            value=rate,
            seed=1,
            episodes=10,
            deterministic=True,
            success_rate=rate,
            success_interval=None,
            mean_reward=10 * rate,
            std_reward=0.0,
        )
    return TrainedMember(
        number=number,
        folder=f"{number:02d}",
        values={},
        timesteps=10,
        checkpoint=None,
        weights_sha256=None,
        fitness=fitness,
    )


def copy(number: int, parent: int) -> CopyRecord:
    return CopyRecord(
        number=number,
        folder=f"{number:02d}.g0001",
        parent=parent,
        parent_folder=f"{parent:02d}",
        parent_checkpoint="x",
        reason="worse",
        seed=1,
        old_values={},
        new_values={},
    )


def record(
    generation: int, rates: list[float | None], *copies: CopyRecord, learner: int | None = None
) -> GenerationRecord:
    return GenerationRecord(
        generation=generation,
        timesteps=10,
        seed=1,
        ranking=(0,),
        members=tuple(member(number, rate) for number, rate in enumerate(rates)),
        copies=copies,
        learner=None
        if learner is None
        else LearnerRecord(
            number=learner, parent_folder=None, parent_checkpoint=None, teacher=None
        ),
    )


def test_each_began_as_itself_or_as_whom_it_is_a_copy_of() -> None:
    records = [
        record(1, [0.1, 0.2, 0.5], copy(0, parent=2), learner=2),
        record(2, [0.4, 0.3, 0.6], copy(1, parent=0), learner=2),
        record(3, [0.7, None, 0.8], learner=2),
    ]
    found = {(each.generation, each.number): each.began_as for each in reached(records)}
    assert found == {
        (1, 0): None,
        (1, 1): None,
        (1, 2): None,
        (2, 0): 2,
        (2, 1): 1,
        (2, 2): None,
        (3, 0): 0,
        (3, 1): 0,
        (3, 2): None,
    }
    assert [each.number for each in reached(records) if each.is_learner] == [2, 2, 2]
    assert [each.number for each in reached(records) if each.success_rate is None] == [1]


def test_the_table_has_what_the_weights_came_to_before_and_after_each_break() -> None:
    one = [
        record(1, [0.1, 0.2, 0.5], copy(0, parent=2), learner=2),
        record(2, [0.4, 0.3, 0.6], learner=2),
    ]
    other = [
        record(1, [0.3, 0.0, 0.7], copy(0, parent=2), copy(1, parent=2), learner=2),
        record(2, [0.8, None, 0.8], learner=2),
    ]
    seeds = [tuple(reached(records)) for records in (one, other)]
    lines = markdown_lines(break_lines({"single": [(), ()], "mixture": seeds}, "success_rate"))
    assert lines[-2:] == [
        "| mixture | 1 | 15.0 % (4) |  | 60.0 % (2) |",
        # copies: of 0.5 and 0.7 came 0.4 and 0.8; the third one's weights broke
        "| mixture | 2 | 20.0 %, 30.0 % (1) | 60.0 %, 60.0 % (2) | 70.0 % (2) |",
    ]
    assert break_lines({"single": [(), ()]}, "success_rate") == []


def test_a_result_of_an_experiment_keeps_them(make_study_of_experiments: MakeStudy) -> None:
    study = make_study_of_experiments()
    on_paper(study)
    folder, registration = study_dir(study.config), study_findings(study).registration
    mixed = read_study_result(folder, Pair("mixed", 5), registration=registration.sha256())
    alone = read_study_result(folder, Pair("alone", 5), registration=registration.sha256())
    assert mixed is not None
    assert alone is not None
    seen = {(each.generation, each.number, each.is_learner) for each in mixed.reached}
    assert seen == {(g, n, n == 2) for g in (1, 2) for n in range(3)}
    assert alone.reached == ()
    *_, table = study_findings(study).breaks
    assert isinstance(table, Cells)
    assert {row[0] for row in table.rows} == {"four", "mixed"}


def test_a_score_is_that_of_the_metric() -> None:
    each = Reached(generation=1, number=0, mean_reward=3.0, success_rate=0.5)
    assert (each.value("mean_reward"), each.value("success_rate")) == (3.0, 0.5)


def test_a_complete_study_has_a_verdict(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    difference = study_findings(study).comparison.differences[0]
    assert (difference.arm, difference.against, difference.verdict) == ("fast", "slow", "better")
    assert difference.p_value == 2 / 2**6
    assert difference.mean == pytest.approx(1.0)  # on the same episodes, so by the gain itself


def test_an_arm_that_is_the_other_one_is_undecided(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study, PaperFinisher(gain=0.0))
    difference = study_findings(study).comparison.differences[0]
    assert (difference.verdict, difference.p_value) == ("undecided", 1.0)


def test_a_study_is_judged_when_it_is_complete(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    study_dir(study.config).result("fast", 9).unlink()
    with pytest.raises(ExperimentError, match=r"1 of 12 results are missing \(fast, seed 9"):
        study_findings(study)
    rows = {(row.arm, row.seed): row for row in study_status(study)}
    assert not rows["fast", 9].is_done
    assert rows["fast", 9].text == "192 of 192 timesteps"
    assert sum(row.is_done for row in rows.values()) == 11


def test_a_failed_seed_has_the_lowest_score_of_all(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study, PaperFinisher(non_finite=["fast-6"]))
    comparison = study_findings(study).comparison
    slow, fast = (summary.scores for summary in comparison.summaries)
    assert fast[1] == min(*slow, *fast[2:])


def test_the_report_names_what_was_not_as_planned(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    folder = study_dir(study.config)

    def change(arm: str, seed: int, **values: object) -> None:
        text = folder.result(arm, seed).read_text(encoding="utf-8")
        write_result(folder, PairResult.model_validate(json.loads(text) | values))

    change("slow", 5, versions={"torch": "2.12"}, host="b")
    change("slow", 6, versions={"torch": "2.13"})
    change("fast", 7, total_timesteps=5_000)
    notes = "\n".join(study_findings(study).notes)
    assert "deviation: results were made with torch 2.12 and 2.13" in notes
    assert "deviation: all runs of fast, seed 7 played 5,000 timesteps" in notes
    assert "results were made on 2 machines: a, b" in notes
    assert "SHA-256" not in notes


def test_a_result_that_was_edited_changes_no_verdict_because_it_is_refused(
    make_study: MakeStudy,
) -> None:
    study = make_study()
    on_paper(study)
    path = study_dir(study.config).result("fast", 7)
    written = path.read_text(encoding="utf-8")
    content = json.loads(written)
    content["played"]["rewards"][3] += 1e-9
    path.write_text(json.dumps(content), encoding="utf-8")
    for read in (study_findings, study_status, on_paper):
        with pytest.raises(ExperimentError, match=r"fast-7\.json was changed after it was written"):
            read(study)
    path.write_text(
        json.dumps(json.loads(written), sort_keys=True), encoding="utf-8"
    )  # the same values
    assert study_findings(study).comparison.differences[0].verdict == "better"


def test_results_without_a_hash_count_and_are_named(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    whole = study_findings(study)
    for arm, seed in (("slow", 5), ("fast", 6), ("fast", 7)):
        path = study_dir(study.config).result(arm, seed)
        content = json.loads(path.read_text(encoding="utf-8"))
        del content["sha256"]
        path.write_text(json.dumps(content), encoding="utf-8")
    found = study_findings(study)
    assert found.comparison == whole.comparison
    (note,) = set(found.notes) - set(whole.notes)
    assert note.endswith("results of slow (seeds 5), fast (seeds 6, 7)")


def test_a_result_carries_the_hash_of_its_own_content(make_study: MakeStudy) -> None:
    study = make_study()
    on_paper(study)
    content = json.loads(study_dir(study.config).result("slow", 5).read_text(encoding="utf-8"))
    said = content.pop("sha256")
    text = json.dumps(content, sort_keys=True)
    assert said == hashlib.sha256(text.encode()).hexdigest()
