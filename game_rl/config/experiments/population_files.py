"""Reads and writes population files, and makes the configs of the members and the learner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.config.experiments.backup_checks import upload_problems
from game_rl.config.experiments.executor_config import storage_problems
from game_rl.config.experiments.learner_config import (
    FOLLOW,
    OWN_KEYS,
    STOP_WHEN,
    LearnerKeys,
    as_run,
    decided_key_problems,
    disagreements,
)
from game_rl.config.experiments.population_config import PopulationConfig, mutation_problems
from game_rl.config.loader import Document, dump_config, run_based_on, run_dir_problems
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError


@dataclass(frozen=True)
class Population:
    """A population's config, and the config of a member before anything is mutated.

    Attributes:
        learner: the config of its learner in the first generation; None if it has no learner.
    """

    config: PopulationConfig
    run: RunConfig
    learner: RunConfig | None = None


def load_population(
    path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False
) -> Population:
    """Return the population that a file describes, after overrides such as `member.env.n_envs=4`.

    Args:
        is_saved: whether `dump_population` wrote the file.

    Raises:
        ConfigError: the file or a run's config is wrong. The message has every problem of the file,
            or, if that has none, of the run's config.
    """
    source = Document(path, ConfigError)
    root, problems = source.tree(overrides)
    return population_of(source, root, problems, is_saved=is_saved)


def population_of(
    source: Document, root: Node, problems: list[LocatedProblem], *, is_saved: bool = False
) -> Population:
    """As `load_population`, for a tree that was read from `source`, with its text's problems."""
    config = source.model_of(root, problems, PopulationConfig, run_dir_problems)
    member = root.nearest(("member",))
    if not is_saved:
        source.refuse(root, _given_away(config, member))
    run = run_based_on(source, member, tuple(_decided(config)))
    learner = None
    if config.learner is not None:
        learner = _learner_config(source, root, config, is_saved=is_saved)
    source.refuse(root, _problems_of_runs(config, run, learner))
    source.refuse(root, storage_problems(config.executor, run))
    has_learner = learner is not None
    source.refuse(root, upload_problems(config.upload, run, has_learner=has_learner))
    return Population(config, run, learner)


def _learner_config(
    source: Document, root: Node, config: PopulationConfig, *, is_saved: bool
) -> RunConfig:
    section, setting = root.nearest(("learner",)), _setting(config)
    learner = as_run(section, (*OWN_KEYS, "inject_every"))
    if not is_saved:
        source.refuse(root, setting.given_away(learner))
        source.refuse(root, _unread_between(learner))
    return run_based_on(source, learner, tuple(setting.of_learner()))


def _unread_between(learner: Node) -> Iterator[Problem]:
    if learner.has(FOLLOW):
        message = "the learner learns only once all members have played: remove the line"
        yield Problem(("learner", *FOLLOW), message)


def dump_population(population: Population) -> str:
    """Return YAML that `load_population` reads back as an equal population, in any folder."""
    config = population.config
    sections: dict[str, Any] = {"member": population.run.model_dump(mode="json")}
    if population.learner is not None:
        learner = population.learner.model_dump(mode="json")
        sections["learner"] = learner | config.learner_keys
    return dump_config(config.model_copy(update=sections))


def _setting(config: PopulationConfig) -> LearnerKeys:
    return LearnerKeys(
        kind="population",
        run_dir=config.run_dir,
        seed=config.seed,
        episodes=config.fitness.episodes,
        lake=config.lake or LakeConfig(),
        stretch=config.learner_per_generation,
        stretch_key="learner_per_generation",
    )


def _given_away(config: PopulationConfig, member: Node) -> Iterator[Problem]:
    """Yield keys of the member's own section that the population decides."""
    reasons: dict[Key, str] = {
        ("run_dir",): "members are in the folder members of run_dir",
        ("seed",): "each member gets its own from the population's seed",
        ("total_timesteps",): "it is generations x timesteps_per_generation + train_on.timesteps",
        ("evaluation", "every_timesteps"): "it is timesteps_per_generation",
        ("evaluation", "episodes"): "it is fitness.episodes",
        ("evaluation", "seed"): "each generation plays new episodes",
    }
    if config.learner is not None:
        reasons["lake",] = "with a learner, one is for all members: write lake beside member"
    return decided_key_problems(member, "member", reasons, example="duel_ppo.yaml")


def _problems_of_runs(
    config: PopulationConfig, run: RunConfig, learner: RunConfig | None
) -> Iterator[Problem]:
    if run.fork is not None:
        yield Problem(("member", "fork"), "members begin with new weights: remove the section")
    yield from mutation_problems(config.mutation.values, run.model_dump(mode="json"))
    if not run.algorithm.learns:
        yield from _problems_of_players(config)
    if learner is not None:
        yield from disagreements(run, learner)
        if run.algorithm.name == "dqn":
            yield Problem(
                ("member",),
                "dqn members have a replay each, which copies would take from the Lake that all "
                "members share; use pqn, such as config: duel_pqn.yaml",
            )


def _problems_of_players(config: PopulationConfig) -> Iterator[Problem]:
    """Check members that learn nothing, whose weights only copies change."""
    if config.mutation.weights is None:
        yield Problem(
            ("mutation",),
            "members learn nothing, and nothing else changes their weights; add mutation: "
            "{weights: {sigma: 0.02}}, or let them learn",
            (("member",),),
        )
    if config.control:
        yield Problem(
            ("control",),
            f"members learn nothing, and a control is never copied over, so {config.control} would "
            "play the same for ever; write control: 0",
            (("member",),),
        )


def _decided(config: PopulationConfig) -> Iterator[tuple[Key, Any, str]]:
    stretch = config.timesteps_per_generation
    yield ("run_dir",), str(config.run_dir / "members" / "00"), "run_dir"
    yield ("seed",), config.seed, "seed"
    yield ("total_timesteps",), config.total_timesteps, "generations x timesteps_per_generation"
    yield ("evaluation", "every_timesteps"), stretch, "timesteps_per_generation"
    yield ("evaluation", "episodes"), config.fitness.episodes, "fitness.episodes"
    yield STOP_WHEN, None, "kind: population"
    yield ("recording", "episodes"), 0, "members"
    if config.learner is not None:
        yield from _setting(config).of_members_lake()
