"""Every event of a run as a typed model."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field

from game_rl.files.saved import DescribedModel, Natural, Saved
from game_rl.statistics import mean_interval, percent, percentage, wilson_interval

FREQUENT_BOUNDARIES_TIMESTEPS = 1_000
"""Timesteps between reports at boundaries that come every few vec steps, as those of DQN do."""
CURVE_POINTS = 1_000
"""The most events with training curves in a run that ends at its `total_timesteps`."""


def _checked(time: datetime) -> datetime:
    if not 1970 <= time.year < 9999:
        raise ValueError("a year that no computer's clock shows")
    return time


_Time = Annotated[AwareDatetime, AfterValidator(_checked)]


def _now() -> datetime:
    return datetime.now(UTC)


class TimedEvent(DescribedModel):
    """The base of all events of runs and experiments."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    is_kept: ClassVar[bool] = True
    """Whether the event is written to the file; the others only reach the listeners."""

    time: _Time = Field(default_factory=_now)
    """Time of the event, in UTC."""


class RunEvent(TimedEvent):
    """The base of all events of a run."""

    timesteps: Natural = 0
    """Timesteps of the run, summed over all envs."""
    waited_frames: Natural | None = None
    """Emulator frames beyond `frame_skip` in each timestep, which the envs have played so far
    because the game's `step` plays on; None if the game has no `step`."""


_Share = Annotated[float, Field(ge=0, le=1)]


class PlannedEpisodes(Saved):
    """The episodes that a run plays in addition to its training, for forecasts of its time."""

    every_timesteps: Natural = 0
    """Timesteps between evaluations; 0 if there are none."""
    episodes: Natural = 0
    """Episodes of an evaluation, in all its ways together."""
    confirm_episodes: Natural = 0
    """The most episodes that confirm a goal of `stop_when`; 0 if it has none."""
    final_episodes: Natural = 0
    clip_episodes: Natural = 0
    clip_frames: Natural | None = None
    """Emulator frames after which the clip ends within an episode; None: never."""


class Begun(RunEvent):
    """A run starts at timestep 0; events of an earlier start no longer count."""

    event: Literal["begun"] = "begun"
    run: str
    """Id of the run."""
    algorithm: str
    total_timesteps: Natural
    frame_skip: Natural | None = None
    """Emulator frames in a timestep; None in logs of the last release, which lack it."""
    device: str
    precision: str
    version: str = ""
    """Version of game_rl; empty in logs of the last release."""
    source_sha256: str = ""
    """Digest of game_rl's source; empty in logs of the last release."""
    stop_when: tuple[str, ...] = ()
    """The conditions under which the run ends before its total, in words."""
    game_changes: tuple[str, ...] = ()
    """How the run's start states change the game, in words."""
    planned: PlannedEpisodes | None = None
    """None in logs of older versions."""


class Resumed(RunEvent):
    """A run resumes from a checkpoint."""

    event: Literal["resumed"] = "resumed"
    run: str
    checkpoint: str
    """Name of the checkpoint's folder."""
    total_timesteps: Natural
    frame_skip: Natural | None = None
    """Emulator frames in a timestep; None in logs of the last release, which lack it."""
    device: str
    precision: str
    version: str = ""
    """Version of game_rl; empty in logs of the last release."""
    source_sha256: str = ""
    """Digest of game_rl's source; empty in logs of the last release."""
    stop_when: tuple[str, ...] = ()
    """The conditions under which the run ends before its total, in words."""
    game_changes: tuple[str, ...] = ()
    """How the run's start states change the game, in words."""
    planned: PlannedEpisodes | None = None
    """None in logs of older versions."""
    superseded_from_bytes: Natural
    """Length of the file at the checkpoint; events from there up to this one no longer count."""
    restored: tuple[str, ...]
    """The parts that continue exactly as they were."""
    not_restored: tuple[str, ...] = ()
    """The parts that start again or compute in another way, each with the reason."""
    other_code: str = ""
    """How game_rl differs from the one that wrote the checkpoint; empty if it does not."""
    changes: tuple[str, ...] = ()
    """Changes of the config and the game file since the checkpoint, as `key: old -> new`."""
    set_aside: tuple[str, ...] = ()
    """New places of the later checkpoints, if the run was deliberately set back."""


class Forked(RunEvent):
    """A run starts from another run's checkpoint; earlier events are that run's."""

    event: Literal["forked"] = "forked"
    run: str
    """Id of the run."""
    parent: str
    """Id of the other run."""
    parent_path: str
    """Path of the other run's directory at that time."""
    parent_timesteps: Natural
    """Timesteps of the checkpoint."""
    not_taken_over: tuple[str, ...] = ()
    """The parts that start again, each with the reason."""
    changes: tuple[str, ...] = ()
    """Changes of the config and the game file, as `key: old -> new`."""


class Progress(RunEvent):
    """Progress of the training, about five times a second."""

    is_kept = False

    event: Literal["progress"] = "progress"
    timesteps_per_s: float
    mean_reward: float | None = None
    success_rate: _Share | None = None


class OfflineProgress(RunEvent):
    """Progress of learning from Lakes before the first timestep, about five times a second."""

    is_kept = False

    event: Literal["offline_progress"] = "offline_progress"
    gradient_steps: Natural
    total: Natural
    gradient_steps_per_s: float


class RolloutEnded(RunEvent):
    """A rollout has ended; for DQN, the first one after each thousand timesteps.

    Reward and success are means over the last episodes, as SB3 logs them.
    """

    event: Literal["rollout_ended"] = "rollout_ended"
    timesteps_per_s: float
    mean_reward: float | None = None
    success_rate: _Share | None = None


class CurvesRecorded(RunEvent):
    """The training curves, when SB3 first logs after each thousandth of the run."""

    event: Literal["curves_recorded"] = "curves_recorded"
    values: dict[str, float]
    """Mean of each curve since the last of these events, by its name in TensorBoard. Numbers that
    are not finite are left out."""


class Evaluating(RunEvent):
    """An evaluation starts; `Evaluated` follows unless the run is stopped before it ends."""

    event: Literal["evaluating"] = "evaluating"
    policy_timesteps: Natural
    policy_waited_frames: Natural = 0
    """The run's `waited_frames` when the policy was learned."""
    episodes: Natural
    is_final: bool = False
    is_confirmation: bool = False
    """Whether they are new episodes, because the evaluations reached a goal of `stop_when`."""
    offline_gradient_steps: Natural | None = None
    """As in `Evaluated`."""


class StartStateResult(Saved):
    """Results of the episodes of an evaluation that started in one start state."""

    episodes: Natural
    successes: Natural | None
    """Number of successful episodes; None if the game does not define success."""
    mean_reward: float

    @property
    def success_rate(self) -> float | None:
        """Share of successful episodes, 0..1."""
        return None if self.successes is None else self.successes / self.episodes


class Evaluated(RunEvent):
    """Episodes were played to evaluate a policy."""

    event: Literal["evaluated"] = "evaluated"
    policy_timesteps: Natural
    """Timestep at which the policy was learned."""
    deterministic: bool = True
    """Whether it took its most probable actions instead of sampling them; the last release did not
    record it."""
    episodes: Natural
    mean_reward: float
    std_reward: float
    success_rate: _Share | None = None
    mean_length: float
    seconds: float
    action_counts: tuple[Natural, ...] = ()
    """How often each action was taken, in the order of the game's actions; empty in logs of older
    versions."""
    is_best: bool = False
    is_final: bool = False
    """Whether it is of the best policy, after the training, on episodes not used to select it."""
    offline_gradient_steps: Natural | None = None
    """Gradient steps so far, if the run is learning from Lakes before its first timestep."""
    by_start_state: dict[str, StartStateResult] | None = None
    """Results by start state, if the episodes started in several."""


class StopConditionMet(RunEvent):
    """A condition of `stop_when` ends the run before its total."""

    event: Literal["stop_condition_met"] = "stop_condition_met"
    text: str


class CheckpointSaved(RunEvent):
    """A checkpoint was written, from which the run can resume."""

    event: Literal["checkpoint_saved"] = "checkpoint_saved"
    checkpoint: str
    """Name of the checkpoint's folder."""
    n_bytes: Natural
    seconds: float
    contents: tuple[str, ...]
    """Contents of the checkpoint, in words."""
    run_bytes: Natural | None = None
    """Size of the run directory with it, without a Lake; None in logs of older versions."""
    compression_saved: _Share | None = None
    """Share of bytes that the replay saves compared with whole stacks; None without a replay."""
    is_best: bool = False
    offline_gradient_steps: Natural | None = None
    """As in `Evaluated`."""


class Warned(RunEvent):
    """Something that the user should know; the training continues."""

    event: Literal["warned"] = "warned"
    text: str


class WorkerRestarted(RunEvent):
    """A worker process died and was replaced; its episodes were cut short."""

    event: Literal["worker_restarted"] = "worker_restarted"
    text: str
    restarts: Natural
    """Number of restarts in this training process so far."""


class DiskForecast(RunEvent):
    """The Lake will fill the disk before the run ends, if it keeps growing at the same rate."""

    event: Literal["disk_forecast"] = "disk_forecast"
    text: str
    full_in_s: float
    full_at_timesteps: Natural


class ResourceLow(RunEvent):
    """Less disk or RAM is free than a threshold of `monitoring`, than half of it, and so on."""

    event: Literal["resource_low"] = "resource_low"
    resource: Literal["disk", "ram"]
    free_bytes: Natural
    threshold_bytes: Natural
    """The threshold, its half, its quarter, …: the lowest one above `free_bytes`."""
    plan_part: str | None = None
    """Name of the part of `preflight.json` that grows most; None if there is no plan."""
    text: str


class LakesFollowed(RunEvent):
    """How a run follows Lakes that others are writing; for DQN, after each thousand timesteps.

    All values except the age are totals of the whole run, over all its sessions.
    """

    event: Literal["lakes_followed"] = "lakes_followed"
    rows: Natural
    """Rows that others have played and that could be drawn at some time."""
    newest_age_s: float | None = None
    """Median age of the newest available row over the last thousand draws; None without draws."""
    own_drawn: Natural
    """The run's own timesteps in all batches."""
    drawn: Natural
    """All timesteps in all batches."""


class RowsDrawn(RunEvent):
    """The composition of the batches of a run that learns from Lakes.

    For DQN, it is emitted after each thousand timesteps, and after each five hundred gradient steps
    before the first timestep. All values are totals of the whole run, over all its sessions.
    """

    event: Literal["rows_drawn"] = "rows_drawn"
    own: Natural
    """The run's own timesteps in all batches since its first timestep."""
    streams: dict[str, Natural]
    """Rows of each stream in the same batches, by the id of the stream's run."""
    offline_streams: dict[str, Natural]
    """Rows of each stream in the batches before the first timestep, which have no own timesteps."""


class PoolLevel(Saved):
    """States of a pool whose ways have earned about the same, and the episodes from them."""

    least_reward: float
    """Of the ways to the states."""
    most_reward: float
    states: Natural
    episodes: Natural
    successes: Natural
    """Episodes that met `env.pool.goal`."""
    mean_reward: float | None = None
    """Of the episodes; None if there were none."""

    @property
    def rewards(self) -> str:
        """The reward of the ways, or the range of it."""
        least = f"{self.least_reward:g}"
        most = f"{self.most_reward:g}"
        return least if least == most else f"{least} to {most}"

    @property
    def success_rate(self) -> float | None:
        return self.successes / self.episodes if self.episodes else None


class PoolCounted(RunEvent):
    """What came of the episodes that began in the pool, after each hundredth of the run."""

    event: Literal["pool_counted"] = "pool_counted"
    levels: tuple[PoolLevel, ...]
    """By the reward of the ways to its states, in ascending order, at most twelve."""


class UploadQueued(RunEvent):
    """A checkpoint waits to be uploaded."""

    event: Literal["upload_queued"] = "upload_queued"
    checkpoint: str
    """Name of the checkpoint's folder."""
    n_bytes: Natural
    """Size of all its files, including parts that are already stored."""
    to: str


class UploadProgress(RunEvent):
    """The amount that still has to be uploaded."""

    is_kept = False

    event: Literal["upload_progress"] = "upload_progress"
    sending: tuple[int, ...] = ()
    """Timesteps of the checkpoints that are being sent."""
    waiting_checkpoints: Natural
    waiting_bytes: Natural
    is_ending: bool = False
    """Whether the training is over and waits for the upload."""
    is_trying: bool = True
    """False after a failed attempt, until the next one starts."""


class Uploaded(RunEvent):
    """A checkpoint is stored and can be fetched."""

    event: Literal["uploaded"] = "uploaded"
    checkpoint: str
    """Name of the checkpoint's folder."""
    sent_bytes: Natural
    """Bytes that were sent, without parts that were already stored."""
    seconds: float
    to: str


class ExplorationRestarted(RunEvent):
    """The exploration rate rises again, from this rollout on."""

    event: Literal["exploration_restarted"] = "exploration_restarted"
    at: Natural
    """Timestep of the restart in the config."""
    start: _Share
    """Exploration rate at that timestep."""
    over: Natural
    """Number of timesteps after which the rate is back on its usual course."""
    share: _Share
    """Exploration rate at this rollout's first timestep."""


class TeacherReady(RunEvent):
    """A teacher was found: a policy that the agent is drawn towards."""

    event: Literal["teacher_ready"] = "teacher_ready"
    run: str
    """Id of the teacher's run; empty if it has none."""
    path: str
    """Path of the teacher's run when this run started."""
    policy_timesteps: Natural
    """Timestep at which the policy was learned."""
    sha256: str
    """sha256 of the manifest of its checkpoint."""
    temperature: float
    """Temperature of the softmax."""
    success_rate: _Share | None = None
    """Success rate in the games of this run's evaluations."""
    mean_reward: float


class EpisodesReplayed(RunEvent):
    """The played episodes that the run learns from were played again."""

    event: Literal["episodes_replayed"] = "episodes_replayed"
    episodes: Natural
    timesteps_played: Natural
    """Timesteps of all of them."""
    mean_reward: float
    successes: Natural | None = None
    """How many ended in a success; None if the game does not say what that is, or none ended."""
    unfinished: Natural
    """How many stop before the game's episode ends."""

    @property
    def in_words(self) -> str:
        episodes = "episode" if self.episodes == 1 else "episodes"
        text = (
            f"{self.episodes:,} played {episodes} of {self.timesteps_played:,} timesteps: mean "
            f"reward {self.mean_reward:.2f}"
        )
        if self.successes is not None:
            text += f", {self.successes:,} won"
        return f"{text}, {self.unfinished:,} unfinished" if self.unfinished else text


class Cloned(RunEvent):
    """The network has imitated the played episodes, before the first timestep."""

    event: Literal["cloned"] = "cloned"
    epochs: Natural
    """Passes over the played timesteps."""
    best_epoch: Natural
    """The pass whose weights are kept: that with the lowest loss on held-out timesteps."""
    gradient_steps: Natural
    accuracy: _Share
    """Share of the learned timesteps in which the network's best action was the player's."""
    held_out: Natural
    """Number of timesteps that were not learned."""
    held_out_accuracy: _Share
    """Accuracy on these."""
    held_out_loss: float
    """Cross-entropy of PPO, or the large margin of DQN and PQN, on these."""
    usual_accuracy: _Share
    """Accuracy on these of a policy that always takes the most frequent action."""

    @property
    def in_words(self) -> str:
        return (
            f"the player's action in {percent(self.held_out_accuracy, 1)} of {self.held_out:,} "
            f"held-out timesteps ({percent(self.usual_accuracy, 1)} by always taking the most "
            f"frequent one), in {percent(self.accuracy, 1)} of those learned; pass "
            f"{self.best_epoch:,} of {self.epochs:,}"
        )


class Validated(RunEvent):
    """Student and teacher played episodes that were not used for any decision before."""

    event: Literal["validated"] = "validated"
    episodes: Natural
    """Number of episodes of each."""
    student_timesteps: Natural
    """Timestep at which the student's best policy was learned."""
    student_mean_reward: float
    student_success_rate: _Share | None = None
    teacher_mean_reward: float
    teacher_success_rate: _Share | None = None
    best: Literal["student", "teacher"]
    """Which of them is the run's best policy from now on."""


class Recorded(RunEvent):
    """A clip was written."""

    event: Literal["recorded"] = "recorded"
    path: str


class Ended(RunEvent):
    """The training process ends."""

    event: Literal["ended"] = "ended"
    reason: Literal["completed", "until", "stopped", "failed"]
    """until: it reached the timestep that it was asked for; stopped: a signal ended it."""
    exit_code: int
    text: str = ""
    """The error of a run that was stopped or failed; the condition of `stop_when` that ended a
    complete one before its total."""


class BaselinePlayed(RunEvent):
    """An untrained policy was played before the training, for comparison."""

    event: Literal["baseline_played"] = "baseline_played"
    action: str = ""
    """Name of the action that it always takes, the best of all; empty: every action is random."""
    episodes: Annotated[int, Field(ge=1)]
    mean_reward: float
    std_reward: float
    success_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    mean_length: float
    seconds: float

    @property
    def name(self) -> str:
        return f"always {self.action}" if self.action else "random actions"

    @property
    def in_words(self) -> str:
        success = "" if self.success_rate is None else f"success {percent(self.success_rate)}, "
        episodes = "episode" if self.episodes == 1 else "episodes"
        reward = f"reward {self.mean_reward:.2f} in {self.episodes:,} {episodes}"
        return f"{self.name}: {success}{reward}"


class ConfirmationPlayed(RunEvent):
    """New episodes were played, because the evaluations reached a goal of `stop_when`."""

    event: Literal["confirmation_played"] = "confirmation_played"
    deterministic: bool
    """Whether the policy took its most probable actions instead of sampling them."""
    episodes: Natural
    mean_reward: float
    std_reward: float
    success_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    mean_length: float
    seconds: float
    is_reached: bool
    """Whether they reached the goal as well, so that the run ends."""
    over_at_start: Natural = 0
    """Episodes that were over before the first action, none of which counts as a success here."""

    goal: Literal["success_rate", "mean_reward"] | None = None
    """What had to be reached; None in logs of older versions."""

    @property
    def in_words(self) -> str:
        """The result that decided, with its 95 % interval."""
        is_rate = self.success_rate is not None and self.goal != "mean_reward"
        text = self._rate_in_words if is_rate else self._mean_in_words
        if not self.over_at_start:
            return text
        return (
            f"{text}; {self.over_at_start:,} of them were over before the first action and do not "
            "count: check env.start_states, and the endings of game.yaml"
        )

    @property
    def _rate_in_words(self) -> str:
        """The rate with Wilson's interval."""
        rate = self.success_rate or 0.0
        low, high = wilson_interval(round(rate * self.episodes), self.episodes)
        share = percentage(rate, 1).removesuffix(".0")
        episodes = f"{share}% of {self.episodes:,} new episodes"
        return f"{episodes}, 95% interval {percentage(low)} to {percent(high)}"

    @property
    def _mean_in_words(self) -> str:
        interval = mean_interval(self.mean_reward, self.std_reward, self.episodes)
        mean = f"mean reward {self.mean_reward:.4g} in {self.episodes:,} new episodes"
        if interval is None:
            return mean
        return f"{mean}, 95% interval {interval[0]:.4g} to {interval[1]:.4g}"


class MilestoneReached(RunEvent):
    """An env has reached something that none of the run's envs had reached before.

    `timesteps` and `waited_frames` are those at which it was reached, which is before the end of
    the rollout after which the event is written.
    """

    event: Literal["milestone_reached"] = "milestone_reached"
    kind: Literal["reward_term", "start_state", "variable"]
    """A reward term that earned more than 0, a start state that was won, or a new maximum of a
    variable, or of an element of an array, that game.yaml's `milestones` names."""
    name: str
    """Name of the reward term, the start state or the variable; `flags[12]` for an element."""
    value: int | float | None = None
    """Value of the variable; None for the others."""
    place: tuple[int, ...] | None = None
    """Where the player was, as game.yaml's `place` says; None if it does not, and for a start state
    that was won."""
    text: str
    hours: float
    """Hours of training so far, over all sessions."""


class HintGiven(RunEvent):
    """The curves show something that the user should know, and may want to change."""

    event: Literal["hint_given"] = "hint_given"
    name: str
    """Name of the hint, as in docs/how-to/hints.md."""
    text: str
    key: str
    """Key of the config or of game.yaml to change."""
    episode: Annotated[int, Field(ge=1)] | None = None
    """Number of a logged training episode that shows it, for `game-rl record RUN --logged`; None if
    none does."""


class PlanPassed(RunEvent):
    """The run has taken 80 % of the memory or disk that `preflight.json` forecasts, or all of it.

    Each of them is reported once, and again if the forecast has changed.
    """

    event: Literal["plan_passed"] = "plan_passed"
    resource: Literal["disk", "ram"]
    share: Annotated[float, Field(gt=0)]
    """0.8 or 1.0."""
    used_bytes: Natural
    planned_bytes: Natural
    part: str | None = None
    """What takes most: a folder of the run directory, or for RAM the part of the plan that grows
    most; None if there is none."""
    text: str


class StillWorking(RunEvent):
    """Something takes more than two seconds; about once a second until it is done."""

    is_kept = False

    event: Literal["still_working"] = "still_working"
    text: str
    seconds: float
    """Time that it has taken so far."""


Event = (
    Begun
    | Resumed
    | Forked
    | Progress
    | OfflineProgress
    | RolloutEnded
    | CurvesRecorded
    | Evaluating
    | Evaluated
    | ConfirmationPlayed
    | BaselinePlayed
    | StopConditionMet
    | CheckpointSaved
    | Warned
    | MilestoneReached
    | HintGiven
    | PlanPassed
    | StillWorking
    | WorkerRestarted
    | DiskForecast
    | ResourceLow
    | LakesFollowed
    | RowsDrawn
    | PoolCounted
    | UploadQueued
    | UploadProgress
    | Uploaded
    | ExplorationRestarted
    | TeacherReady
    | EpisodesReplayed
    | Cloned
    | Validated
    | Recorded
    | Ended
)
Listener = Callable[[Event], None]
