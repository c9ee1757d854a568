"""Mixture files, and the configs of the members and the learner that they are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from game_rl.config.algorithms import DQNConfig, PPOConfig
from game_rl.config.experiments import refuse_problems, run_based_on
from game_rl.config.loader import Source, dump_config, run_dir_problems
from game_rl.config.mixture import MixtureConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.yaml_tree import LocatedProblem, Node
from game_rl.errors import ConfigError

_LEARN_FROM: Key = ("algorithm", "learn_from")
_FOLLOW: Key = (*_LEARN_FROM, "follow_every_s")
_OFFLINE: Key = (*_LEARN_FROM, "offline")
_SEEN_ALIKE = ("frame_skip", "frame_stack", "observation")
SEAL_EVERY_TIMESTEPS = 1_024
"""In mode live: with 16 emulators, blocks of 64 frames, which are full."""
FOLLOW_EVERY_S = 2.0
"""In mode live."""


@dataclass(frozen=True)
class Mixture:
    """A mixture's config; the config of a member, and of the learner in its first round."""

    config: MixtureConfig
    run: RunConfig
    learner: RunConfig


def load_mixture(path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False) -> Mixture:
    """The mixture that a file describes, after overrides such as `learner.env.n_envs=4`.

    Args:
        is_saved: the file is one that `dump_mixture` wrote.

    Raises:
        ConfigError: with every problem of the file, then of the runs' configs.
    """
    source = Source(path, ConfigError)
    root, problems = source.tree(overrides)
    return mixture_of(source, root, problems, is_saved=is_saved)


def mixture_of(
    source: Source, root: Node, problems: list[LocatedProblem], *, is_saved: bool = False
) -> Mixture:
    """As `load_mixture`, of a tree that was read from `source`, with what is wrong with that."""
    config = source.model_of(root, problems, MixtureConfig, run_dir_problems)
    member, learner = root.nearest(("member",)), _lifted(root.nearest(("learner",)))
    if not is_saved:
        meaningless = _meaningless_live if config.is_live else _meaningless_in_rounds
        refused = (*_given_away(member, learner), *meaningless(root, learner))
        refuse_problems(source, root, iter(refused))
    run = run_based_on(source, member, tuple(_decided_of_member(config)))
    has_own = learner.has(_FOLLOW)
    taught = run_based_on(source, learner, tuple(_decided_of_learner(config, has_own=has_own)))
    refuse_problems(source, root, _disagreements(config, run, taught))
    return Mixture(config, run, taught)


def dump_mixture(mixture: Mixture) -> str:
    """YAML that `load_mixture` reads back as an equal mixture, wherever it is."""
    learner = mixture.learner.model_dump(mode="json")
    learner["teacher"] = "best_member" if mixture.config.is_taught else None
    sections = {"member": mixture.run.model_dump(mode="json"), "learner": learner}
    return dump_config(mixture.config.model_copy(update=sections))


def _lifted(learner: Node) -> Node:
    """The section as a run's config: what may be written short is where a run has it."""
    learner = learner.without(("teacher",))
    if learner.has(("learn_from",)):
        short = learner.nearest(("learn_from",))
        learner = learner.without(("learn_from",)).with_value(_LEARN_FROM, short)
    return learner


def _given_away(member: Node, learner: Node) -> Iterator[Problem]:
    """Keys of the runs' own sections that the plan decides."""
    of_both: dict[Key, str] = {
        ("run_dir",): "its runs live in the folder members of run_dir",
        ("seed",): "each run gets its own from the mixture's seed",
        ("evaluation", "every_timesteps"): "it is once a round",
        ("evaluation", "episodes"): "it is fitness.episodes",
        ("evaluation", "seed"): "each round plays new games",
        ("fork",): "the mixture decides what its runs begin from",
        ("lake",): "the mixture has one for all members: write lake beside member",
    }
    of_member: dict[Key, str] = {("total_timesteps",): "it is rounds x timesteps_per_round"}
    of_learner: dict[Key, str] = {
        ("total_timesteps",): "it is learner_per_round.timesteps",
        (*_LEARN_FROM, "lakes"): "it learns from the mixture's Lake",
        (*_LEARN_FROM, "agents"): "it draws evenly from all that members have played",
        (*_LEARN_FROM, "offline", "gradient_steps"): "it is learner_per_round.gradient_steps",
        ("algorithm", "teacher"): "write teacher: best_member, or null, beside config",
        ("checkpoints", "save_replay_buffer"): "it is saved, so that the mixture can go on",
    }
    sections = (("member", member, of_both | of_member), ("learner", learner, of_both | of_learner))
    for name, section, reasons in sections:
        for key, reason in reasons.items():
            if section.has(key):
                yield Problem((name, *key), f"{reason}: remove the line")
        config = section.nearest(("config",))
        if section.has(("config",)) and not (isinstance(config.value, str) and config.value):
            yield Problem((name, "config"), "names no file; write one, such as duel_pqn.yaml")


def _meaningless_live(root: Node, learner: Node) -> Iterator[Problem]:
    """Keys of rounds, where there are none."""
    reasons: dict[Key, str] = {
        ("learner_starts",): "the learner has one run, which begins with new weights",
        ("learner_per_round", "gradient_steps"): "the learner learns while it plays",
        ("clone",): "nobody is cloned in mode: live",
        ("keep_rounds",): "there is one stretch, whose checkpoints stay",
    }
    for key, reason in reasons.items():
        if root.has(key):
            yield Problem(key, f"{reason}: remove the line, or write mode: rounds")
    if root.has(("learner", "teacher")) and root.nearest(("learner", "teacher")).value is not None:
        message = "no member is the best before the end: remove the line, or write mode: rounds"
        yield Problem(("learner", "teacher"), message)
    if learner.has(_OFFLINE):
        message = "the learner plays from the beginning: remove it, or write mode: rounds"
        yield Problem(("learner", *_OFFLINE), message)


def _meaningless_in_rounds(root: Node, learner: Node) -> Iterator[Problem]:  # noqa: ARG001
    if learner.has(_FOLLOW):
        message = "the Lake is read at breaks only: remove the line, or write mode: live"
        yield Problem(("learner", *_FOLLOW), message)


_Decided = Iterator[tuple[Key, Any, str]]


def _decided_of_member(config: MixtureConfig) -> _Decided:
    yield ("run_dir",), str(config.run_dir / "members" / "00"), "run_dir"
    yield ("total_timesteps",), config.total_timesteps, "rounds x timesteps_per_round"
    yield ("evaluation", "every_timesteps"), config.timesteps_per_round, "timesteps_per_round"
    lake = config.lake.model_dump(mode="json", exclude={"path"})
    if config.is_live and lake["seal_every_timesteps"] is None:
        lake["seal_every_timesteps"] = SEAL_EVERY_TIMESTEPS
    for name, value in lake.items():
        yield ("lake", name), value, "lake"
    yield ("lake", "path"), str(_lake(config)), "run_dir"
    yield from _decided_of_both(config)


def _decided_of_learner(config: MixtureConfig, *, has_own: bool) -> _Decided:
    """Args: has_own: the section says how often it follows."""
    timesteps = config.learner_per_round.timesteps
    yield ("run_dir",), str(config.run_dir / "members" / "learner"), "run_dir"
    yield ("total_timesteps",), config.learner_timesteps, "learner_per_round.timesteps"
    yield ("evaluation", "every_timesteps"), timesteps, "learner_per_round.timesteps"
    yield ("checkpoints", "save_replay_buffer"), True, "kind: mixture"
    yield (*_LEARN_FROM, "lakes"), [str(_lake(config))], "run_dir"
    if not config.is_live:
        steps = config.learner_per_round.gradient_steps
        yield (*_OFFLINE, "gradient_steps"), steps, "learner_per_round.gradient_steps"
        yield _FOLLOW, None, "mode: rounds"
    else:
        yield _OFFLINE, None, "mode: live"
        if not has_own:
            yield _FOLLOW, FOLLOW_EVERY_S, "mode: live"
    yield from _decided_of_both(config)


def _decided_of_both(config: MixtureConfig) -> _Decided:
    yield ("seed",), config.seed, "seed"
    yield ("evaluation", "episodes"), config.fitness.episodes, "fitness.episodes"
    yield ("recording", "episodes"), 0, "kind: mixture"


def _lake(config: MixtureConfig) -> Path:
    return (config.run_dir / "lake").absolute()


def _disagreements(config: MixtureConfig, run: RunConfig, learner: RunConfig) -> Iterator[Problem]:
    """What keeps members and learner from learning from one another."""
    member: Key = ("member",)
    assert isinstance(learner.algorithm, DQNConfig)  # nothing else has learn_from
    if isinstance(run.algorithm, PPOConfig) and not config.is_live:
        yield Problem(
            member,
            "ppo has no values of actions that the learner could be cloned into; use pqn or dqn, "
            "such as config: duel_pqn.yaml",
        )
        return
    if run.game != learner.game:
        yield Problem(("learner",), f"its game is {learner.game}, the members' is {run.game}")
    for name in _SEEN_ALIKE:
        theirs, ours = getattr(run.env, name), getattr(learner.env, name)
        if theirs != ours:
            yield Problem(
                ("learner", "env", name),
                f"{ours} is not the members', {theirs}; use the same, as rows are exchanged",
            )
    if config.is_live or isinstance(run.algorithm, PPOConfig):
        return  # nobody goes on with another's weights
    if run.algorithm.layer_norm != learner.algorithm.layer_norm:
        yield Problem(
            ("learner", "algorithm", "layer_norm"),
            f"{learner.algorithm.layer_norm} is not the members', {run.algorithm.layer_norm}; use "
            "the same, as members go on with the learner's weights",
        )
    if config.clone.optimiser == "keep" and run.algorithm.name != "dqn":
        yield Problem(
            ("clone", "optimiser"),
            f"{run.algorithm.name} cannot go on with the optimiser of dqn; write new",
        )
