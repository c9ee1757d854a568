"""What a folder holds that is compared: a run, or an experiment that counts as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from game_rl.config.changed_values import flat
from game_rl.experiments.compare.outcome import Point, Score

NO_DIFFERENCE = ("seed", "run_dir", "recording", "upload", "env.n_workers", "env.worker_timeout_s")
"""Keys of a run's config that make no arm of its own."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a folder holds.

    Attributes:
        settings: its config without what makes no arm of its own, such as the seed.
        final: of episodes that selected nothing; None where it has not come to its end.
        last: of its newest evaluation.
        failure: why it broke off; empty: it did not.
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
    """What is in a config, by key, but for the keys and sections that are left out."""
    items = flat(config)
    return {
        key: value
        for key, value in items.items()
        if not any(f"{key}.".startswith(f"{part}.") for part in left_out)
    }
