"""The run directory and the Lake over the whole run: kept checkpoints, logs, growth."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from game_rl.algorithms.sizes import NetworkSize
from game_rl.checkpoints import checkpoint_files
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.events import CURVE_POINTS
from game_rl.features.feature import LOGS, Part, PlannedRun
from game_rl.features.feature_table import FEATURES
from game_rl.lake.horizon import Capacity
from game_rl.lake.lake_schema import LakeSchema
from game_rl.preflight import calibration
from game_rl.preflight.disk_plan import DiskCourse, DiskPlan
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.kept_checkpoints import KeptCheckpoints, offline_checkpoints_at_once
from game_rl.preflight.memory import network_of, saved_replay_bytes
from game_rl.preflight.workload import TrainingArithmetic
from game_rl.system.machine import is_same_disk, nearest_folder

_COUNTED_CHECKPOINTS = 64  # checkpoints whose sizes are computed one by one
_GB = 10**9
_SLACK_BYTES = 20 * checkpoint_files.BLOCK_BYTES  # of the run's other files
_PERCENT = (1, 10, 25, 50, 100)  # of the updates, that tables show


@dataclass(frozen=True)
class RunDisk(DiskCourse):
    """The disk of a run after each of its updates, and its run directory at the end."""

    config: RunConfig
    facts: RunFacts
    training: TrainingArithmetic

    @property
    def stage(self) -> str:
        return "timestep"

    @property
    def last(self) -> int:
        return self.training.updates

    @property
    def shown_moments(self) -> list[int]:
        return sorted({max(1, round(self.last * percent / 100)) for percent in _PERCENT})

    @property
    def lake_config(self) -> LakeConfig | None:
        return self.config.lake

    def at(self, moment: int) -> int:
        return self.training.began_at + moment * self.training.timesteps_per_update

    @cached_property
    def _planned(self) -> PlannedRun:
        return self.facts.planned(self.config, self.training)

    @cached_property
    def sizes(self) -> "_CheckpointSizes":
        return _CheckpointSizes(self.config, self.facts)

    @cached_property
    def retention(self) -> KeptCheckpoints:
        checkpoints = self.config.checkpoints
        return KeptCheckpoints(
            every_timesteps=checkpoints.every_timesteps,
            evaluate_every_timesteps=self.config.evaluation.every_timesteps,
            keep_last=checkpoints.keep_last,
            keep_every_timesteps=checkpoints.keep_every_timesteps,
            rollout=self.training.timesteps_per_update,
            updates=self.training.updates,
        )

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What the run directory holds at the end, without a Lake."""
        kept = self.retention.after(self.last)
        files = list[Part]()
        for feature in FEATURES:
            files += [*feature.standing_files(self._planned), *feature.last_files(self._planned)]
        logs = (*self._growing, *files)
        return (
            Part(f"{kept} checkpoint{'s' if kept > 1 else ''}", self.checkpoints_at(self.last)),
            Part(
                LOGS,
                calibration.RUN_FILES_BYTES + sum(part.bytes for part in logs if part.name == LOGS),
            ),
            *(part for part in logs if part.name != LOGS),
            *self._parent_parts(),
            *self._offline_checkpoints(),
        )

    @cached_property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @cached_property
    def checkpoint_bytes(self) -> int:
        """Size of the run's last checkpoint."""
        return self.sizes.at(None)

    @cached_property
    def momentary_bytes(self) -> int:
        """Bytes in addition to `parts` while files exist that are deleted soon.

        A checkpoint that a new one replaces or that is being uploaded, and `removed_bytes`.
        """
        more = self.retention.at_once(self.last) - self.retention.after(self.last)
        momentary = more * self.checkpoint_bytes + self.held_bytes(self.last) + self.removed_bytes
        return max(momentary, self.offline_bytes - self.bytes)

    @property
    def log_bytes_per_update(self) -> float:
        """Bytes that curves, events and tables grow by in an update."""
        return self.growing_bytes / self.last

    @cached_property
    def lake_bytes(self) -> int | None:
        """Size of the run's Lake at the end; see `lake_at`."""
        return self.lake_at(self.last)

    def parts_at_end(self) -> Iterable[Part]:
        lake = self.lake_at(self.last) or 0
        held = self.held_bytes(self.last)
        more = (Part("Lake", lake), Part("upload backlog", held))
        return (*self.parts, *(part for part in more if part.bytes))

    @cached_property
    def _growing(self) -> tuple[Part, ...]:
        """What is written with each update, beside checkpoints and Lake."""
        own = predicted_log_bytes(self.config, self.facts, self._planned)
        of_features = (part for each in FEATURES for part in each.logs(self._planned))
        return (Part(LOGS, own), *of_features)

    @cached_property
    def growing_bytes(self) -> int:
        return sum(part.bytes for part in self._growing)

    @cached_property
    def _standing_bytes(self) -> int:
        """What is there from the start, or counts so."""
        of_features = (p for each in FEATURES for p in each.standing_files(self._planned))
        standing = (*of_features, *self._parent_parts(), *self._offline_checkpoints())
        return sum(part.bytes for part in standing)

    @cached_property
    def removed_bytes(self) -> int:
        """Bytes of files that the training removes when it closes.

        Tables of Lakes, the file for whoever watches.
        """
        return self._removed_bytes(plays=True)

    def _removed_bytes(self, *, plays: bool) -> int:
        return sum(feature.removed_bytes(self._planned, plays=plays) for feature in FEATURES)

    def checkpoints_at(self, moment: int) -> int:
        return self._newest_bytes(self.retention.after(moment) if moment else 0, moment)

    def _newest_bytes(self, count: int, moment: int) -> int:
        """Bytes of the newest `count` checkpoints that may exist after a moment.

        Checkpoints never shrink, so any `count` that are kept take no more. The sizes of the newest
        `_COUNTED_CHECKPOINTS` are computed, and older ones count as large as the oldest of those.
        """
        saves = self.retention.newest(moment, min(count, _COUNTED_CHECKPOINTS))
        found = [self.sizes.at(self.at(save)) for save in saves]
        return sum(found) + (count - len(found)) * (found[-1] if found else 0)

    def held_bytes(self, moment: int) -> int:
        """Bytes of checkpoints that would be deleted but for a feature that still needs them."""
        pruned = self.retention.saved(moment) - self.retention.after(moment)
        each = self.sizes.at(self.at(moment))
        return sum(f.held_bytes(self._planned, pruned=pruned, each=each) for f in FEATURES)

    @cached_property
    def _has_lake(self) -> bool:
        """Whether the run has a Lake, on the disk of its run directory."""
        lake = self.config.lake
        if lake is None or lake.path is None:
            return lake is not None
        folders = (lake.path, self.config.run_dir)
        return is_same_disk(*(nearest_folder(path.absolute()) for path in folders))

    def lake_at(self, moment: int) -> int | None:
        """Return the size of the Lake on this disk; 0 without one, None if it was not measured."""
        if not self._has_lake:
            return 0
        return lake_bytes(self.config, self.facts, moment * self.training.timesteps_per_update)

    def others_at(self, moment: int) -> int:
        files = calibration.RUN_FILES_BYTES + self._standing_bytes
        logs = round(self.growing_bytes * moment / self.last)
        return logs + files + self.removed_bytes + self.held_bytes(moment)

    def needed_bytes(self, moment: int) -> int:
        """Free space, before the run, without which it does not get beyond an update.

        After each update but the last, a run stops if there is no room for one more checkpoint and
        a margin, before it saves what is due.
        """
        at_once = self.retention.at_once(moment)
        if moment < self.last:
            at_once = 1 + (self.retention.after(moment - 1) if moment > 1 else 0)
        slack = at_once * checkpoint_files.CHECKPOINT_SLACK_BYTES + _SLACK_BYTES
        size = self.others_at(moment) + self.needed_lake_bytes(moment) + slack
        if moment < self.last:
            due = self.sizes.at(self.at(moment))
            while_playing = size + self.checkpoints_at(moment - 1) + due + self.reserve_bytes
            return max(self.offline_bytes, while_playing)
        saved = self._newest_bytes(at_once, moment)
        at_end = self.bytes + self.held_bytes(moment)
        ending = max(size + saved, at_end + self.needed_lake_bytes(moment) + slack)
        return max(self.offline_bytes, ending)

    def needed_up_to(self, moment: int) -> int:
        """As `needed_bytes`, of all updates up to this one, as it may fall only at the last."""
        before = max(1, min(moment, self.last - 1))
        return max(self.needed_bytes(before), self.needed_bytes(moment))

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
        of_features = (p for each in FEATURES for p in each.standing_files(self._planned))
        there = sum(part.bytes for part in (*of_features, *self._parent_parts()))
        there += calibration.RUN_FILES_BYTES + self._removed_bytes(plays=False)
        slack = at_once * checkpoint_files.CHECKPOINT_SLACK_BYTES + _SLACK_BYTES
        return at_once * self._offline_checkpoint_bytes + there + slack

    @property
    def _offline_checkpoint_bytes(self) -> int:
        return self.checkpoint_bytes - saved_replay_bytes(self.config, self.facts)

    def _offline_checkpoints(self) -> Iterator[Part]:
        """Yield those that stay from before the first timestep: the last one and the best."""
        steps = self.training.offline_gradient_steps
        offline = self.config.offline
        if steps and offline is not None:
            kept = 2 if steps > offline.evaluate_every_gradient_steps else 1
            name = f"checkpoint{'s' if kept > 1 else ''} before the first timestep"
            yield Part(name, kept * self._offline_checkpoint_bytes)
        elif self.config.clone is not None:
            yield Part("checkpoint before the first timestep", self._offline_checkpoint_bytes)

    def _parent_parts(self) -> Iterator[Part]:
        """Yield the files of a fork's parent that the fork has from its start."""
        fork = self.facts.fork
        if fork is not None:
            yield Part("the parent's curves and tables", fork.copied_bytes)
            kind = "linked" if fork.is_linked else "copied"
            shared = 0 if fork.is_linked else fork.shared_bytes
            yield Part(f"the parent's checkpoint and Lake, {kind}", shared)

    @property
    def lake_margin_bytes(self) -> int:
        size = self.lake_bytes or 0
        lake = self.config.lake
        if not self.counts_lake:
            return 0
        most = size * (1 + calibration.LAKE_MARGIN_FRACTION)
        if lake is not None and lake.capacity_gb is not None:
            most = min(most, max(size, lake.capacity_gb * _GB))
        return round(most) - self.needed_lake_bytes(self.last)

    @property
    def pruned_bytes(self) -> int:
        at = self.last
        all_saved = self._newest_bytes(self.retention.saved(at), at)
        each = self.facts.lake_bytes_per_timestep or 0
        lake = self.lake_at(at)
        evicted = each * self.training.played_timesteps - lake if lake else 0
        return all_saved - self.checkpoints_at(at) + round(max(0, evicted))

    @property
    def compression_saved(self) -> float | None:
        return compression_saved(self.config, self.facts)

    def full_at(self, free_bytes: int) -> int | None:
        before_last = range(1, self.last)
        index = bisect_left(
            before_last, True, key=lambda update: self.needed_bytes(update) > free_bytes
        )
        if index < len(before_last):
            return before_last[index]
        return self.last if self.needed_bytes(self.last) > free_bytes else None

    def full_at_timestep(self, free_bytes: int) -> int | None:
        """Return the timestep at which a run stops or its Lake pauses, as the disk is full.

        None if everything fits.
        """
        update = self.full_at(free_bytes)
        return None if update is None else self.at(update)

    def plan_at_speed(self, installation_bytes: int, timesteps_per_s: float | None) -> DiskPlan:
        """As `plan`, with the speed of the whole run; None: not measured."""

        def after_s(update: int) -> float | None:
            if timesteps_per_s is None:
                return None
            return update * self.training.timesteps_per_update / timesteps_per_s

        return self.plan(installation_bytes, after_s)

    def growth(self) -> tuple["GrowthRow", ...]:
        """Return rows over the run; none for a run that keeps no timesteps on disk."""
        config = self.config
        if config.lake is None and not config.checkpoints.save_replay_buffer:
            return ()
        seen = self._planned.observation_format
        schema = LakeSchema.of(seen, n_actions=self.facts.n_actions)
        rows = []
        for moment in self.shown_moments:
            timesteps = self.at(moment)
            on_disk = lake_bytes(config, self.facts, moment * self.training.timesteps_per_update)
            kept = min(timesteps, _capacity(config) or timesteps)
            if on_disk and self.facts.lake_bytes_per_timestep:
                kept = min(kept, round(on_disk / self.facts.lake_bytes_per_timestep))
            row = GrowthRow(
                timesteps=timesteps,
                kept=kept,
                raw=kept * schema.raw_bytes,
                packed=kept * (schema.packing.nbytes + _SCALARS_BYTES),
                on_disk=on_disk,
                checkpoints=self.checkpoints_at(moment),
            )
            rows.append(row)
        return tuple(rows)


def _capacity(config: RunConfig) -> int | None:
    """Return the timesteps that the Lake or else the replay holds; None: as many as are played."""
    if config.lake is not None:
        return config.lake.capacity_transitions
    assert config.algorithm.replay is not None
    return config.algorithm.replay.capacity


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
    def _network(self) -> NetworkSize:
        return network_of(self.config, self.facts)

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
        of_features = sum(each.checkpoint_bytes(self._planned, counted) for each in FEATURES)
        return of_features + checkpoint_files.checkpoint_bytes(
            policy_weights=self._network.policy_parameters,
            optimized_weights=self._network.parameters if has_learned else 0,
            n_envs=config.env.n_envs,
            observation_bytes=self._planned.observation_format.nbytes,
            replay_bytes=saved_replay_bytes(config, self.facts, timesteps),
        )


def compression_saved(config: RunConfig, facts: RunFacts) -> float | None:
    """Return the share that the Lake saves of whole frame stacks; None if it was not measured."""
    if config.lake is None or facts.lake_bytes_per_timestep is None:
        return None
    schema = LakeSchema.of(facts.observation_format(config), n_actions=facts.n_actions)
    return 1 - facts.lake_bytes_per_timestep / schema.raw_bytes


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


def predicted_log_bytes(config: RunConfig, facts: RunFacts, run: PlannedRun) -> int:
    """Return the bytes of curves, events, evaluations and episodes at the end.

    What grows with each update may fill a disk in a long run, so its numbers are counted. An
    evaluation or a checkpoint counts with one constant for all that is written of it, in every file
    and copy: together they are about a thousandth of the margin of the disk.
    """
    logging = config.logging
    numbers = facts.curve_numbers_of_a_point
    episodes = run.played_timesteps // facts.episode_timesteps
    each = logging.tensorboard * calibration.TENSORBOARD_NUMBER_BYTES
    each += logging.csv * calibration.PROGRESS_NUMBER_BYTES
    return (
        run.curve_numbers * each
        + min(run.curve_numbers, CURVE_POINTS * numbers) * calibration.EVENT_NUMBER_BYTES
        + run.boundaries * calibration.EVENT_ROLLOUT_BYTES
        + (run.evaluations + run.checkpoints) * calibration.EVALUATION_BYTES
        + logging.monitor * episodes * calibration.MONITOR_EPISODE_BYTES
    )
