"""Export a Lake to a Minari data set; no other module of game_rl imports Minari."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import minari
import numpy as np
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from game_rl.envs.observation import Observation, rows_of
from game_rl.errors import LakeError
from game_rl.files.durable_files import new_directory
from game_rl.interchange.replay_export import action_bounds, action_space, blocks_in_order
from game_rl.interchange.sb3_replay import Array, Progress, quiet
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import observation_format_of
from game_rl.lake.view import LakeView


@dataclass
class _Episode:
    """An episode of N timesteps and N + 1 frames."""

    frames: list[Observation]
    actions: list[Array] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def buffer(self, number: int, *, terminated: bool) -> EpisodeBuffer:
        first = self.frames[0]
        by_part: Any = self.frames
        if isinstance(first, Mapping):
            by_part = {name: [frame[name] for frame in by_part] for name in first}
        is_last = np.arange(len(self.rewards)) == len(self.rewards) - 1
        return EpisodeBuffer(
            id=number,
            observations=by_part,
            actions=self.actions,
            rewards=self.rewards,
            terminations=(is_last & terminated).tolist(),
            truncations=(is_last & (not terminated)).tolist(),
        )


def export_minari(
    lake: Lake, output: Path, *, n_actions: int | None = None, progress: Progress = quiet
) -> tuple[int, int]:
    """Write a data set of the complete episodes of a Lake; return its episodes and timesteps.

    Observations are single frames, uint8 [C, H, W], or dicts of the parts of one timestep. They are
    stored without loss: by default Minari would
    store JPEGs, which blur four shades into 256. Episodes that are not in the Lake from their first
    frame to their end are left out. One episode is in memory at a time. Load the data set with
    `minari.MinariDataset(output)`.

    Raises:
        LakeError: the Lake has no complete episode or no pictures, or `output` exists.
    """
    if output.exists():
        raise LakeError(f"{output} exists; name a new folder, or delete it")
    if lake.schema.arrays is not None:
        raise LakeError(
            f"{lake.path} has {lake.schema.description}, but a Minari data set is made of "
            "pictures; use --format sb3, which works for any Lake"
        )
    view = lake.view()
    if not len(view):
        raise LakeError(f"{lake.path} has no sealed transitions to export")
    with new_directory(output) as folder:
        storage = MinariStorage.new(
            folder.resolve(),  # Minari would join a relative path with itself
            observation_space=observation_format_of(lake.schema).frame_space,
            action_space=action_space(lake.schema, *action_bounds(view), n_actions),
            data_format="hdf5",
            jpeg_encoding=False,
        )
        storage.update_episodes(_episodes(view, progress))
        storage.update_metadata(
            {"dataset_id": f"game_rl/{output.name}-v0", "minari_version": minari.__version__}
        )
        episodes = int(storage.total_episodes)
        timesteps = int(storage.total_steps)
        if not episodes:
            raise LakeError(f"{lake.path} has no complete episode, from its first frame to its end")
    return episodes, timesteps


def _episodes(view: LakeView, progress: Progress) -> Iterator[EpisodeBuffer]:
    """Yield the complete episodes of a Lake in turn."""
    form = observation_format_of(view.schema)
    number = done = 0
    episode: _Episode | None = None
    for block, batch in enumerate(blocks_in_order(view)):
        columns = view.columns(block)
        frames = form.newest(batch.stacks)
        next_frames = form.newest(batch.next_stacks)
        if block and (not view.continued[block - 1] or columns.is_first[0]):
            episode = None
        for i, row in enumerate(columns.rows.tolist()):
            if columns.is_first[row]:
                episode = _Episode([rows_of(frames, i)])
            if episode is None:
                continue
            episode.frames.append(rows_of(next_frames, i))
            action = batch.actions[i]
            kind = np.float32 if action.dtype.kind == "f" else np.int64
            episode.actions.append(np.asarray(action, kind))
            episode.rewards.append(float(batch.rewards[i]))
            if columns.ended[row]:
                yield episode.buffer(number, terminated=bool(columns.terminated[row]))
                number = number + 1
                episode = None
        done += len(columns.rows)
        progress("exporting", done, len(view))
