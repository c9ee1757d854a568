"""The rounds of a mixture, with members and a learner that train on paper."""

import json
import math
from typing import Any

import numpy as np
import pytest
import yaml
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from game_rl.cli.descent_tree import descent_tree
from game_rl.config.experiments.experiment import Experiment, dump_experiment
from game_rl.errors import ExperimentError
from game_rl.events.event_log import EventFile, ExperimentEventLog
from game_rl.experiments.controller import ExperimentRun
from game_rl.experiments.descent import descent
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.experiment_status import experiment_status
from game_rl.experiments.experiment_tables import status_table
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import ChampionRecord, read_record, read_records
from game_rl.system.stop_request import StopRequest
from tests.experiments.broken_off import Killed, account_of, killed_at, record
from tests.experiments.conftest import MakeMixture
from tests.experiments.paper_executor import PaperExecutor

LEARNER = 4


def carry_out_mixture(mixture: Experiment, executor: PaperExecutor | None = None) -> ExperimentDir:
    folder = ExperimentDir(mixture.config.run_dir)
    folder.root.mkdir(exist_ok=True)
    folder.config.write_text(dump_experiment(mixture), encoding="utf-8")
    with EventFile(folder.events) as file:
        account = ExperimentEventLog(file)
        plan = Plan(folder, mixture)
        ExperimentRun(plan, executor or PaperExecutor(), account, StopRequest(math.inf)).run()
    return folder


def saved_config(folder: ExperimentDir, name: str) -> Any:
    return yaml.safe_load(folder.member(name).config.read_text(encoding="utf-8"))


@pytest.mark.slow  # the controller's loop in test_population.py runs with the fast ones
def test_killed_at_any_moment_it_becomes_the_mixture_that_was_not(
    make_mixture: MakeMixture,
) -> None:
    small = ("members=2", "rounds=2", "keep_rounds.last=1")
    whole = account_of(carry_out_mixture(make_mixture("whole", *small)))
    kills = 0
    for operation in range(1, 5_000, 15):
        mixture = make_mixture(f"killed_{operation}", *small)
        try:
            with killed_at(operation):
                carry_out_mixture(mixture)
            break  # it has so few operations
        except Killed:
            kills += 1
        assert account_of(carry_out_mixture(mixture)) == whole, f"killed at operation {operation}"
    assert kills > 15


def test_it_does_not_matter_how_many_members_train_at_once(make_mixture: MakeMixture) -> None:
    one, four = make_mixture("one"), make_mixture("four")
    first, second = (
        carry_out_mixture(one, PaperExecutor(1)),
        carry_out_mixture(four, PaperExecutor(4)),
    )
    assert account_of(first) == account_of(second)


def test_the_learner_trains_when_all_members_of_the_round_have(make_mixture: MakeMixture) -> None:
    executor = PaperExecutor(4)
    carry_out_mixture(make_mixture(), executor)
    trained = executor.trained()
    rounds = [trained[i : i + 5] for i in range(0, len(trained), 5)]
    assert len(rounds) == 4
    for number, names in enumerate(rounds, start=1):
        assert names[-1] == f"member learner.g{number:04d} in generation {number}"
        assert not any("learner" in name for name in names[:-1])


def test_clones_are_of_exactly_those_members_that_the_learner_beats(
    make_mixture: MakeMixture,
) -> None:
    folder = carry_out_mixture(make_mixture())
    for number in (1, 2, 3):
        found = record(folder, number)
        values = {m.number: m.fitness.value for m in found.members if m.fitness is not None}
        beaten = [n for n in range(4) if values[LEARNER] > values[n]]
        assert [copy.number for copy in found.copies] == beaten
        assert {copy.parent_folder for copy in found.copies} <= {f"learner.g{number:04d}"}
    assert record(folder, 4).copies == ()
    assert any(record(folder, number).copies for number in (1, 2, 3))


def test_without_only_if_better_everybody_is_cloned(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture("mixture", "clone.only_if_better=false"))
    assert [copy.number for copy in record(folder, 1).copies] == [0, 1, 2, 3]


def test_with_to_worst_nobody_else_is_cloned(make_mixture: MakeMixture) -> None:
    overrides = ("clone.only_if_better=false", "clone.to=worst")
    found = record(carry_out_mixture(make_mixture("mixture", *overrides)), 1)
    worst = next(number for number in reversed(found.ranking) if number != LEARNER)
    assert [copy.number for copy in found.copies] == [worst]


def test_all_members_and_the_learner_play_the_same_new_games_in_each_round(
    make_mixture: MakeMixture,
) -> None:
    folder = carry_out_mixture(make_mixture())
    seeds = []
    for number in range(1, 5):
        found = {m.fitness.seed for m in record(folder, number).members if m.fitness}
        assert len(found) == 1
        seeds.append(found.pop())
    assert len(set(seeds)) == 4


def test_a_clone_explores_again_and_its_learning_rate_goes_on(make_mixture: MakeMixture) -> None:
    overrides = ("clone.only_if_better=false", "clone.exploration=0.3")
    folder = carry_out_mixture(make_mixture("mixture", *overrides))
    config = saved_config(folder, "02.g0001")
    assert config["total_timesteps"] == 3 * 128
    assert config["algorithm"]["name"] == "pqn"
    assert config["algorithm"]["learning_rate"]["start"] == pytest.approx(0.75e-3)
    exploration = config["algorithm"]["exploration"]
    end = saved_config(folder, "02")["algorithm"]["exploration"]["end"]
    assert (exploration["start"], exploration["end"]) == (0.3, end)
    assert exploration["fraction"] * config["total_timesteps"] == pytest.approx(128 / 2)


@pytest.mark.parametrize(("end", "start"), [(0.1, 0.1), (0.01, 0.02)])
def test_a_clone_explores_at_least_as_much_as_members_do_at_their_end(
    make_mixture: MakeMixture, end: float, start: float
) -> None:
    ends = f"member.algorithm.exploration={{end: {end}}}"
    folder = carry_out_mixture(make_mixture("mixture", "clone.only_if_better=false", ends))
    exploration = saved_config(folder, "02.g0001")["algorithm"]["exploration"]
    assert (exploration["start"], exploration["end"]) == (start, end)


@pytest.mark.parametrize("seed", range(3))
def test_the_learner_is_a_candidate_for_the_champion_whatever_it_reaches(
    make_mixture: MakeMixture, seed: int
) -> None:
    small = ("rounds=1", "champion.candidates=1", f"seed={seed}")
    folder = carry_out_mixture(make_mixture("mixture", *small))
    found = read_record(folder.champion_record, ChampionRecord)
    assert found is not None
    best = next(n for n in record(folder, 1).ranking if n != LEARNER)
    assert [each.number for each in found.candidates] == [best, LEARNER]


def test_the_best_member_of_the_round_teaches_the_learner(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture())
    for number in range(1, 5):
        found = record(folder, number)
        best = next(n for n in found.ranking if n != LEARNER)
        member = next(m for m in found.members if m.number == best)
        assert found.learner is not None
        assert found.learner.teacher == member.folder
        teacher = saved_config(folder, f"learner.g{number:04d}")["algorithm"]["teacher"]
        assert teacher["run"] == f"{folder.member(member.folder).root}@{int(member.checkpoint)}"
        assert not teacher["keep_if_better"]


def test_in_each_round_the_learner_draws_from_members_as_the_shares_say(
    make_mixture: MakeMixture,
) -> None:
    shares = "learner.member_shares={best_member: 3, 2: 0.5}"
    folder = carry_out_mixture(make_mixture("mixture", shares))
    for number in range(1, 5):
        found = record(folder, number)
        best = min(found.members[:-1], key=lambda m: found.ranking.index(m.number))
        weights = {0: 1.0, 1: 1.0, 2: 0.5, 3: 1.0} | {best.number: 3.0}
        drawn = saved_config(folder, f"learner.g{number:04d}")["algorithm"]["learn_from"]["agents"]
        for run in (folder.member(m.folder).identity().id for m in found.members[:-1]):
            (name,) = (name for name in drawn if run.startswith(name))
            assert drawn[name] == weights[int(run[:4], 16)]


def test_without_shares_all_rows_are_alike(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture())
    algorithm = saved_config(folder, "learner.g0002")["algorithm"]
    assert algorithm["learn_from"]["agents"] is None


def test_without_a_teacher_nobody_teaches(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture("mixture", "learner.teacher=null"))
    assert saved_config(folder, "learner.g0001")["algorithm"]["teacher"] is None


@pytest.mark.slow
@pytest.mark.parametrize("starts", ["kept", "fresh", "best_member"])
def test_the_learner_starts_from_what_the_config_says(
    make_mixture: MakeMixture, starts: str
) -> None:
    folder = carry_out_mixture(make_mixture("mixture", f"learner_starts={starts}"))
    for number in range(1, 5):
        found = record(folder, number)
        best = (
            next(m for m in found.members if m.number == found.ranking[0] and m.number != 4)
            if found.ranking[0] != LEARNER
            else next(m for m in found.members if m.number == found.ranking[1])
        )
        before = f"learner.g{number - 1:04d}" if number > 1 else None
        expected = {"kept": before, "fresh": None, "best_member": best.folder}[starts]
        assert found.learner is not None
        assert found.learner.parent_folder == expected
        assert saved_config(folder, f"learner.g{number:04d}")["algorithm"]["name"] == "dqn"


def test_ids_of_runs_ascend_with_the_member_and_the_round(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture("mixture", "clone.only_if_better=false"))
    names = sorted(path.name for path in folder.members.iterdir() if path.name[0].isdigit())
    ids = [folder.member(name).identity().id for name in names]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids) == 16


def test_a_learner_that_is_not_finite_is_not_cloned(make_mixture: MakeMixture) -> None:
    executor = PaperExecutor(non_finite=[("learner.g0002", 64)])
    folder = carry_out_mixture(make_mixture("mixture", "clone.only_if_better=false"), executor)
    assert record(folder, 2).copies == ()
    third = record(folder, 3).learner
    assert third is not None
    assert third.parent_folder is None  # it begins anew


def test_a_member_that_is_not_finite_goes_on_as_a_clone(make_mixture: MakeMixture) -> None:
    executor = PaperExecutor(non_finite=[("02", 128)])
    found = record(carry_out_mixture(make_mixture(), executor), 1)
    (copy,) = (copy for copy in found.copies if copy.number == 2)
    assert (copy.reason, copy.parent_folder) == ("non_finite", "learner.g0001")


def test_without_a_finite_member_the_mixture_ends(make_mixture: MakeMixture) -> None:
    executor = PaperExecutor(non_finite=[(f"{n:02d}", 128) for n in range(4)])
    with pytest.raises(ExperimentError, match="all members became non-finite in round 1"):
        carry_out_mixture(make_mixture(), executor)


def test_status_has_the_learner_and_descent_its_rounds(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture())
    status = experiment_status(folder)
    assert (status.state, status.generations) == ("completed", 4)
    assert [m.folder for m in status.members][-1] == "learner.g0004"
    assert {m.folder: m.until for m in status.members} == {
        m.folder: 64 if m.number == LEARNER else 128 * (4 - (copied_after(m.folder) or 0))
        for m in record(folder, 4).members
    }
    (first,) = (b for b in descent(read_records(folder)) if b.folder == "learner.g0001")
    assert "learner.g0002" in {child.folder for child in first.children}


def test_each_round_s_record_says_how_far_the_actions_of_all_differ(
    make_mixture: MakeMixture,
) -> None:
    folder = carry_out_mixture(make_mixture())
    seeds = set()
    for number in range(1, 5):
        found = record(folder, number)
        assert found.differences is not None
        assert found.differences.runs == tuple(member.folder for member in found.members)
        assert found.differences.observations == 512
        seeds.add(found.differences.seed)
        shares = np.array(found.differences.shares)
        pairs = [(a, b) for a in range(LEARNER) for b in range(a)]
        assert found.differing_members == pytest.approx(np.mean([shares[p] for p in pairs]))
        assert found.differing_learner == pytest.approx(shares[LEARNER, :LEARNER].mean())
    assert len(seeds) == 4  # other observations in each round


def test_status_and_curves_show_how_far_actions_differ(
    make_mixture: MakeMixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = carry_out_mixture(make_mixture())
    last, status = record(folder, 4), experiment_status(folder)
    assert status.differences is not None
    assert status.differences.members == last.differing_members
    shown = json.loads(json.dumps(status.to_json()))["differences"]
    assert last.differences is not None
    assert shown["shares"] == [list(row) for row in last.differences.shares]
    Console(width=1000).print(status_table(status))
    text = capsys.readouterr().out
    beginning = (
        "at the end of round 4, of the same 512 observations, two members act differently on"
    )
    assert f"{beginning} {last.differing_members:.1%}" in text
    curves = EventAccumulator(str(folder.curves))
    curves.Reload()
    for name, value in {
        "members": last.differing_members,
        "learner": last.differing_learner,
    }.items():
        points = curves.Scalars(f"mixture/differing_actions_{name}")
        assert [point.step for point in points] == [128, 256, 384, 512]
        assert points[-1].value == pytest.approx(value)


def test_timesteps_of_all_runs_are_counted_in_frames_too(
    make_mixture: MakeMixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = carry_out_mixture(
        make_mixture("mixture", "member.env.frame_skip=8", "learner.env.frame_skip=8")
    )
    played = [number * (4 * 128 + 64) for number in range(1, 5)]
    status = experiment_status(folder)
    assert (status.timesteps_of_all, status.frames_of_all) == (played[-1], 8 * played[-1])
    champion = json.loads(folder.champion_record.read_text(encoding="utf-8"))
    assert champion["frames_of_all"] == 8 * played[-1]
    tree = descent_tree("x", descent(read_records(folder)), kind="mixture", frame_skip=8)
    Console(width=1000).print(tree)
    assert f"{played[-1]:,} timesteps, {8 * played[-1]:,} frames" in capsys.readouterr().out
    curves = EventAccumulator(str(folder.curves / "over_frames"))
    curves.Reload()
    best = curves.Scalars("mixture/mean_reward_best")
    assert [point.step for point in best] == [8 * timesteps for timesteps in played]


def test_who_is_not_finite_is_not_asked(make_mixture: MakeMixture) -> None:
    executor = PaperExecutor(non_finite=[("02", 128), ("learner.g0001", 64)])
    found = record(carry_out_mixture(make_mixture(), executor), 1)
    assert found.differences is not None
    assert found.differences.runs == ("00", "01", "03")
    assert found.differing_learner is None


def test_a_record_of_before_there_were_differences_is_read(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture())
    path = folder.generation(4).record
    older = json.loads(path.read_text(encoding="utf-8"))
    del older["differences"]
    path.write_text(json.dumps(older), encoding="utf-8")
    assert record(folder, 4).differences is None
    assert experiment_status(folder).differences is None


def test_status_says_what_the_learner_drew_by_member(
    make_mixture: MakeMixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = carry_out_mixture(make_mixture("mixture", "clone.only_if_better=false"))
    assert experiment_status(folder).drawn is None
    ids = {name: folder.member(name).identity().id for name in ("00", "01", "00.g0002")}
    event = {
        "event": "rows_drawn",
        "own": 50,
        "streams": {ids["00"]: 10, ids["01"]: 30, ids["00.g0002"]: 10},
        "offline_streams": {ids["01"]: 3, ids["00.g0002"]: 1},
    }
    folder.member("learner.g0004").events.write_text(json.dumps(event) + "\n", encoding="utf-8")
    status = experiment_status(folder)
    assert status.to_json()["drawn"] == {
        "learner": "learner.g0004",
        "own": 50,
        "runs": {"00": 10, "01": 30, "00.g0002": 10},
        "offline_runs": {"01": 3, "00.g0002": 1},
    }
    Console(width=1000).print(status_table(status))
    assert (
        "learner.g0004 has drawn 100 rows (50.0% its own, 20.0% 00, 30.0% 01); 4 rows before its "
        "first timestep (25.0% 00, 75.0% 01)"
    ) in capsys.readouterr().out
