"""Runs that were trained beyond the end of their generation, outside the experiment.

No other run was allowed that work, so it is not ranked. It is set aside with the results and the
record that hold it, and the runs go back to where they began the generation.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from game_rl.config.loader import load_config
from game_rl.errors import ExperimentError
from game_rl.experiments.experiment_dir import copied_after
from game_rl.experiments.kept_generations import link_checkpoint, move_into, new_folder, restore
from game_rl.experiments.plans.plan import Plan
from game_rl.experiments.records import GenerationRecord, Member, TrainedMember, read_record
from game_rl.jobs.results import read_stretch_result
from game_rl.run_dir import RunDir


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
    place, aside = plan.folder.generation(generation), new_folder(plan.folder.superseded)
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
        f"something else than this experiment trained beyond the end of generation {generation}, "
        f"timestep {plan.timesteps(generation):,}; what {names} learned in that generation was "
        f"moved to {aside} and is learned again"
    )


def _is_beyond(plan: Plan, member: Member, generation: int) -> bool:
    run_dir, until = plan.folder.member(member.folder), plan.until(member, generation)
    result = read_stretch_result(plan.folder.generation(generation).result(member.number))
    reached = [int(path.name) for path in run_dir.checkpoints_newest_first()[:1]]
    reached += [] if result is None else [result.timesteps]
    if max(reached, default=0) <= until:
        return False
    # a stretch ends with the update that reaches its end
    return max(reached) >= until + load_config(run_dir.config, is_saved=True).rollout_timesteps


def _bring_back(plan: Plan, member: Member, generation: int, aside: Path) -> None:
    """Bring a run back to where it began the generation; move it away if it began in this one."""
    folder, run_dir = plan.folder, plan.folder.member(member.folder)
    before = read_record(folder.generation(generation - 1).record, GenerationRecord)
    trained = [] if before is None else [m for m in before.members if m.folder == member.folder]
    with run_dir.locked() if run_dir.exists() else nullcontext():
        if trained:
            _refuse_excess_before(plan, trained[0], generation)
            restore(folder, generation - 1, trained[0], aside)
        elif run_dir.exists():
            move_into(aside / "members", run_dir.root)
    for copied in () if before is None else before.copies:
        if copied.folder == member.folder:  # it is copied again, from a checkpoint of its parent
            kept = folder.generation(generation - 1).checkpoint(copied.parent)
            parent = folder.member(copied.parent_folder)
            link_checkpoint(kept, parent.checkpoints / copied.parent_checkpoint)


def _refuse_excess_before(plan: Plan, trained: TrainedMember, generation: int) -> None:
    if trained.timesteps > plan.timesteps(generation):
        raise ExperimentError(
            f"generation {generation - 1} ranked {trained.folder} at timestep "
            f"{trained.timesteps:,}, beyond the end of generation {generation}: something else "
            f"than this experiment trained it; go back with {RunDir(plan.folder.root).way_on} "
            f"--generation {generation - 1}, which undoes that"
        )
