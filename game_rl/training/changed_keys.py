"""Keys of the config and the game file that differ from a checkpoint's, and those that must not."""

from collections.abc import Mapping

from game_rl.checkpoints.checkpoint_state import CheckpointState
from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import flat
from game_rl.errors import UsageError
from game_rl.games.definition import Game

_STREAM = "its random numbers are already being drawn; start a new run for another seed"
_SEEN = "the agent has learned the game as it sees and plays it; start a new run to change that"
_ENVS = "its emulators continue from their saved states; start a new run for another number"
_NETWORK = "the weights and the rollout are made for it; start a new run to change it"
_OFFLINE = "the phase before the first timestep has begun; start a new run to change it"
_TEACHER = (
    "the agent has one teacher from its beginning on; only weight, until and keep_if_better may "
    "change"
)
# Reasons why keys cannot change; "" if a key can. The longest entry that a changed key begins with
# decides. Keys without an entry can change.
_CONFIG_REASONS = {
    "game": "",  # a path; the file's content is compared
    "seed": _STREAM,
    "fork": "a run is forked once, at its beginning; fork the other run into a new folder",
    "env": _SEEN,
    "env.n_envs": _ENVS,
    "env.n_workers": "",
    "env.worker_timeout_s": "",
    "algorithm.name": _NETWORK,
    "algorithm.layer_norm": _NETWORK,
    "algorithm.learn_from.offline.gradient_steps": _OFFLINE,
    "algorithm.teacher": _TEACHER,
    "algorithm.teacher.weight": "",
    "algorithm.teacher.until": "",
    "algorithm.teacher.keep_if_better": "",
}
_GAME_REASONS = {"actions": "each output of the network stands for one of them; start a new run"}


def changes(state: CheckpointState, config: RunConfig, game: Game) -> list[str]:
    """List the differences of config and game file from the checkpoint's, as `key: old -> new`.

    `run_dir` and the ROM's path are left out, because files may have been moved.

    Raises:
        UsageError: a key differs that cannot change in a resumed run.
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


def _reason(key: str, reasons: Mapping[str, str]) -> str:
    fitting = [known for known in reasons if f"{key}.".startswith(f"{known}.")]
    return reasons[max(fitting, key=len)] if fitting else ""
