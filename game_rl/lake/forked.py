"""The part of a Lake that a fork takes along: files of another run's stream, which never change."""

from pathlib import Path

from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.segment import SHELVED
from game_rl.run_dir import link_file, sync_directory


def link_marked(source: Lake, mark: Mark, target: Path, *, pin: str) -> None:
    """Give the Lake at `target` the segments of `mark`, kept under the name `pin`.

    Raises:
        LakeError: a segment is missing or another, or `target` has other rows.
        OSError: the disk is full, say.
    """
    source.view(mark)
    lake = Lake.create(target, source.schema)
    for marked in mark.segments:
        place = target / marked.name
        if not place.exists() and not place.with_suffix(SHELVED).exists():
            path = source.path / marked.name
            link_file(path if path.exists() else path.with_suffix(SHELVED), place)
    lake.hide_before(mark.horizon)
    lake.keep(pin, mark)
    sync_directory(target)
