"""Population files: what they make of a member's config, and what they refuse."""

from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import dump_experiment, load_experiment
from game_rl.errors import ConfigError

_RUN = """\
game: duel
total_timesteps: 400_000
run_dir: runs/x
stop_when: {success_rate: 0.95}
env: {n_envs: 16, frame_skip: 8, observation: {size: half, colour: grey}}
algorithm: {n_steps: 128, batch_size: 256, learning_rate: 5.0e-4, ent_coef: 0.01}
evaluation: {every_timesteps: 50_000, episodes: 20, n_envs: 2}
"""
_POPULATION = """\
kind: population
run_dir: runs/p
member:
  config: run.yaml
  env: {n_envs: 8, observation: {size: full}}
  algorithm:
    learning_rate: {start: 1.0e-3, end: 0}
members: 4
generations: 10
timesteps_per_generation: 16_384
mutation:
  algorithm.learning_rate: {factor: [0.8, 1.25], bounds: [1.0e-5, 1.0e-2]}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # files that --set names are relative to the current folder
    (tmp_path / "run.yaml").write_text(_RUN, encoding="utf-8")
    path = tmp_path / "population.yaml"
    path.write_text(_POPULATION, encoding="utf-8")
    return path


def refused(file: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_experiment(file, overrides)
    return str(error.value)


def test_a_member_is_the_file_with_what_differs(file: Path) -> None:
    run = load_experiment(file).run
    assert (run.env.n_envs, run.env.frame_skip) == (8, 8)
    assert (run.env.observation.size, run.env.observation.colour) == ("full", "grey")
    assert run.algorithm.model_dump()["learning_rate"] == {"start": 1e-3, "end": 0.0}
    assert run.algorithm.model_dump()["ent_coef"] == 0.01


def test_the_plan_decides_total_rhythm_and_episodes(file: Path) -> None:
    run = load_experiment(file, ["fitness.episodes=7"]).run
    assert run.total_timesteps == 10 * 16_384
    assert (run.evaluation.every_timesteps, run.evaluation.episodes) == (16_384, 7)
    assert run.evaluation.n_envs == 2
    assert run.recording.episodes == 0
    assert run.stop_when is None


def test_files_named_by_an_override_are_found_where_it_was_typed(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "other.yaml").write_text(
        _RUN.replace("frame_skip: 8", "frame_skip: 2"), encoding="utf-8"
    )
    monkeypatch.chdir(here)
    overrides = ["member.config=other.yaml", "member.game=my/game.yaml"]
    run = load_experiment(file, overrides).run
    assert (run.env.frame_skip, run.game) == (2, str(here / "my/game.yaml"))
    assert load_experiment(file, ["seed=1"]).run.env.frame_skip == 8


def test_a_saved_population_reads_back_equal_wherever_it_is(file: Path, tmp_path: Path) -> None:
    population = load_experiment(file, ["member.env.n_envs=4"])
    saved = tmp_path / "elsewhere" / "experiment.yaml"
    saved.parent.mkdir()
    saved.write_text(dump_experiment(population), encoding="utf-8")
    again = load_experiment(saved, is_saved=True)
    assert again.run == population.run
    assert dump_experiment(again) == dump_experiment(population)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("member.total_timesteps=1000", "it is generations x timesteps_per_generation"),
        ("member.evaluation.episodes=3", "it is fitness.episodes"),
        ("member.stop_when={hours: 1}", "every run plays all its timesteps, so that budgets are"),
        ("train_on={timesteps: 16_384, stop_when: {hours: 1}}", "train_on.stop_when: unknown key"),
        ("member.seed=1", "each member gets its own"),
        ("member.env.n_env=3", "population.yaml --set member.env.n_env=3  env.n_env: unknown key"),
        ("timesteps_per_generation=500", "timesteps_per_generation  evaluation.every_timesteps"),
        ("member.config=3", "names no file"),
        ("member.fork={run: runs/x}", "members start with new weights"),
        ("control=5", "more than the number of members, 4"),
        ("champion.candidates=9", "more than the number of members, 4"),
        ("selection.share=0.6", "selection.share"),
        ("selection.gap=2", "more than two success rates can differ"),
        ("total_timesteps=5", "generations x timesteps_per_generation: remove it"),
        ("mutation={algorithm.n_steps: {factor: [1, 2], bounds: [1, 9]}}", "only a fraction"),
        ("mutation={algorithm.lr: {factor: [1, 2], bounds: [1, 9]}}", "no such key"),
        ("mutation={algorithm.ent_coef: {factor: [2, 1], bounds: [0, 1]}}", "write [1, 2]"),
        ("mutation={algorithm.ent_coef: {factor: [1, 2], bounds: [0.5, 1]}}", "widen the bounds"),
        ("mutation={algorithm.gamma: {factor: [1, 2], bounds: [0.5, 1]}}", "use less"),
    ],
)
def test_what_cannot_work_is_refused_in_words(file: Path, override: str, said: str) -> None:
    assert said in refused(file, override)


def test_a_value_of_zero_cannot_be_mutated(file: Path) -> None:
    text = refused(
        file,
        "member.algorithm.ent_coef=0",
        "mutation={algorithm.ent_coef: {factor: [0.8, 1.25], bounds: [1.0e-4, 0.1]}}",
    )
    assert "no factor changes that" in text
    assert "member: {algorithm: {ent_coef: 0.0001}}" in text


def test_a_missing_file_of_the_member_is_told_with_others_that_are_there(file: Path) -> None:
    text = refused(file, "member.config=rum.yaml")
    assert "no such file" in text
    assert "run.yaml" in text


_ERL = """\
kind: population
run_dir: runs/e
member: {config: run.yaml, algorithm: {name: pqn}}
members: 4
generations: 6
timesteps_per_generation: 16_384
mutation: {weights: {sigma: 0.02}}
control: 0
lake: {capacity_gb: 5}
learner: {config: dqn.yaml, inject_every: 3, learn_from: {own_share: 0.4}}
learner_per_generation: {gradient_steps: 700, timesteps: 4_096}
"""
_LEARNER = _RUN.replace("run_dir: runs/x", "run_dir: runs/y").replace(
    "algorithm: {n_steps: 128, batch_size: 256, learning_rate: 5.0e-4, ent_coef: 0.01}",
    "algorithm: {name: dqn, learning_starts: 99, layer_norm: channels, replay: {capacity: 5_000}}",
)
_MEMBER = _RUN.replace(
    "{n_steps: 128, batch_size: 256, learning_rate: 5.0e-4, ent_coef: 0.01}",
    "{name: pqn, n_epochs: 0}",
)


@pytest.fixture
def erl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # files that --set names are relative to the current folder
    (tmp_path / "run.yaml").write_text(_MEMBER, encoding="utf-8")
    (tmp_path / "dqn.yaml").write_text(_LEARNER, encoding="utf-8")
    (tmp_path / "ppo.yaml").write_text(_RUN, encoding="utf-8")
    path = tmp_path / "erl.yaml"
    path.write_text(_ERL, encoding="utf-8")
    return path


def test_members_that_learn_have_the_learners_rewards_and_those_that_play_need_not(
    erl: Path,
) -> None:
    other = "learner.algorithm.reward={scale: 0.5}"
    load_experiment(erl, [other])
    learning = "member={config: run.yaml, algorithm: {n_epochs: 2}}"
    load_experiment(erl, [learning])
    with pytest.raises(ConfigError, match=r"reward\.scale.*0\.5 differs from the members' 1\.0"):
        load_experiment(erl, [learning, other])
    mutation = "mutation={algorithm.reward.scale: {factor: [0.5, 2], bounds: [0.1, 9]}}"
    with pytest.raises(ConfigError, match="copies of the learner join the members"):
        load_experiment(erl, [learning, mutation])


def test_members_write_the_lake_that_the_learner_reads(erl: Path) -> None:
    population, lake = load_experiment(erl), Path("runs/e/lake").absolute()
    assert population.run.lake is not None
    assert (population.run.lake.path, population.run.lake.capacity_gb) == (lake, 5)
    assert not population.run.algorithm.learns
    assert population.learner is not None
    learn_from = population.learner.algorithm.model_dump()["learn_from"]
    assert (learn_from["lakes"], learn_from["own_share"]) == ((lake,), 0.4)
    assert learn_from["offline"]["gradient_steps"] == 700
    assert population.learner.total_timesteps == 4_096
    assert (population.run.stop_when, population.learner.stop_when) == (None, None)
    assert (population.config.inject_every, population.config.is_taught) == (3, False)


@pytest.mark.parametrize("teacher", ["best_member", "null"])
def test_a_saved_population_with_a_learner_reads_back_equal(
    erl: Path, tmp_path: Path, teacher: str
) -> None:
    population = load_experiment(erl, [f"learner.teacher={teacher}"])
    saved = tmp_path / "elsewhere" / "experiment.yaml"
    saved.parent.mkdir()
    saved.write_text(dump_experiment(population), encoding="utf-8")
    again = load_experiment(saved, is_saved=True)
    assert (again.run, again.learner) == (population.run, population.learner)
    assert again.config.inject_every == 3
    assert again.config.is_taught == (teacher == "best_member")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("member={config: ppo.yaml, algorithm: {n_epochs: 1}}", "ppo has no values"),
        ("member={config: dqn.yaml}", "use pqn, such as config: duel_pqn.yaml"),
        ("learner.config=run.yaml", "write name: dqn"),
        ("learner.algorithm.layer_norm=none", "differs from the members' channels"),
        ("learner.env.frame_stack=2", "differs from the members' 4"),
        ("learner.stop_when={hours: 1}", "learner.stop_when: every run plays all its timesteps"),
        ("learner.inject_every=0", "a number of generations of at least 1"),
        ("learner.inject_every=often", "a number of generations of at least 1"),
        ("learner.teacher=somebody", "write best_member"),
        ("learner.lake={}", "the population has one for all members"),
        ("learner.learn_from.lakes=[x]", "it learns from the population's Lake"),
        ("member.lake={}", "with a learner, one is for all members"),
        ("lake.path=x", "the Lake is always the folder lake in run_dir"),
        ("mutation={}", "add mutation: {weights: {sigma: 0.02}}"),
        ("mutation.weights.sigma=0", "a number above 0"),
        ("control=1", "write control: 0"),
        ("control=4", "leave no member that the learner could replace"),
        ("learner=null", "add learner: {config: ...}"),
        ("train_on={timesteps: 64}", "remove the section and write more generations"),
        ("upload={to: 'file:///mnt/x', what: [checkpoints]}", "add lake"),
        ("executor={kind: ray, storage: s3://bucket/x}", "write one Lake, in run_dir"),
        ("champion.candidates=6", "more than the number of members, 4"),
        ("inject_every=2", "it belongs to the learner"),
    ],
)
def test_a_learner_that_cannot_work_is_refused_in_words(
    erl: Path, override: str, said: str
) -> None:
    assert said in refused(erl, override)
