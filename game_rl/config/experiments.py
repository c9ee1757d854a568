"""Experiment files, and the configs of the runs that they are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from game_rl.config.loader import Source, dump_config, game_path, run_dir_problems
from game_rl.config.population import PopulationConfig, mutation_problems
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, Problem
from game_rl.config.values import expanded_path
from game_rl.config.yaml_tree import LocatedProblem, Node, Place
from game_rl.errors import ConfigError

KINDS = ("population", "mixture", "study")


@dataclass(frozen=True)
class Population:
    """A population's config, and the config of a member before anything is mutated."""

    config: PopulationConfig
    run: RunConfig


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
        refuse_problems(source, root, _given_away(member))
    run = _member_config(source, config, member)
    refuse_problems(source, root, mutation_problems(config.mutation, run.model_dump(mode="json")))
    return Population(config, run)


def dump_population(population: Population) -> str:
    """YAML that `load_population` reads back as an equal population, wherever it is."""
    member = population.run.model_dump(mode="json")
    return dump_config(population.config.model_copy(update={"member": member}))


def refuse_problems(source: Source, root: Node, problems: Iterator[Problem]) -> None:
    """Raise the source's error if there are any, each at its place in the file."""
    found = [LocatedProblem(root.nearest(p.key).place, p.key, p.message) for p in problems]
    if found:
        source.fail(found)


def _given_away(member: Node) -> Iterator[Problem]:
    """Keys of the member's own section that the plan decides."""
    reasons: dict[Key, str] = {
        ("run_dir",): "members live in the folder members of run_dir",
        ("seed",): "each member gets its own from the population's seed",
        ("total_timesteps",): "it is generations x timesteps_per_generation + train_on.timesteps",
        ("evaluation", "every_timesteps"): "it is timesteps_per_generation",
        ("evaluation", "episodes"): "it is fitness.episodes",
        ("evaluation", "seed"): "each generation plays new games",
    }
    for key, reason in reasons.items():
        if member.has(key):
            yield Problem(("member", *key), f"{reason}: remove the line")
    config = member.nearest(("config",))
    if member.has(("config",)) and not (isinstance(config.value, str) and config.value):
        yield Problem(("member", "config"), "names no file; write one, such as duel_ppo.yaml")


def _member_config(source: Source, config: PopulationConfig, member: Node) -> RunConfig:
    """The run that `member` describes, with the keys that the plan decides."""
    run = run_based_on(source, member, tuple(_decided(config)))
    if run.fork is not None:
        place = member.nearest(("fork",)).place
        message = "members begin by themselves: remove the section"
        source.fail([LocatedProblem(place, ("fork",), message)])
    return run


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
