"""The run directory and the Lake over the whole run: kept checkpoints, logs, growth."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from game_rl.checkpoints import checkpoint_files
from game_rl.config.schema import RunConfig
from game_rl.config.values import run_at
from game_rl.events import CURVE_POINTS
from game_rl.features.feature import LOGS, Part, PlannedRun
from game_rl.features.feature_table import FEATURES
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake_schema import LakeSchema
from game_rl.preflight import calibration
from game_rl.preflight.disk_plan import DiskPlan, PlanRow, SmallerDisk, smaller_disks
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import DiskFootprint, Footprint
from game_rl.preflight.kept_checkpoints import KeptCheckpoints, offline_checkpoints_at_once
from game_rl.preflight.memory import n_pictures, network_of, saved_replay_bytes
from game_rl.preflight.workload import TrainingArithmetic, boundaries_of
from game_rl.system.machine import is_same_disk, nearest_folder
from game_rl.system.units import format_bytes

_COUNTED_CHECKPOINTS = 64  # checkpoints whose sizes are computed one by one
_GB = 10**9
_SLACK_BYTES = 20 * checkpoint_files.BLOCK_BYTES  # of the run's other files


def disk_footprint(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> DiskFootprint:
    course = _Course(config, facts, training)
    kept = course.retention.after(course.last)
    at_once = course.retention.at_once(course.last)
    checkpoint = predicted_checkpoint_bytes(config, facts)
    minimum = course.minimum_bytes
    return DiskFootprint(
        parts=course.parts,
        checkpoint_bytes=checkpoint,
        momentary_bytes=max(
            (at_once - kept) * checkpoint + course.held_bytes(course.last) + course.removed_bytes,
            course.offline_bytes - sum(part.bytes for part in course.parts),
        ),
        removed_bytes=course.removed_bytes,
        log_bytes_per_update=course.growing_bytes / course.last,
        lake_bytes=course.lake_bytes(course.last),
        lake_needed_bytes=course.lake_needed_bytes,
        minimum_bytes=minimum,
        recommended_bytes=minimum + calibration.DISK_MARGIN_BYTES + course.lake_margin_bytes,
    )


@dataclass(frozen=True)
class _Course:
    """The disk of a run after each of its updates, as upper bounds.

    Attributes:
        counts_lake: whether a Lake that pauses counts as needed.
    """

    config: RunConfig
    facts: RunFacts
    training: TrainingArithmetic
    counts_lake: bool = True

    @property
    def last(self) -> int:
        return self.training.updates

    def timesteps(self, update: int) -> int:
        return self.training.began_at + update * self.training.timesteps_per_update

    @cached_property
    def _planned(self) -> PlannedRun:
        return self.facts.planned(self.config, self.training)

    @cached_property
    def _sizes(self) -> "_CheckpointSizes":
        return _CheckpointSizes(self.config, self.facts)

    @cached_property
    def retention(self) -> KeptCheckpoints:
        return _retention(self.config, self.training)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What the run directory holds at the end, without a Lake."""
        config = self.config
        facts = self.facts
        kept = self.retention.after(self.last)
        longest = config.env.most_episode_timesteps or facts.episode_timesteps
        clip = n_pictures(config, longest) * calibration.PICTURE_BYTES[config.recording.format]
        logs = self.log_bytes + calibration.RUN_FILES_BYTES
        if config.logging.wandb is not None:
            logs += calibration.WANDB_FILES_BYTES + clip  # of which it keeps a copy
        return (
            Part(f"{kept} checkpoint{'s' if kept > 1 else ''}", self.checkpoint_bytes(self.last)),
            Part(LOGS, logs),
            *(part for part in self.feature_logs if part.name != LOGS),
            *_teacher(config, facts),
            Part("clip", clip),
            *_parent_parts(facts),
            *_offline_checkpoints(config, facts, self.training),
        )

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """What is on the disk at the end, with the Lake and what an upload still needs."""
        lake = self.lake_bytes(self.last) or 0
        held = self.held_bytes(self.last)
        more = (Part("Lake", lake), Part("upload backlog", held))
        return (*self.parts, *(part for part in more if part.bytes))

    @cached_property
    def feature_logs(self) -> tuple[Part, ...]:
        """What features have written to the run directory at the end, beside checkpoints."""
        return tuple(part for feature in FEATURES for part in feature.logs(self._planned))

    @cached_property
    def log_bytes(self) -> int:
        logs = predicted_log_bytes(self.config, self.facts, self.training)
        return logs + sum(part.bytes for part in self.feature_logs if part.name == LOGS)

    @cached_property
    def growing_bytes(self) -> int:
        """All that grows with each update, beside checkpoints and Lake."""
        return self.log_bytes + sum(p.bytes for p in self.feature_logs if p.name != LOGS)

    @cached_property
    def removed_bytes(self) -> int:
        """Bytes of files that are there while it trains."""
        return self._removed_bytes(plays=True)

    def _removed_bytes(self, *, plays: bool) -> int:
        return sum(feature.removed_bytes(self._planned, plays=plays) for feature in FEATURES)

    def checkpoint_bytes(self, update: int) -> int:
        """Bytes of the checkpoints that are kept after an update."""
        kept = self.retention.after(update) if update else 0
        return _newest_bytes(self._sizes, self.training, kept, at=update)

    def held_bytes(self, update: int) -> int:
        """Bytes of checkpoints that would be deleted but for an upload that still reads them.

        Two at most: the one that is being sent and the best one. `upload.backlog_gb` limits them.
        """
        if self.config.upload is None:
            return 0
        pruned = self.retention.saved(update) - self.retention.after(update)
        each = self._sizes.at(self.timesteps(update))
        return min(max(0, min(2, pruned)) * each, round(self.config.upload.backlog_gb * _GB))

    @cached_property
    def _has_lake(self) -> bool:
        """Whether the run has a Lake, on the disk of its run directory."""
        lake = self.config.lake
        return lake is not None and _is_on_disk_of(self.config.run_dir, lake.path)

    def lake_bytes(self, update: int) -> int | None:
        """Size of the Lake on this disk; 0 without one, None if it was not measured."""
        if not self._has_lake:
            return 0
        return lake_bytes(self.config, self.facts, update * self.training.timesteps_per_update)

    def other_bytes(self, update: int) -> int:
        """Bytes of everything but checkpoints and Lake: logs, what is there from the start."""
        growing = {"clip", *(part.name for part in self.feature_logs)}
        standing = (part for part in self.parts[2:] if part.name not in growing)
        files = calibration.RUN_FILES_BYTES + sum(part.bytes for part in standing)
        logs = round(self.growing_bytes * update / self.last)
        return logs + files + self.removed_bytes + self.held_bytes(update)

    def needed_bytes(self, update: int) -> int:
        """Free space, before the run, without which it does not get beyond an update.

        After each update but the last, a run stops if there is no room for one more checkpoint and
        a margin, before it saves what is due.
        """
        at_once = self.retention.at_once(update)
        if update < self.last:
            at_once = 1 + (self.retention.after(update - 1) if update > 1 else 0)
        slack = at_once * checkpoint_files.CHECKPOINT_SLACK_BYTES + _SLACK_BYTES
        size = self.other_bytes(update) + self._counted_lake_bytes(update) + slack
        if update < self.last:
            due = self._sizes.at(self.timesteps(update))
            while_playing = size + self.checkpoint_bytes(update - 1) + due + self.reserve_bytes
            return max(self.offline_bytes, while_playing)
        saved = _newest_bytes(self._sizes, self.training, at_once, at=update)
        at_end = sum(part.bytes for part in self.parts) + self.held_bytes(update)
        ending = max(size + saved, at_end + self._counted_lake_bytes(update) + slack)
        return max(self.offline_bytes, ending)

    @cached_property
    def minimum_bytes(self) -> int:
        return self.needed_up_to(self.last)

    def needed_up_to(self, update: int) -> int:
        """As `needed_bytes`, of all updates up to this one, as it may fall only at the last."""
        before = max(1, min(update, self.last - 1))
        return max(self.needed_bytes(before), self.needed_bytes(update))

    def row(self, update: int, installation_bytes: int, after_s: float | None) -> PlanRow:
        return PlanRow(
            at=self.timesteps(update),
            checkpoints=self.checkpoint_bytes(update),
            lake=self.lake_bytes(update),
            others=self.other_bytes(update) + installation_bytes,
            needed=self.needed_up_to(update) + installation_bytes,
            after_s=after_s,
        )

    @cached_property
    def offline_bytes(self) -> int:
        """The most that is on the disk before the first timestep; 0 without an offline phase."""
        offline = self.config.offline
        training = self.training
        if offline is None or not training.offline_gradient_steps:
            return 0
        at_once = offline_checkpoints_at_once(
            training.offline_gradient_steps,
            save_every=offline.save_every_gradient_steps,
            evaluate_every=offline.evaluate_every_gradient_steps,
            keep_last=self.config.checkpoints.keep_last,
        )
        others = (*_teacher(self.config, self.facts), *_parent_parts(self.facts))
        there = sum(part.bytes for part in others)
        each = _offline_checkpoint_bytes(self.config, self.facts)
        slack = at_once * checkpoint_files.CHECKPOINT_SLACK_BYTES + _SLACK_BYTES
        there += calibration.RUN_FILES_BYTES + self._removed_bytes(plays=False)
        return at_once * each + there + slack

    @property
    def reserve_bytes(self) -> int:
        pauses = self.lake_pauses
        return checkpoint_files.LAKE_MARGIN_BYTES if pauses else checkpoint_files.STOP_MARGIN_BYTES

    @property
    def lake_pauses(self) -> bool:
        """Whether there is a Lake that pauses, and so counts as needed."""
        lake = self.config.lake
        pauses = lake is not None and lake.on_full == "pause"
        return self.counts_lake and pauses and bool(self.lake_bytes(self.last))

    def _counted_lake_bytes(self, update: int) -> int:
        return (self.lake_bytes(update) or 0) if self.lake_pauses else 0

    @property
    def lake_needed_bytes(self) -> int:
        """The part of the minimum that is there for the Lake."""
        return self.minimum_bytes - replace(self, counts_lake=False).minimum_bytes

    @property
    def lake_margin_bytes(self) -> int:
        """Bytes for a Lake that compresses less, and for one that may evict."""
        size = self.lake_bytes(self.last) or 0
        lake = self.config.lake
        most = size * (1 + calibration.LAKE_MARGIN_FRACTION)
        if lake is not None and lake.capacity_gb is not None:
            most = min(most, max(size, lake.capacity_gb * _GB))
        return round(most) - self._counted_lake_bytes(self.last)

    def pruned_bytes(self) -> int:
        """Bytes of the checkpoints that are pruned and the timesteps that are evicted."""
        saved = self.retention.saved(self.last)
        at = self.last
        all_saved = _newest_bytes(self._sizes, self.training, saved, at=at)
        each = self.facts.lake_bytes_per_timestep or 0
        lake = self.lake_bytes(at)
        evicted = each * self.training.played_timesteps - lake if lake else 0
        return all_saved - self.checkpoint_bytes(at) + round(max(0, evicted))

    def full_at(self, free_bytes: int) -> int | None:
        """Return the update at which a disk with so much free space is full; None if all fits."""
        before_last = range(1, self.last)
        index = bisect_left(
            before_last, True, key=lambda update: self.needed_bytes(update) > free_bytes
        )
        if index < len(before_last):
            return before_last[index]
        return self.last if self.needed_bytes(self.last) > free_bytes else None


def _parent_parts(facts: RunFacts) -> tuple[Part, ...]:
    """Files of a fork's parent that the fork has from its start."""
    if facts.fork is None:
        return ()
    kind, shared = ("linked", 0) if facts.fork.is_linked else ("copied", facts.fork.shared_bytes)
    return (
        Part("the parent's curves and tables", facts.fork.copied_bytes),
        Part(f"the parent's checkpoint and Lake, {kind}", shared),
    )


def _offline_checkpoints(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> tuple[Part, ...]:
    """Checkpoints that stay from learning before the first timestep: the last one and the best."""
    steps = training.offline_gradient_steps
    offline = config.offline
    if not steps or offline is None:
        return ()
    kept = 2 if steps > offline.evaluate_every_gradient_steps else 1
    each = _offline_checkpoint_bytes(config, facts)
    name = f"checkpoint{'s' if kept > 1 else ''} before the first timestep"
    return (Part(name, kept * each),)


def _offline_checkpoint_bytes(config: RunConfig, facts: RunFacts) -> int:
    return predicted_checkpoint_bytes(config, facts) - saved_replay_bytes(config, facts)


def predicted_checkpoint_bytes(
    config: RunConfig, facts: RunFacts, timesteps: int | None = None
) -> int:
    """Size of a checkpoint: weights, the optimiser's two moments, every env and perhaps the replay.

    Args:
        timesteps: when the checkpoint is written; None: at the end of the run. A later one is never
            smaller.
    """
    return _CheckpointSizes(config, facts).at(timesteps)


@dataclass(frozen=True)
class _CheckpointSizes:
    """Sizes of a run's checkpoints; see `predicted_checkpoint_bytes`."""

    config: RunConfig
    facts: RunFacts

    @cached_property
    def _weights(self) -> tuple[int, int]:
        """Numbers in the policy and in the network that is trained."""
        network = network_of(self.config, self.facts)
        return network.policy_parameters, network.parameters

    @cached_property
    def _planned(self) -> PlannedRun:
        return self.facts.planned(self.config)

    def at(self, timesteps: int | None) -> int:
        config = self.config
        algorithm = self.config.algorithm
        has_learned = self.config.learns
        if config.offline is None and timesteps is not None:
            has_learned = has_learned and timesteps > algorithm.learning_starts
        counted = config.total_timesteps if timesteps is None else timesteps
        policy_weights, trained_weights = self._weights
        of_features = sum(each.checkpoint_bytes(self._planned, counted) for each in FEATURES)
        return of_features + checkpoint_files.checkpoint_bytes(
            policy_weights=policy_weights,
            optimized_weights=trained_weights if has_learned else 0,
            n_envs=config.env.n_envs,
            observation_bytes=self._planned.observation_format.nbytes,
            replay_bytes=saved_replay_bytes(config, self.facts, timesteps),
        )


def _newest_bytes(
    sizes: _CheckpointSizes, training: TrainingArithmetic, count: int, *, at: int
) -> int:
    """Bytes of the newest `count` checkpoints that may exist after `at` updates.

    Checkpoints never shrink, so any `count` that are kept take no more. The sizes of the newest
    `_COUNTED_CHECKPOINTS` are computed, and older ones count as large as the oldest of those.
    """
    saves = _retention(sizes.config, training).newest(at, min(count, _COUNTED_CHECKPOINTS))
    found = [sizes.at(training.began_at + n * training.timesteps_per_update) for n in saves]
    return sum(found) + (count - len(found)) * (found[-1] if found else 0)


def _teacher(config: RunConfig, facts: RunFacts) -> tuple[Part, ...]:
    """The teacher's weights, which are links if its run is on the same disk."""
    if config.algorithm.teacher is None:
        return ()
    root, _ = run_at(config.algorithm.teacher.run)
    if root.exists() and is_same_disk(root, nearest_folder(config.run_dir.absolute())):
        return (Part("teacher, linked", 0),)
    return (Part("teacher", network_of(config, facts).policy_bytes),)


def _retention(config: RunConfig, training: TrainingArithmetic) -> KeptCheckpoints:
    return KeptCheckpoints(
        every_timesteps=config.checkpoints.every_timesteps,
        evaluate_every_timesteps=config.evaluation.every_timesteps,
        keep_last=config.checkpoints.keep_last,
        keep_every_timesteps=config.checkpoints.keep_every_timesteps,
        rollout=training.timesteps_per_update,
        updates=training.updates,
    )


def timestep_of_full_disk(
    config: RunConfig, facts: RunFacts, footprint: Footprint, free_bytes: int
) -> int | None:
    """Return the timestep at which a run stops or its Lake pauses, as the disk is full.

    None if everything fits.
    """
    course = _Course(config, facts, footprint.training)
    update = course.full_at(free_bytes)
    return None if update is None else course.timesteps(update)


def disk_plan(
    config: RunConfig,
    facts: RunFacts,
    footprint: Footprint,
    *,
    installation_bytes: int = 0,
    timesteps_per_s: float | None = None,
) -> DiskPlan:
    """Return the plan of a run's disk.

    Args:
        installation_bytes: what has to be installed on the same disk.
        timesteps_per_s: speed of the whole run; None: not measured.
    """
    course = _Course(config, facts, footprint.training)
    disk = footprint.disk
    speed = _Speed(footprint.training.timesteps_per_update, timesteps_per_s)
    smaller = smaller_disks(disk.minimum_bytes, course.full_at, speed.after_s)
    recommended = disk.recommended_bytes + installation_bytes
    return DiskPlan(
        stage="timestep",
        parts=(*course.all_parts, *installation_part(installation_bytes)),
        rows=tuple(
            course.row(update, installation_bytes, speed.after_s(update))
            for update in _shown_updates(footprint.training)
        ),
        minimum_bytes=disk.minimum_bytes + installation_bytes,
        recommended_bytes=recommended,
        comfortable_bytes=recommended + course.pruned_bytes(),
        margin=margin_words(course.lake_margin_bytes, pauses=course.lake_pauses),
        smaller=tuple(
            SmallerDisk(d.bytes + installation_bytes, course.timesteps(d.full_at), d.after_s)
            for d in smaller
        ),
        lake_pauses=course.lake_pauses,
        compression_saved=compression_saved(config, facts),
    )


@dataclass(frozen=True)
class _Speed:
    timesteps_per_update: int
    timesteps_per_s: float | None

    def after_s(self, update: int) -> float | None:
        """Return the seconds up to an update; None if the speed was not measured."""
        if self.timesteps_per_s is None:
            return None
        return update * self.timesteps_per_update / self.timesteps_per_s


def installation_part(n_bytes: int) -> tuple[Part, ...]:
    return (Part("installation", n_bytes),) if n_bytes else ()


def margin_words(lake_margin: int, *, pauses: bool) -> str:
    """Return the reason for what is recommended in addition to the minimum.

    Args:
        pauses: whether the minimum has a Lake that pauses.
    """
    margin = f"{format_bytes(calibration.DISK_MARGIN_BYTES)} more for other programs and logs"
    if not lake_margin:
        return margin
    why = "for frames that compress less" if pauses else "for the Lake, which else evicts"
    return f"{margin}, {format_bytes(lake_margin)} {why}"


def compression_saved(config: RunConfig, facts: RunFacts) -> float | None:
    """Return the share that the Lake saves of whole frame stacks; None if it was not measured."""
    if config.lake is None or facts.lake_bytes_per_timestep is None:
        return None
    schema = LakeSchema.of(facts.observation_format(config), n_actions=facts.n_actions)
    return 1 - facts.lake_bytes_per_timestep / schema.raw_bytes


_PERCENT = (1, 10, 25, 50, 100)
_SCALARS_BYTES = 1 + 4 + 1 + 1  # action, reward, ending and age, as in a Pond


@dataclass(frozen=True)
class GrowthRow:
    """The timesteps that are kept at one moment of the run, and their bytes in several forms.

    Attributes:
        timesteps: the moment.
        kept: number of timesteps that the Lake or the replay holds.
        raw: their bytes with stacks and next stacks, as SB3's ReplayBuffer holds them.
        packed: their bytes with each frame once, in as few bits as it has information.
        on_disk: their bytes in the Lake, 0 without one; None if it was not measured how well the
            game compresses.
        checkpoints: bytes of all checkpoints that are kept, with the replay where it is saved.
    """

    timesteps: int
    kept: int
    raw: int
    packed: int
    on_disk: int | None
    checkpoints: int


def growth_rows(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic
) -> tuple[GrowthRow, ...]:
    """Return rows over the run; none for a run that keeps no timesteps on disk."""
    if config.lake is None and not config.checkpoints.save_replay_buffer:
        return ()
    return tuple(_row(config, facts, training, update) for update in _shown_updates(training))


def _shown_updates(training: TrainingArithmetic) -> list[int]:
    return sorted({max(1, round(training.updates * p / 100)) for p in _PERCENT})


def _is_on_disk_of(run_dir: Path, lake: Path | None) -> bool:
    if lake is None:  # it is in the run directory
        return True
    return is_same_disk(*(nearest_folder(path.absolute()) for path in (lake, run_dir)))


def lake_bytes(config: RunConfig, facts: RunFacts, timesteps: int) -> int | None:
    """Size of the run's Lake after so many timesteps; 0 without a Lake, None if not measured."""
    each = facts.lake_bytes_per_timestep
    lake = config.lake
    if lake is None:
        return 0
    if each is None:
        return None
    most = Capacity(transitions=lake.capacity_transitions).most_on_disk
    size = each * (timesteps if most is None else min(timesteps, most))
    return round(size if lake.capacity_gb is None else min(size, lake.capacity_gb * _GB))


def _row(
    config: RunConfig, facts: RunFacts, training: TrainingArithmetic, updates: int
) -> GrowthRow:
    played = updates * training.timesteps_per_update
    timesteps = training.began_at + played
    schema = LakeSchema.of(facts.observation_format(config), n_actions=facts.n_actions)
    kept = _kept(config, timesteps)
    on_disk = lake_bytes(config, facts, played)
    n_checkpoints = _retention(config, training).after(updates)
    if on_disk and facts.lake_bytes_per_timestep:
        kept = min(kept, round(on_disk / facts.lake_bytes_per_timestep))
    return GrowthRow(
        timesteps=timesteps,
        kept=kept,
        raw=kept * schema.raw_bytes,
        packed=kept * (schema.packing.nbytes + _SCALARS_BYTES),
        on_disk=on_disk,
        checkpoints=_newest_bytes(
            _CheckpointSizes(config, facts), training, n_checkpoints, at=updates
        ),
    )


def _kept(config: RunConfig, timesteps: int) -> int:
    lake = config.lake
    replay = config.algorithm.replay
    if lake is not None:
        return min(timesteps, lake.capacity_transitions or timesteps)
    assert replay is not None
    return min(timesteps, replay.capacity)


_EPISODES_IN_A_LOG = 4  # SB3's off-policy algorithms write their curves every 4 episodes


def predicted_log_bytes(config: RunConfig, facts: RunFacts, training: TrainingArithmetic) -> int:
    """Return the bytes of curves, events, evaluations and episodes at the end.

    What grows with each update may fill a disk in a long run, so its numbers are counted. An
    evaluation or a checkpoint counts with one constant for all that is written of it, in every file
    and copy: together they are about a thousandth of the margin of the disk.
    """
    logging = config.logging
    episodes = training.played_timesteps // facts.episode_timesteps
    points = training.updates
    if config.algorithm.replay is not None:
        points = training.played_timesteps // (facts.episode_timesteps * _EPISODES_IN_A_LOG)
    numbers = calibration.UPDATE_NUMBERS + facts.n_game_curves
    each = logging.tensorboard * calibration.TENSORBOARD_NUMBER_BYTES
    each += logging.csv * calibration.PROGRESS_NUMBER_BYTES
    each += (logging.wandb is not None) * calibration.WANDB_NUMBER_BYTES
    return (
        points * numbers * each
        + min(points, CURVE_POINTS) * numbers * calibration.EVENT_NUMBER_BYTES
        + boundaries_of(config, training) * calibration.EVENT_ROLLOUT_BYTES
        + (training.evaluations + training.checkpoints) * calibration.EVALUATION_BYTES
        + logging.monitor * episodes * calibration.MONITOR_EPISODE_BYTES
    )
