"""Decide which parts of a checkpoint a fork takes over, from its differences to the parent."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.checkpoints.forked import NewParts
from game_rl.config.migration import saved_config
from game_rl.config.schema import ForkConfig, RunConfig
from game_rl.config.strict_model import flat
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
    """Old and new values, by key, where a fork's config and game differ from its parent's."""

    config: Mapping[str, tuple[object, object]]
    game: Mapping[str, tuple[object, object]]

    def told(self) -> tuple[str, ...]:
        """Return the differences as `key: old -> new`."""
        both = {**self.config, **self.game}
        return tuple(f"{key}: {old} -> {new}" for key, (old, new) in both.items())

    def config_keys(self, sections: Collection[str], *, but: Collection[str] = ()) -> list[str]:
        """Return the keys of the config that differ and are in `sections` but not in `but`.

        A full key counts as a section, too.
        """
        return [key for key in self.config if _is_in(key, sections) and not _is_in(key, but)]


def find_differences(state: CheckpointState, config: RunConfig, game: Game) -> Differences:
    """Compare a fork's config and game with its parent's at the checkpoint.

    Raises:
        UsageError: the game's actions differ; each output of the network stands for one of them.
    """
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
    """Return the parts of the fork that begin anew.

    Raises:
        UsageError: the algorithm differs, but the fork asks to keep the optimiser.
    """
    seed, algorithm = ("seed" in differences.config, "algorithm.name" in differences.config)
    if algorithm and fork.optimiser == "keep":
        old, new = differences.config["algorithm.name"]
        raise UsageError(
            f"{new} cannot continue with the optimiser of {old}; add --set "
            "fork.optimiser=new, which keeps the weights"
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
    """Whether the parent's evaluations cannot be compared with the fork's."""
    how = ("env.n_envs", *_HOW_ENVS_RUN)
    return (
        "seed" in differences.config
        or bool(differences.game)
        or bool(differences.config_keys(("env",), but=how))
    )


def is_taught_the_same(differences: Differences) -> bool:
    """Whether the fork has the parent's teacher, and its measurements remain valid."""
    teacher = ("algorithm.name", "algorithm.teacher.run", "algorithm.teacher.temperature")
    return not is_judged_otherwise(differences) and not differences.config_keys(teacher)


def told_anew(
    new: NewParts, differences: Differences, *, had_replay: bool, had_best: bool
) -> Iterator[str]:
    """Yield descriptions, for people, of the parts that begin anew, each with the reason."""
    seed = "another seed" if new.random_numbers else ""
    envs = ", ".join(differences.config_keys(("env",), but=_HOW_ENVS_RUN))
    replay = ", ".join(differences.config_keys((*_REPLAY_KEYS, "algorithm.name")))
    rows: tuple[tuple[bool, str, str], ...] = (
        (new.algorithm, "the algorithm's state other than its network", "another algorithm"),
        (new.optimiser, "the optimiser", "fork.optimiser is new"),
        (new.counters, "timesteps, schedules and curves", "fork.counters is new"),
        (new.random_numbers, "the random numbers", seed),
        (new.emulators, "the episodes of the emulators", envs or seed),
        (new.replay and had_replay, "the replay", replay),
        (had_best, "the best evaluation", "the fork is evaluated differently, or counts anew"),
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
