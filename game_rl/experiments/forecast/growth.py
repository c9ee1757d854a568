"""The disk space of an experiment's folder after each generation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from game_rl.config.experiments.executor_config import RayExecutorConfig
from game_rl.config.experiments.population_config import KeepGenerationsConfig, PopulationConfig
from game_rl.config.experiments.population_files import Population
from game_rl.config.upload import UploadConfig
from game_rl.preflight import calibration
from game_rl.preflight.disk import lake_bytes
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.preflight_report import Report

_FILES_A_STRETCH_BYTES = 4_000  # result, output, and lines of the record and of events.jsonl


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


def generation_rows(
    population: Population, facts: RunFacts, member: Report, learner: Report | None
) -> Iterator[GenerationRow]:
    """Yield one row for each generation.

    Checkpoints: one for each member and one for the learner, in each generation that is kept. Logs:
    those of a member's updates so far. A copy also has its parent's, and the logs of the run that
    it replaces stay. The learner has a run of its own in each generation.
    """
    config, disk = population.config, member.footprint.disk
    per_generation, logs = config.timesteps_per_generation, 0.0
    for generation in range(1, config.generations + 1):
        logs += _logs_of_members(population, member, generation) + _logs_of(learner)
        transitions = generation * per_generation * config.members
        kept = kept_generations(config.keep_generations, generation)
        each = config.members * disk.checkpoint_bytes
        row = GenerationRow(
            generation=generation,
            transitions=transitions + generation * _played(learner),
            checkpoints=kept * (each + _checkpoint_bytes(learner)),
            lake=_lake_bytes(population, facts, generation * per_generation),
            logs=round(logs),
        )
        is_last = generation == config.generations
        yield _with_train_on(row, population, facts, member) if is_last else row


def _with_train_on(
    row: GenerationRow, population: Population, facts: RunFacts, member: Report
) -> GenerationRow:
    """Add the run of the best member to the last row, if it trains on."""
    config = population.config
    if config.train_on is None:
        return row
    disk, updates = member.footprint.disk, member.footprint.training.updates
    logs = updates * disk.log_bytes_per_update + calibration.RUN_FILES_BYTES
    own_lake = lake_bytes(population.run, facts, config.total_timesteps)
    return replace(
        row,
        transitions=row.transitions + config.train_on.timesteps,
        checkpoints=row.checkpoints + disk.checkpoint_bytes,
        lake=None if row.lake is None else row.lake + (own_lake or 0),
        logs=row.logs + round(logs) + _FILES_A_STRETCH_BYTES,
    )


def stretches(config: PopulationConfig) -> float:
    """Return the stretches in a member's total timesteps.

    The timesteps of `train_on` count as a fraction of a stretch, or as several.
    """
    return config.total_timesteps / config.timesteps_per_generation


def kept_generations(keep: KeepGenerationsConfig, newest: int) -> int:
    """Return the number of generations that are kept after generation `newest`."""
    return sum(keep.keeps(generation, newest=newest) for generation in range(1, newest + 1))


def kept_checkpoints_bytes(
    population: Population, member: Report, learner: Report | None, keep: KeepGenerationsConfig
) -> int:
    """Return the size of the checkpoints after the last generation, if it keeps `keep`."""
    config = population.config
    each = config.members * member.footprint.disk.checkpoint_bytes + _checkpoint_bytes(learner)
    return kept_generations(keep, config.generations) * each


def momentary_bytes(
    population: Population, member: Report, learner: Report | None, *, slots: int
) -> int:
    """Return the disk space that is needed in addition to the last row, but only for a while.

    It is that of all members saving or, if larger, of the learner's run, plus that of an upload.
    """
    config = population.config
    of_members = _momentary_bytes_of_members(config, member, slots)
    sent = config.members * member.footprint.disk.checkpoint_bytes + _checkpoint_bytes(learner)
    held = upload_held_bytes(config.upload, sent)
    if learner is None:
        return of_members + held
    disk = learner.footprint.disk
    return max(of_members, disk.bytes + disk.momentary_bytes) + held


def upload_held_bytes(upload: UploadConfig | None, sent_bytes: int) -> int:
    """Return the size of files that only an upload under way still needs.

    They stay until they are uploaded, up to `upload.backlog_gb`.
    """
    return 0 if upload is None else min(sent_bytes, round(upload.backlog_gb * 1e9))


def _momentary_bytes_of_members(config: PopulationConfig, member: Report, slots: int) -> int:
    """Return the size of what members write before they delete older files.

    If members on Ray train on their nodes' own disks (with `executor.storage`) and the one node is
    this machine, their run directories there count, too.
    """
    disk, executor = member.footprint.disk, config.executor
    found = 2 * config.members * disk.checkpoint_bytes
    if not isinstance(executor, RayExecutorConfig) or executor.storage is None:
        return found
    return found + (slots * disk.bytes if executor.starts_cluster else 0)


def _logs_of_members(population: Population, member: Report, generation: int) -> float:
    config, disk, training = (
        population.config,
        member.footprint.disk,
        member.footprint.training,
    )
    updates = -(-generation * config.timesteps_per_generation // training.timesteps_per_update)
    grown = config.members * disk.log_bytes_per_update * training.updates / stretches(config)
    logs = grown + config.members * _FILES_A_STRETCH_BYTES
    if generation < config.generations:
        copies = max(1, int(config.selection.share * config.members))
        logs += copies * (updates * disk.log_bytes_per_update + calibration.RUN_FILES_BYTES)
    return logs


def _logs_of(learner: Report | None) -> float:
    if learner is None:
        return 0.0
    grown = learner.footprint.disk.log_bytes_per_update * learner.footprint.training.updates
    return grown + calibration.RUN_FILES_BYTES + _FILES_A_STRETCH_BYTES


def _checkpoint_bytes(learner: Report | None) -> int:
    return 0 if learner is None else learner.footprint.disk.checkpoint_bytes


def _played(learner: Report | None) -> int:
    return 0 if learner is None else learner.footprint.training.played_timesteps


def _lake_bytes(population: Population, facts: RunFacts, timesteps: int) -> int | None:
    """Return the size of the Lake that all members share or, without a learner, of all Lakes."""
    members = population.config.members
    if population.learner is not None:
        return lake_bytes(population.run, facts, members * timesteps)
    each = lake_bytes(population.run, facts, timesteps)
    return None if each is None else members * each
