"""What a study's results come to, by the rule that was registered."""

import json

import pytest

from game_rl.errors import ExperimentError
from game_rl.experiments.study.report import study_findings
from game_rl.experiments.study.status import study_status
from game_rl.experiments.study.study_dir import study_dir
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
        path = folder.result(arm, seed)
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    change("slow", 5, versions={"torch": "2.12"}, host="b")
    change("slow", 6, versions={"torch": "2.13"})
    change("fast", 7, total_timesteps=5_000)
    notes = "\n".join(study_findings(study).notes)
    assert "deviation: results were made with torch 2.12 and 2.13" in notes
    assert "deviation: everybody of fast, seed 7 played 5,000 timesteps" in notes
    assert "results were made on 2 machines: a, b" in notes
