"""Change one key of a config, and find the smallest change after which a condition holds."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd

from pydantic import ValidationError

from game_rl.config.algorithms import DQNConfig, PPOConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed

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
    """Smaller batch sizes, largest first: divisors of the rollout, or powers of two for DQN."""
    rollout, batch = config.rollout_timesteps, config.algorithm.batch_size
    if isinstance(config.algorithm, DQNConfig):
        return _powers_of_two(below=batch, least=2)
    below = range(min(batch, rollout) - 1, 1, -1)
    return [size for size in below if rollout % size == 0]


def smaller_micro_batch_sizes(config: RunConfig, together: int) -> Sequence[int]:
    """Powers of two below `together`, the present size; largest first. None unless it is PPO."""
    if not isinstance(config.algorithm, PPOConfig):
        return ()
    return _powers_of_two(below=together, least=_SMALLEST_MICRO_BATCH)


def smaller_capacities(config: RunConfig) -> Sequence[int]:
    """Round numbers below the present capacity of the replay; largest first."""
    if not isinstance(config.algorithm, DQNConfig):
        return ()
    capacity = config.algorithm.replay.capacity
    sizes = (digit * 10**power for power in range(len(str(capacity))) for digit in range(1, 10))
    return sorted((size for size in sizes if size < capacity), reverse=True)


def _powers_of_two(*, below: int, least: int) -> Sequence[int]:
    largest = (below - 1).bit_length() - 1
    return [2**power for power in range(largest, least.bit_length() - 2, -1)]


def smaller_n_steps(config: RunConfig) -> Sequence[int]:
    """Smaller values of n_steps for which batches still divide the rollout; largest first."""
    if isinstance(config.algorithm, DQNConfig):
        return ()
    step = n_steps_unit(config)
    largest = (config.algorithm.n_steps - 1) // step * step
    return range(largest, 0, -step)


def n_steps_unit(config: RunConfig) -> int:
    """Return the number that n_steps must be a multiple of for batches to divide the rollout."""
    batch = config.algorithm.batch_size
    return batch // gcd(batch, config.env.n_envs)


def n_envs_unit(config: RunConfig) -> int:
    """Return the number that n_envs must be a multiple of for batches to divide the rollout."""
    if isinstance(config.algorithm, DQNConfig):
        return 1
    batch = config.algorithm.batch_size
    return batch // gcd(batch, config.algorithm.n_steps)


def smaller_n_envs(config: RunConfig) -> Sequence[int]:
    unit = n_envs_unit(config)
    return range((config.env.n_envs - 1) // unit * unit, 0, -unit)


def larger_n_envs(config: RunConfig, most: int) -> Sequence[int]:
    """Values of n_envs above the present one and up to `most`; largest first."""
    unit = n_envs_unit(config)
    return range(most // unit * unit, config.env.n_envs, -unit)
