"""Reads and writes mixture files, and makes the configs of the members and the learner."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.experiments.backup_checks import upload_problems
from game_rl.config.experiments.learner_config import (
    FOLLOW,
    OWN_KEYS,
    STOP_WHEN,
    Decided,
    LearnerKeys,
    as_run,
    decided_key_problems,
    disagreements,
)
from game_rl.config.experiments.mixture_config import (
    MixtureConfig,
    decided_of_live_learner,
    decided_of_live_member,
    keys_of_live,
    keys_of_rounds,
)
from game_rl.config.loader import Document, dump_config, run_based_on, run_dir_problems
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError


@dataclass(frozen=True)
class Mixture:
    """A mixture's config, the config of a member, and that of the learner in its first round."""

    config: MixtureConfig
    run: RunConfig
    learner: RunConfig


def load_mixture(path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False) -> Mixture:
    """Return the mixture that a file describes, after overrides such as `learner.env.n_envs=4`.

    Args:
        is_saved: whether `dump_mixture` wrote the file.

    Raises:
        ConfigError: the file or a run's config is wrong. The message has every problem of the file,
            or, if that has none, of the run's config.
    """
    source = Document(path, ConfigError)
    root, problems = source.tree(overrides)
    return mixture_of(source, root, problems, is_saved=is_saved)


def mixture_of(
    source: Document, root: Node, problems: list[LocatedProblem], *, is_saved: bool = False
) -> Mixture:
    """As `load_mixture`, for a tree that was read from `source`, with the problems of its text."""
    config = source.model_of(root, problems, MixtureConfig, run_dir_problems)
    setting, member = _setting(config), root.nearest(("member",))
    learner = as_run(root.nearest(("learner",)), OWN_KEYS)
    if not is_saved:
        source.refuse(root, _given_away(setting, member, learner))
        refused = keys_of_rounds(root, learner) if config.is_live else keys_of_live(learner)
        source.refuse(root, refused)
    run = run_based_on(source, member, tuple(_decided_of_member(config)))
    taught = run_based_on(source, learner, tuple(_decided_of_learner(config, learner)))
    source.refuse(root, _disagreements(config, run, taught))
    source.refuse(root, upload_problems(config.upload, run, has_learner=True))
    return Mixture(config, run, taught)


def dump_mixture(mixture: Mixture) -> str:
    """Return YAML that `load_mixture` reads back as an equal mixture, in any folder."""
    learner = mixture.learner.model_dump(mode="json") | mixture.config.learner_keys
    sections = {"member": mixture.run.model_dump(mode="json"), "learner": learner}
    return dump_config(mixture.config.model_copy(update=sections))


def _setting(config: MixtureConfig) -> LearnerKeys:
    return LearnerKeys(
        kind="mixture",
        run_dir=config.run_dir,
        seed=config.seed,
        episodes=config.fitness.episodes,
        lake=config.lake,
        stretch=config.learner_per_round,
        stretch_key="learner_per_round",
    )


def _given_away(setting: LearnerKeys, member: Node, learner: Node) -> Iterator[Problem]:
    """Yield keys of the runs' own sections that the mixture decides."""
    of_member: dict[Key, str] = {
        ("run_dir",): "its runs are in the folder members of run_dir",
        ("seed",): "each run gets its own from the mixture's seed",
        ("total_timesteps",): "it is rounds x timesteps_per_round",
        ("evaluation", "every_timesteps"): "there is one evaluation a round",
        ("evaluation", "episodes"): "it is fitness.episodes",
        ("evaluation", "seed"): "each round plays new episodes",
        ("fork",): "the mixture decides what its runs begin from",
        ("lake",): "the mixture has one for all members: write lake beside member",
    }
    yield from decided_key_problems(member, "member", of_member, example="duel_pqn.yaml")
    yield from setting.given_away(learner)


def _decided_of_member(config: MixtureConfig) -> Decided:
    yield ("run_dir",), str(config.run_dir / "members" / "00"), "run_dir"
    yield ("seed",), config.seed, "seed"
    yield ("total_timesteps",), config.total_timesteps, "rounds x timesteps_per_round"
    yield ("evaluation", "every_timesteps"), config.timesteps_per_round, "timesteps_per_round"
    yield ("evaluation", "episodes"), config.fitness.episodes, "fitness.episodes"
    yield STOP_WHEN, None, "kind: mixture"
    yield ("recording", "episodes"), 0, "kind: mixture"
    yield from _setting(config).of_members_lake()
    if config.is_live:
        yield from decided_of_live_member(config)


def _decided_of_learner(config: MixtureConfig, learner: Node) -> Decided:
    yield from _setting(config).of_learner()
    if config.is_live:
        yield from decided_of_live_learner(config, learner)
    else:
        yield FOLLOW, None, "mode: rounds"


def _disagreements(config: MixtureConfig, run: RunConfig, learner: RunConfig) -> Iterator[Problem]:
    """Yield what keeps members and learner from learning from one another."""
    yield from disagreements(run, learner, are_cloned=not config.is_live)
    if not config.is_live and config.clone.optimiser == "keep" and run.algorithm.name == "pqn":
        yield Problem(
            ("clone", "optimiser"),
            f"{run.algorithm.name} cannot go on with the optimiser of dqn; write new",
        )
