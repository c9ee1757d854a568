"""Going on with a run: with which config, and whether its numbers will be the same."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from game_rl.checkpoints.checkpoint import Best, Checkpoint, CheckpointState
from game_rl.checkpoints.versions import computing, installed_versions, version_differences
from game_rl.config.older import saved_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.games.definition import Game
from game_rl.run_dir import RunDir

_STREAM = "its random numbers are already being drawn; start a new run for another seed"
_SEEN = "the agent has learned the game as it sees and plays it; start a new run for another way"
_ENVS = "its emulators go on from where they were; start a new run for other ones"
_NETWORK = "the weights and the rollout are made for it; start a new run for another"
# The longest key that a changed key begins with decides; "" is allowed.
_CONFIG_REASONS = {
    "game": "",  # a path; what the file says is compared
    "seed": _STREAM,
    "env": _SEEN,
    "env.n_envs": _ENVS,
    "env.n_workers": "",
    "env.worker_timeout_s": "",
    "algorithm.name": _NETWORK,
    "algorithm.layer_norm": _NETWORK,
}
_GAME_REASONS = {"actions": "each output of the network stands for one of them; start a new run"}


def changes(state: CheckpointState, config: RunConfig, game: Game) -> list[str]:
    """How config and game file differ from those of the checkpoint, as `key: old -> new`.

    `run_dir` and the ROM's path are left out: files may have been moved.

    Raises:
        UsageError: a key that cannot change while a run goes on, with the reason.
    """
    old_config = saved_config(state.config, source="the checkpoint")
    new_game = game.definition.model_dump(mode="json", by_alias=True)
    return [
        *_changes(old_config, config.model_dump(mode="json"), _CONFIG_REASONS, "run_dir"),
        *_changes(state.game, new_game, _GAME_REASONS, "rom.path"),
    ]


def _changes(
    before: Mapping[str, object],
    now: Mapping[str, object],
    reasons: Mapping[str, str],
    left_out: str,
) -> list[str]:
    old, new = flat(dict(before)), flat(dict(now))
    changed = [k for k in {**old, **new} if old.get(k) != new.get(k) and k != left_out]
    refused = [
        f"{key} (it was {old.get(key)}, now {new.get(key)}): {reason}"
        for key in changed
        if (reason := _reason(key, reasons))
    ]
    if refused:
        raise UsageError("a resumed run cannot change " + "; ".join(refused))
    return [f"{key}: {old.get(key)} -> {new.get(key)}" for key in changed]


def flat(section: object, key: str = "") -> dict[str, object]:
    """A nested config as `{"env.n_envs": 8, ...}`."""
    if not isinstance(section, dict):
        return {key: section}
    items: dict[str, object] = {}
    for name, value in section.items():
        items |= flat(value, f"{key}.{name}" if key else name)
    return items


def _reason(key: str, reasons: Mapping[str, str]) -> str:
    fitting = [known for known in reasons if f"{key}.".startswith(f"{known}.")]
    return reasons[max(fitting, key=len)] if fitting else ""


def usable_best(run_dir: RunDir, state: CheckpointState, console: Console) -> Best | None:
    """The best evaluation so far; None, and told, if its checkpoint is lost."""
    if state.best is None:
        return None
    try:
        Checkpoint(run_dir.checkpoint(state.best.timesteps)).verify()
    except CheckpointError as error:
        console.print(
            f"[yellow]warning:[/] the best policy so far, mean reward "
            f"{state.best.mean_reward:.2f}, is lost:",
            escape(str(error)),
            "; the best one from here on is kept",
        )
        return None
    return state.best


def differences(state: CheckpointState, device: str) -> tuple[str, ...]:
    """What is not as it was when the checkpoint was made, so that numbers will round otherwise."""
    now = installed_versions() | computing(device)
    return version_differences(state.versions | state.computing, now)
