"""What a study keeps and shows of the breaks of its experiments."""

from game_rl.events import Fitness
from game_rl.experiments.records import CopyRecord, GenerationRecord, LearnerRecord, TrainedMember
from game_rl.experiments.study.study_dir import Pair, study_dir
from game_rl.experiments.study.study_report import break_lines, study_findings
from game_rl.experiments.study.study_results import Reached, reached, read_study_result
from tests.experiments.study.conftest import MakeStudy
from tests.experiments.study.test_carrying_out import on_paper


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
    lines = break_lines({"single": [(), ()], "mixture": seeds}, "success_rate")
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
    arms = {line.split(" | ")[0] for line in study_findings(study).breaks if line.startswith("| ")}
    assert arms == {"| arm", "| four", "| mixed"}


def test_a_score_is_that_of_the_metric() -> None:
    each = Reached(generation=1, number=0, mean_reward=3.0, success_rate=0.5)
    assert (each.value("mean_reward"), each.value("success_rate")) == (3.0, 0.5)
