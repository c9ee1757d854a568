"""The public API: `import game_rl` offers these names, and loads this module when one is used.

Everything else in the package may change with any release.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rich.console import Console
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.evaluation import Evaluation
from game_rl.cli.run_console import RunConsole
from game_rl.config import loader
from game_rl.config.bundled_configs import find_config
from game_rl.config.schema import RunConfig
from game_rl.envs.bundled_env import StackedEnv, make_bundled_env
from game_rl.envs.make_env import make_observation_format
from game_rl.envs.observation import Observation
from game_rl.errors import GameRLError, NoLakeError
from game_rl.events import Event, Listener
from game_rl.games.definition import load_game
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import lake_path, level_problems
from game_rl.lake.sampler import Sampler
from game_rl.playback.recording import record_run
from game_rl.playback.trained_run import TrainedRun, evaluate_run, open_trained_run
from game_rl.preflight.preflight import preflight
from game_rl.preflight.preflight_report import PreflightReport, render_report
from game_rl.run_dir import RunDir
from game_rl.system.machine import detect_machine, parse_machine
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from game_rl.training import train as training
from game_rl.training.admission import check_custom_parts
from game_rl.training.train import TrainCommand, TrainingResult
from game_rl.vec_env import make_vec_env as vec_envs

__all__ = [
    "Evaluation",
    "Event",
    "GameRLError",
    "Lake",
    "PreflightReport",
    "RunConfig",
    "Sampler",
    "TrainedPolicy",
    "TrainingResult",
    "evaluate",
    "forecast",
    "load_config",
    "load_policy",
    "make_env",
    "make_vec_env",
    "open_lake",
    "record",
    "resume",
    "train",
]


def load_config(config: str | Path, *changes: str) -> RunConfig:
    """Return the config of a run.

    Args:
        config: a file, or the name of a config that comes with game_rl, such as `duel_ppo`.
        changes: keys to override, each as `key=value`, such as `env.n_envs=8`.

    Raises:
        GameRLError: the config is wrong; the message has every problem, with its line.
    """
    return loader.load_config(find_config(Path(config)), changes, more_checks=level_problems)


def forecast(config: RunConfig, *, machine: str | None = None) -> PreflightReport:
    """Forecast memory and disk of a run, and say whether it fits.

    Args:
        machine: another machine than this one, as `game-rl preflight --on` describes it: `small`,
            `medium`, `large`, or `ram=32GiB,vram=0,disk=100GiB,cpus=8`.
    """
    here = detect_machine(config.run_dir)
    there = here if machine is None else parse_machine(machine, here=here)
    return preflight(config, load_game(config.game), there)


def train(
    config: RunConfig,
    *,
    until: int | None = None,
    force: bool = False,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
) -> TrainingResult:
    """Train a new run to its end, evaluate its best policy and record a clip of it.

    In the main thread, Ctrl-C and SIGTERM save the run before they end it. A script needs
    `if __name__ == "__main__":` around this, since workers import it again.

    Args:
        until: timestep at which to save and stop instead; `resume` continues from there.
        force: start even if the run does not fit this machine.
        progress: print the forecast, the progress and the evaluations.
        listeners: functions that are called with each event; see `game_rl.events`.

    Raises:
        GameRLError: the run cannot begin, was stopped, or failed; the message says how to continue.
    """
    check_custom_parts(config)
    with _command(until, force=force, progress=progress, listeners=listeners) as command:
        return training.train(config, command)


def resume(
    run: str | Path,
    *changes: str,
    at: int | None = None,
    until: int | None = None,
    force: bool = False,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
) -> TrainingResult:
    """Continue a run from its newest checkpoint; arguments and errors are as in `train`.

    Args:
        run: directory of the run.
        changes: keys of its config to override, each as `key=value`.
        at: timestep of a kept checkpoint to go back to; later ones are set aside.
    """
    with _command(until, force=force, progress=progress, listeners=listeners) as command:
        return training.resume(Path(run), command, overrides=changes, at=at)


@contextlib.contextmanager
def _command(
    until: int | None, *, force: bool, progress: bool, listeners: Sequence[Listener]
) -> Iterator[TrainCommand]:
    console, stop = Console(quiet=not progress), StopRequest()
    with contextlib.closing(RunConsole(console)) as run_console, stopping_on_signals(stop):
        yield TrainCommand(
            until=until,
            force=force,
            stop=stop,
            listeners=[run_console, *listeners],
            show=lambda report: console.print(render_report(report)),
        )


def make_env(config: RunConfig, *, info: Literal["variables"] | None = None) -> StackedEnv:
    """Return one Gymnasium env of a run's game.

    Observations are uint8 [frame_stack * C, H, W], as the run's agent sees them, or a dict of
    arrays if it sees parts. `action_names` has the name of each action, and `read_variables()`
    returns the present value of each variable of the game.

    Args:
        info: "variables" puts `{"variables": {name: value, ...}}` into every `info` of reset and
            step.
    """
    return make_bundled_env(game=config.game, config=config.env, info=info)


def make_vec_env(
    config: RunConfig,
    *,
    n_envs: int | None = None,
    seed: int | None = None,
    info: Literal["variables"] | None = None,
) -> VecEnv:
    """Return a vec env of Stable-Baselines3 with worker processes, of a run's game.

    Observations are uint8 [n_envs, frame_stack * C, H, W], or a dict of arrays if the agent sees
    parts. Close it at the end.

    Args:
        n_envs: None: as many as in the config.
        seed: seed of the first env; None: the config's.
        info: as in `make_env`, for the infos of each step.
    """
    return vec_envs.make_vec_env(
        config.env,
        load_game(config.game),
        n_envs=config.env.n_envs if n_envs is None else n_envs,
        seed=config.seed if seed is None else seed,
        tells_variables=info is not None,
    )


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy of a run.

    Attributes:
        config: config of the run, with which `make_env` makes the game that it plays.
        action_names: buttons that each action presses.
        timesteps: timesteps that it has learned from.
        deterministic: whether `act` takes the likeliest actions or draws them, as in the
            evaluation that chose the policy.
        network: policy of Stable-Baselines3, on the CPU.
    """

    config: RunConfig
    action_names: tuple[str, ...]
    timesteps: int
    deterministic: bool
    network: BasePolicy

    def act(self, observations: Observation) -> NDArray[np.int64]:
        """Return the action for an observation of `make_env`, or those for a vec env's."""
        seen = dict(observations) if isinstance(observations, Mapping) else observations
        actions, _ = self.network.predict(seen, deterministic=self.deterministic)
        return np.asarray(actions, np.int64)


def load_policy(run: str | Path, *, checkpoint: str = "best") -> TrainedPolicy:
    """Return a policy of a run.

    Args:
        run: directory of the run.
        checkpoint: `best`, `latest`, or the timestep of a kept checkpoint.

    Raises:
        GameRLError: there is no such run or checkpoint, or it is damaged.
    """
    found = _opened(run, checkpoint)
    action_names = tuple(found.game.action_names)
    return TrainedPolicy(
        config=found.config,
        action_names=action_names,
        timesteps=found.state.num_timesteps,
        deterministic=found.deterministic,
        network=found.policy(
            make_observation_format(found.config.env, found.game).space,
            spaces.Discrete(len(action_names)),
        ),
    )


def evaluate(
    run: str | Path,
    *,
    checkpoint: str = "best",
    episodes: int = 100,
    seed: int | None = None,
    start_state: str | None = None,
) -> Evaluation:
    """Play whole episodes with a policy of a run, and return their rewards and successes.

    Args:
        checkpoint: see `load_policy`.
        seed: chooses the episodes; None: those of the run's final evaluation.
        start_state: where each episode begins; None: as in the config.
    """
    found = _opened(run, checkpoint)
    return evaluate_run(found, episodes=episodes, seed=seed, start_state=start_state)


def record(
    run: str | Path,
    output: str | Path,
    *,
    checkpoint: str = "best",
    episodes: int = 2,
    seed: int | None = None,
) -> Path:
    """Record a clip of episodes with a policy of a run, and return its path.

    Args:
        output: file that ends in .gif, or in .mp4 with the extra `video`.
        checkpoint: see `load_policy`.
        seed: chooses the episodes; None: those of the run's own clip.
    """
    found = _opened(run, checkpoint)
    return record_run(found, episodes=episodes, output=Path(output), seed=seed)


def _opened(run: str | Path, checkpoint: str) -> TrainedRun:
    return open_trained_run(Path(run), checkpoint)


def open_lake(path: str | Path) -> Lake:
    """Open a Lake, or the one that a run writes: `Sampler(open_lake(path).view())` draws from it.

    Args:
        path: folder of the Lake, or directory of the run.

    Raises:
        GameRLError: there is no Lake.
    """
    run_dir = RunDir(Path(path))
    if not run_dir.exists():
        return Lake.open(Path(path))
    config = loader.load_config(run_dir.config, is_saved=True)
    if config.lake is None:
        raise NoLakeError(f"{path} is a run without a Lake; train it with lake={{}}")
    return Lake.open(lake_path(config.lake, run_dir))
