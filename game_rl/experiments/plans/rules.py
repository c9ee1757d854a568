"""The rules by which members continue as copies, and how copies differ.

Ranking, selection, cloning and mutation are pure functions of figures. Below them stand the
records and configs that follow from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Literal

import numpy as np

from game_rl.config.algorithms import ExplorationConfig
from game_rl.config.experiments.experiment import Experiment, ExperimentConfig
from game_rl.config.experiments.mixture_config import CloneConfig, MixtureConfig
from game_rl.config.experiments.population_config import (
    MutationConfig,
    PopulationConfig,
    SelectionConfig,
    is_discount,
)
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, value_at, with_changed
from game_rl.experiments.experiment_dir import folder_of
from game_rl.experiments.plans.member_runs import (
    counting_anew,
    exploration_from,
    member_seed,
    sections_of,
)
from game_rl.experiments.records import CopyRecord, GenerationRecord, Member, TrainedMember, Value
from game_rl.seeds import seed_for

_ROUNDING = 1e-9  # 0.95 - 0.90 is a little less than 0.05


@dataclass(frozen=True)
class Scored:
    """A member at the end of a generation.

    Attributes:
        fitness: what selection compares; None if the weights are not finite.
        mean_reward: breaks ties of fitness.
    """

    number: int
    fitness: float | None
    mean_reward: float

    @property
    def order(self) -> tuple[bool, float, float, int]:
        """A sort key that ascends from the best member to the worst."""
        if self.fitness is None:
            return True, 0.0, 0.0, self.number
        return False, -self.fitness, -self.mean_reward, self.number


@dataclass(frozen=True)
class Copy:
    """A copy of member `parent` that replaces member `number`."""

    number: int
    parent: int


def ranked(members: Sequence[Scored]) -> list[Scored]:
    """Sort members, the best first.

    Of equal fitness, the higher mean reward comes first, then the lower number.
    """
    return sorted(members, key=lambda member: member.order)


def scored_member(member: TrainedMember) -> Scored:
    """Return the figures of a member that selection compares."""
    fitness = member.fitness
    if fitness is None:
        return Scored(member.number, None, 0.0)
    return Scored(member.number, fitness.value, fitness.mean_reward)


def ranking_of(members: Sequence[TrainedMember]) -> tuple[int, ...]:
    """Return the numbers of the members, the best first."""
    return tuple(member.number for member in ranked([scored_member(each) for each in members]))


def select(
    members: Sequence[Scored], config: SelectionConfig, *, control: int, rng: np.random.Generator
) -> list[Copy]:
    """Select copies by truncation (Jaderberg et al. 2017), with a gap and control members.

    k = max(1, floor(share x members)). Each of the k worst members copies one of the k best, drawn
    evenly, unless its fitness is less than `gap` below that one's. Members with a number below
    `control` are never copied over, however bad: the k worst are those of the others. A member
    with non-finite weights always copies, whatever its number and its rank, and is never copied.

    Args:
        rng: draws one parent for each of the worst, from the worst upwards. It also draws for a
            copy that the gap then forbids, so that the gap changes no other decision.

    Returns:
        The copies, in the order of their numbers; empty if no member has finite weights.
    """
    order = ranked(members)
    finite = [member for member in order if member.fitness is not None]
    if not finite:
        return []
    k = max(1, int(config.share * len(order) + _ROUNDING))
    best = finite[:k]
    broken = order[len(finite) :]
    replaceable = [m for m in finite[len(best) :] if m.number >= control]
    worst = [*replaceable, *broken][-max(k, len(broken)) :]
    copies = []
    for member in reversed(worst):
        parent = best[int(rng.integers(len(best)))]
        assert parent.fitness is not None
        if member.fitness is None or parent.fitness - member.fitness >= config.gap - _ROUNDING:
            copies.append(Copy(member.number, parent.number))
    return sorted(copies, key=lambda copy: copy.number)


def clones(members: Sequence[Scored], learner: Scored, config: CloneConfig) -> list[Copy]:
    """Return which members are cloned over, by their fitness on the same episodes.

    Of equal fitness, the higher mean reward is better. A member with non-finite weights is always
    cloned over: by the learner or, if its weights are not finite either, by the best member.

    Returns:
        The clones, in the order of the members' numbers; empty if no weights are finite.
    """
    order = ranked(members)
    parent = learner if learner.fitness is not None else order[0]
    if parent.fitness is None:
        return []
    broken = [member for member in members if member.fitness is None]
    beaten: list[Scored] = []
    if learner.fitness is not None:
        finite = [member for member in order if member.fitness is not None]
        reached = finite if config.to == "all" else order[-1:]
        # better in fitness and mean reward, whatever the numbers
        ours = learner.order[:3]
        is_asked = config.only_if_better
        beaten = [m for m in reached if not is_asked or ours < m.order[:3]]
    numbers = {member.number for member in (*broken, *beaten)}
    return [Copy(number, parent.number) for number in sorted(numbers)]


def values_of(run: Mapping[str, Any], mutation: Mapping[str, MutationConfig]) -> dict[str, Value]:
    """Return the values of a dumped run config at the keys that mutate."""
    return {key: value_at(run, key) for key in mutation}


def mutated(
    values: Mapping[str, Value], mutation: Mapping[str, MutationConfig], rng: np.random.Generator
) -> dict[str, Value]:
    """Multiply each value by a factor of its own, drawn evenly on a log scale, within bounds.

    f = exp(u), u ~ U(log least, log most). A number x becomes clip(x f). A discount moves as
    1 - x, so it becomes clip(1 - (1 - x) f). The start of a schedule moves like a number; its end
    is multiplied by the ratio of the clipped start to the old one.

    Args:
        rng: draws one number for each key, in the order of `mutation`.
    """
    found: dict[str, Value] = {}
    for key, rule in mutation.items():
        value = values[key]
        number = value["start"] if isinstance(value, dict) else value
        low, high = (log(factor) for factor in rule.factor)
        factor = exp(low + (high - low) * float(rng.random()))
        moved = 1 - (1 - number) * factor if is_discount(key) else number * factor
        least, most = rule.bounds
        moved = min(max(moved, least), most)
        if isinstance(value, dict):
            found[key] = {"start": moved, "end": value["end"] * (moved / number)}
        else:
            found[key] = moved
    return found


_EXPLORING_ROUNDS = 0.5


def first_members(config: ExperimentConfig, run: RunConfig) -> tuple[Member, ...]:
    """Return the members of the first generation, without a learner.

    Control members have the values of the config, the others mutated ones. A mixture mutates
    nothing.
    """
    drawn: list[dict[str, Value]] = [{} for _ in range(config.members)]
    if isinstance(config, PopulationConfig):
        rng = np.random.default_rng(seed_for(config.seed, "first_members"))
        values = values_of(run.model_dump(mode="json"), config.mutation.values)
        drawn = [mutated(values, config.mutation.values, rng) for _ in drawn]
        drawn[: config.control] = [dict(values) for _ in range(config.control)]
    return tuple(Member(number=n, folder=folder_of(n), values=own) for n, own in enumerate(drawn))


def changes_of(values: Mapping[str, Value]) -> dict[Key, Any]:
    """Return the values of a member by their keys in a run's config."""
    return {tuple(key.split(".")): value for key, value in values.items()}


def copies_after(
    config: ExperimentConfig,
    generation: int,
    members: Sequence[TrainedMember],
    learner: TrainedMember | None,
) -> tuple[CopyRecord, ...]:
    """Return the copies that replace members after a generation, in the order of their numbers.

    Args:
        members: the members without the learner, at least one of them with finite weights.
    """
    if isinstance(config, MixtureConfig):
        assert learner is not None
        return _cloned(config, generation, members, learner)
    copies = _selected(config, generation, members)
    if learner is not None and generation % config.inject_every == 0:
        # the worst that is no control, whether selection copies it over or not; never the best
        numbers = [number for number in ranking_of(members)[1:] if number >= config.control]
        if numbers and learner.checkpoint is not None:
            child = members[numbers[-1]]
            values = child.values
            copies[child.number] = _copy_record(
                config, generation, child, learner, "injected", values, values, counters="new"
            )
    return tuple(copies[number] for number in sorted(copies))


def _copy_record(
    config: ExperimentConfig,
    generation: int,
    child: TrainedMember,
    parent: TrainedMember,
    reason: Literal["worse", "non_finite", "always", "injected"],
    old: Mapping[str, Value],
    new: Mapping[str, Value],
    *,
    counters: Literal["keep", "new"] = "keep",
    weight_noise: float = 0.0,
) -> CopyRecord:
    """Return the copy of `parent` that replaces `child` after a generation."""
    assert parent.checkpoint is not None
    folder = folder_of(child.number, copied_after=generation)
    return CopyRecord(
        number=child.number,
        folder=folder,
        parent=parent.number,
        parent_folder=parent.folder,
        parent_checkpoint=parent.checkpoint,
        reason=reason,
        seed=member_seed(config, folder),
        old_values=dict(old),
        new_values=dict(new),
        counters=counters,
        weight_noise=weight_noise,
    )


def _selected(
    config: PopulationConfig, generation: int, members: Sequence[TrainedMember]
) -> dict[int, CopyRecord]:
    """Return the copies by selection, mutated, by the number of the member that is replaced."""
    rng = np.random.default_rng(seed_for(config.seed, f"decision/{generation}"))
    scored = [scored_member(member) for member in members]
    copies = {}
    noise = config.mutation.weights
    for copy in select(scored, config.selection, control=config.control, rng=rng):
        child = members[copy.number]
        parent = members[copy.parent]
        # a control member that became non-finite keeps its own values, with its parent's weights
        is_control = copy.number < config.control
        new = mutated(parent.values, config.mutation.values, rng)
        copies[copy.number] = _copy_record(
            config,
            generation,
            child,
            parent,
            "worse" if child.fitness is not None else "non_finite",
            parent.values,
            child.values if is_control else new,
            weight_noise=0.0 if noise is None or is_control else noise.sigma,
        )
    return copies


def _cloned(
    config: MixtureConfig, generation: int, members: Sequence[TrainedMember], learner: TrainedMember
) -> tuple[CopyRecord, ...]:
    """Return the clones of the learner, or of the best member if the learner is non-finite."""
    scored = [scored_member(member) for member in members]
    everyone = (*members, learner)
    asked: Literal["worse", "always"] = "worse" if config.clone.only_if_better else "always"
    copies = []
    for copy in clones(scored, scored_member(learner), config.clone):
        child = members[copy.number]
        parent = everyone[copy.parent]
        reason = asked if child.fitness is not None else "non_finite"
        copies.append(
            _copy_record(config, generation, child, parent, reason, {}, {}, counters="new")
        )
    return tuple(copies)


def members_after(record: GenerationRecord) -> tuple[Member, ...]:
    """Return the members of the next generation, without a learner."""
    counts_from = {member.number: member.counts_from for member in record.members}
    members = {
        m.number: Member(
            number=m.number, folder=m.folder, values=m.values, counts_from=m.counts_from
        )
        for m in record.members_alone
    }
    for copied in record.copies:
        is_new = copied.counters == "new"
        members[copied.number] = Member(
            number=copied.number,
            folder=copied.folder,
            values=copied.new_values,
            counts_from=record.generation if is_new else counts_from[copied.parent],
        )
    return tuple(members.values())


def fork_of(
    experiment: Experiment, record: GenerationRecord, copied: CopyRecord
) -> tuple[dict[str, object], Mapping[str, object]]:
    """Return the section `fork` of a copy's run, and the values in which its config differs."""
    config = experiment.config
    counters = copied.counters
    if isinstance(config, MixtureConfig):
        fork: dict[str, object] = {"optimiser": config.clone.optimiser, "counters": counters}
        at = record.generation * config.timesteps_per_round
        end = experiment.run.algorithm.model_dump(mode="json")["exploration"]["end"]
        exploration = ExplorationConfig(
            start=max(config.clone.exploration, end),
            end=end,
            fraction=_EXPLORING_ROUNDS / (config.rounds - record.generation),
        )
        return fork, sections_of(counting_anew(experiment.run, at=at, exploration=exploration))
    fork = {"weight_noise": copied.weight_noise, "counters": counters}
    if counters == "new":
        own = _config(config, experiment.run, copied.new_values, record.generation)
        return fork | {"optimiser": "new"}, sections_of(own)
    counts_from = next(m.counts_from for m in record.members if m.number == copied.parent)
    own = _config(config, experiment.run, copied.new_values, counts_from)
    return fork, values_of(own.model_dump(mode="json"), config.mutation.values)


def _config(
    config: PopulationConfig, run: RunConfig, values: Mapping[str, Value], counts_from: int
) -> RunConfig:
    """Return the config of a run that begins at timestep 0, after generation `counts_from`.

    The values of a schedule describe the member's whole training; the run gets what is left.
    """
    run = with_changed(run, changes_of(values))
    if not counts_from:
        return run
    at = counts_from * config.timesteps_per_generation
    exploration = run.algorithm.exploration
    assert exploration is not None  # the config refuses ppo, with a learner
    total = run.total_timesteps
    exploration = exploration_from(exploration, at=at, total_timesteps=total)
    return counting_anew(run, at=at, exploration=exploration)
