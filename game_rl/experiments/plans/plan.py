"""The plan of an experiment: what trains next, and what is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from game_rl.config.experiments.experiment import STAGES, Experiment, ExperimentConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import with_changed
from game_rl.errors import ExperimentError, NobodyLeftError
from game_rl.experiments.experiment_dir import ExperimentDir, copied_after
from game_rl.experiments.jobs.job_files import StretchResult
from game_rl.experiments.plans import rules
from game_rl.experiments.plans.member_runs import ExtraRun, Learner, member_seed, run_id
from game_rl.experiments.records import (
    CopyRecord,
    GenerationRecord,
    LearnerRecord,
    Member,
    RunCounts,
    TrainedMember,
    counts_before,
    fitness_of,
    read_record,
)
from game_rl.experiments.tasks import MemberTasks, Task
from game_rl.seeds import seed_for

Results = Mapping[int, StretchResult]
"""The results of stretches, by the member's number."""


@dataclass(frozen=True)
class Plan:
    """Functions of a config and of results, which the controller asks; none waits for a job.

    Members train side by side. After them, an extra run may train: the learner, on the Lake that
    they feed, or the best member of the last generation, alone. In a live mixture, the learner is
    one of the members. Then the config's rule decides which members continue as copies.
    """

    folder: ExperimentDir
    experiment: Experiment

    @property
    def config(self) -> ExperimentConfig:
        return self.experiment.config

    def frames_of(self, timesteps: int | None, waited_frames: int) -> int | None:
        """Return the emulator frames of so many timesteps; None if these were not counted.

        Args:
            waited_frames: those beyond `frame_skip` in each of them.
        """
        if timesteps is None:
            return None
        return timesteps * self.experiment.run.env.frame_skip + waited_frames

    def first_members(self) -> tuple[Member, ...]:
        """Return the members that train in the first generation."""
        members = rules.first_members(self.config, self.experiment.run)
        if self.config.rule == "live":
            return (*members, self._learner.live_member)
        return members

    def timesteps(self, generation: int) -> int:
        """Return the timesteps of a member at the end of a generation, its ancestors' included."""
        return generation * self.config.timesteps_per_generation

    def config_of(self, member: Member) -> RunConfig:
        """Return the config of a member of the first generation."""
        if self._is_extra(member):
            return self._learner.config_of(member.folder)
        changes = {
            ("run_dir",): self.folder.member(member.folder).root,
            ("seed",): member_seed(self.config, member.folder),
            **rules.changes_of(member.values),
        }
        return with_changed(self.experiment.run, changes)

    def run_id(self, member: Member) -> str | None:
        """Return the id of the member's run, or None to let the run draw one at random.

        Without a learner, no rows of a Lake are drawn in the order of ids. Call it only while
        holding the experiment's lock.
        """
        if self.experiment.learner is None:
            return None
        return run_id(self.folder.identity().id, member)

    def until(self, member: Member, generation: int) -> int:
        """Return the timestep of the member's run at which it ends the generation."""
        if self._is_extra(member):
            learner = self.experiment.learner
            return self.config.total_timesteps if learner is None else learner.total_timesteps
        counts_from = member.counts_from
        if self.config.rule == "cloning":  # older records do not have the number
            counts_from = copied_after(member.folder) or 0
        return self.timesteps(generation - counts_from)

    def stretch(self, member: Member, generation: int) -> Task:
        """Return the task that trains a member to the end of a generation, and plays there."""
        # the member that trains on plays episodes that were not used for selection
        is_trained_on = self._is_extra(member) and self.experiment.learner is None
        task = self.tasks.stretch(
            member.number,
            member.folder,
            generation,
            until=self.until(member, generation),
            seed=self._fitness_seed(generation + is_trained_on),
        )
        if self.config.rule == "live" and self._is_extra(member):
            return replace(task, needs=self.folder.lake / "lake.json")
        return task

    def extra_member(self, generation: int) -> Member | None:
        """Return the member that trains after the others of a generation, or None.

        It is the learner or, after the last generation, the best member that trains on. No
        experiment has both.
        """
        config = self.config
        if config.rule == "live":
            return None
        if self.experiment.learner is not None:
            return self._learner.member(generation)
        if config.train_on is None or generation < config.generations:
            return None
        return Member(number=config.members, folder=f"trained_on.g{generation:04d}", values={})

    def extra_run(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> ExtraRun | None:
        """Return the same member with what it begins from, which follows from the results."""
        found = self.extra_member(generation)
        if found is None:
            return None
        best = self._best(generation, self._trained(generation, members, results))
        if self.experiment.learner is not None:
            return self._learner.extra_run(generation, best)
        assert best.checkpoint is not None
        made_by = self.tasks.copy(  # with the best member's seed: its run would have become this
            found.folder,
            best.folder,
            int(best.checkpoint),
            {"evaluation.every_timesteps": self.config.total_timesteps},
            self.folder.generation(generation).output(found.number),
        )
        return ExtraRun(found.model_copy(update={"values": best.values}), made_by)

    def decide(
        self, generation: int, trained: Sequence[Member], results: Results
    ) -> GenerationRecord:
        """Return the generation's record: the ranking, and which members are copied over.

        Raises:
            NobodyLeftError: no member has finite weights.
        """
        config = self.config
        before = self._before(generation)
        waited_before = {name: run.waited_frames for name, run in counts_before(before).items()}
        found = self._trained(generation, trained, results)
        members = found[: config.members]
        origin = None
        extra = next(iter(found[config.members :]), None)
        best = self._best(generation, found if config.rule == "live" else members)
        if self.experiment.learner is not None:
            origin = self._learner.record(generation, best)
        elif extra is not None:
            origin = LearnerRecord(
                number=extra.number,
                parent_folder=best.folder,
                parent_checkpoint=best.checkpoint,
                teacher=None,
            )
            assert best.checkpoint is not None
            waited_before[extra.folder] = best.waited_frames
            played = extra.timesteps - int(best.checkpoint)  # since it was forked
            found = (*members, extra.model_copy(update={"played_timesteps": played}))
        copies: tuple[CopyRecord, ...] = ()
        if generation < config.generations:
            copies = rules.copies_after(config, generation, members, extra)
        timesteps = 0 if before is None else before.timesteps_of_all
        if timesteps is not None:
            timesteps += sum(member.played_timesteps or 0 for member in found)
        waited = 0 if before is None else before.waited_frames_of_all
        waited += sum(max(0, m.waited_frames - waited_before.get(m.folder, 0)) for m in found)
        return GenerationRecord(
            generation=generation,
            timesteps=self.timesteps(generation),
            seed=self._fitness_seed(generation),
            ranking=rules.ranking_of(found),
            members=found,
            copies=copies,
            learner=origin,
            timesteps_of_all=timesteps,
            waited_frames_of_all=waited,
        )

    def members_after(self, record: GenerationRecord) -> tuple[Member, ...]:
        """Return the members that train in the next generation."""
        if self.config.rule == "live":
            return self.first_members()
        return rules.members_after(record)

    def copy(self, record: GenerationRecord, copied: CopyRecord) -> Task:
        """Return the task that makes the run of a copy."""
        member = Member(number=copied.number, folder=copied.folder, values=copied.new_values)
        fork, values = rules.fork_of(self.experiment, record, copied)
        if self.experiment.learner is not None and copied.counters == "keep":
            values = {**values, "lake.path": str(self.folder.lake.absolute())}
        return self.tasks.copy(
            copied.folder,
            copied.parent_folder,
            int(copied.parent_checkpoint),
            {**values, "seed": copied.seed},
            self.folder.generation(record.generation).output(copied.number),
            fork=fork,
            run_id=self.run_id(member),
        )

    def _is_extra(self, member: Member) -> bool:
        """Whether it is the learner, or the best member that trains on."""
        return member.number == self.config.members

    @property
    def _learner(self) -> Learner:
        return Learner(self.folder, self.experiment)

    @property
    def tasks(self) -> MemberTasks:
        return MemberTasks(self.folder, self.config.cpus_per_member)

    def _before(self, generation: int) -> GenerationRecord | None:
        return read_record(self.folder.generation(generation - 1).record, GenerationRecord)

    def _trained(
        self, generation: int, members: Sequence[Member], results: Results
    ) -> tuple[TrainedMember, ...]:
        """Combine members with the results of their stretches, as a record states them."""
        began = counts_before(self._before(generation))
        metric = self.config.fitness.metric
        found = []
        for member in members:
            result = results[member.number]
            played = result.played
            at = began.get(member.folder, RunCounts(0, 0)).timesteps
            found.append(
                TrainedMember(
                    **dict(member),
                    timesteps=result.timesteps,
                    waited_frames=result.waited_frames,
                    checkpoint=result.checkpoint,
                    weights_sha256=result.weights_sha256,
                    fitness=None if played is None else fitness_of(played, metric),
                    failure=result.text or result.failure,
                    played_timesteps=result.timesteps - at,
                )
            )
        return tuple(found)

    def _fitness_seed(self, generation: int) -> int:
        """Return the seed of the episodes that all members play at the end of a generation."""
        return seed_for(self.config.seed, f"fitness/{generation}")

    def _best(self, generation: int, members: Sequence[TrainedMember]) -> TrainedMember:
        """Return the best of these, or raise an error if none has finite weights."""
        first = rules.ranking_of(members)[0]
        kind = self.config.kind
        best = next(member for member in members if member.number == first)
        if best.fitness is not None:
            return best
        if self.config.rule == "live":
            raise ExperimentError(
                "the weights of all members and of the learner became non-finite; start another "
                "mixture with a lower algorithm.learning_rate in member and in learner"
            )
        raise NobodyLeftError(
            f"the weights of all members became non-finite in {STAGES[kind]} {generation}; start "
            f"another {kind} with a lower algorithm.learning_rate of member"
        )
