"""What runs on paper leave out, and real ones write: how far each has come, and from where."""

from game_rl.events import Ended
from game_rl.events.event_log import EventFile
from game_rl.events.lineage import Lineage, write_lineage
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import read_records
from game_rl.files.run_dir import RunDir


def write_accounts(folder: ExperimentDir) -> None:
    """For each run of an experiment; a learner's count from 0, and clones of it."""
    records = read_records(folder)
    copies = [copy for record in records for copy in record.copies if copy.counters == "keep"]
    began = {copy.folder: int(copy.parent_checkpoint) for copy in copies}
    for record in records:
        own = [m.folder for m in record.members if m.folder.startswith("trained_on.")]
        if own and record.learner is not None:
            began[own[0]] = int(record.learner.parent_checkpoint or 0)
    for path in folder.members.iterdir():
        reached = [m.timesteps for r in records for m in r.members if m.folder == path.name]
        began_at = began.get(path.name, 0)
        pretend_to_have_trained(RunDir(path), began_at, max(reached, default=began_at))


def pretend_to_have_trained(run_dir: RunDir, began_at: int, timesteps: int) -> None:
    run_dir.identity()
    write_lineage(run_dir, Lineage(began_at=began_at))
    with EventFile(run_dir.events) as events:
        events.add(Ended(timesteps=timesteps, reason="until", exit_code=0))
