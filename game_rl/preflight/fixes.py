"""Changes of a config that make it fit: candidates in order, the smallest that helps."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd, lcm

from pydantic import ValidationError

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.preflight import footprint
from game_rl.preflight.footprint import Footprint, Situation
from game_rl.preflight.memory import network_gpu, replay_gpu, together
from game_rl.system.machine import Machine

_SMALLEST_MICRO_BATCH = 16  # smaller ones take longer and save little
_NEIGHBOURS = 64  # values tried where the first one is not a valid config


@dataclass(frozen=True)
class Fix:
    """Set `key` of the config to `value`."""

    key: str
    value: int | str


Holds = Callable[[RunConfig], bool]


def apply_fix(config: RunConfig, fix: Fix) -> RunConfig | None:
    """Return the changed config, or None if it is not valid."""
    try:
        return with_changed(config, {tuple(fix.key.split(".")): fix.value})
    except ValidationError:
        return None


def first_fix(config: RunConfig, fixes: Iterable[Fix], holds: Holds) -> Fix | None:
    """Return the first of `fixes` that gives a valid config for which `holds` is true."""
    for fix in fixes:
        changed = apply_fix(config, fix)
        if changed is not None and holds(changed):
            return fix
    return None


def smallest_fix(
    config: RunConfig, key: str, values: Sequence[int | str], holds: Holds
) -> Fix | None:
    """Return the first of `values` that gives a valid config for which `holds` is true.

    `holds` must be false up to some value and true from there on, because this is a binary search.
    """

    def is_good(value: int | str) -> bool:
        changed = apply_fix(config, Fix(key, value))
        return changed is None or holds(changed)

    start = bisect_left(values, True, key=is_good)
    nearby = (Fix(key, value) for value in values[start : start + _NEIGHBOURS])
    return first_fix(config, nearby, holds)


def smaller_batch_sizes(config: RunConfig) -> Sequence[int]:
    """Smaller batch sizes, largest first: divisors of the rollout, or powers of two for DQN.

    With a memory they have whole sequences.
    """
    rollout = config.rollout_timesteps
    whole = config.algorithm.whole_timesteps
    batch = config.algorithm.batch_size
    if config.algorithm.replay is not None:
        return _powers_of_two(below=batch, least=2)
    below = range(min(batch, rollout) - 1, 1, -1)
    return [size for size in below if rollout % size == 0 and size % whole == 0]


def smaller_micro_batch_sizes(config: RunConfig, together: int) -> Sequence[int]:
    """Powers of two below `together`, the present size; largest first. None without that key.

    With a memory they are so many sequences.
    """
    if "micro_batch_size" not in type(config.algorithm).model_fields:
        return ()
    whole = config.algorithm.whole_timesteps
    sizes = [whole * number for number in _powers_of_two(below=together // whole, least=1)]
    return [size for size in sizes if size >= _SMALLEST_MICRO_BATCH]


def smaller_capacities(config: RunConfig) -> Sequence[int]:
    """Round numbers below the present capacity of the replay; largest first."""
    if config.algorithm.replay is None:
        return ()
    capacity = config.algorithm.replay.capacity
    sizes = (digit * 10**power for power in range(len(str(capacity))) for digit in range(1, 10))
    return sorted((size for size in sizes if size < capacity), reverse=True)


def _powers_of_two(*, below: int, least: int) -> Sequence[int]:
    largest = (below - 1).bit_length() - 1
    return [2**power for power in range(largest, least.bit_length() - 2, -1)]


def smaller_n_steps(config: RunConfig) -> Sequence[int]:
    """Smaller values of n_steps that are multiples of `n_steps_unit`; largest first."""
    n_steps = config.algorithm.n_steps
    if n_steps is None:
        return ()
    step = n_steps_unit(config)
    largest = (n_steps - 1) // step * step
    return range(largest, 0, -step)


def n_steps_unit(config: RunConfig) -> int:
    """Return the number that n_steps must be a multiple of.

    Then batches divide the rollout, and with a memory each env's part of it has whole sequences.
    """
    batch = config.algorithm.batch_size
    return lcm(batch // gcd(batch, config.env.n_envs), config.algorithm.whole_timesteps)


def n_envs_unit(config: RunConfig) -> int:
    """Return the number that n_envs must be a multiple of for batches to divide the rollout."""
    n_steps = config.algorithm.n_steps
    if n_steps is None:
        return 1
    batch = config.algorithm.batch_size
    return batch // gcd(batch, n_steps)


def smaller_n_envs(config: RunConfig) -> Sequence[int]:
    unit = n_envs_unit(config)
    return range((config.env.n_envs - 1) // unit * unit, 0, -unit)


def larger_n_envs(config: RunConfig, most: int) -> Sequence[int]:
    """Values of n_envs above the present one and up to `most`; largest first."""
    unit = n_envs_unit(config)
    return range(most // unit * unit, config.env.n_envs, -unit)


Judge = Callable[[Footprint, Machine], footprint.Verdict]
Change = tuple[str, Sequence[int | str]]
"""A key and values to try for it; the smallest change comes first."""

GREY = Fix("env.observation.colour", "grey")


def cheapest_fix(situation: Situation, judge: Judge, candidates: list[Change]) -> Fix | None:
    """Return the first change after which the verdict is "fits".

    If there is none and the run does not fit at present, the first with the verdict "tight" is
    returned, or None.
    """
    present = judge(situation.footprint, situation.machine)
    wanted: list[set[footprint.Verdict]] = [{"fits"}]
    if present == "does_not_fit":
        wanted.append({"fits", "tight"})
    for good in wanted:

        def holds(changed: RunConfig, good: set[footprint.Verdict] = good) -> bool:
            return judge(situation.footprint_of(changed), situation.machine) in good

        for key, values in candidates:
            fix = smallest_fix(situation.config, key, values, holds)
            if fix is not None:
                return fix
    return None


def _micro_batch_change(situation: Situation) -> Change:
    """Return smaller micro-batches, which come first because they do not change the learning.

    `auto` comes first if it is smaller than the present size, then sizes below `auto`.
    """
    key = "algorithm.micro_batch_size"
    config = situation.config
    facts = situation.facts
    now = together(config, facts)
    automatic = apply_fix(config, Fix(key, "auto"))
    least = now if automatic is None else min(now, together(automatic, facts))
    sizes = smaller_micro_batch_sizes(config, least)
    return (key, ["auto", *sizes] if least < now else sizes)


def storage_key(config: RunConfig) -> str:
    is_replay = config.algorithm.replay is not None
    return "algorithm.replay.capacity" if is_replay else "algorithm.n_steps"


def _storage_change(config: RunConfig) -> Change:
    smaller = smaller_n_steps if config.algorithm.replay is None else smaller_capacities
    return storage_key(config), smaller(config)


def has_needless_colour(situation: Situation) -> bool:
    """Whether grey pictures would show all that the game shows, and are valid for the network."""
    config = situation.config
    is_coloured = config.env.observation.colour != "grey" and situation.facts.four_shades
    return is_coloured and apply_fix(config, GREY) is not None


def _colour_change(situation: Situation) -> list[Change]:
    """Return the change to grey; it loses nothing, so it comes before changes of the learning."""
    return [(GREY.key, [GREY.value])] if has_needless_colour(situation) else []


def _size_change(situation: Situation) -> list[Change]:
    """Return the change to half size, which comes last: small things on the screen may be lost."""
    crop = situation.facts.crop
    size = situation.config.env.observation.size
    halves = size == "full" and crop.height % 2 == crop.width % 2 == 0
    return [("env.observation.size", ["half"])] if halves else []


def ram_changes(situation: Situation) -> list[Change]:
    config = situation.config
    batch: Change = ("algorithm.batch_size", smaller_batch_sizes(config))
    rollout = _storage_change(config)
    last = [("env.n_envs", smaller_n_envs(config)), *_size_change(situation)]
    colour = _colour_change(situation)
    if situation.footprint.ram.peak.name == "update":
        return [_micro_batch_change(situation), *colour, batch, rollout, *last]
    return [*colour, rollout, batch, *last]


def vram_changes(situation: Situation) -> list[Change]:
    """Return changes that free memory of the network's GPU, where the replay may be, too."""
    config = situation.config
    batch: Change = ("algorithm.batch_size", smaller_batch_sizes(config))
    changes = [_micro_batch_change(situation), *_colour_change(situation)]
    if replay_gpu(config) == network_gpu(config, situation.facts):
        changes += replay_vram_changes(situation)
    return [*changes, batch, *_size_change(situation)]


def replay_vram_changes(situation: Situation) -> list[Change]:
    """Return changes that free memory of the replay's GPU."""
    return [("algorithm.replay.device", ["cpu"]), _storage_change(situation.config)]


def disk_changes(situation: Situation) -> list[Change]:
    config = situation.config
    keep_last = config.checkpoints.keep_last
    episodes = config.recording.episodes
    return [
        ("checkpoints.keep_last", range(keep_last - 1, 0, -1)),
        ("recording.episodes", range(episodes - 1, -1, -1)),
        *_size_change(situation),
    ]
