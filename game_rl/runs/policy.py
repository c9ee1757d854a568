"""A trained policy out of a run directory, ready to play."""

from dataclasses import dataclass
from pathlib import Path

from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy

from game_rl import schedules
from game_rl.callbacks.checkpoint import (
    CheckpointState,
    load_policy,
    newest_valid_checkpoint,
    read_state,
    verify_checkpoint,
)
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.games.definition import Game, load_game
from game_rl.run_dir import RunDir


@dataclass(frozen=True)
class TrainedRun:
    """One checkpoint of a run with all that is needed to let it play."""

    run_dir: RunDir
    config: RunConfig
    game: Game
    checkpoint: Path
    state: CheckpointState

    def policy(
        self, observation_space: spaces.Space[object], action_space: spaces.Space[object]
    ) -> ActorCriticCnnPolicy:
        """The checkpoint's network, on the CPU."""
        policy = ActorCriticCnnPolicy(observation_space, action_space, schedules.constant(0.0))
        try:
            policy.load_state_dict(load_policy(self.checkpoint))
        except (RuntimeError, ValueError) as error:
            raise CheckpointError(f"{self.checkpoint} does not match its config: {error}") from None
        return policy


def open_run(root: Path) -> tuple[RunDir, RunConfig]:
    """The run at `root` and its config as resolved when it began."""
    run_dir = RunDir(root)
    if not run_dir.exists():
        raise UsageError(
            f"{root} is not a run directory: it has no {run_dir.config.name}; "
            "name the run_dir of a training, such as runs/duel_ppo"
        )
    return run_dir, load_config(run_dir.config)


def open_trained_run(root: Path, checkpoint: str) -> TrainedRun:
    """The checkpoint `best`, `latest` or a number of timesteps of the run at `root`."""
    run_dir, config = open_run(root)
    game = load_game(config.game)
    path = _find_checkpoint(run_dir, checkpoint)
    state = read_state(path)
    check_rom(game, state, path)
    return TrainedRun(run_dir, config, game, path, state)


def check_rom(game: Game, state: CheckpointState, path: Path) -> None:
    """Raise CheckpointError if the weights learned on another ROM."""
    if state.rom_sha256 != game.rom.sha256:
        raise CheckpointError(
            f"{path} was trained on a ROM with sha256 {state.rom_sha256}, but {game.rom.path} has "
            f"{game.rom.sha256}; put the ROM back that the run began with"
        )


def _find_checkpoint(run_dir: RunDir, name: str) -> Path:
    if name == "latest":
        return newest_valid_checkpoint(run_dir)[0]
    if name == "best":
        path = run_dir.best
        if not path.exists():
            raise CheckpointError(
                f"{run_dir.root} has no best checkpoint yet: no evaluation has ended; "
                "use --checkpoint latest"
            )
    elif name.replace("_", "").replace(",", "").isdecimal():
        path = run_dir.checkpoint(int(name.replace("_", "").replace(",", "")))
        if not path.exists():
            found = [f"{int(p.name):,}" for p in run_dir.checkpoints_newest_first()]
            raise CheckpointError(
                f"{run_dir.root} has no checkpoint at timestep {name}; it has: "
                + (", ".join(found) or "none")
            )
    else:
        raise UsageError(f"--checkpoint is best, latest or a timestep, not {name!r}")
    verify_checkpoint(path)
    return path
