"""Other ways to divide the same training among emulators and processes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, with_changed
from game_rl.errors import UsageError
from game_rl.vec_env.workers import training_workers

_ENVS_PER_CPU = 32  # more make n_steps shorter and are no faster
_HORIZONS = 2  # of GAE; a rollout should have at least so many


@dataclass(frozen=True)
class EnvSetting:
    """The config values that tuning changes; with `n_workers` None, `training_workers` decides."""

    n_envs: int
    n_workers: int | None
    n_steps: int

    @property
    def values(self) -> Mapping[Key, int | None]:
        """The values by their keys in the config."""
        return {
            ("env", "n_envs"): self.n_envs,
            ("env", "n_workers"): self.n_workers,
            ("algorithm", "n_steps"): self.n_steps,
        }

    def changes_of(self, other: "EnvSetting") -> Mapping[Key, int | None]:
        """Return the values that differ from those of the other setting."""
        return {key: value for key, value in self.values.items() if value != other.values[key]}

    def workers(self, cpus: int) -> int:
        """Return the number of processes that the setting starts."""
        return training_workers(self.n_workers, n_envs=self.n_envs, cpus=cpus)

    def does_as(self, other: "EnvSetting", cpus: int) -> bool:
        """Whether both start the same envs in the same processes."""
        return (self.n_envs, self.workers(cpus)) == (other.n_envs, other.workers(cpus))


def setting_of(config: RunConfig) -> EnvSetting:
    """Return the setting of a config where more envs can be traded for shorter rollouts of each.

    Raises:
        UsageError: the algorithm has no rollouts.
    """
    n_steps = config.algorithm.n_steps
    if n_steps is None:
        raise UsageError(
            f"algorithm.name is {config.algorithm.name}, which learns after a few timesteps of "
            "each env, so another number of envs changes the training. Compare some with game-rl "
            "preflight --probe --set env.n_envs=N"
        )
    return EnvSetting(config.env.n_envs, config.env.n_workers, n_steps)


def with_setting(config: RunConfig, setting: EnvSetting) -> RunConfig:
    """Return the config with this setting.

    Raises:
        ValidationError: the changed config is not valid.
    """
    return with_changed(config, setting.values)


def env_settings(config: RunConfig, cpus: int) -> list[EnvSetting]:
    """Return other numbers of envs, about doubling from one for each CPU, with the same rollout.

    n_steps x n_envs stays the same, and with it batches and updates. n_steps is at least twice the
    horizon of the advantages, 1 / (1 - gamma lambda), so the end of a rollout has little effect on
    them. If the present n_steps is less than that, it is the lower limit. An agent with a memory
    learns whole sequences, so n_steps has as many timesteps or a multiple of them.
    """
    rollout = config.rollout_timesteps
    present = setting_of(config)
    shortest = min(_horizons(config), present.n_steps)
    sequence = config.algorithm.whole_timesteps
    divisors = [
        n
        for n in range(1, max(_ENVS_PER_CPU * cpus, present.n_envs) + 1)
        if rollout % (n * sequence) == 0 and rollout // n >= shortest
    ]
    rungs = (cpus * 2**power for power in range(_ENVS_PER_CPU.bit_length()))
    chosen = {min(divisors, key=lambda n: abs(math.log(n / rung))) for rung in rungs}
    found = (EnvSetting(n, None, rollout // n) for n in sorted(chosen))
    return [
        setting
        for setting in found
        if not setting.does_as(present, cpus) and _is_valid(config, setting)
    ]


def worker_settings(setting: EnvSetting, cpus: int) -> list[EnvSetting]:
    """Return the same envs on other numbers of processes than `setting` starts."""
    numbers = {cpus // 2, cpus - 1, cpus, 2 * cpus}
    found = (replace(setting, n_workers=n) for n in sorted(numbers) if 1 <= n <= setting.n_envs)
    return [other for other in found if not other.does_as(setting, cpus)]


def _is_valid(config: RunConfig, setting: EnvSetting) -> bool:
    try:
        with_setting(config, setting)
    except ValidationError:
        return False
    return True


def _horizons(config: RunConfig) -> float:
    algorithm = config.algorithm
    forgotten = 1 - algorithm.gamma * algorithm.trace_decay
    return _HORIZONS / forgotten if forgotten else math.inf
