"""Experiment files, and the configs of the runs that they are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from game_rl.config.lake import LakeConfig
from game_rl.config.learners import FOLLOW, LearnerSetting, as_run, disagreements, given_away
from game_rl.config.loader import Source, dump_config, game_path, run_dir_problems
from game_rl.config.own_disk import storage_problems
from game_rl.config.population import PopulationConfig, mutation_problems
from game_rl.config.safe_copy import upload_problems
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.values import expanded_path
from game_rl.config.yaml_tree import LocatedProblem, Node, Place
from game_rl.errors import ConfigError

KINDS = ("population", "mixture", "study")


@dataclass(frozen=True)
class Population:
    """A population's config, and the config of a member before anything is mutated.

    Attributes:
        learner: the config of its learner in the first generation; None: it has none.
    """

    config: PopulationConfig
    run: RunConfig
    learner: RunConfig | None = None


def kind_of(path: Path, overrides: Sequence[str] = ()) -> str | None:
    """Of the experiment that a file describes; None for a run.

    Raises:
        ConfigError: it is no YAML, or of a kind that does not exist.
    """
    source = Source(path, ConfigError)
    root, _ = source.tree(overrides)
    return kind_in(source, root)


def kind_in(source: Source, root: Node) -> str | None:
    """As `kind_of`, of a tree that was read from `source`."""
    if not root.has(("kind",)):
        return None
    node = root.nearest(("kind",))
    if node.value not in KINDS:
        message = (
            f"found {node.text or 'a section'}; allowed: {' or '.join(KINDS)}; or no such line"
        )
        source.fail([LocatedProblem(node.place, ("kind",), f"{message}, for a single run")])
    return str(node.value)


def load_population(
    path: Path, overrides: Sequence[str] = (), *, is_saved: bool = False
) -> Population:
    """The population that a file describes, after overrides such as `member.env.n_envs=4`.

    Args:
        is_saved: the file is one that `dump_population` wrote.

    Raises:
        ConfigError: with every problem of the file, then of the member's config.
    """
    source = Source(path, ConfigError)
    root, problems = source.tree(overrides)
    return population_of(source, root, problems, is_saved=is_saved)


def population_of(
    source: Source, root: Node, problems: list[LocatedProblem], *, is_saved: bool = False
) -> Population:
    """As `load_population`, of a tree that was read from `source`, with what is wrong with that."""
    config = source.model_of(root, problems, PopulationConfig, run_dir_problems)
    member = root.nearest(("member",))
    if not is_saved:
        refuse_problems(source, root, _given_away(config, member))
    run = run_based_on(source, member, tuple(_decided(config)))
    learner = None
    if config.learner is not None:
        learner = _learner_config(source, root, config, is_saved=is_saved)
    refuse_problems(source, root, _problems_of_runs(config, run, learner))
    refuse_problems(source, root, storage_problems(config.executor, run))
    has_learner = learner is not None
    refuse_problems(source, root, upload_problems(config.upload, run, has_learner=has_learner))
    return Population(config, run, learner)


def _learner_config(
    source: Source, root: Node, config: PopulationConfig, *, is_saved: bool
) -> RunConfig:
    section, setting = root.nearest(("learner",)), _setting(config)
    learner = as_run(section, ("teacher", "inject_every"))
    if not is_saved:
        refuse_problems(source, root, setting.given_away(learner))
        refuse_problems(source, root, _unread_between(learner))
    return run_based_on(source, learner, tuple(setting.of_learner()))


def _unread_between(learner: Node) -> Iterator[Problem]:
    if learner.has(FOLLOW):
        message = "it learns when all members have played: remove the line"
        yield Problem(("learner", *FOLLOW), message)


def dump_population(population: Population) -> str:
    """YAML that `load_population` reads back as an equal population, wherever it is."""
    config = population.config
    sections: dict[str, Any] = {"member": population.run.model_dump(mode="json")}
    if population.learner is not None:
        sections["learner"] = population.learner.model_dump(mode="json") | {
            "inject_every": config.inject_every,
            "teacher": "best_member" if config.is_taught else None,
        }
    return dump_config(config.model_copy(update=sections))


def refuse_problems(source: Source, root: Node, problems: Iterator[Problem]) -> None:
    """Raise the source's error if there are any, each at its place in the file."""
    found = [LocatedProblem(root.nearest(p.key).place, p.key, p.message) for p in problems]
    if found:
        source.fail(found)


def _setting(config: PopulationConfig) -> LearnerSetting:
    return LearnerSetting(
        kind="population",
        run_dir=config.run_dir,
        seed=config.seed,
        episodes=config.fitness.episodes,
        lake=config.lake or LakeConfig(),
        stretch=config.learner_per_generation,
        stretch_key="learner_per_generation",
    )


def _given_away(config: PopulationConfig, member: Node) -> Iterator[Problem]:
    """Keys of the member's own section that the plan decides."""
    reasons: dict[Key, str] = {
        ("run_dir",): "members live in the folder members of run_dir",
        ("seed",): "each member gets its own from the population's seed",
        ("total_timesteps",): "it is generations x timesteps_per_generation + train_on.timesteps",
        ("evaluation", "every_timesteps"): "it is timesteps_per_generation",
        ("evaluation", "episodes"): "it is fitness.episodes",
        ("evaluation", "seed"): "each generation plays new games",
    }
    if config.learner is not None:
        reasons["lake",] = "the learner's is one for all members: write lake beside member"
    return given_away(member, "member", reasons, example="duel_ppo.yaml")


def _problems_of_runs(
    config: PopulationConfig, run: RunConfig, learner: RunConfig | None
) -> Iterator[Problem]:
    if run.fork is not None:
        yield Problem(("member", "fork"), "members begin by themselves: remove the section")
    yield from mutation_problems(config.mutation.values, run.model_dump(mode="json"))
    if not run.algorithm.learns:
        yield from _problems_of_players(config)
    if learner is not None:
        yield from disagreements(run, learner)
        if run.algorithm.name == "dqn":
            yield Problem(
                ("member",),
                "dqn members have a replay each, which copies would take out of the Lake of all; "
                "use pqn, such as config: duel_pqn.yaml",
            )


def _problems_of_players(config: PopulationConfig) -> Iterator[Problem]:
    """Of members that play and learn nothing, so that only copies change their weights."""
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
            "play for nothing; write control: 0",
            (("member",),),
        )


def run_based_on(
    source: Source, section: Node, decided: Sequence[tuple[Key, Any, str]]
) -> RunConfig:
    """The run of a section that is a run's config, or `config: FILE` and what differs.

    Args:
        source: the file that the section stands in.
        decided: keys that the plan decides, each with its value and what decides it.
    """
    base, tree = based_on(source, section)
    tree = with_decided(tree, decided)
    run = base.model_of(tree, [], RunConfig, lambda _: ())
    game_file = game_path(run.game, relative_to=base.path.parent)
    return run if game_file is None else run.model_copy(update={"game": str(game_file)})


def based_on(source: Source, section: Node) -> tuple[Source, Node]:
    """A section with what is in the file that its key `config` names, and that file."""
    file = named_file(source, section)
    if file is None:
        return source, section
    base = Source(file, ConfigError)
    below, problems = base.tree()
    if problems:
        base.fail(problems)
    return base, _merged(below, _labelled(section.without(("config",)), source.path.name))


def named_file(source: Source, section: Node) -> Path | None:
    """That the section's key `config` names, relative to the folder of `source`."""
    if not section.has(("config",)):
        return None
    return source.path.parent / expanded_path(str(section.nearest(("config",)).value))


def with_decided(tree: Node, decided: Sequence[tuple[Key, Any, str]]) -> Node:
    """With the keys that a plan decides, each with its value and what decides it."""
    for key, value, label in decided:
        tree = tree.with_value(key, _decided_node(value, label))
    return tree


def _decided_node(value: Any, label: str) -> Node:  # noqa: ANN401 - whatever a config holds
    inner = [_decided_node(v, label) for v in value] if isinstance(value, list) else value
    return Node(inner, Place(0, label), f"{value}")


def _decided(config: PopulationConfig) -> Iterator[tuple[Key, Any, str]]:
    stretch = config.timesteps_per_generation
    yield ("run_dir",), str(config.run_dir / "members" / "00"), "run_dir"
    yield ("seed",), config.seed, "seed"
    yield ("total_timesteps",), config.total_timesteps, "generations x timesteps_per_generation"
    yield ("evaluation", "every_timesteps"), stretch, "timesteps_per_generation"
    yield ("evaluation", "episodes"), config.fitness.episodes, "fitness.episodes"
    yield ("recording", "episodes"), 0, "members"
    if config.learner is not None:
        yield from _setting(config).of_members_lake()


def _labelled(node: Node, file: str) -> Node:
    """With the file's name at each place, as it is merged into another file."""
    place = replace(node.place, label=f"{file} {node.place.label}")
    value = node.value
    if isinstance(value, dict):
        value = {key: _labelled(child, file) for key, child in value.items()}
    elif isinstance(value, list):
        value = [_labelled(child, file) for child in value]
    return replace(node, place=place, value=value)


def _merged(below: Node, over: Node) -> Node:
    """Section by section; whatever is no section in both replaces what is below."""
    if not isinstance(below.value, dict) or not isinstance(over.value, dict):
        return over
    value = dict(below.value)
    for key, node in over.value.items():
        value[key] = _merged(value[key], node) if key in value else node
    return replace(below, value=value)
