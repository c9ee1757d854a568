"""The controller: trains generations, carries out decisions, undoes what went beyond them."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import ExperimentError
from game_rl.events import (
    ChampionFound,
    ExperimentWarned,
    GenerationBegun,
    GenerationEnded,
    MemberDied,
    StretchEnded,
)
from game_rl.events.event_log import ExperimentEventLog
from game_rl.experiments.champion import find_champion
from game_rl.experiments.executors.executor import Executor
from game_rl.experiments.experiment_dir import copied_after
from game_rl.experiments.jobs.job_files import ActionDifferences, StretchResult, read_result
from game_rl.experiments.kept_generations import (
    checkpoints_bytes,
    forget_generations,
    keep_generation,
    link_checkpoint,
    move_into,
    new_folder,
    restore,
)
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import (
    ChampionRecord,
    CopyRecord,
    ExperimentState,
    GenerationRecord,
    Member,
    fitness_of,
    read_record,
)
from game_rl.experiments.tasks import Death, Task, TaskRunner
from game_rl.experiments.tensorboard_curves import write_curves
from game_rl.files.durable_files import write_atomic, write_saved
from game_rl.files.run_dir import RunDir
from game_rl.seeds import seed_for
from game_rl.system.stop_request import StopRequest

_ASKED_OBSERVATIONS = 512
"""A share that is measured on so many observations has a standard error of at most 2.2 points."""


def experiment_state(plan: Plan) -> ExperimentState:
    """Return the state of the experiment; the one at its beginning if none is written yet."""
    state = read_record(plan.folder.state, ExperimentState)
    return state or ExperimentState(generation=0, members=plan.first_members())


@dataclass(frozen=True)
class ExperimentRun:
    """An experiment that this process controls; it holds the lock of the folder."""

    plan: Plan
    executor: Executor
    events: ExperimentEventLog
    stop: StopRequest

    def run(self) -> ChampionRecord:
        """Bring the experiment to its end.

        Raises:
            Interrupted: a signal stopped it; all that was learned is saved.
            ExperimentError: it cannot continue; all that was learned is saved.
        """
        RunDir(self.plan.folder.root).remove_leftovers()  # members', too: none of them is running
        state = experiment_state(self.plan)
        if state.generation:
            self._forget(state)  # a killed controller may not have got so far
        while state.generation < self.plan.config.generations:
            state = self._generation(state)
        champion = find_champion(self.plan, self._record(state.generation), self._bring)
        write_saved(self.plan.folder.state, state.model_copy(update={"complete": True}))
        self.events.emit(
            ChampionFound(
                generation=state.generation,
                number=champion.number,
                folder=champion.folder,
                path=str(self.plan.folder.champion),
                final=champion.final,
            )
        )
        return champion

    def _generation(self, state: ExperimentState) -> ExperimentState:
        number = state.generation + 1
        started = time.monotonic()
        until = self.plan.timesteps(number)
        self.events.emit(GenerationBegun(generation=number, timesteps=until))
        undone = undo_excess(self.plan, state.members, number)
        if undone:
            self.events.emit(ExperimentWarned(generation=number, text=undone))
            if number > 1:
                self._copy(self._record(number - 1))
        record = self._trained(state.members, number)
        keep_generation(self.plan.folder, record)
        self._copy(record)
        sources = {copied.number: copied.parent_folder for copied in record.copies}
        for member in record.members:
            if member.failure is not None:
                way = "it is left out"
                if member.number in sources:
                    way = f"it continues as a copy of {sources[member.number]}"
                text = f"member {member.folder}: {member.failure}; {way}"
                self.events.emit(ExperimentWarned(generation=number, text=text))
        after = ExperimentState(generation=number, members=self.plan.members_after(record))
        write_curves(self.plan, record)
        write_saved(self.plan.folder.state, after)
        self._forget(after)
        self.events.emit(
            GenerationEnded(
                generation=number,
                record=str(self.plan.folder.generation(number).record),
                seconds=round(time.monotonic() - started, 3),
                copies=len(record.copies),
                checkpoints_bytes=checkpoints_bytes(self.plan.folder),
            )
        )
        return after

    def _trained(self, members: Sequence[Member], number: int) -> GenerationRecord:
        """Return the record of a generation; if it does not exist, train the generation first."""
        place = self.plan.folder.generation(number)
        found = read_record(place.record, GenerationRecord)
        if found is not None:
            return found
        if number == 1:
            for member in members:
                self._begin(member, self.plan.config_of(member))
        results = self._stretches(members, number)
        trained = list(members)
        extra_run = self.plan.extra_run(number, members, results)
        if extra_run is not None:
            if isinstance(extra_run.beginning, Task):
                self._bring([extra_run.beginning])
            else:
                self._begin(extra_run.member, extra_run.beginning)
            results |= self._stretches([extra_run.member], number)
            trained.append(extra_run.member)
        record = self._with_differences(self.plan.decide(number, trained, results))
        write_saved(place.record, record)
        return record

    def _with_differences(self, record: GenerationRecord) -> GenerationRecord:
        """Add to a record how much the actions of its runs differ, if they share a Lake.

        The runs are asked about single observations, which say nothing to one with a memory.
        """
        config = self.plan.config
        members = self.plan.experiment.run.algorithm
        if config.learner is None or members.memory is not None:
            return record
        seed = seed_for(config.seed, f"actions/{record.generation}")
        task = self.plan.tasks.actions(record, observations=_ASKED_OBSERVATIONS, seed=seed)
        if task is None:
            return record
        self._bring([task])
        found = read_result(ActionDifferences, task.result)
        return record.model_copy(update={"differences": found})

    def _begin(self, member: Member, config: RunConfig) -> None:
        """Write the config of a run that is not a copy, unless the run exists."""
        run_dir = self.plan.folder.member(member.folder)
        run_id = self.plan.run_id(member)
        if run_dir.exists():
            return
        run_dir.root.mkdir(parents=True, exist_ok=True)
        if run_id is not None:
            run_dir.identity(run_id=run_id)
        write_atomic(run_dir.config, dump_config(config))

    def _stretches(self, members: Sequence[Member], number: int) -> dict[int, StretchResult]:
        """Train members, and return their results by number once all have ended."""
        tasks = [self.plan.stretch(member, number) for member in members]
        by_result = {task.result: member for task, member in zip(tasks, members, strict=True)}
        metric = self.plan.config.fitness.metric
        results: dict[int, StretchResult] = {}

        def take(task: Task) -> None:
            member = by_result[task.result]
            result = read_result(StretchResult, task.result)
            assert result is not None
            results[member.number] = result
            self.events.emit(
                StretchEnded(
                    generation=number,
                    number=member.number,
                    folder=member.folder,
                    timesteps=result.timesteps,
                    host=result.host,
                    timesteps_per_s=result.timesteps_per_s,
                    seconds=result.seconds,
                    ram_peak_bytes=result.ram_peak_bytes,
                    fitness=None if result.played is None else fitness_of(result.played, metric),
                    failure=result.text or None,
                )
            )

        self._bring(tasks, take)
        return results

    def _bring(
        self, tasks: Sequence[Task], on_done: Callable[[Task], None] = lambda _: None
    ) -> None:
        TaskRunner(self.executor, self.stop, self._tell_of_death).run(tasks, on_done)

    def _copy(self, record: GenerationRecord) -> None:
        """Make the copies that do not exist yet."""
        self._bring([self.plan.copy(record, copied) for copied in record.copies])

    def _record(self, generation: int) -> GenerationRecord:
        record = read_record(self.plan.folder.generation(generation).record, GenerationRecord)
        assert record is not None
        return record

    def _forget(self, state: ExperimentState) -> None:
        """Delete checkpoints of runs that the next generation neither continues nor forks."""
        keep = self.plan.config.keep_generations
        extra = self._record(state.generation).extra_run
        present = {run.folder for run in (*state.members, extra) if run is not None}
        forget_generations(self.plan.folder, keep, newest=state.generation, present=present)

    def _tell_of_death(self, death: Death) -> None:
        ended = death.ended
        self.events.emit(
            MemberDied(
                name=ended.job.name,
                code=ended.code,
                deaths=death.count,
                pause_s=death.pause_s,
                text=ended.cause,
            )
        )


def undo_excess(plan: Plan, members: Sequence[Member], generation: int) -> str:
    """Undo what runs have trained beyond the end of a generation whose decision is not carried out.

    A run that began in this generation is set aside whole, so that it is made again. So is the run
    that trains after the members, because it follows from their results.

    Args:
        members: the members that train in the generation.

    Returns:
        What was done, for the user; empty if there was nothing to undo.

    Raises:
        ExperimentError: the record of the generation before has such work, too.
        UsageError: a process is training one of the runs.
    """
    found = [member for member in members if _is_beyond(plan, member, generation)]
    extra_run = plan.extra_member(generation)
    if extra_run is not None and (found or _is_beyond(plan, extra_run, generation)):
        found.append(extra_run)
    if not found:
        return ""
    place = plan.folder.generation(generation)
    aside = new_folder(plan.folder.superseded)
    for member in found:
        _bring_back(plan, member, generation, aside)
    for file in (place.record, place.actions, *(place.result(m.number) for m in found)):
        if file.exists():
            move_into(aside / "generations" / place.root.name, file)
    for path in plan.folder.members.iterdir():
        if copied_after(path.name) == generation:  # by that record
            move_into(aside / "members", path)
    names = ", ".join(member.folder for member in found)
    return (
        f"something other than this experiment trained beyond the end of generation {generation}, "
        f"timestep {plan.timesteps(generation):,}; what {names} learned in that generation was "
        f"moved to {aside} and is learned again"
    )


def _is_beyond(plan: Plan, member: Member, generation: int) -> bool:
    run_dir = plan.folder.member(member.folder)
    until = plan.until(member, generation)
    result = read_result(StretchResult, plan.folder.generation(generation).result(member.number))
    reached = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    if result is not None:
        reached.append(result.timesteps)
    if max(reached, default=0) <= until:
        return False
    # a stretch ends with the update that reaches its end
    return max(reached) >= until + load_config(run_dir.config, is_saved=True).rollout_timesteps


def _bring_back(plan: Plan, member: Member, generation: int, aside: Path) -> None:
    """Bring a run back to where it began the generation; move it away if it began in this one."""
    folder = plan.folder
    run_dir = folder.member(member.folder)
    before = read_record(folder.generation(generation - 1).record, GenerationRecord)
    trained = []
    copies: Sequence[CopyRecord] = ()
    if before is not None:
        trained = [m for m in before.members if m.folder == member.folder]
        copies = before.copies
    with run_dir.locked() if run_dir.exists() else nullcontext():
        if trained:
            at = trained[0].timesteps
            if at > plan.timesteps(generation):
                raise ExperimentError(
                    f"generation {generation - 1} ranked {member.folder} at timestep {at:,}, "
                    f"beyond the end of generation {generation}: something other than this "
                    f"experiment trained it; go back with {RunDir(folder.root).way_on} "
                    f"--generation {generation - 1}, which undoes that"
                )
            restore(folder, generation - 1, trained[0], aside)
        elif run_dir.exists():
            move_into(aside / "members", run_dir.root)
    for copied in copies:
        if copied.folder == member.folder:  # it is copied again, from a checkpoint of its parent
            kept = folder.generation(generation - 1).checkpoint(copied.parent)
            parent = folder.member(copied.parent_folder)
            link_checkpoint(kept, parent.checkpoints / copied.parent_checkpoint)
