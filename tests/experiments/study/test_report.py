"""What a study's results come to, by the rule that was registered."""

import hashlib
import json

import pytest

from game_rl.errors import ExperimentError
from game_rl.experiments.study.study_dir import study_dir
from game_rl.experiments.study.study_report import study_findings, study_status
from game_rl.experiments.study.study_results import PairResult, write_result
from tests.experiments.study.conftest import MakeStudy
from tests.experiments.study.paper_finisher import PaperFinisher
from tests.experiments.study.test_carrying_out import on_paper


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
    assert "deviation: everybody of fast, seed 7 played 5,000 timesteps" in notes
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
