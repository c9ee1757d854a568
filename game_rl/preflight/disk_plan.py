"""The disk that a run or an experiment needs: its sizes, and when a smaller disk is full."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.features.feature import Part
from game_rl.preflight.footprint import Verdict
from game_rl.system.units import format_bytes, format_duration

_SMALLER = (0.9, 0.75, 0.5)  # shares of the minimum


@dataclass(frozen=True)
class PlanRow:
    """The disk at one moment.

    Attributes:
        at: timestep, generation or round at whose end this is.
        checkpoints: bytes.
        lake: bytes; None if the game's compression was not measured.
        others: bytes of everything else.
        needed: free space before the start, without which it does not get beyond this moment.
        after_s: seconds since the start; None if the speed was not measured.
    """

    at: int
    checkpoints: int
    lake: int | None
    others: int
    needed: int
    after_s: float | None = None


@dataclass(frozen=True)
class SmallerDisk:
    """A disk with less free space than the minimum, and the moment at which it is full."""

    bytes: int
    full_at: int
    after_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class DiskPlan:
    """What is on the disk, and what three sizes of it buy.

    Attributes:
        stage: what `PlanRow.at` counts: timestep, generation or round.
        parts: what is on the disk at the end, an upload's backlog included.
        rows: some moments, ascending; the last one is the end.
        minimum_bytes: with it, everything ends, and a Lake that pauses has every timestep.
        recommended_bytes: as well with other programs' files and frames that compress less.
        comfortable_bytes: as well if nothing had to be pruned or evicted.
        margin: the reason for what is recommended in addition to the minimum.
        smaller: some smaller disks.
        lake_pauses: whether a Lake pauses on a full disk while the training continues.
        compression_saved: share of the bytes of whole frame stacks that the Lake saves; None
            without a Lake that was measured.
    """

    stage: str
    parts: tuple[Part, ...]
    rows: tuple[PlanRow, ...]
    minimum_bytes: int
    recommended_bytes: int
    comfortable_bytes: int
    margin: str
    smaller: tuple[SmallerDisk, ...] = ()
    lake_pauses: bool = False
    compression_saved: float | None = None

    @property
    def total_bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def free_at_end_bytes(self) -> int:
        """The part of the minimum that is free again at the end.

        A run stops, or its Lake pauses, before the disk is full, and a checkpoint is written before
        an older one is deleted.
        """
        return max(0, self.minimum_bytes - self.total_bytes)

    def verdict(self, free_bytes: int) -> Verdict:
        """Compare the plan with a disk that has `free_bytes` for everything in it."""
        if self.recommended_bytes <= free_bytes:
            return "fits"
        return "tight" if self.minimum_bytes <= free_bytes else "does_not_fit"

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "total_bytes": self.total_bytes,
            "minimum_bytes": self.minimum_bytes,
            "recommended_bytes": self.recommended_bytes,
            "comfortable_bytes": self.comfortable_bytes,
            "free_at_end_bytes": self.free_at_end_bytes,
            "margin": self.margin,
            "compression_saved": self.compression_saved,
            "parts": [asdict(part) for part in self.parts],
            "rows": [asdict(row) for row in self.rows],
            "smaller": [asdict(disk) for disk in self.smaller],
        }


def smaller_disks(
    minimum: int, full_at: Callable[[int], int | None], after_s: Callable[[int], float | None]
) -> tuple[SmallerDisk, ...]:
    """Return some disks that are smaller than the minimum, each with when it is full.

    Args:
        full_at: returns the moment at which a disk with so many free bytes is full.
        after_s: returns the seconds up to such a moment, or None if they are not known.
    """
    found = []
    for share in _SMALLER:
        free = int(share * minimum)
        at = full_at(free)
        if at is not None:
            found.append(SmallerDisk(free, at, after_s(at)))
    return tuple(found)


def first_beyond(needed: Sequence[int], free_bytes: int) -> int | None:
    """Return the first moment, counted from 1, that needs more than is free; None if none does."""
    beyond = (moment for moment, size in enumerate(needed, start=1) if size > free_bytes)
    return next(beyond, None)


def render_plan(plan: DiskPlan, *, free_bytes: int) -> RenderableType:
    """Render the sizes with what each buys, the growth, and when a smaller disk is full.

    Args:
        free_bytes: of the disk; smaller ones are left out if it has all that is recommended.
    """
    return Group(render_sizes(plan), _rows(plan), *map(Text, smaller_lines(plan, free_bytes)))


def render_sizes(plan: DiskPlan) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    whole = "the run completes"
    if plan.free_at_end_bytes:
        whole += f" with {format_bytes(plan.free_at_end_bytes)} left"
    if plan.lake_pauses:
        whole += ", and the Lake has every timestep"
    for name, size, buys in (
        ("disk plan", plan.total_bytes, "in total, at the end"),
        ("  minimum", plan.minimum_bytes, whole),
        ("  recommended", plan.recommended_bytes, plan.margin),
        ("  comfortable", plan.comfortable_bytes, "nothing is pruned or evicted"),
    ):
        table.add_row(name, format_bytes(size), buys)
    return table


def _rows(plan: DiskPlan) -> Table:
    table = Table(box=None, pad_edge=False)
    is_timed = any(row.after_s is not None for row in plan.rows)
    names = (plan.stage, *(("after",) if is_timed else ()), "checkpoints", "Lake", "others")
    for name in (*names, "disk needed"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in plan.rows:
        lake = "not measured" if row.lake is None else format_bytes(row.lake)
        table.add_row(
            f"{row.at:,}",
            *((_time(row.after_s),) if is_timed else ()),
            format_bytes(row.checkpoints),
            "no Lake" if row.lake == 0 else lake,
            format_bytes(row.others),
            format_bytes(row.needed),
        )
    return table


def smaller_lines(plan: DiskPlan, free_bytes: int) -> list[str]:
    """Return a sentence on each smaller disk, and one on the share that a Lake saves.

    Args:
        free_bytes: as in `render_plan`.
    """
    then = "the Lake stops growing" if plan.lake_pauses else "the run stops"
    lines = []
    if plan.verdict(free_bytes) != "fits":
        for disk in plan.smaller:
            after = "" if disk.after_s is None else f", after {_time(disk.after_s)}"
            full = f"{plan.stage} {disk.full_at:,}{after}"
            lines.append(f"with {format_bytes(disk.bytes)} free, {then} at {full}")
    if plan.compression_saved is not None:
        lines.append(f"the Lake takes {plan.compression_saved:.1%} less than whole frame stacks")
    return lines


def _time(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds)
