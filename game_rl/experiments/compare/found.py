"""The content of a folder that is compared: a run, or an experiment that counts as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.strict_model import flat
from game_rl.experiments.compare.outcome import Point, Score

NO_DIFFERENCE = ("seed", "run_dir", "recording", "upload", "env.n_workers", "env.worker_timeout_s")
"""Keys of a run's config in which the runs of an arm may differ."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The run or experiment that a folder holds.

    Attributes:
        settings: its config, without keys in which the runs of an arm may differ, such as the seed.
        final: score on episodes that were not used for selection; None if it is not complete.
        last: score of its newest evaluation, or None before the first one.
        failure: why it failed; empty if it did not.
    """

    path: Path
    seed: int
    settings: dict[str, object]
    curve: tuple[Point, ...]
    timesteps: int
    total_timesteps: int
    total_frames: int
    final: Score | None
    last: Score | None
    failure: str = ""


def settings_of(config: dict[str, object], left_out: Sequence[str]) -> dict[str, object]:
    """Return the values of a config by dotted key, without the keys and sections left out."""
    items = flat(config)
    return {
        key: value
        for key, value in items.items()
        if not any(f"{key}.".startswith(f"{part}.") for part in left_out)
    }
