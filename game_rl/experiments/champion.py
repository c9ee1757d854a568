"""The best member at the end, chosen and measured on episodes that were not used for selection."""

import shutil
from collections.abc import Callable, Sequence

from game_rl.config.loader import dump_config, load_config
from game_rl.events import Fitness
from game_rl.events.lineage import manifest_sha256
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import Played, read_result
from game_rl.experiments.kept_generations import link_checkpoint
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.plans.rules import Scored, ranked
from game_rl.experiments.records import (
    Candidate,
    ChampionRecord,
    GenerationRecord,
    TrainedMember,
    fitness_of,
    read_record,
)
from game_rl.experiments.tasks import Task
from game_rl.files.durable_files import new_directory, write_atomic, write_saved
from game_rl.files.run_dir import Parent, RunDir
from game_rl.seeds import seed_for


def find_champion(
    plan: Plan, record: GenerationRecord, bring: Callable[[Sequence[Task]], None]
) -> ChampionRecord:
    """Find the champion of the last generation, and make its run directory and its record.

    Candidates are the members with the highest fitness, and the run that the plan adds. The best of
    them over new episodes is the champion. It then plays further episodes, which give the figure to
    report: the best of three measured figures is too high, by 1.8 points where each is of 200
    episodes and 90 % are won.

    Args:
        record: the last generation's.
        bring: carries out tasks, and returns once all are done.
    """
    folder = plan.folder
    metric = plan.config.fitness.metric
    found = read_record(folder.champion_record, ChampionRecord)
    if found is None:
        by_number = {m.number: m for m in record.members}
        finite = [by_number[number] for number in record.ranking]
        finite = [member for member in finite if member.fitness is not None]
        extra = [member for member in finite if member.number == plan.config.members]
        members = [member for member in finite if member.number != plan.config.members]
        members = members[: plan.config.champion.candidates] + extra
        bring(tasks := [_play(plan, member, "validation") for member in members])
        validated = [
            _candidate(member, _played(task, metric))
            for member, task in zip(members, tasks, strict=True)
        ]
        scored = [
            Scored(each.number, each.validation.value, each.validation.mean_reward)
            for each in validated
        ]
        best = by_number[ranked(scored)[0].number]
        final = _play(plan, best, "final")
        bring([final])
        assert best.checkpoint is not None
        found = ChampionRecord(
            candidates=tuple(validated),
            number=best.number,
            folder=best.folder,
            checkpoint=best.checkpoint,
            final=_played(final, metric),
            timesteps_of_all=record.timesteps_of_all,
            frames_of_all=plan.frames_of(record.timesteps_of_all, record.waited_frames_of_all),
        )
        write_saved(folder.champion_record, found)
    _make_run(folder, found, record)
    return found


def _play(plan: Plan, member: TrainedMember, what: str) -> Task:
    """Return the task that plays episodes on a seed of their own.

    Args:
        what: what the episodes are for, which the seed follows from.
    """
    assert member.checkpoint is not None
    return plan.tasks.play(
        member.number,
        member.folder,
        member.checkpoint,
        what=what,
        episodes=plan.config.champion.episodes,
        seed=seed_for(plan.config.seed, what),
    )


def _candidate(member: TrainedMember, validation: Fitness) -> Candidate:
    assert member.checkpoint is not None
    assert member.fitness is not None
    return Candidate(
        number=member.number,
        folder=member.folder,
        checkpoint=member.checkpoint,
        selection=member.fitness,
        validation=validation,
    )


def _played(task: Task, metric: str) -> Fitness:
    played = read_result(Played, task.result)
    assert played is not None
    return fitness_of(played, metric)


def _make_run(folder: ExperimentDir, champion: ChampionRecord, record: GenerationRecord) -> None:
    """Make the champion's run directory; it appears complete, in one rename."""
    if folder.champion.exists():
        return
    source = folder.member(champion.folder)
    config = load_config(source.config, is_saved=True)
    with new_directory(folder.champion) as root:
        run = RunDir(root)
        files = (
            *(source.events, source.evaluations, source.evaluation_episodes, source.lineage),
            *(source.monitor, source.progress, source.wandb_rows),
            *(source.places, source.place_screens),
        )
        for file in files:
            if file.exists():
                shutil.copyfile(file, root / file.name)
        if source.tensorboard.is_dir():
            shutil.copytree(source.tensorboard, run.tensorboard)
        link = run.checkpoints / champion.checkpoint
        link_checkpoint(folder.generation(record.generation).checkpoint(champion.number), link)
        parent = Parent(  # the champion's checkpoint, from which its run begins
            id=source.identity().id,
            timesteps=int(champion.checkpoint),
            sha256=manifest_sha256(source.checkpoints / champion.checkpoint),
        )
        run.identity(parent=parent)
        text = dump_config(config.model_copy(update={"run_dir": folder.champion}))
        write_atomic(run.config, text)
