"""The disk of an experiment: by generation, what is kept, and the plan."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from game_rl.checkpoints import checkpoint_files
from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.config.experiments.experiment import STAGES, Experiment, ExperimentConfig
from game_rl.config.experiments.population_config import KeepGenerationsConfig
from game_rl.config.schema import LakeConfig
from game_rl.features.feature import Part
from game_rl.preflight import calibration
from game_rl.preflight.disk import RunDisk, compression_saved, lake_bytes
from game_rl.preflight.disk_plan import DiskCourse
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.preflight import PreflightReport

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
class ExperimentDisk(DiskCourse):
    """What an experiment has on its disk after each of its generations.

    Checkpoints: one for each member and one for the learner, in each generation that is kept. Logs:
    those of a member's updates so far. A copy also has its parent's, and the logs and the Lake of
    the run that it replaces stay. The learner has a run of its own in each generation.

    Attributes:
        facts: of a member.
        member, learner: their reports; None without a learner.
        slots: members that train at once.
        superseded_bytes: what was set aside when the experiment went back, and stays.
    """

    experiment: Experiment
    facts: RunFacts
    member: PreflightReport
    learner: PreflightReport | None
    slots: int
    superseded_bytes: int = 0

    @property
    def config(self) -> ExperimentConfig:
        return self.experiment.config

    @property
    def stage(self) -> str:
        return STAGES[self.config.kind]

    @property
    def last(self) -> int:
        return self.config.generations

    @property
    def shown_moments(self) -> range:
        return range(1, self.last + 1)

    @property
    def lake_config(self) -> LakeConfig | None:
        return self.experiment.run.lake

    def checkpoints_at(self, moment: int) -> int:
        return self.rows[moment - 1].checkpoints

    def lake_at(self, moment: int) -> int | None:
        return self.rows[moment - 1].lake

    def others_at(self, moment: int) -> int:
        return self.rows[moment - 1].logs + self.superseded_bytes

    def keeping(self, keep: KeepGenerationsConfig) -> "ExperimentDisk":
        """Return the disk of the experiment if it keeps other generations."""
        key = f"keep_{self.stage}s"
        changed = self.config.model_copy(update={key: keep})
        return replace(self, experiment=replace(self.experiment, config=changed))

    @cached_property
    def rows(self) -> tuple[GenerationRow, ...]:
        """One row for each generation."""
        return tuple(self._rows())

    def _rows(self) -> Iterator[GenerationRow]:
        config = self.config
        learner = self.learner
        learned = 0
        logs_of_learner = 0.0
        if learner is not None:
            training = learner.footprint.training
            learned = training.played_timesteps
            logs_of_learner = learner.footprint.disk.log_bytes_per_update * training.updates
            logs_of_learner += calibration.RUN_FILES_BYTES + _FILES_A_STRETCH_BYTES
        logs = 0.0
        for generation in range(1, config.generations + 1):
            logs += self._logs_of_members(generation) + logs_of_learner
            played = generation * config.timesteps_per_generation
            row = GenerationRow(
                generation=generation,
                transitions=played * config.members + generation * learned,
                checkpoints=self._kept(generation) * self._each_bytes,
                lake=self._lakes_bytes(generation),
                logs=round(logs),
            )
            yield self._with_train_on(row) if generation == config.generations else row

    def _kept(self, generation: int) -> int:
        return kept_generations(self.config.keep_generations, generation) if generation else 0

    @property
    def _disk(self) -> RunDisk:
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

    def _lakes_bytes(self, generation: int) -> int | None:
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

    def needed_bytes(self, moment: int) -> int:
        """Return the free space, before the start, without which it does not get so far.

        Until a generation's record is written, its checkpoints are there in addition to those of
        the generations that were kept before; a member stops while there is no room for one more.
        """
        return self._most_bytes(
            moment, playing=self.reserve_bytes, learning=checkpoint_files.STOP_MARGIN_BYTES
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
        standing = self.superseded_bytes + self._on_nodes_bytes + self._held_bytes(generation)
        lake = self.needed_lake_bytes(generation)
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
    def lake_margin_bytes(self) -> int:
        size = self.rows[-1].lake or 0
        lake = self.lake_config
        is_limited = lake is not None and lake.capacity_gb is not None
        margin = 0 if is_limited else round(calibration.LAKE_MARGIN_FRACTION * size)
        return margin + (0 if self.lake_pauses else size)

    @property
    def pruned_bytes(self) -> int:
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

    @property
    def compression_saved(self) -> float | None:
        return compression_saved(self.experiment.run, self.facts)

    def parts_at_end(self) -> Iterator[Part]:
        row = self.rows[-1]
        kept = self._kept(self.config.generations)
        yield Part(f"checkpoints of {kept} {self.stage}{'s' if kept > 1 else ''}", row.checkpoints)
        yield Part("logs, records and results", row.logs)
        for name, size in (
            ("Lake", row.lake or 0),
            ("superseded/", self.superseded_bytes),
            ("upload backlog", self._held_bytes(self.config.generations)),
        ):
            if size:
                yield Part(name, size)
