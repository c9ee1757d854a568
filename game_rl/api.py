"""The public API: `import game_rl` offers these names, and loads this module when one is used.

With it, `game_rl.errors` and `game_rl.events` are public. Everything else in the package may change
with any release.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic_core import to_jsonable_python
from stable_baselines3.common.vec_env import VecEnv

from game_rl.callbacks.evaluation import Evaluation
from game_rl.checkpoints.named import find_run
from game_rl.checkpoints.run_game import find_game, moved_game
from game_rl.cli.arguments import named_checkpoint
from game_rl.cli.printing import SafeConsole, forecast_shown
from game_rl.cli.run_console import RunConsole
from game_rl.config import loader
from game_rl.config.bundled_configs import find_config
from game_rl.config.schema import RunConfig
from game_rl.envs.bundled_env import StackedEnv, make_bundled_env
from game_rl.envs.episode_tracker import VariableTeller
from game_rl.errors import GameRLError, NoLakeError, UsageError
from game_rl.events import Event, Listener, event_log
from game_rl.experiments.experiment_dir import refuse_run_of_experiment, run_of
from game_rl.explore.potentials import with_potentials
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.interchange.onnx_export import export_onnx
from game_rl.interchange.sb3_limits import check_new_file, check_zip_to_write, exchangeable
from game_rl.interchange.sb3_zip import export_policy
from game_rl.lake.lake import Lake
from game_rl.lake.lake_feed import lake_path, level_problems
from game_rl.lake.sampler import Sampler
from game_rl.playback.recording import record_run
from game_rl.playback.shown_episode import OverlayItem
from game_rl.playback.trained_policy import TrainedPolicy, trained_policy
from game_rl.playback.trained_run import TrainedRun, evaluate_run, open_trained_run
from game_rl.preflight import preflight as forecasts
from game_rl.preflight.preflight import PreflightReport
from game_rl.system.machine import detect_machine, parse_machine
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from game_rl.training import train as training
from game_rl.training.admission import check_custom_parts
from game_rl.training.extension import PythonCallbacks, given_callbacks
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
    "export",
    "forecast",
    "fork",
    "load_config",
    "load_policy",
    "make_env",
    "make_vec_env",
    "open_lake",
    "preflight",
    "read_events",
    "record",
    "resume",
    "train",
]

ConfigSource = RunConfig | str | os.PathLike[str]
"""A config, its file, or the name of one that comes with game_rl, such as `duel_ppo`."""

Run = str | os.PathLike[str] | TrainingResult | RunConfig
"""A run: its directory, alone or as `runs/mine@T` for the checkpoint of timestep T, the result or
the config of its training. The directory of an experiment stands for its champion."""


# --- configs ----------------------------------------------------------------------------------


def load_config(config: ConfigSource, *changes: str, **keys: object) -> RunConfig:
    """Return the config of a run.

    Args:
        config: a file, or the name of a config that comes with game_rl, such as `duel_ppo`; or a
            config that is to be changed.
        changes: keys to change, each as a text `key=value`, such as `"env.n_envs=8"`.
        keys: keys to change, as in `seed=1` or `env={"n_envs": 8}`, which replaces a whole section.

    Raises:
        GameRLError: the config is wrong; the message has every problem, with its line.
    """
    overrides = [*changes, *_as_texts(keys)]
    if isinstance(config, RunConfig):
        return loader.changed_config(config, overrides, more_checks=level_problems)
    file = find_config(Path(config))
    if file.is_file() and (kind := loader.config_kind(file)) is not None:
        raise UsageError(
            f"{file} describes a {kind}, not a run; train it with game-rl train {config}"
        )
    return loader.load_config(file, overrides, more_checks=level_problems)


def _as_texts(keys: Mapping[str, object]) -> list[str]:
    """Return keys of a config as the command line would have them."""
    plain = {key: to_jsonable_python(value, fallback=str) for key, value in keys.items()}
    return [f"{key}={json.dumps(value)}" for key, value in plain.items()]


def preflight(
    config: ConfigSource, *changes: str, machine: str | None = None, **keys: object
) -> PreflightReport:
    """Forecast memory and disk of a run, and say whether it fits.

    Args:
        config: as in `load_config`, with `changes` and `keys`.
        machine: a machine other than this one, as `game-rl preflight --on` describes it: `small`,
            `medium`, `large`, or `ram=32GiB,vram=0,disk=100GiB,cpus=8`.

    Raises:
        GameRLError: the config or the description of the machine is wrong.
    """
    run = load_config(config, *changes, **keys)
    here = detect_machine(run.run_dir)
    there = here if machine is None else parse_machine(machine, here=here)
    return forecasts.preflight(run, load_game(run.game), there)


def forecast(config: RunConfig, *, machine: str | None = None) -> PreflightReport:
    """Deprecated name of `preflight`."""
    _warn_of("forecast", "preflight")
    return preflight(config, machine=machine)


def _warn_of(old: str, new: str) -> None:
    """Warn whoever calls the caller that a name is deprecated."""
    text = (
        f"game_rl.{old} is deprecated and will be removed in the next release; write game_rl.{new}"
    )
    warnings.warn(text, DeprecationWarning, stacklevel=3)


# --- training ---------------------------------------------------------------------------------


def train(
    config: ConfigSource,
    *changes: str,
    callbacks: PythonCallbacks = None,
    until: int | None = None,
    force: bool = False,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
    **keys: object,
) -> TrainingResult:
    """Train a new run to its end, evaluate its best policy and record a clip of it.

    In the main thread, Ctrl-C, SIGTERM and a closed terminal save the run before they end it. A
    script needs `if __name__ == "__main__":` around this, since workers import it again.

    Args:
        config: as in `load_config`, with `changes` and `keys`, such as `total_timesteps=100_000`.
        callbacks: objects of SB3's `BaseCallback`, or functions, as SB3's `learn` takes them; they
            are called after the run's own. What their `state_dict` returns is saved with each
            checkpoint, and `load_state_dict` gets it when `resume` is given such callbacks again.
        until: timestep at which to save and stop instead; `resume` continues from there.
        force: start even if the run does not fit this machine.
        progress: print the forecast, the progress and the evaluations.
        listeners: functions that are called with each event; see `game_rl.events`.

    Raises:
        GameRLError: the run cannot start, was stopped, or failed; the message says how to continue.
    """
    run = load_config(config, *changes, **keys)
    check_custom_parts(run)
    with _command(until, callbacks, listeners, force=force, progress=progress) as command:
        return training.train(run, command)


def resume(
    run: Run,
    *changes: str,
    at: int | None = None,
    callbacks: PythonCallbacks = None,
    until: int | None = None,
    force: bool = False,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
    **keys: object,
) -> TrainingResult:
    """Continue a run from its newest checkpoint; the other arguments and errors are as in `train`.

    Args:
        run: directory of the run, or what `train` returned.
        changes: keys of its config to change, each as a text `key=value`.
        at: timestep of a kept checkpoint to go back to; later ones are set aside.
        callbacks: those given to `train`, again: a run saves their state, but cannot save the
            objects.
        keys: keys of its config to change, as in `total_timesteps=200_000`.
    """
    root, named = _named_at(run, at)
    refuse_run_of_experiment(root)
    overrides = [*changes, *_as_texts(keys)]
    with _command(until, callbacks, listeners, force=force, progress=progress) as command:
        return training.resume(root, command, overrides=overrides, at=named)


def fork(
    run: Run,
    run_dir: str | os.PathLike[str],
    *changes: str,
    at: int | None = None,
    callbacks: PythonCallbacks = None,
    until: int | None = None,
    force: bool = False,
    progress: bool = True,
    listeners: Sequence[Listener] = (),
    **keys: object,
) -> TrainingResult:
    """Train a new run that starts from a checkpoint of another; the rest is as in `train`.

    Args:
        run: directory of the other run, which stays as it is.
        run_dir: directory of the new run.
        changes: keys of the other run's config to change, each as a text `key=value`, such as
            `"fork.counters=new"`.
        at: timestep of a kept checkpoint to start from; None: the newest.
        until: timestep at which to save and stop; with the checkpoint's own, the new run is only
            created.
        keys: keys to change, as in `total_timesteps=200_000`.
    """
    root, named = _named_at(run, at)
    parent = RunDir(run_of(root))
    source = str(parent.root) if named is None else f"{parent.root}@{named}"
    made = _as_texts({"fork": {"run": source}, "run_dir": run_dir})
    overrides = [*made, *changes, *_as_texts(keys)]
    file = find_run(parent.root).config
    overrides = [*moved_game(parent, overrides), *overrides]
    config = loader.load_config(file, overrides, is_saved=True, more_checks=level_problems)
    check_custom_parts(config)
    with _command(until, callbacks, listeners, force=force, progress=progress) as command:
        return training.train(config, command)


def _named_at(run: Run, at: int | None) -> tuple[Path, int | None]:
    """Return the directory of a run, and the timestep that `runs/mine@T` or `at` names."""
    root, named = named_checkpoint(_place(run))
    if named is not None and at is not None:
        raise UsageError(f"{_place(run)} and at={at} both name a checkpoint; leave one out")
    return root, named if at is None else at


def _place(run: Run) -> str:
    return os.fspath(run.run_dir if isinstance(run, TrainingResult | RunConfig) else run)


@contextlib.contextmanager
def _command(
    until: int | None,
    callbacks: PythonCallbacks,
    listeners: Sequence[Listener],
    *,
    force: bool,
    progress: bool,
) -> Iterator[TrainCommand]:
    given = given_callbacks(callbacks)
    console = SafeConsole(quiet=not progress)
    stop = StopRequest()
    with contextlib.closing(RunConsole(console)) as run_console, stopping_on_signals(stop):
        yield TrainCommand(
            until=until,
            force=force,
            stop=stop,
            callbacks=given,
            listeners=[run_console, *listeners],
            show=forecast_shown(console, is_verbose=False),
        )


# --- envs -------------------------------------------------------------------------------------


def make_env(config: ConfigSource, *, info: Literal["variables"] | None = None) -> StackedEnv:
    """Return one Gymnasium env of a run's game.

    Observations are uint8 [frame_stack * C, H, W], as the run's agent sees them, or a dict of
    arrays if it sees parts. `action_names` has the name of each action, and `read_variables()`
    returns the present value of each variable of the game.

    Args:
        config: as in `load_config`.
        info: "variables" puts `{"variables": {name: value, ...}}` into every `info` of reset and
            step.
    """
    run = _as_config(config)
    game = with_potentials(load_game(run.game), run.env)
    return make_bundled_env(game=game, config=run.env, info=info)


def make_vec_env(
    config: ConfigSource,
    n_envs: int | None = None,
    seed: int | None = None,
    *,
    info: Literal["variables"] | None = None,
) -> VecEnv:
    """Return a vec env of Stable-Baselines3 with worker processes, of a run's game.

    Observations are uint8 [n_envs, frame_stack * C, H, W], or a dict of arrays if the agent sees
    parts. Close it at the end.

    Args:
        config: as in `load_config`.
        n_envs: number of envs; None: as many as in the config.
        seed: seed of the first env; None: the config's.
        info: as in `make_env`, for the infos of each step.
    """
    run = _as_config(config)
    return vec_envs.make_vec_env(
        run.env,
        load_game(run.game),
        n_envs=run.env.n_envs if n_envs is None else n_envs,
        seed=run.seed if seed is None else seed,
        trackers=[] if info is None else [VariableTeller.of],
    )


def _as_config(config: ConfigSource) -> RunConfig:
    return config if isinstance(config, RunConfig) else load_config(config)


# --- what a run has learned -------------------------------------------------------------------


def load_policy(
    run: Run, checkpoint: str | int = "best", *, game: str | os.PathLike[str] | None = None
) -> TrainedPolicy:
    """Return a policy of a run.

    Args:
        run: directory of the run, or what `train` returned.
        checkpoint: `best`, `latest`, or the timestep of a kept checkpoint.
        game: game file to play, or name of a bundled game; None: the run's own.

    Raises:
        GameRLError: there is no such run or checkpoint, or it is damaged.
    """
    return trained_policy(_opened(run, checkpoint, game=game))


def evaluate(
    run: Run,
    checkpoint: str | int = "best",
    *,
    episodes: int = 100,
    deterministic: bool | None = None,
    seed: int | None = None,
    start_state: str | None = None,
    game: str | os.PathLike[str] | None = None,
) -> Evaluation:
    """Play whole episodes with a policy of a run, and return their rewards and successes.

    Args:
        run: directory of the run, or what `train` returned.
        checkpoint: see `load_policy`.
        episodes: number of episodes.
        deterministic: whether the policy takes its most probable actions (True) or samples
            them (False).
            None: as in the evaluation that chose it.
        seed: chooses the episodes; None: those of the run's final evaluation.
        start_state: where each episode starts; None: as in the config.
        game: as in `load_policy`.

    Raises:
        GameRLError: there is no such run, checkpoint or start state.
    """
    _check_episodes(episodes)
    found = _opened(run, checkpoint, deterministic=deterministic, game=game)
    return evaluate_run(found, episodes=episodes, seed=seed, start_state=start_state)


def record(
    run: Run,
    output: str | os.PathLike[str] | None = None,
    checkpoint: str | int = "best",
    *,
    episodes: int = 2,
    deterministic: bool | None = None,
    seed: int | None = None,
    start_states: Sequence[str] | None = None,
    overlay: Collection[OverlayItem] = (),
    grid: bool = False,
    game: str | os.PathLike[str] | None = None,
) -> Path:
    """Record a clip of episodes with a policy of a run, and return its path.

    Args:
        run: as in `load_policy`.
        output: file that ends in .gif, or in .mp4 with the extra `video`; None: one in the run.
        checkpoint: as in `load_policy`, and `deterministic` and `episodes` as in `evaluate`.
        seed: chooses the episodes; None: those of the run's own clip.
        start_states: where episodes start, sampled uniformly; None: as in the config.
        overlay: what is written below the screen, of `action`, `reward` and `value`.
        grid: show the episodes side by side instead of one after the other.
        game: as in `load_policy`.

    Raises:
        GameRLError: there is no such run, checkpoint, start state or format.
    """
    _check_episodes(episodes)
    found = _opened(run, checkpoint, deterministic=deterministic, game=game)
    clip = output or found.run_dir.clip(f"{found.checkpoint.path.name}.gif")
    return record_run(
        found,
        episodes=episodes,
        output=Path(clip),
        seed=seed,
        start_states=start_states,
        overlay=overlay,
        grid=grid,
    )


def export(
    run: Run,
    output: str | os.PathLike[str],
    checkpoint: str | int = "best",
    *,
    format: Literal["sb3", "onnx"] = "sb3",  # noqa: A002 - as on the command line
) -> Path:
    """Write a policy for other programs, and return the path of the file.

    sb3: a zip that `PPO.load` or `DQN.load` of SB3 reads. A network that SB3 lacks needs game_rl to
    be installed where the file is loaded. onnx: a graph for onnxruntime, from the parts of an
    observation by name to `probabilities` (PPO) or `q_values` of the actions.

    Args:
        run: directory of the run, or what `train` returned.
        output: new file that ends in .zip or .onnx.
        checkpoint: see `load_policy`.
        format: format of the file.

    Raises:
        GameRLError: there is no such run or checkpoint, SB3 has no such algorithm, or the file
            exists.
    """
    if format not in ("sb3", "onnx"):
        raise UsageError(f"format is {format!r}; allowed: sb3, onnx")
    found = _opened(run, checkpoint)
    file = Path(output)
    if format == "onnx":
        check_new_file(file, ".onnx", "files of ONNX")
        file.parent.mkdir(parents=True, exist_ok=True)
        export_onnx(found, file)
        return file
    exchangeable(found.config)
    check_zip_to_write(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    export_policy(found, file)
    return file


def _check_episodes(episodes: int) -> None:
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}; allowed: a whole number of at least 1")


def _opened(
    run: Run,
    checkpoint: str | int,
    *,
    deterministic: bool | None = None,
    game: str | os.PathLike[str] | None = None,
) -> TrainedRun:
    root, named = named_checkpoint(_place(run))
    if named is not None and checkpoint != "best":
        raise UsageError(
            f"{_place(run)} and checkpoint={checkpoint!r} both name a checkpoint; leave one out"
        )
    place = None if game is None else os.fspath(game)
    found = open_trained_run(run_of(root), str(checkpoint if named is None else named), place)
    playing = place or find_game(found.run_dir, found.config)
    return replace(
        found,
        config=found.config.model_copy(update={"game": playing}),
        deterministic=found.deterministic if deterministic is None else deterministic,
    )


# --- what a run has written -------------------------------------------------------------------


def read_events(run: Run) -> list[Event]:
    """Return the events of a run, oldest first.

    Each is an object of one of the classes of `game_rl.events`. Events that a resume has superseded
    are left out, as are lines that are torn or that this version does not know.

    Args:
        run: directory of the run, or what `train` returned.

    Raises:
        GameRLError: there is no such run.
    """
    root, _ = named_checkpoint(_place(run))
    return event_log.read_events(find_run(run_of(root)))


def open_lake(path: Run) -> Lake:
    """Open a Lake, or the one that a run writes: `Sampler(open_lake(path).view())` draws from it.

    Args:
        path: folder of the Lake, or a run.

    Raises:
        GameRLError: there is no Lake.
    """
    folder = Path(_place(path))
    run_dir = RunDir(folder)
    if not run_dir.exists():
        return Lake.open(folder)
    config = loader.load_config(run_dir.config, is_saved=True)
    if config.lake is None:
        raise NoLakeError(f"{folder} is a run without a Lake; train it with lake={{}}")
    return Lake.open(lake_path(config.lake, run_dir))
