"""Features whose rooms stand above the table of features: what each costs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from game_rl.config.values import run_at
from game_rl.emulator.emulator import FRAMES_PER_SECOND, picture_frames
from game_rl.features.feature import LOGS, Feature, Part, PlannedRun
from game_rl.system.machine import is_same_disk, nearest_folder

if TYPE_CHECKING:  # see features.feature
    from game_rl.config.schema import RunConfig

# The process that sends to Weights & Biases and wandb-core, which it starts (wandb 0.31, offline);
# bytes of a number with its name, in wandb.jsonl and in wandb's own file; of that file's rest.
_WANDB_BYTES = 100_000_000
_WANDB_NUMBER_BYTES = 85
_WANDB_FILES_BYTES = 12_000
# One picture of a clip, 320 x 288, of a fight of duel. A walk through beacon takes two thirds of
# that, a run through seasons twice as much, and an agent that stands still nothing.
_PICTURE_BYTES = {"gif": 1_200, "mp4": 500}
# Pictures are kept compressed until the last one is recorded. In random play a picture takes 1,900
# bytes of seasons, 2,800 of duel and 3,300 of beacon.
_KEPT_PICTURE_BYTES = 3_300
_GB = 10**9


def n_pictures(config: "RunConfig", episode_timesteps: int, *, has_waits: bool = False) -> int:
    """Return the number of pictures in the clip; a long frame skip has several in a timestep.

    Args:
        episode_timesteps: length of the clip's episodes.
        has_waits: whether the game's `step` makes timesteps longer, so the clip fills its time.
    """
    recording = config.recording
    frame_skip = config.env.frame_skip
    each = picture_frames(frame_skip)
    whole = recording.episodes * episode_timesteps * (frame_skip // each)
    if recording.max_s is None:
        return whole
    most = round(recording.max_s * FRAMES_PER_SECOND / each)
    return most if has_waits else min(whole, most)


class RecordingFeature(Feature):
    """The clip of the best policy."""

    def last_memory(self, run: PlannedRun) -> Iterable[Part]:
        n = n_pictures(run.config, run.episode_timesteps, has_waits=run.has_waits)
        return (Part("pictures of the clip", n * _KEPT_PICTURE_BYTES),)

    def last_files(self, run: PlannedRun) -> Iterable[Part]:
        longest = run.config.env.most_episode_timesteps or run.episode_timesteps
        size = n_pictures(run.config, longest) * _PICTURE_BYTES[run.config.recording.format]
        return (Part("clip", size),)


class WandbFeature(Feature):
    """What is sent to Weights & Biases."""

    def process_memory(self, run: PlannedRun) -> Iterable[Part]:
        if run.config.logging.wandb is not None:
            yield Part("Weights & Biases", _WANDB_BYTES)

    def logs(self, run: PlannedRun) -> Iterable[Part]:
        if run.config.logging.wandb is not None:
            yield Part(LOGS, run.curve_numbers * _WANDB_NUMBER_BYTES)

    def last_files(self, run: PlannedRun) -> Iterable[Part]:
        """Return its files, with a copy of the clip."""
        if run.config.logging.wandb is not None:
            (clip,) = RecordingFeature().last_files(run)
            yield Part(LOGS, _WANDB_FILES_BYTES + clip.bytes)


class TeacherFeature(Feature):
    """The policy that the run is drawn towards; its network is as large as the run's."""

    def network_memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of its weights and their copies for inference.

        Its forward pass is not counted: that memory is free again before the student's pass begins,
        which needs more.
        """
        if run.config.algorithm.teacher is not None:
            yield Part("teacher", run.acting_bytes)

    def standing_files(self, run: PlannedRun) -> Iterable[Part]:
        """Return its weights, which are links if its run is on the same disk."""
        if run.config.algorithm.teacher is None:
            return
        root, _ = run_at(run.config.algorithm.teacher.run)
        if root.exists() and is_same_disk(root, nearest_folder(run.config.run_dir.absolute())):
            yield Part("teacher, linked", 0)
        else:
            yield Part("teacher", run.policy_bytes)


class UploadFeature(Feature):
    """The upload of checkpoints."""

    def held_bytes(self, run: PlannedRun, *, pruned: int, each: int) -> int:
        """Return the bytes of those that it still reads; `upload.backlog_gb` limits them.

        Two at most: the one that is being sent and the best one.
        """
        upload = run.config.upload
        if upload is None:
            return 0
        return min(max(0, min(2, pruned)) * each, round(upload.backlog_gb * _GB))
