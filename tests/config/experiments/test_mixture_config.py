"""Mixture files: what they make of the runs' configs, and what they refuse."""

from pathlib import Path

import pytest

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.experiment import dump_experiment, load_experiment
from game_rl.errors import ConfigError

_RUN = """\
game: duel
total_timesteps: 400_000
run_dir: runs/x
stop_when: {success_rate: 0.95}
env: {n_envs: 8, frame_skip: 8}
algorithm: ALGORITHM
"""
_MIXTURE = """\
kind: mixture
run_dir: runs/m
member: {config: pqn.yaml}
members: 3
rounds: 5
timesteps_per_round: 16_384
lake: {capacity_gb: 5}
learner: {config: dqn.yaml, learn_from: {own_share: 0.4}}
learner_per_round: {gradient_steps: 700, timesteps: 4_096}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # files that --set names are relative to the current folder
    dqn = "{name: dqn, learning_starts: 100, layer_norm: channels, replay: {capacity: 5_000}}"
    for name, algorithm in {"pqn": "{name: pqn}", "dqn": dqn, "ppo": "{name: ppo}"}.items():
        (tmp_path / f"{name}.yaml").write_text(
            _RUN.replace("ALGORITHM", algorithm), encoding="utf-8"
        )
    path = tmp_path / "mixture.yaml"
    path.write_text(_MIXTURE, encoding="utf-8")
    return path


def refused(file: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_experiment(file, overrides)
    return str(error.value)


def test_members_write_the_lake_that_the_learner_reads(file: Path) -> None:
    mixture = load_experiment(file)
    lake = Path("runs/m/lake").absolute()
    assert mixture.run.lake is not None
    assert (mixture.run.lake.path, mixture.run.lake.capacity_gb) == (lake, 5)
    assert isinstance(mixture.learner.algorithm, DQNConfig)
    learn_from = mixture.learner.algorithm.learn_from
    assert learn_from is not None
    assert learn_from.offline is not None
    assert (learn_from.lakes, learn_from.own_share) == ((lake,), 0.4)
    assert learn_from.offline.gradient_steps == 700
    assert (mixture.run.total_timesteps, mixture.learner.total_timesteps) == (5 * 16_384, 4_096)
    assert (mixture.run.stop_when, mixture.learner.stop_when) == (None, None)
    assert mixture.learner.checkpoints.save_replay_buffer


@pytest.mark.parametrize("teacher", ["best_member", "null"])
@pytest.mark.parametrize("shares", [None, {"best_member": 3.0, "1": 0.0}])
def test_what_is_saved_is_read_back_as_it_was(
    file: Path, tmp_path: Path, teacher: str, shares: dict[str, float] | None
) -> None:
    written = "null" if shares is None else "{best_member: 3, 1: 0}"
    overrides = [f"learner.teacher={teacher}", f"learner.member_shares={written}"]
    mixture = load_experiment(file, overrides)
    saved = tmp_path / "saved" / "experiment.yaml"
    saved.parent.mkdir()
    saved.write_text(dump_experiment(mixture), encoding="utf-8")
    again = load_experiment(saved, is_saved=True)
    assert (again.run, again.learner) == (mixture.run, mixture.learner)
    assert again.config.is_taught == mixture.config.is_taught == (teacher == "best_member")
    assert again.config.member_shares == mixture.config.member_shares == shares


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("learner.config=pqn.yaml", "write name: dqn"),
        ("member.config=ppo.yaml", "ppo has no values"),
        ("learner.env.frame_stack=2", "differs from the members' 4"),
        ("learner.env.sticky_actions=0.25", "0.25 differs from the members' 0.0"),
        ("learner.env.sticky_actions=0.25", "(its role is seen); use the same, as the learner"),
        ("learner.env.wrappers=[gymnasium.wrappers:Autoreset]", "differs from the members' ()"),
        ("learner.algorithm.layer_norm=none", "none differs from the members' channels"),
        ("learner.algorithm.reward.scale=0.1", "0.1 differs from the members' 1.0"),
        ("member.algorithm.reward={normalize: true}", "False differs from the members' True"),
        ("clone.optimiser=keep", "pqn cannot continue with the optimiser of dqn"),
        ("learner.teacher=worst_member", "write best_member"),
        ("learner.learn_from.lakes=[x]", "it learns from the mixture's Lake"),
        ("learner.learn_from.agents={a: 1}", "write member_shares next to config"),
        ("learner.member_shares=3", "write weights of members, such as {best_member: 3}"),
        ("learner.member_shares={7: 1}", "write one from 0 to 2, or best_member"),
        ("learner.member_shares={1: -1}", "found -1; write a number from 0 on"),
        ("learner.member_shares={1: true}", "found True; write a number from 0 on"),
        ("learner.member_shares={1: .inf}", "found inf; write a number from 0 on"),
        ("learner.member_shares={best_member: 0}", "found 0; write a number above 0"),
        ("learner.member_shares={0: 0, 1: 0, 2: 0}", "no member has a weight above 0"),
        ("learner.algorithm.teacher={run: x}", "write teacher: best_member"),
        ("member.stop_when={hours: 1}", "member.stop_when: every run plays all its timesteps"),
        ("learner.stop_when={hours: 1}", "learner.stop_when: every run plays all its timesteps"),
        ("learner.lake={}", "the mixture has one for all members"),
        ("member.lake={}", "the mixture has one for all members"),
        ("member.total_timesteps=5", "it is rounds x timesteps_per_round"),
        ("lake.path=x", "the Lake is always the folder lake in run_dir"),
        ("champion.candidates=5", "more than the number of members, 3"),
        ("generations=5", "did you mean rounds"),
    ],
)
def test_what_cannot_work_is_refused_with_the_way_out(
    file: Path, override: str, words: str
) -> None:
    assert words in refused(file, override)


LIVE = ("mode=live", "learner_per_round={timesteps: 4_096}")


def test_in_live_members_seal_often_and_the_learner_follows_from_its_first_timestep(
    file: Path, tmp_path: Path
) -> None:
    mixture = load_experiment(file, LIVE)
    assert mixture.run.lake is not None
    assert mixture.run.lake.seal_every_timesteps == 1_024
    assert isinstance(mixture.learner.algorithm, DQNConfig)
    learn_from = mixture.learner.algorithm.learn_from
    assert learn_from is not None
    assert (learn_from.follow_every_s, learn_from.offline) == (2.0, None)
    totals = (mixture.run.total_timesteps, mixture.learner.total_timesteps)
    assert totals == (5 * 16_384, 5 * 4_096)
    saved = tmp_path / "elsewhere.yaml"
    saved.write_text(dump_experiment(mixture), encoding="utf-8")
    again = load_experiment(saved, is_saved=True)
    assert (again.run, again.learner) == (mixture.run, mixture.learner)


def test_in_live_a_file_may_say_how_often_to_seal_and_to_look(file: Path) -> None:
    own = ("lake.seal_every_timesteps=2_000", "learner.learn_from.follow_every_s=0.5")
    mixture = load_experiment(file, (*LIVE, *own))
    assert mixture.run.lake is not None
    assert mixture.run.lake.seal_every_timesteps == 2_000
    assert isinstance(mixture.learner.algorithm, DQNConfig)
    assert mixture.learner.algorithm.learn_from is not None
    assert mixture.learner.algorithm.learn_from.follow_every_s == 0.5


def test_in_live_rewards_may_differ_as_the_lake_has_those_of_the_game(file: Path) -> None:
    mixture = load_experiment(file, (*LIVE, "learner.algorithm.reward.scale=0.1"))
    assert mixture.learner.algorithm.reward.scale == 0.1
    assert mixture.run.algorithm.reward.scale == 1.0


def test_in_live_members_may_be_ppo_as_nobody_becomes_a_clone(file: Path) -> None:
    assert load_experiment(file, (*LIVE, "member.config=ppo.yaml")).run.algorithm.name == "ppo"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("clone.to=worst", "no member is cloned in mode: live: remove the line"),
        ("keep_rounds.last=2", "remove the line, or write mode: rounds"),
        ("learner_starts=fresh", "remove the line, or write mode: rounds"),
        ("learner.teacher=best_member", "the best member is known only at the end"),
        ("learner.member_shares={best_member: 2}", "the best member is known only at the end"),
        ("learner_per_round.gradient_steps=3", "the learner learns while it plays"),
        ("learner.learn_from.offline={}", "the learner plays from the beginning"),
        ("executor.parallel=3", "3 is less than members and learner, 4"),
        ("executor={kind: ray}", "ray cannot be used in mode: live; write local"),
    ],
)
def test_in_live_keys_of_rounds_are_refused_with_the_way_out(
    file: Path, override: str, said: str
) -> None:
    assert said in refused(file, *LIVE, override)


def test_in_rounds_the_lake_is_read_at_breaks_only(file: Path) -> None:
    text = refused(file, "learner.learn_from.follow_every_s=2")
    assert "the learner reads the Lake only at breaks: remove the line, or write mode: live" in text
