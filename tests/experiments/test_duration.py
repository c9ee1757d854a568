"""How long a population takes, against a clock that is moved on job by job."""

import pytest

from game_rl.config.experiments import Population
from game_rl.experiments.forecast import population_preflight
from game_rl.games.definition import load_game
from game_rl.preflight.measurements import EpisodeLengths
from game_rl.preflight.speed import MeasuredSpeed
from game_rl.system.machine import Machine
from game_rl.system.units import GIB
from tests.experiments.conftest import MakePopulation

MEASURED = MeasuredSpeed(
    emulation_s=0.004,
    inference_s=0.002,
    gradient_step_s=0.030,
    evaluation_vec_step_s=0.003,
    checkpoint_s=0.050,
    start_s=1.5,
)
EPISODE = 50
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


def stretch_s(population: Population, timesteps: int) -> float:
    """Start, rollouts with updates, an evaluation in each way; then two checkpoints."""
    algorithm, env = population.run.algorithm, population.run.env
    clock, played = MEASURED.start_s + JOB_S, 0
    while played < timesteps:
        played += algorithm.n_steps * env.n_envs
        clock += algorithm.n_steps * (MEASURED.emulation_s + MEASURED.inference_s)
        batches = algorithm.n_steps * env.n_envs // algorithm.batch_size
        clock += algorithm.n_epochs * batches * MEASURED.gradient_step_s
    for _ in population.run.evaluation_ways:
        clock += episodes_s(population, population.config.fitness.episodes)
    return clock + 2 * MEASURED.checkpoint_s


def episodes_s(population: Population, episodes: int) -> float:
    envs = [0] * min(population.run.evaluation.n_envs, episodes)
    for episode in range(episodes):
        envs[episode % len(envs)] += EPISODE
    return max(envs) * MEASURED.evaluation_vec_step_s


def in_turns(jobs: list[float], slots: int) -> float:
    """The next job goes to whoever is free first; when the last one has ended."""
    free = [0.0] * slots
    for job in jobs:
        free[free.index(min(free))] += job
    return max(free)


@pytest.mark.parametrize("cpus", [1, 2, 3, 8])
def test_members_and_candidates_take_turns(make_population: MakePopulation, cpus: int) -> None:
    population = make_population(
        "population", "timesteps_per_generation=128", "member.checkpoints.every_timesteps=128"
    )
    config, slots = population.config, min(cpus, population.config.members)
    report = population_preflight(
        population,
        load_game("duel"),
        machine(cpus),
        probe=EpisodeLengths(timesteps=(EPISODE,), successes=None, truncated=0),
        measured=MEASURED,
    )
    generation_s = in_turns([stretch_s(population, 128)] * config.members, slots) + DECISION_S
    candidate_s = MEASURED.start_s + JOB_S + episodes_s(population, config.champion.episodes)
    champion_s = in_turns([candidate_s] * config.champion.candidates, slots) + candidate_s
    assert report.slots == slots
    assert report.wall_s == pytest.approx(config.generations * generation_s + champion_s)
