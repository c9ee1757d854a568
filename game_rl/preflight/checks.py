"""All findings of a run."""

from collections.abc import Callable

from game_rl.preflight.advice import (
    colour_of_four_shades,
    machine_under_used,
    n_steps_is_no_episode_length,
    replay_is_never_full,
)
from game_rl.preflight.exploration import restart_without_effect
from game_rl.preflight.findings import (
    Finding,
    Severity,
    disk_short,
    gpu_missing,
    lake_outgrows_disk,
    ram_short,
    replay_gpu_missing,
    replay_vram_short,
    vram_short,
)
from game_rl.preflight.learning_findings import few_own_rows
from game_rl.preflight.situation import Situation

CHECKS: tuple[Callable[[Situation], Finding | None], ...] = (
    gpu_missing,
    replay_gpu_missing,
    ram_short,
    vram_short,
    replay_vram_short,
    disk_short,
    lake_outgrows_disk,
    few_own_rows,
    n_steps_is_no_episode_length,
    colour_of_four_shades,
    replay_is_never_full,
    machine_under_used,
    restart_without_effect,
)


def check(situation: Situation) -> tuple[Finding, ...]:
    """Return every finding, the most severe first."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    found = [finding for find in CHECKS if (finding := find(situation)) is not None]
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))
