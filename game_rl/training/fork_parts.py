"""Which parts of a checkpoint a fork takes over, by what is different in it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from game_rl.checkpoints.forked import NewParts
from game_rl.checkpoints.state import CheckpointState
from game_rl.config.changed_values import flat
from game_rl.config.fork import ForkConfig
from game_rl.config.older import saved_config
from game_rl.config.schema import RunConfig
from game_rl.errors import UsageError
from game_rl.games.definition import Game

_FORK_AND_PLACE = ("run_dir", "fork")
_HOW_ENVS_RUN = ("env.n_workers", "env.worker_timeout_s")
_REPLAY_KEYS = (
    "env.n_envs",
    "env.frame_skip",
    "env.frame_stack",
    "env.observation",
    "algorithm.replay.capacity",
)


@dataclass(frozen=True)
class Differences:
    """How a fork's config and game are not its parent's, by key: old and new value."""

    config: Mapping[str, tuple[object, object]]
    game: Mapping[str, tuple[object, object]]

    def told(self) -> tuple[str, ...]:
        both = {**self.config, **self.game}
        return tuple(f"{key}: {old} -> {new}" for key, (old, new) in both.items())

    def config_keys(self, sections: Collection[str], *, but: Collection[str] = ()) -> list[str]:
        """Those in one of the sections, which a key of its own is, too."""
        return [key for key in self.config if _is_in(key, sections) and not _is_in(key, but)]


def find_differences(state: CheckpointState, config: RunConfig, game: Game) -> Differences:
    """Raise UsageError if the game has other actions: each output of the network is one of them."""
    old = saved_config(state.config, source="the checkpoint")
    definition = game.definition.model_dump(mode="json", by_alias=True)
    found = Differences(
        _different(old, config.model_dump(mode="json"), (*_FORK_AND_PLACE, "game")),
        _different(state.game, definition, ("rom.path",)),
    )
    actions = [key for key in found.game if _is_in(key, ("actions",))]
    if actions:
        raise UsageError(
            f"a fork cannot change {actions[0]}: each output of the network stands for an action; "
            "give the game the actions that its parent had, or start a new run"
        )
    return found


def new_parts(differences: Differences, fork: ForkConfig) -> NewParts:
    """What begins anew.

    Raises:
        UsageError: the algorithm is another one, and its optimiser is to be kept.
    """
    seed, algorithm = ("seed" in differences.config, "algorithm.name" in differences.config)
    if algorithm and fork.optimiser == "keep":
        old, new = differences.config["algorithm.name"]
        raise UsageError(
            f"{new} cannot go on with the optimiser of {old}; add --set fork.optimiser=new, which "
            "keeps the weights"
        )
    return NewParts(
        optimiser=fork.optimiser == "new",
        counters=fork.counters == "new",
        emulators=seed or bool(differences.config_keys(("env",), but=_HOW_ENVS_RUN)),
        random_numbers=seed,
        replay=algorithm or bool(differences.config_keys(_REPLAY_KEYS)),
        algorithm=algorithm,
    )


def is_judged_otherwise(differences: Differences) -> bool:
    """Whether a mean reward of the parent's evaluations says nothing of the fork's."""
    how = ("env.n_envs", *_HOW_ENVS_RUN)
    return (
        "seed" in differences.config
        or bool(differences.game)
        or bool(differences.config_keys(("env",), but=how))
    )


def is_taught_the_same(differences: Differences) -> bool:
    """Whether what was measured of the parent's teacher holds for the fork's."""
    teacher = ("algorithm.name", "algorithm.teacher.run", "algorithm.teacher.temperature")
    return not is_judged_otherwise(differences) and not differences.config_keys(teacher)


def told_anew(
    new: NewParts, differences: Differences, *, had_replay: bool, had_best: bool
) -> Iterator[str]:
    """What begins anew, each with the reason; for people."""
    seed = "another seed" if new.random_numbers else ""
    envs = ", ".join(differences.config_keys(("env",), but=_HOW_ENVS_RUN))
    replay = ", ".join(differences.config_keys((*_REPLAY_KEYS, "algorithm.name")))
    rows: tuple[tuple[bool, str, str], ...] = (
        (new.algorithm, "what the algorithm keeps beside its network", "another algorithm"),
        (new.optimiser, "the optimiser", "fork.optimiser is new"),
        (new.counters, "timesteps, schedules and curves", "fork.counters is new"),
        (new.random_numbers, "the random numbers", seed),
        (new.emulators, "the episodes of the emulators", envs or seed),
        (new.replay and had_replay, "the replay", replay),
        (had_best, "the best evaluation", "the fork is judged otherwise, or counts anew"),
    )
    for is_new, part, reason in rows:
        if is_new:
            yield f"{part} ({reason})"


def _different(
    before: Mapping[str, object], now: Mapping[str, object], left_out: Collection[str]
) -> dict[str, tuple[object, object]]:
    old, new = flat(dict(before)), flat(dict(now))
    return {
        key: (old.get(key), new.get(key))
        for key in {**old, **new}
        if old.get(key) != new.get(key) and not _is_in(key, left_out)
    }


def _is_in(key: str, sections: Collection[str]) -> bool:
    return any(f"{key}.".startswith(f"{section}.") for section in sections)
