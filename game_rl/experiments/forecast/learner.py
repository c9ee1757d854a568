"""The preflight of an experiment's learner, before its Lake exists."""

from dataclasses import replace

from game_rl.config.algorithms import DQNConfig
from game_rl.config.experiments.population_files import Population
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.games.definition import Game
from game_rl.lake.origin import LakeRows
from game_rl.preflight.facts import EpisodeLengths, run_facts
from game_rl.preflight.preflight import report_of
from game_rl.preflight.preflight_report import Report
from game_rl.preflight.speed import ExperimentSpeed
from game_rl.system.machine import Machine

_ROWS_OF_A_BLOCK = 62  # a block has at most 64 frames, some of which belong to its first stack


def learner_report(
    population: Population,
    game: Game,
    machine: Machine,
    probe: EpisodeLengths | None,
    measured: ExperimentSpeed | None,
) -> Report | None:
    """Return the report of the learner's last run, which reads the largest Lake.

    None without a learner.
    """
    if population.learner is None:
        return None
    run = population.learner
    without = run.model_copy(
        update={"algorithm": run.algorithm.model_copy(update={"learn_from": None})}
    )
    facts = replace(
        run_facts(without, game, machine, probe, None), learned_lakes=_lake_rows(population)
    )
    taught = _taught(population, run)
    speed = None if measured is None else measured.learner
    return report_of(taught, facts, machine, probe=probe, measured=speed)


def _lake_rows(population: Population) -> LakeRows:
    """Return the rows of all members; each emulator begins a new block in each generation."""
    config, n_envs = population.config, population.run.env.n_envs
    transitions = config.members * config.total_timesteps
    begun = config.members * config.generations * n_envs
    return LakeRows(transitions=transitions, blocks=-(-transitions // _ROWS_OF_A_BLOCK) + begun)


def _taught(population: Population, run: RunConfig) -> RunConfig:
    """Add a teacher, if the learner gets one; it does not matter here which run it is."""
    assert isinstance(run.algorithm, DQNConfig)
    if not population.config.is_taught:
        return run
    teacher = {"run": str(run.run_dir), "keep_if_better": False}
    return with_changed(run, {("algorithm", "teacher"): teacher})
