"""All checkpoints of a run, each read whole: which are good, which is the best."""

from dataclasses import asdict, dataclass

from game_rl.checkpoints.best import best_checkpoint, best_of
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.errors import CheckpointError
from game_rl.run_dir import RunDir
from game_rl.system.versions import installed_versions, version_differences


@dataclass(frozen=True)
class CheckpointFinding:
    """One checkpoint, as it is on disk.

    Attributes:
        timesteps: by its name.
        written_s: seconds since 1970.
        damage: what is wrong with it; None: every file is as it was written.
        is_best: the newest good checkpoint of the run calls it the best.
        best_deterministic: whether the best took its likeliest actions, or drew them.
        differences: how the programs here differ from those that it was made with.
    """

    timesteps: int
    nbytes: int
    written_s: float
    damage: str | None
    is_best: bool
    best_mean_reward: float | None
    best_deterministic: bool | None
    differences: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def survey(run_dir: RunDir) -> list[CheckpointFinding]:
    """Newest first."""
    paths = run_dir.checkpoints_newest_first()
    opened: dict[int, Checkpoint] = {}
    damage: dict[int, str] = {}
    for path in paths:
        timesteps = int(path.name)
        try:
            checkpoint = Checkpoint(path)
            checkpoint.verify()
            opened[timesteps] = checkpoint
        except CheckpointError as error:
            damage[timesteps] = str(error).removeprefix(f"{path}/")
    best = next((best_of(run_dir, checkpoint) for checkpoint in opened.values()), None)
    return [
        CheckpointFinding(
            timesteps=timesteps,
            nbytes=sum(file.stat().st_size for file in path.iterdir()),
            written_s=path.stat().st_mtime,
            damage=damage.get(timesteps),
            is_best=best is not None and best_checkpoint(run_dir, best) == path,
            best_mean_reward=None if best is None else best.mean_reward,
            best_deterministic=None if best is None else best.deterministic,
            differences=_differences(opened.get(timesteps)),
        )
        for path in paths
        for timesteps in [int(path.name)]
    ]


def _differences(checkpoint: Checkpoint | None) -> tuple[str, ...]:
    if checkpoint is None:
        return ()
    return version_differences(checkpoint.state.versions, installed_versions())
