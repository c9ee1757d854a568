"""A live mixture, with members and a learner that train on paper."""

from pathlib import Path

import pytest

from game_rl.config.algorithms import DQNConfig
from game_rl.config.loader import load_config
from game_rl.errors import ExperimentError
from game_rl.experiments.descent import descent
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.experiment_status import experiment_status
from game_rl.experiments.forecast.experiment_footprint import loaded_once_bytes
from game_rl.experiments.forecast.experiment_forecast import experiment_preflight
from game_rl.experiments.jobs.job_files import StretchRequest
from game_rl.experiments.records import read_records
from game_rl.games.definition import load_game
from game_rl.system.machine import detect_machine, parse_machine
from tests.experiments.broken_off import Killed, killed_at, record
from tests.experiments.conftest import MakeMixture
from tests.experiments.paper_executor import PaperExecutor
from tests.experiments.plans.test_mixture_plan import carry_out_mixture

AT_ONCE = 5
LEARNER = 4


def weights(folder: ExperimentDir) -> list[str | None]:
    return [member.weights_sha256 for member in record(folder, 1).members]


def test_all_train_at_once_to_their_own_totals_and_nobody_is_cloned(
    make_mixture: MakeMixture,
) -> None:
    executor = PaperExecutor(AT_ONCE)
    folder = carry_out_mixture(make_mixture(is_live=True), executor)
    found = record(folder, 1)
    assert found.copies == ()
    assert [member.folder for member in found.members] == ["00", "01", "02", "03", "learner"]
    untils = [r.until for r in executor.requests if isinstance(r, StretchRequest)]
    assert sorted(untils) == [256, 512, 512, 512, 512]
    assert "copy" not in [request.job for request in executor.requests]


def test_the_learner_draws_from_members_as_the_shares_say(make_mixture: MakeMixture) -> None:
    mixture = make_mixture("mixture", "learner.member_shares={1: 2}", is_live=True)
    folder = carry_out_mixture(mixture)
    run = load_config(folder.member("learner").config)
    assert isinstance(run.algorithm, DQNConfig)
    assert run.algorithm.learn_from is not None
    agents = run.algorithm.learn_from.agents or {}
    found = {agents[n] for n in agents if folder.member("01").identity().id.startswith(n)}
    assert (len(agents), found, sum(agents.values())) == (4, {2.0}, 5.0)


def test_the_learner_starts_when_there_is_a_lake(make_mixture: MakeMixture) -> None:
    executor = PaperExecutor(AT_ONCE)
    carry_out_mixture(make_mixture(is_live=True), executor)
    assert executor.trained()[-1] == "member learner in generation 1"


@pytest.mark.slow  # the controller's loop in test_population.py runs with the fast ones
def test_killed_at_any_moment_it_ends_with_the_same_members(make_mixture: MakeMixture) -> None:
    whole = weights(carry_out_mixture(make_mixture("whole", is_live=True), PaperExecutor(AT_ONCE)))
    kills = 0
    for operation in range(1, 5_000, 15):
        mixture = make_mixture(f"killed_{operation}", is_live=True)
        try:
            with killed_at(operation):
                carry_out_mixture(mixture, PaperExecutor(AT_ONCE))
            break  # it has so few operations
        except Killed:
            kills += 1
        folder = carry_out_mixture(mixture, PaperExecutor(AT_ONCE))
        assert weights(folder)[:LEARNER] == whole[:LEARNER], f"killed at operation {operation}"
        assert folder.champion.exists()
    assert kills > 5


def test_status_and_lineage_know_its_learner(make_mixture: MakeMixture) -> None:
    folder = carry_out_mixture(make_mixture(is_live=True), PaperExecutor(AT_ONCE))
    events = folder.member("learner").events
    events.write_text(
        '{"event": "lakes_followed", "timesteps": 256, "rows": 2048, "newest_age_s": 1.5,'
        ' "own_drawn": 40, "drawn": 80}\n',
        encoding="utf-8",
    )
    status = experiment_status(folder)
    assert (status.is_live, status.generations) == (True, 1)
    learner = status.members[LEARNER]
    assert (learner.folder, learner.timesteps, learner.until) == ("learner", 256, 256)
    assert learner.followed is not None
    assert (learner.followed.rows, learner.followed.newest_age_s) == (2048, 1.5)
    assert [member.until for member in status.members[:LEARNER]] == [512] * 4
    assert [branch.folder for branch in descent(read_records(folder))][-1] == "learner"


def test_where_all_weights_are_broken_it_ends(make_mixture: MakeMixture) -> None:
    broken = [*((f"0{n}", 512) for n in range(4)), ("learner", 256)]
    with pytest.raises(ExperimentError, match="became non-finite"):
        carry_out_mixture(make_mixture(is_live=True), PaperExecutor(AT_ONCE, non_finite=broken))


def test_the_preflight_counts_all_members_and_the_learner_at_once(
    make_mixture: MakeMixture,
) -> None:
    mixture = make_mixture(is_live=True)
    here = detect_machine(mixture.config.run_dir.parent)
    game = load_game(mixture.run.game)
    machine = parse_machine("ram=8GiB,vram=0,disk=20GiB,cpus=2", here=here)
    report = experiment_preflight(mixture, game, machine)
    assert report.learner is not None
    assert report.runs_at_once == 5
    at_once = 4 * report.member.footprint.ram.peak.bytes + report.learner.footprint.ram.peak.bytes
    assert at_once - 4 * loaded_once_bytes(machine) < report.ram_bytes < at_once
    assert [f.code for f in report.findings if f.severity == "warning"] == ["members_share_cpus"]

    less = report.ram_bytes * 9 // 10
    small = parse_machine(f"ram={less >> 20}MiB,vram=0,disk=20GiB,cpus=8", here=here)
    report = experiment_preflight(mixture, game, small)
    assert report.verdict == "does_not_fit"
    fix = next(f.fix for f in report.findings if f.code == "members_do_not_fit")
    assert fix is not None
    fewer = make_mixture("fewer", f"members={fix.value}", "champion.candidates=2", is_live=True)
    assert experiment_preflight(fewer, game, small).verdict != "does_not_fit"


def test_at_the_end_the_actions_of_members_and_learner_are_compared(
    make_mixture: MakeMixture,
) -> None:
    executor = PaperExecutor(AT_ONCE)
    folder = carry_out_mixture(make_mixture(is_live=True), executor)
    found = record(folder, 1)
    assert found.differences is not None
    assert found.differences.runs == ("00", "01", "02", "03", "learner")
    assert found.differing_members is not None
    assert found.differing_learner is not None
    steps = [request.job for request in executor.requests]
    assert steps[: AT_ONCE + 1] == ["stretch"] * AT_ONCE + ["compare_actions"]


def test_members_with_a_memory_are_not_asked_about_single_observations(
    make_mixture: MakeMixture, tmp_path: Path
) -> None:
    config = tmp_path / "remembers.yaml"
    config.write_text(
        "game: duel\ntotal_timesteps: 128\nrun_dir: x\nenv: {n_envs: 2}\n"
        "algorithm: {n_steps: 16, batch_size: 16, memory: {size: 8, sequence: 8}}\n",
        encoding="utf-8",
    )
    executor = PaperExecutor(AT_ONCE)
    mixture = make_mixture("mixture", f"member.config={config}", is_live=True)
    found = record(carry_out_mixture(mixture, executor), 1)
    assert found.differences is None
    assert found.differing_members is None
    assert "compare_actions" not in [request.job for request in executor.requests]
