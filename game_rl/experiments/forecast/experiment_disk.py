"""The disk of an experiment: by generation, what is kept, and the plan."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from game_rl.checkpoints import checkpoint_files
from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.config.experiments.experiment import STAGES, Experiment, ExperimentConfig
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.features.feature import Part
from game_rl.preflight import calibration
from game_rl.preflight.disk import compression_saved, installation_part, lake_bytes, margin_words
from game_rl.preflight.disk_plan import DiskPlan, PlanRow, SmallerDisk, smaller_disks
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import DiskFootprint
from game_rl.preflight.preflight_report import PreflightReport

_FILES_A_STRETCH_BYTES = 4_000  # result, output, and lines of the record and of events.jsonl
_FILES_OF_A_RUN = 20
_FILES_OF_A_STRETCH = 4
_GB = 10**9


@dataclass(frozen=True)
class GenerationRow:
    """The experiment's folder after one generation; a file with several hard links counts once.

    Attributes:
        transitions: transitions of all members, copied over or not, and of the learner; after the
            last generation, those of the best member training on, too.
        checkpoints: bytes.
        lake: bytes; None if the game's compression was not measured.
        logs: bytes.
    """

    generation: int
    transitions: int
    checkpoints: int
    lake: int | None
    logs: int

    @property
    def total(self) -> int:
        return self.checkpoints + (self.lake or 0) + self.logs


def stretches(config: ExperimentConfig) -> float:
    """Return the stretches in a member's total timesteps.

    The timesteps of `train_on` count as a fraction of a stretch, or as several.
    """
    return config.total_timesteps / config.timesteps_per_generation


def kept_generations(keep: KeepGenerationsConfig, newest: int) -> int:
    """Return the number of generations that are kept after generation `newest`."""
    return sum(keep.keeps(generation, newest=newest) for generation in range(1, newest + 1))


@dataclass(frozen=True)
class ExperimentDisk:
    """What an experiment has on its disk, by generation, as upper bounds.

    Checkpoints: one for each member and one for the learner, in each generation that is kept. Logs:
    those of a member's updates so far. A copy also has its parent's, and the logs and the Lake of
    the run that it replaces stay. The learner has a run of its own in each generation.

    Attributes:
        facts: of a member.
        member, learner: their reports; None without a learner.
        slots: members that train at once.
        superseded_bytes: what was set aside when the experiment went back, and stays.
        counts_lake: whether a Lake that pauses counts as needed.
    """

    experiment: Experiment
    facts: RunFacts
    member: PreflightReport
    learner: PreflightReport | None
    slots: int
    superseded_bytes: int = 0
    counts_lake: bool = True

    @property
    def config(self) -> ExperimentConfig:
        return self.experiment.config

    def keeping(self, keep: KeepGenerationsConfig) -> "ExperimentDisk":
        """Return the disk of the experiment if it keeps other generations."""
        key = f"keep_{STAGES[self.config.kind]}s"
        changed = self.config.model_copy(update={key: keep})
        return replace(self, experiment=replace(self.experiment, config=changed))

    @cached_property
    def rows(self) -> tuple[GenerationRow, ...]:
        """One row for each generation."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[GenerationRow]:
        config = self.config
        learner = self.learner
        learned = 0 if learner is None else learner.footprint.training.played_timesteps
        logs = 0.0
        for generation in range(1, config.generations + 1):
            logs += self._logs_of_members(generation) + _logs_of(learner)
            played = generation * config.timesteps_per_generation
            row = GenerationRow(
                generation=generation,
                transitions=played * config.members + generation * learned,
                checkpoints=self._kept(generation) * self._each_bytes,
                lake=self._lake_bytes(generation),
                logs=round(logs),
            )
            yield self._with_train_on(row) if generation == config.generations else row

    def _kept(self, generation: int) -> int:
        return kept_generations(self.config.keep_generations, generation) if generation else 0

    @property
    def _disk(self) -> DiskFootprint:
        return self.member.footprint.disk

    @property
    def _each_bytes(self) -> int:
        """Bytes of a generation's checkpoints."""
        learner = 0 if self.learner is None else self.learner.footprint.disk.checkpoint_bytes
        return self.config.members * self._disk.checkpoint_bytes + learner

    def _with_train_on(self, row: GenerationRow) -> GenerationRow:
        """Add the run of the best member to the last row, if it trains on."""
        config = self.config
        if config.train_on is None:
            return row
        updates = self.member.footprint.training.updates
        logs = updates * self._disk.log_bytes_per_update + calibration.RUN_FILES_BYTES
        own_lake = lake_bytes(self.experiment.run, self.facts, config.total_timesteps)
        return replace(
            row,
            transitions=row.transitions + config.train_on.timesteps,
            checkpoints=row.checkpoints + self._disk.checkpoint_bytes,
            lake=None if row.lake is None else row.lake + (own_lake or 0),
            logs=row.logs + round(logs) + _FILES_A_STRETCH_BYTES,
        )

    def _logs_of_members(self, generation: int) -> float:
        config = self.config
        training = self.member.footprint.training
        updates = -(-generation * config.timesteps_per_generation // training.timesteps_per_update)
        each = self._disk.log_bytes_per_update
        logs = config.members * each * training.updates / stretches(config)
        logs += config.members * _FILES_A_STRETCH_BYTES
        if generation < config.generations:
            logs += self._copies * (updates * each + calibration.RUN_FILES_BYTES)
        return logs

    @property
    def _copies(self) -> int:
        """Copies that are made after a generation."""
        return max(1, int(self.config.copied_share * self.config.members))

    def _lake_bytes(self, generation: int) -> int | None:
        """Return the size of the Lake that all members share or, without a learner, of all Lakes.

        A Lake of a run that was replaced stays, and its copy begins another one.
        """
        run = self.experiment.run
        members = self.config.members
        timesteps = generation * self.config.timesteps_per_generation
        if self.experiment.learner is not None:
            return lake_bytes(run, self.facts, members * timesteps)
        each = lake_bytes(run, self.facts, timesteps)
        per_timestep = self.facts.lake_bytes_per_timestep
        if not each or per_timestep is None:
            return each
        return min(self._lake_folders(generation) * each, round(members * timesteps * per_timestep))

    def _lake_folders(self, generation: int) -> int:
        """Return the number of Lakes, of which those that runs wrote that were replaced stay."""
        if self.experiment.learner is not None:
            return 1
        return self.config.members + (generation - 1) * self._copies

    @property
    def lake_folders(self) -> int:
        """Number of Lakes at the end."""
        return self._lake_folders(self.config.generations) + (self.config.train_on is not None)

    # ------------------------------------------------------------------ what is needed

    def needed_bytes(self, generation: int) -> int:
        """Free space, before the start, without which it does not get through a generation.

        Until a generation's record is written, its checkpoints are there in addition to those of
        the generations that were kept before; a member stops while there is no room for one more.
        """
        return self._most_bytes(
            generation, playing=self.reserve_bytes, learning=checkpoint_files.STOP_MARGIN_BYTES
        )

    def _most_bytes(self, generation: int, *, playing: int = 0, learning: int = 0) -> int:
        """Return the most that is there in a generation, and what has to stay free beside it.

        Args:
            playing: what has to stay free while members, or all at once, train.
            learning: the same while the learner has the disk to itself, when no Lake is written.
        """
        row = self.rows[generation - 1]
        before = self._kept(generation - 1)
        checkpoint = self._disk.checkpoint_bytes
        of_members = self.config.members * self._saved_in_a_generation * checkpoint
        of_members += self._copies * min(checkpoint, checkpoint_files.OVERHEAD_BYTES)
        of_learner = 0
        if self.learner is not None:
            disk = self.learner.footprint.disk
            of_learner = disk.bytes + disk.momentary_bytes
        training_on = row.checkpoints - self._kept(generation) * self._each_bytes
        of_all = before * self._each_bytes + of_members + training_on
        of_all += self.slots * self._disk.removed_bytes
        with_learner = of_all + of_learner
        if self.config.rule == "live":
            of_all = with_learner
        needed = max(of_all + playing, with_learner + learning, row.checkpoints)
        lake = (row.lake or 0) if self.lake_pauses else 0
        standing = self.superseded_bytes + self._on_nodes_bytes + self._held_bytes(generation)
        return needed + row.logs + lake + standing + self.slack_bytes(generation)

    def slack_bytes(self, generation: int) -> int:
        """What files take beyond their size, as the last block of each is not full."""
        members = self.config.members
        runs = self.config.members + (self.learner is not None)
        saved = self._kept(generation - 1) * runs + members * self._saved_in_a_generation
        files = _FILES_OF_A_RUN * runs + _FILES_OF_A_STRETCH * runs * generation
        blocks = files * checkpoint_files.BLOCK_BYTES
        return saved * checkpoint_files.CHECKPOINT_SLACK_BYTES + blocks

    @property
    def _saved_in_a_generation(self) -> int:
        """Checkpoints that a member writes in a generation and that are there at once."""
        settings = self.experiment.run.checkpoints
        stretch = self.config.timesteps_per_generation
        written = stretch // settings.every_timesteps + 1
        for_good = stretch // (settings.keep_every_timesteps or stretch + 1)
        return min(written, settings.keep_last + 1 + for_good)

    def _held_bytes(self, generation: int) -> int:
        """Bytes of files that only an upload still needs; `upload.backlog_gb` limits them."""
        upload = self.config.upload
        if upload is None or self._kept(generation) == generation:
            return 0
        return min(self._each_bytes, round(upload.backlog_gb * _GB))

    @property
    def _on_nodes_bytes(self) -> int:
        """Bytes of members' run directories on a node's own disk, if this machine is the node."""
        executor = self.config.executor
        if not isinstance(executor, RayExecutorConfig) or executor.storage is None:
            return 0
        return self.slots * self._disk.bytes if executor.starts_cluster else 0

    @property
    def minimum_bytes(self) -> int:
        return self.needed_bytes(self.config.generations)

    @property
    def reserve_bytes(self) -> int:
        """What stays free at least, as a run stops or its Lake pauses below that."""
        pauses = self.lake_pauses
        return checkpoint_files.LAKE_MARGIN_BYTES if pauses else checkpoint_files.STOP_MARGIN_BYTES

    @property
    def lake_pauses(self) -> bool:
        """Whether there is a Lake that pauses, and so counts as needed."""
        lake = self.experiment.run.lake
        pauses = lake is not None and lake.on_full == "pause"
        return self.counts_lake and pauses and bool(self.rows[-1].lake)

    @property
    def lake_margin_bytes(self) -> int:
        """Bytes for Lakes that compress less, and for those that may evict."""
        size = self.rows[-1].lake or 0
        lake = self.experiment.run.lake
        is_limited = lake is not None and lake.capacity_gb is not None
        margin = 0 if is_limited else round(calibration.LAKE_MARGIN_FRACTION * size)
        return margin + (0 if self.lake_pauses else size)

    @property
    def recommended_bytes(self) -> int:
        return self.minimum_bytes + calibration.DISK_MARGIN_BYTES + self.lake_margin_bytes

    @property
    def pruned_bytes(self) -> int:
        """Bytes of the generations that are pruned and the timesteps that are evicted."""
        generations = self.config.generations
        row = self.rows[-1]
        pruned = (generations - self._kept(generations)) * self._each_bytes
        each = self.facts.lake_bytes_per_timestep or 0
        played = self.config.members * self.config.total_timesteps
        return pruned + (max(0, round(each * played) - row.lake) if row.lake else 0)

    @property
    def momentary_bytes(self) -> int:
        """What is needed for a while, in addition to what stays, without the reserve."""
        stays = self.superseded_bytes + self.rows[-1].total
        return max(0, self._most_bytes(self.config.generations) - stays)

    def full_at(self, free_bytes: int) -> int | None:
        """Return the generation in which a disk with so much free space is full; None if none."""
        every = range(1, self.config.generations + 1)
        return next((g for g in every if self.needed_bytes(g) > free_bytes), None)

    def plan(self, installation_bytes: int, stage_s: float | None) -> DiskPlan:
        """Return the plan.

        Args:
            installation_bytes: what has to be installed on the same disk.
            stage_s: seconds of a generation; None if the speed was not measured.
        """
        recommended = self.recommended_bytes + installation_bytes
        after_s = _after(stage_s)
        standing = installation_bytes + self.superseded_bytes
        return DiskPlan(
            stage=STAGES[self.config.kind],
            parts=(*self._parts(), *installation_part(installation_bytes)),
            rows=tuple(
                PlanRow(
                    at=row.generation,
                    checkpoints=row.checkpoints,
                    lake=row.lake,
                    others=row.logs + standing,
                    needed=self.needed_bytes(row.generation) + installation_bytes,
                    after_s=after_s(row.generation),
                )
                for row in self.rows
            ),
            minimum_bytes=self.minimum_bytes + installation_bytes,
            recommended_bytes=recommended,
            comfortable_bytes=recommended + self.pruned_bytes,
            margin=margin_words(self.lake_margin_bytes, pauses=self.lake_pauses),
            smaller=tuple(
                SmallerDisk(disk.bytes + installation_bytes, disk.full_at, disk.after_s)
                for disk in smaller_disks(self.minimum_bytes, self.full_at, after_s)
            ),
            lake_pauses=self.lake_pauses,
            compression_saved=compression_saved(self.experiment.run, self.facts),
        )

    def _parts(self) -> Iterator[Part]:
        row = self.rows[-1]
        stage = STAGES[self.config.kind]
        kept = self._kept(self.config.generations)
        yield Part(f"checkpoints of {kept} {stage}{'s' if kept > 1 else ''}", row.checkpoints)
        yield Part("logs, records and results", row.logs)
        for name, size in (
            ("Lake", row.lake or 0),
            ("superseded/", self.superseded_bytes),
            ("upload backlog", self._held_bytes(self.config.generations)),
        ):
            if size:
                yield Part(name, size)


def _after(stage_s: float | None) -> Callable[[int], float | None]:
    return lambda generation: None if stage_s is None else generation * stage_s


def _logs_of(learner: PreflightReport | None) -> float:
    if learner is None:
        return 0.0
    grown = learner.footprint.disk.log_bytes_per_update * learner.footprint.training.updates
    return grown + calibration.RUN_FILES_BYTES + _FILES_A_STRETCH_BYTES
