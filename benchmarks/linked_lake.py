"""Large Lakes without large disks: the segments of a small one under many names."""

import os
from pathlib import Path

from game_rl.lake.lake import Lake
from game_rl.lake.segment import SEALED, SegmentName


def linked(base: Lake, path: Path, n_transitions: int) -> Lake:
    """Make a Lake of about so many transitions by linking a Lake's segments under new streams."""
    lake, view = Lake.create(path, base.schema), base.view()
    for copy in range(max(1, round(n_transitions / len(view)))):
        for segment in view.segments:
            name = SegmentName.of(segment.path)
            new = SegmentName(f"copy{copy}", name.first, name.last).new(SEALED)
            os.link(segment.path, path / new)
    return lake
