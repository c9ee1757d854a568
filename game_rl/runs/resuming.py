"""Going on with a run: with which config, and whether its numbers will be the same."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.checkpoints.checkpoint import CheckpointState
from game_rl.checkpoints.versions import computing, installed_versions, version_differences
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.games.definition import Game

_STREAM = "its random numbers are already being drawn; start a new run for another seed"
_GAME = "the agent has learned this game as it sees and plays it; start a new run for another"
_ENVS = "its emulators go on from where they were; start a new run for other ones"
_NETWORK = "the weights and the rollout are made for it; start a new run for another"
# The longest key that a changed key begins with decides; "" is allowed.
_REASONS = {
    "game": _GAME,
    "seed": _STREAM,
    "run_dir": "the run is where it is; move its folder instead",
    "total_timesteps": "",
    "device": "",
    "env": _GAME,
    "env.n_envs": _ENVS,
    "env.n_workers": "",
    "env.worker_timeout_s": "",
    "algorithm": "",
    "algorithm.name": _NETWORK,
    "evaluation": "",
    "checkpoints": "",
    "recording": "",
}


def changed_config(config_path: Path, overrides: Sequence[str]) -> tuple[RunConfig, list[str]]:
    """The run's config with `overrides`, and what they change, as `key: old -> new`.

    Raises:
        UsageError: a key that cannot change while the run goes on, with the reason.
        ConfigError: the new config is not valid.
    """
    before = load_config(config_path)
    after = load_config(config_path, overrides)
    old, new = flat(before.model_dump(mode="json")), flat(after.model_dump(mode="json"))
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    refused = [f"{key}: {reason}" for key in changed if (reason := _reason(key))]
    if refused:
        raise UsageError("a resumed run cannot change " + "; ".join(refused))
    return after, [f"{key}: {old.get(key)} -> {new.get(key)}" for key in changed]


def flat(section: object, key: str = "") -> dict[str, object]:
    """A nested config as `{"env.n_envs": 8, ...}`."""
    if not isinstance(section, dict):
        return {key: section}
    items: dict[str, object] = {}
    for name, value in section.items():
        items |= flat(value, f"{key}.{name}" if key else name)
    return items


def _reason(key: str) -> str:
    return _REASONS[max((k for k in _REASONS if f"{key}.".startswith(f"{k}.")), key=len)]


def check_same_game(game: Game, state: CheckpointState, path: Path) -> None:
    """Raise CheckpointError if the weights learned on another ROM."""
    if state.rom_sha256 != game.rom.sha256:
        raise CheckpointError(
            f"{path} was trained on a ROM with sha256 {state.rom_sha256}, but {game.rom.path} has "
            f"{game.rom.sha256}; put the ROM back that the run began with"
        )


def differences(state: CheckpointState, device: str) -> tuple[str, ...]:
    """What is not as it was when the checkpoint was made, so that numbers will round otherwise."""
    now = installed_versions() | computing(device)
    return version_differences(state.versions | state.computing, now)
