"""Gives a fork its parent's part of a Lake, as links to sealed files, which never change."""

from pathlib import Path

from game_rl.durable_files import link_file, sync_directory
from game_rl.lake.lake import Lake
from game_rl.lake.mark import Mark
from game_rl.lake.segment import SHELVED


def link_marked(source: Lake, mark: Mark, target: Path, *, pin: str) -> None:
    """Link the segments of `mark` into the Lake at `target`, and pin them there under `pin`.

    The Lake is created if necessary.

    Raises:
        LakeError: a segment is missing or was replaced, or the rows of `target` have another form.
        OSError: for example, the disk is full.
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
