"""What a feature of a run is to its session: an extension, which knows the run, not the reverse.

A session builds a run and trains it. Whatever else a run does stands in a file of its own: the Lake
that it writes, the Lakes that it learns from, its teacher, its upload. The table in
`make_callbacks` lists them. What needs no torch of a feature is declared in its room (`features`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from pydantic import JsonValue
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback
from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.algorithm import LeanAlgorithm
from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.evaluation import Evaluation, EvaluationGames, Values
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.checkpoints.checkpoint_state import Best, CheckpointState, FixedState
from game_rl.checkpoints.checkpoint_store import CheckpointCompanion
from game_rl.config.schema import RunConfig
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.envs.observation import ObservationFormat
from game_rl.errors import UsageError
from game_rl.events import FREQUENT_BOUNDARIES_TIMESTEPS
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.playback.trained_run import TrainedRun
from game_rl.seeds import seed_for
from game_rl.system.process_memory import PssSampler
from game_rl.system.stop_request import StopRequest
from game_rl.training.fork_parts import ForkPlan

CallbackFunction = Callable[[dict[str, Any], dict[str, Any]], bool]
"""A function that SB3 calls after each vec step with the locals and globals of its loop."""

PythonCallbacks = BaseCallback | CallbackFunction | Sequence[BaseCallback | CallbackFunction] | None
"""What SB3's `learn` takes as its callback."""


@dataclass(frozen=True)
class GivenCallback:
    """A callback that Python code has made; of what a `CustomPart` has, what is needed here.

    Attributes:
        key: its place among the callbacks that were given.
        reference: `module:Class` of its class, or of the function.
        own: the callback.
    """

    key: tuple[str, ...]
    reference: str
    own: BaseCallback

    @property
    def arguments(self) -> Mapping[str, JsonValue]:
        return {}

    @property
    def name(self) -> str:
        """Its place and class, for messages."""
        return f"{self.key[0]}, {self.reference}"

    def load_callback(self, folder: Path) -> Callable[..., BaseCallback]:  # noqa: ARG002
        return lambda: self.own


def given_callbacks(callbacks: PythonCallbacks) -> tuple[GivenCallback, ...]:
    """Return the callbacks of a call in Python; those of a `CallbackList` one by one.

    Raises:
        UsageError: one is no callback.
    """
    if callbacks is None:
        return ()
    several = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    flat: list[object] = []
    for each in several:
        flat += each.callbacks if isinstance(each, CallbackList) else [each]
    return tuple(_given(each, f"callbacks[{number}]") for number, each in enumerate(flat))


def _given(callback: object, key: str) -> GivenCallback:
    if isinstance(callback, BaseCallback):
        return GivenCallback((key,), _reference(type(callback)), callback)
    if isinstance(callback, type):
        name = callback.__name__
        raise UsageError(f"{key} is the class {name}, not an object of it; write {name}()")
    if not callable(callback):
        raise UsageError(
            f"{key} is {callback!r:.60}; give an object of BaseCallback of Stable-Baselines3, or a "
            "function of locals and globals, and name classes in the config's key callbacks"
        )
    return GivenCallback((key,), _reference(callback), ConvertCallback(callback))


def _reference(named: object) -> str:
    return f"{getattr(named, '__module__', '')}:{getattr(named, '__qualname__', 'callback')}"


@dataclass(frozen=True, kw_only=True)
class RunParts:
    """What a session has built, for its extensions and callbacks.

    Attributes:
        model: the algorithm; not restored yet.
        evaluation_env: envs of evaluations.
        checkpoint: checkpoint from which the run goes on; None: a new run.
        is_offline: whether the phase before the first timestep comes next, which plays nothing.
        stop: request to end the run.
        events: event log of the run.
        memory: samples the memory of this process and its workers.
        fixed: what all checkpoints of the run have in common.
        cores_trials_s: see CoresCallback.
        given_callbacks: callbacks that Python code has given, beside those of the config.
    """

    config: RunConfig
    game: Game
    run_dir: RunDir
    observation_format: ObservationFormat
    model: LeanAlgorithm
    evaluation_env: VecEnv
    checkpoint: Checkpoint | None
    is_offline: bool
    stop: StopRequest
    events: EventLog
    memory: PssSampler
    fixed: FixedState
    cores_trials_s: float
    given_callbacks: Sequence[GivenCallback] = ()

    @property
    def rhythm(self) -> tuple[int, ...]:
        """`every_timesteps` of callbacks that are too slow for each boundary of DQN.

        It is empty for the other algorithms, whose callbacks act at each boundary.
        """
        has_many = self.config.algorithm.replay is not None
        return (FREQUENT_BOUNDARIES_TIMESTEPS,) if has_many else ()

    def games(self, extensions: "Sequence[Extension]") -> EvaluationGames:
        """Return the games that every evaluation of the run plays."""
        config = self.config
        return EvaluationGames(
            vec_env=self.evaluation_env,
            episodes=config.evaluation.episodes,
            ways=config.evaluation_ways,
            seed=evaluation_seed(config),
            stop=self.stop,
            values=next((e.values for e in extensions if e.values is not None), None),
        )


class FirstPhase(Protocol):
    """Learning before the first timestep."""

    def learn(self, stop: StopRequest) -> bool:
        """Learn until the phase ends or a stop is requested; return whether it has ended."""

    def save(self) -> None:
        """Write a checkpoint of this moment, unless it exists or nothing was learned yet."""

    def continue_from(self, state: CheckpointState, best: Best | None) -> None:
        """Take over the counters of the checkpoint from which the model was restored."""


class Extension(CheckpointCompanion):
    """A feature of one run. What it does not override does nothing.

    It is built after the algorithm and before anything is restored. A session calls `restore`,
    then restores the checkpoint, then calls `restored`, and at last `begin`.
    """

    values: Values | None = None
    """Returns that the policy expects, if evaluations compare them with the actual ones."""

    acts_first: ClassVar[bool] = False
    """Whether its callbacks act before those of the others."""

    opening: ClassVar[str] = "opening the run"
    """What is done if building it takes long."""

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Build it; None if the run does not have this feature, or not yet."""
        raise NotImplementedError

    @classmethod
    def check_new(cls, config: RunConfig, game: Game) -> None:
        """Check what of it can be checked before a new run has a folder.

        Raises:
            GameRLError: the run cannot have this feature.
        """

    @classmethod
    def begin_anew(cls, run_dir: RunDir) -> None:
        """Remove what an earlier run has left of it in the folder of a new one."""

    @classmethod
    def not_restored(
        cls,
        config: RunConfig,  # noqa: ARG003
        game: Game,  # noqa: ARG003
        checkpoint: Checkpoint,  # noqa: ARG003
        given_callbacks: Sequence[GivenCallback],  # noqa: ARG003
    ) -> Iterable[str]:
        """Return what of it a resume from the checkpoint does not restore, each with the reason."""
        return ()

    @classmethod
    def check_fork(cls, plan: ForkPlan) -> None:
        """Check that the fork can take over what it keeps of this feature.

        Raises:
            UsageError: it cannot.
        """

    @classmethod
    def forked(cls, plan: ForkPlan, run_dir: RunDir) -> Mapping[FileName, Saved]:  # noqa: ARG003
        """Give a fork what it takes over; return the files that its first checkpoint gets for it.

        Args:
            run_dir: the fork's directory; it has its identity and lineage already.
        """
        return {}

    @classmethod
    def trackers(cls, config: RunConfig, *, is_training: bool) -> Sequence[TrackerMaker]:  # noqa: ARG003
        """Return what follows episodes for it, in the workers.

        Args:
            is_training: whether the episodes are of the training, or of an evaluation.
        """
        return ()

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        """Return its callbacks, which act before the one that watches memory and disk."""
        return ()

    def last_callbacks(self, checkpoints: CheckpointCallback) -> Sequence[BaseCallback]:  # noqa: ARG002
        """Return its callbacks that act after all others, at a boundary where the run goes on."""
        return ()

    def phase(self, parts: RunParts, extensions: "Sequence[Extension]") -> FirstPhase | None:  # noqa: ARG002
        """Return the phase before the first timestep, if it is this extension's."""
        return None

    def showing(self, curve: str) -> int | None:  # noqa: ARG002
        """Return the number of a logged episode that shows what a curve says, if there is one."""
        return None

    def on_evaluated(self, success_rate: float | None) -> None:
        """Hear of an evaluation, before anything is saved."""

    def on_played(self, played: Sequence[Evaluation], timesteps: int) -> None:
        """Hear of the episodes of an evaluation at this timestep, before anything is saved."""

    def restore(self, checkpoint: Checkpoint) -> int:  # noqa: ARG002
        """Restore what the checkpoint only refers to; return how many timesteps are missing."""
        return 0

    def restored(self, *, plays_on: bool) -> None:
        """Hear that all is restored, and whether running episodes continue."""

    def begin(self) -> None:
        """Begin; all is restored, or the run is new."""

    def release(self) -> None:
        """Give up what others keep for this run, which is thrown away."""

    def close(self) -> None:
        """Close files and threads."""

    @classmethod
    def choose_best(
        cls, run_dir: RunDir, config: RunConfig, events: EventLog, stop: StopRequest
    ) -> None:
        """Decide, once the training has ended, which policy is the run's best one.

        Raises:
            EvaluationInterrupted: a stop was requested; nothing is decided yet.
        """

    @classmethod
    def log_final(
        cls, best: TrainedRun, config: RunConfig, evaluation: Evaluation, events: EventLog
    ) -> None:
        """Log the episodes of the final evaluation, after the training has closed its files."""


def evaluation_seed(config: RunConfig) -> int:
    """Return the seed of the games that evaluations during training play."""
    chosen = config.evaluation.seed
    return seed_for(config.seed, "evaluation") if chosen is None else chosen
