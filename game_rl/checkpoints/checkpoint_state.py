"""The models of a checkpoint's JSON files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from game_rl.checkpoints.evaluation_files import was_deterministic
from game_rl.envs.game_boy_env import EnvState
from game_rl.files.saved import Blob, Natural, NaturalIfAny, Saved, Sha256
from game_rl.loggers.log_files import TableSize

_MERSENNE_WORDS = 624


class Best(Saved):
    """The best evaluation of a run so far, and its checkpoint."""

    timesteps: Natural
    mean_reward: float
    offline_gradient_steps: Natural = 0
    """Gradient steps of the checkpoint if it is of the phase before the first timestep; else 0."""
    deterministic: bool = True
    """Whether the policy took its most probable actions or sampled them."""
    seed: int | None = None
    """`evaluation.seed` at that time, which chose the games."""


class StopCounters(Saved):
    """Counters of the conditions in the config's `stop_when`, in evaluations in a row."""

    success_rate: Natural = 0
    """Evaluations that reached the success rate."""
    mean_reward: Natural = 0
    """Evaluations that reached the mean reward."""
    without_improvement: Natural = 0
    """Evaluations without a new best mean reward."""
    met: str = ""
    """The condition that has ended the run, in words; empty if none has."""

    @property
    def is_by_callback(self) -> bool:
        """Whether a callback that the config names has ended the run."""
        return self.met.startswith("callbacks.")

    @property
    def given_callback(self) -> str:
        """`module:Class` of the callback from Python code that has ended the run; "" if none."""
        return self.met.split(", ")[1] if self.met.startswith("callbacks[") else ""


@dataclass(frozen=True, kw_only=True)
class FixedState:
    """What all checkpoints of a session have in common; see the fields of `CheckpointState`."""

    schedule_timesteps: int
    rom_sha256: str
    config: dict[str, JsonValue]
    game: dict[str, JsonValue]
    versions: dict[str, str]
    source_sha256: str
    computing: dict[str, str]
    given_callbacks: tuple[str, ...] = ()


class CheckpointState(Saved):
    """Description of a checkpoint; it is small, so that many can be listed."""

    num_timesteps: Natural
    """Timesteps that the weights have learned from."""
    n_updates: Natural
    """SB3's counter of updates: epochs of PPO and PQN, gradient steps of DQN."""
    offline_gradient_steps: Natural = 0
    """Gradient steps made before the first timestep."""
    schedule_timesteps: Annotated[int, Field(gt=0)]
    """Timesteps over which schedules run: the `total_timesteps` with which the run began."""
    best: Best | None
    evaluation_due: bool = False
    """Whether an evaluation of this checkpoint was interrupted by a stop and is still due."""
    training_s: Annotated[float, Field(ge=0)] = 0.0
    """Seconds of training so far, over all sessions, without those that were lost when the run was
    killed."""
    waited_frames: NaturalIfAny = 0
    """Emulator frames beyond `frame_skip` in each timestep, which the envs have played so far
    because the game's `step` plays on."""
    stop_counters: StopCounters = StopCounters()
    """Counters of `stop_when` in this checkpoint's config."""
    events_bytes: Natural = 0
    """Size of the run's `events.jsonl`."""
    rom_sha256: str
    config: dict[str, JsonValue]
    """The run's config at that time."""
    game: dict[str, JsonValue]
    """The run's game file at that time."""
    versions: dict[str, str]
    source_sha256: Sha256 | None = None
    """Digest of game_rl's source at that time; None in checkpoints of the last release."""
    computing: dict[str, str]
    given_callbacks: tuple[str, ...] = ()
    """`module:Class` of each callback that Python code gave to the training as an object."""

    def counters_with(
        self, config: Mapping[str, object], given_callbacks: Sequence[str] = ()
    ) -> StopCounters:
        """Return the counters, or new ones if `config` has other conditions.

        They are also new if a callback has ended the run that is not given again.

        Args:
            config: a run's config as JSON values.
            given_callbacks: `module:Class` of each callback that Python code has given.
        """
        if (ended_it := self.stop_counters.given_callback) and ended_it not in given_callbacks:
            return StopCounters()
        key = "callbacks" if self.stop_counters.is_by_callback else "stop_when"
        is_same = config.get(key) == self.config.get(key)
        return self.stop_counters if is_same else StopCounters()

    @model_validator(mode="before")
    @classmethod
    def _best_of_the_last_release(cls, data: object) -> object:
        """Add `deterministic` to a best of the last release, from the config, which has it."""
        if not isinstance(data, dict) or not isinstance(data.get("best"), dict):
            return data
        way = was_deterministic(data.get("config"))
        return data | {"best": {"deterministic": way} | data["best"]}


class Episode(Saved):
    """One of the last episodes, as SB3 keeps them for `rollout/ep_rew_mean`."""

    reward: float
    length: int
    seconds: float


class PythonRandom(Saved):
    """`random.getstate()`."""

    version: Literal[3]
    words: Annotated[
        tuple[int, ...], Field(min_length=_MERSENNE_WORDS + 1, max_length=_MERSENNE_WORDS + 1)
    ]
    gauss_next: float | None


class NumpyRandom(Saved):
    """`numpy.random.get_state()`; SB3 shuffles minibatches with this generator."""

    words: Annotated[tuple[int, ...], Field(min_length=_MERSENNE_WORDS, max_length=_MERSENNE_WORDS)]
    position: int
    has_gauss: int
    cached_gaussian: float


class RandomNumbers(Saved):
    """The state of all global generators."""

    python: PythonRandom
    numpy: NumpyRandom
    torch: Blob
    cuda: tuple[Blob, ...]
    """State of the generator of each GPU."""


class CurveSums(Saved):
    """The curves' values since the last `CurvesRecorded`."""

    recorded_at: Natural = 0
    """Timesteps of that event."""
    sums: dict[str, float] = Field(default_factory=dict)
    counts: dict[str, Natural] = Field(default_factory=dict)
    """Number of values in each sum."""


class LogState(Saved):
    """The logger's values between two dumps, and the sizes of its files."""

    values: dict[str, int | float]
    counts: dict[str, int]
    excluded: dict[str, tuple[str, ...]]
    file_bytes: dict[str, int]
    """Size of each TensorBoard file of the run."""
    curves: CurveSums = CurveSums()
    appended_bytes: dict[str, Natural] = Field(default_factory=dict)
    """Size of each other file that is only appended to, such as `monitor.csv`, by name."""
    table: TableSize | None = None
    """Size of `progress.csv`, if there is one."""


class TrainingState(Saved):
    """The state of everything around the network."""

    random: RandomNumbers | None
    """State of the global generators, or None in a fork with another seed, which reseeds them."""
    log: LogState
    n_episodes: Natural
    episodes: tuple[Episode, ...]
    successes: tuple[float, ...]
    envs: tuple[EnvState, ...] | None
    """State of the envs, or None if new episodes begin. That is so if a worker had just died, the
    training stopped during a rollout, the envs are not game_rl's, or a fork has other envs."""
    seeds: tuple[int | None, ...]
    evaluations: str
    """The run's table of evaluations so far."""
    evaluation_episodes: Blob = b""
    """The run's file of the episodes of its evaluations."""
    algorithm: dict[str, JsonValue]
    """The algorithm's own state, such as DQN's exploration. It is empty if there is none, or if the
    algorithm starts with a new one."""
