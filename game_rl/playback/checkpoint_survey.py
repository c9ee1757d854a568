"""The checkpoints of a run on disk: whole or damaged, the best, and by which versions written."""

from dataclasses import asdict, dataclass

from game_rl.checkpoints.checkpoint_folder import CheckpointFolder, best_checkpoint, best_of
from game_rl.errors import CheckpointError
from game_rl.events.event_log import checkpoint_times, read_events
from game_rl.files.run_dir import RunDir
from game_rl.playback.teacher_copy import read_validation
from game_rl.system.packages import code_difference, installed_versions, version_differences


@dataclass(frozen=True)
class CheckpointFinding:
    """The state of one checkpoint on disk.

    Attributes:
        timesteps: from its name.
        waited_frames: frames beyond `frame_skip` in each timestep; 0 if it is damaged.
        written_s: time of writing by the events of the run, in seconds since 1970; None if no
            event tells it.
        damage: description of the damage, or None if every file is as it was written.
        is_best: whether it is the run's best, according to the newest good checkpoint.
        teacher_is_better: whether it is the best but the run's teacher is at least as good in the
            validation, so that `best` plays the teacher.
        best_mean_reward: mean reward of the run's best, if there is one.
        best_deterministic: whether the run's best took its most probable actions or sampled them.
        differences: differences between the installed versions and those that wrote it.
        other_code: how game_rl differs from the one that wrote it; empty if it does not.
    """

    timesteps: int
    waited_frames: int
    nbytes: int
    written_s: float | None
    damage: str | None
    is_best: bool
    teacher_is_better: bool
    best_mean_reward: float | None
    best_deterministic: bool | None
    differences: tuple[str, ...]
    other_code: str

    def frames(self, frame_skip: int) -> int:
        """Return the emulator frames that the run had played."""
        return self.timesteps * frame_skip + self.waited_frames

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def survey(run_dir: RunDir) -> list[CheckpointFinding]:
    """Return a finding for each checkpoint, newest first."""
    paths = run_dir.checkpoints_newest_first()
    opened: dict[int, CheckpointFolder] = {}
    damage: dict[int, str] = {}
    for path in paths:
        timesteps = int(path.name)
        try:
            opened[timesteps] = CheckpointFolder(path).verify()
        except CheckpointError as error:
            damage[timesteps] = str(error).removeprefix(f"{path}/")
    newest = next(iter(opened.values()), None)
    written = checkpoint_times(read_events(run_dir))
    best = None if newest is None else best_of(run_dir, newest)
    teaches = newest is not None and is_teacher_best(run_dir, newest)
    found = []
    for path in paths:
        timesteps = int(path.name)
        is_best = best is not None and best_checkpoint(run_dir, best) == path
        waited_frames = 0
        differences: tuple[str, ...] = ()
        other_code = ""
        if timesteps in opened:
            state = opened[timesteps].state
            waited_frames = state.waited_frames
            differences = version_differences(state.versions, installed_versions())
            other_code = code_difference(state.versions, state.source_sha256)
        finding = CheckpointFinding(
            timesteps=timesteps,
            waited_frames=waited_frames,
            nbytes=sum(file.stat().st_size for file in path.iterdir()),
            written_s=written[timesteps].timestamp() if timesteps in written else None,
            damage=damage.get(timesteps),
            is_best=is_best,
            teacher_is_better=is_best and teaches,
            best_mean_reward=None if best is None else best.mean_reward,
            best_deterministic=None if best is None else best.deterministic,
            differences=differences,
            other_code=other_code,
        )
        found.append(finding)
    return found


def is_teacher_best(run_dir: RunDir, newest: CheckpointFolder) -> bool:
    """Return whether the run's validation found its teacher to be its best policy."""
    best = best_of(run_dir, newest)
    if best is None:
        return False
    now = newest.state.num_timesteps
    found = read_validation(run_dir, at_timesteps=now, best=best.timesteps)
    return found is not None and found.teacher_is_best
