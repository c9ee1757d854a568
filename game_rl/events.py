"""What happens in a run, as typed events; `event_log` keeps and reads them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

FREQUENT_BOUNDARIES_TIMESTEPS = 1_000
"""Boundaries that come every few vec steps, as those of DQN, are reported this far apart."""

_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


def _now() -> datetime:
    return datetime.now(UTC)


class _Event(BaseModel):
    """What all events have."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    is_kept: ClassVar[bool] = True
    """Whether it is written to the file; the others are for who watches."""

    time: datetime = Field(default_factory=_now)
    """In UTC."""
    timesteps: _Count = 0
    """The run's, of all envs together."""


class Begun(_Event):
    """A run starts at timestep 0; what an earlier start wrote does not count."""

    event: Literal["begun"] = "begun"
    run: str
    """Its id."""
    algorithm: str
    total_timesteps: _Count
    frame_skip: _Count | None = None
    """Emulator frames in a timestep; the last release did not say."""
    device: str
    precision: str


class Resumed(_Event):
    """A run goes on from a checkpoint."""

    event: Literal["resumed"] = "resumed"
    run: str
    checkpoint: str
    """The name of its folder."""
    total_timesteps: _Count
    frame_skip: _Count | None = None
    """Emulator frames in a timestep; the last release did not say."""
    device: str
    precision: str
    superseded_from_bytes: _Count
    """Where the events end that were there at the checkpoint."""
    restored: tuple[str, ...]
    """The parts that go on as they were."""
    not_restored: tuple[str, ...] = ()
    """What begins anew, or computes in another way, each with the reason."""
    changes: tuple[str, ...] = ()
    """Of the config and the game file since then, as `key: old -> new`."""
    set_aside: tuple[str, ...] = ()
    """Where later checkpoints are now, of a run that was taken back on purpose."""


class Forked(_Event):
    """A run begins from another run's checkpoint; what stands before it is that run's account."""

    event: Literal["forked"] = "forked"
    run: str
    """Its id."""
    parent: str
    """The other run's id."""
    parent_path: str
    """Where that run was then."""
    parent_timesteps: _Count
    """Of the checkpoint."""
    not_taken_over: tuple[str, ...] = ()
    """What begins anew, each with the reason."""
    changes: tuple[str, ...] = ()
    """Of the config and the game file, as `key: old -> new`."""


class Progress(_Event):
    """The training is underway; about five times a second."""

    is_kept = False

    event: Literal["progress"] = "progress"
    timesteps_per_s: float
    mean_reward: float | None = None
    success_rate: _Share | None = None


class OfflineProgress(_Event):
    """A run learns from Lakes alone, before its first timestep; about five times a second."""

    is_kept = False

    event: Literal["offline_progress"] = "offline_progress"
    gradient_steps: _Count
    total: _Count
    gradient_steps_per_s: float


class RolloutEnded(_Event):
    """A rollout was played; of DQN, the first after each thousand timesteps.

    Reward and success are means over the last episodes, as SB3 logs them.
    """

    event: Literal["rollout_ended"] = "rollout_ended"
    timesteps_per_s: float
    mean_reward: float | None = None
    success_rate: _Share | None = None


class Evaluating(_Event):
    """Episodes begin; `Evaluated` follows, unless the run is stopped meanwhile."""

    is_kept = False

    event: Literal["evaluating"] = "evaluating"
    policy_timesteps: _Count
    episodes: _Count
    is_final: bool = False
    offline_gradient_steps: _Count | None = None
    """As in `Evaluated`."""


class Evaluated(_Event):
    """Episodes were played to see how good a policy is."""

    event: Literal["evaluated"] = "evaluated"
    policy_timesteps: _Count
    """At which the policy was learned."""
    deterministic: bool = True
    """Whether it took its likeliest actions, or drew them; the last release did not say."""
    episodes: _Count
    mean_reward: float
    std_reward: float
    success_rate: _Share | None
    mean_length: float
    seconds: float
    is_best: bool = False
    is_final: bool = False
    """Of the best policy, after the training, on episodes that selected nothing."""
    offline_gradient_steps: _Count | None = None
    """After so many, where the run learns from Lakes alone before its first timestep."""


class CheckpointSaved(_Event):
    """The run can go on from here."""

    event: Literal["checkpoint_saved"] = "checkpoint_saved"
    checkpoint: str
    """The name of its folder."""
    n_bytes: _Count
    seconds: float
    contents: tuple[str, ...]
    """What is in it, in words."""
    compression_saved: _Share | None = None
    """Part of the bytes that a replay of whole stacks would have taken; None: it has no replay."""
    is_best: bool = False
    offline_gradient_steps: _Count | None = None
    """As in `Evaluated`."""


class Warned(_Event):
    """Something that the user should know; the training goes on."""

    event: Literal["warned"] = "warned"
    text: str


class WorkerRestarted(_Event):
    """A process with envs died and was replaced; its episodes were cut short."""

    event: Literal["worker_restarted"] = "worker_restarted"
    text: str
    restarts: _Count
    """In this process so far."""


class DiskForecast(_Event):
    """A Lake that grows on as it did fills the disk before the run ends."""

    event: Literal["disk_forecast"] = "disk_forecast"
    text: str
    full_in_s: float
    full_at_timesteps: _Count


class LakesFollowed(_Event):
    """A run sees what others play while it learns; of DQN, the first after each thousand timesteps.

    All but the age are of the whole run, however often it was broken off.
    """

    event: Literal["lakes_followed"] = "lakes_followed"
    rows: _Count
    """That others have played and that could be drawn at some time."""
    newest_age_s: float | None
    """Of the newest row that could be drawn, the median of the last thousand draws; None: none."""
    own_drawn: _Count
    """Own timesteps in all batches."""
    drawn: _Count
    """Timesteps in all batches."""


class RowsDrawn(_Event):
    """Of what a run that learns from Lakes has made its batches; of DQN, the first after each
    thousand timesteps, and each five hundred gradient steps before the first.

    All of the whole run, however often it was broken off.
    """

    event: Literal["rows_drawn"] = "rows_drawn"
    own: _Count
    """Own timesteps in all batches since it plays."""
    streams: dict[str, _Count]
    """Rows of each stream in the same batches; by the id of its run."""
    offline_streams: dict[str, _Count]
    """The same in the batches before its first timestep, which have no own ones."""


class UploadQueued(_Event):
    """A checkpoint waits to be uploaded."""

    event: Literal["upload_queued"] = "upload_queued"
    checkpoint: str
    """The name of its folder."""
    n_bytes: _Count
    """Of all its files, what is there already included."""
    to: str


class UploadProgress(_Event):
    """How much has to be sent yet."""

    is_kept = False

    event: Literal["upload_progress"] = "upload_progress"
    sending: tuple[int, ...] = ()
    """Timesteps of the checkpoints that are read just now."""
    waiting_checkpoints: _Count
    waiting_bytes: _Count
    is_ending: bool = False
    """The training is over, and waits for it."""
    is_trying: bool = True
    """False: the last attempt failed, and the next one comes after a pause."""


class Uploaded(_Event):
    """A checkpoint can be fetched."""

    event: Literal["uploaded"] = "uploaded"
    checkpoint: str
    """The name of its folder."""
    sent_bytes: _Count
    """Without what was there already."""
    seconds: float
    to: str


class ExplorationRestarted(_Event):
    """More actions are random again, from this rollout on."""

    event: Literal["exploration_restarted"] = "exploration_restarted"
    at: _Count
    """The timestep that the config says."""
    start: _Share
    """The share of random actions there."""
    over: _Count
    """Timesteps after which the share is what it would have been."""
    share: _Share
    """Of this rollout's first timestep."""


class TeacherReady(_Event):
    """A policy was found that the agent is drawn towards."""

    event: Literal["teacher_ready"] = "teacher_ready"
    run: str
    """Its run's id; empty: that run has none."""
    path: str
    """Where its run was when this one began."""
    policy_timesteps: _Count
    """At which it was learned."""
    sha256: str
    """Of its checkpoint's manifest."""
    temperature: float
    """Of the softmax."""
    success_rate: _Share | None = None
    """In the games of this run's evaluations."""
    mean_reward: float


class Validated(_Event):
    """Student and teacher played episodes that decided nothing before."""

    event: Literal["validated"] = "validated"
    episodes: _Count
    """Of each."""
    student_timesteps: _Count
    """At which the student's best policy was learned."""
    student_mean_reward: float
    student_success_rate: _Share | None = None
    teacher_mean_reward: float
    teacher_success_rate: _Share | None = None
    best: Literal["student", "teacher"]
    """The run's best policy from now on."""


class Recorded(_Event):
    """A clip was written."""

    event: Literal["recorded"] = "recorded"
    path: str


class Ended(_Event):
    """The process lets go of the run."""

    event: Literal["ended"] = "ended"
    reason: Literal["completed", "until", "stopped", "failed"]
    """until: as far as it was asked to go; stopped: by a signal, with what was saved."""
    exit_code: int
    text: str = ""


Event = (
    Begun
    | Resumed
    | Forked
    | Progress
    | OfflineProgress
    | RolloutEnded
    | Evaluating
    | Evaluated
    | CheckpointSaved
    | Warned
    | WorkerRestarted
    | DiskForecast
    | LakesFollowed
    | RowsDrawn
    | UploadQueued
    | UploadProgress
    | Uploaded
    | ExplorationRestarted
    | TeacherReady
    | Validated
    | Recorded
    | Ended
)
Listener = Callable[[Event], None]
