"""How long an experiment takes, against a clock that is moved on job by job."""

import pytest

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.experiment import Experiment
from game_rl.config.schema import RunConfig
from game_rl.experiments.forecast.experiment_forecast import (
    ExperimentReport,
    experiment_preflight,
)
from game_rl.games.definition import load_game
from game_rl.preflight.facts import EpisodeLengths
from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed
from game_rl.system.machine import Machine
from game_rl.system.units import GIB
from tests.experiments.conftest import MakeMixture, MakePopulation

MEASURED = MeasuredSpeed(
    emulation_s=0.004,
    inference_s=0.002,
    gradient_step_s=0.030,
    evaluation_vec_step_s=0.003,
    checkpoint_s=0.050,
    start_s=1.5,
)
LEARNER = MeasuredSpeed(
    emulation_s=0.005,
    inference_s=0.001,
    gradient_step_s=0.040,
    evaluation_vec_step_s=0.006,
    checkpoint_s=0.200,
    start_s=2.5,
)
EPISODE = 50
SAVED = "member.checkpoints.every_timesteps=128"
LENGTHS = EpisodeLengths(timesteps=(EPISODE,))
JOB_S, DECISION_S = 1.3, 1.0


def machine(cpus: int) -> Machine:
    return Machine(
        ram_bytes=32 * GIB,
        ram_available_bytes=32 * GIB,
        gpus=(),
        disk_free_bytes=100 * GIB,
        cpus=cpus,
        cpu_has_bf16=False,
    )


def stretch_s(population: Experiment, timesteps: int) -> float:
    """Start, rollouts with updates, an evaluation in each way; then two checkpoints."""
    algorithm, env = population.run.algorithm, population.run.env
    clock, played = MEASURED.start_s + JOB_S, 0
    while played < timesteps:
        played += algorithm.n_steps * env.n_envs
        clock += algorithm.n_steps * (MEASURED.emulation_s + MEASURED.inference_s)
        batches = algorithm.n_steps * env.n_envs // algorithm.batch_size
        clock += algorithm.n_epochs * batches * MEASURED.gradient_step_s
    for _ in population.run.evaluation_ways:
        clock += episodes_s(population.run, population.config.fitness.episodes)
    return clock + 2 * MEASURED.checkpoint_s


def learning_s(run: RunConfig) -> float:
    """Of a learner: start, steps on the Lake, own play with updates; evaluations, each with a
    checkpoint of the best, and a checkpoint at the end of both parts.
    """
    algorithm, clock, played = run.algorithm, LEARNER.start_s + JOB_S, 0
    assert isinstance(algorithm, DQNConfig)
    assert algorithm.learn_from is not None
    offline = algorithm.learn_from.offline
    evaluation_s = LEARNER.checkpoint_s
    for _ in run.evaluation_ways:
        evaluation_s += episodes_s(run, run.evaluation.episodes, LEARNER)
    if offline is not None:
        clock += offline.gradient_steps * LEARNER.gradient_step_s
        clock += evaluation_s + LEARNER.checkpoint_s
    while played < run.total_timesteps:
        played += algorithm.train_freq * run.env.n_envs
        clock += algorithm.train_freq * (LEARNER.emulation_s + LEARNER.inference_s)
        if played > algorithm.learning_starts:
            clock += algorithm.gradient_steps * LEARNER.gradient_step_s
        if played % run.evaluation.every_timesteps == 0:
            clock += evaluation_s
    return clock + LEARNER.checkpoint_s


def episodes_s(run: RunConfig, episodes: int, speed: MeasuredSpeed = MEASURED) -> float:
    envs = [0] * min(run.evaluation.n_envs, episodes)
    for episode in range(episodes):
        envs[episode % len(envs)] += EPISODE
    return max(envs) * speed.evaluation_vec_step_s


def in_turns(jobs: list[float], slots: int) -> float:
    """The next job goes to whoever is free first; when the last one has ended."""
    free = [0.0] * slots
    for job in jobs:
        free[free.index(min(free))] += job
    return max(free)


@pytest.mark.parametrize("cpus", [1, 2, 3, 8])
def test_members_and_candidates_take_turns(make_population: MakePopulation, cpus: int) -> None:
    population = make_population("population", "timesteps_per_generation=128", SAVED)
    config, slots = population.config, min(cpus, population.config.members)
    report = experiment_preflight(
        population,
        load_game("duel"),
        machine(cpus),
        probe=LENGTHS,
        measured=ExperimentSpeed(MEASURED),
    )
    generation_s = in_turns([stretch_s(population, 128)] * config.members, slots) + DECISION_S
    champion_s = choosing_s(population, slots)
    assert report.slots == slots
    assert wall_s(report) == pytest.approx(config.generations * generation_s + champion_s)


def test_a_member_that_trains_on_is_one_candidate_more(make_population: MakePopulation) -> None:
    """On two slots, two candidates take one turn and three take two; the champion takes another."""
    train_on = ("train_on={timesteps: 128}", "timesteps_per_generation=128", SAVED)
    choosing = []
    for name, overrides in (("alone", train_on[1:]), ("on", train_on)):
        population = make_population(name, *overrides)
        report = experiment_preflight(
            population,
            load_game("duel"),
            machine(2),
            probe=LENGTHS,
            measured=ExperimentSpeed(MEASURED),
        )
        assert report.duration is not None
        choosing.append(report.duration.champion_s)
    episodes = population.config.champion.episodes
    candidate_s = MEASURED.start_s + JOB_S + episodes_s(population.run, episodes)
    assert choosing == [pytest.approx(2 * candidate_s), pytest.approx(3 * candidate_s)]


@pytest.mark.parametrize("cpus", [1, 2, 8])
def test_the_learner_trains_when_the_members_of_a_generation_have(
    make_erl: MakePopulation, cpus: int
) -> None:
    population = make_erl("erl", SAVED)
    assert population.learner is not None
    config, slots = population.config, min(cpus, population.config.members)
    report = forecast(population, cpus)
    generation_s = in_turns([stretch_s(population, 128)] * config.members, slots) + DECISION_S
    generation_s += learning_s(population.learner)
    champion_s = choosing_s(population, slots)
    assert wall_s(report) == pytest.approx(config.generations * generation_s + champion_s)


def test_in_rounds_the_learner_trains_after_the_members(make_mixture: MakeMixture) -> None:
    mixture = make_mixture("mixture", SAVED)
    report = forecast(mixture, cpus=2)
    round_s = 2 * stretch_s(mixture, 128) + DECISION_S + learning_s(mixture.learner)
    assert wall_s(report) == pytest.approx(4 * round_s + choosing_s(mixture, 2))


@pytest.mark.parametrize("learner_timesteps", [64, 6_400])
def test_in_a_live_mixture_all_train_at_once(
    make_mixture: MakeMixture, learner_timesteps: int
) -> None:
    timesteps = f"learner_per_round.timesteps={learner_timesteps}"
    mixture = make_mixture("live", timesteps, SAVED, is_live=True)
    report = forecast(mixture, cpus=2)
    starts_s = MEASURED.start_s + JOB_S
    members_s = starts_s + 4 * (stretch_s(mixture, 128) - starts_s) + DECISION_S
    longest = max(members_s, learning_s(mixture.learner))
    assert wall_s(report) == pytest.approx(longest + choosing_s(mixture, 4))


def forecast(experiment: Experiment, cpus: int) -> ExperimentReport:
    return experiment_preflight(
        experiment,
        load_game("duel"),
        machine(cpus),
        probe=LENGTHS,
        measured=ExperimentSpeed(MEASURED, LEARNER),
    )


def choosing_s(experiment: Experiment, slots: int) -> float:
    """Of the champion: all candidates, a learner among them, and then the one that is chosen."""
    champion, has_learner = experiment.config.champion, experiment.learner is not None
    candidate_s = MEASURED.start_s + JOB_S + episodes_s(experiment.run, champion.episodes)
    return in_turns([candidate_s] * (champion.candidates + has_learner), slots) + candidate_s


def wall_s(report: ExperimentReport) -> float:
    assert report.duration is not None
    return report.duration.wall_s
