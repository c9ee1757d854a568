"""The disk that a run or an experiment needs: its sizes, and when a smaller disk is full.

Features declare what they cost (`features.feature`). Only the Lake has a name here and a column of
its own: it is what grows with every timestep, evicts at its capacity, and pauses where a run stops.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.checkpoints import checkpoint_files
from game_rl.config.schema import LakeConfig
from game_rl.features.feature import Part
from game_rl.preflight import calibration
from game_rl.statistics import percent
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


@dataclass(frozen=True, kw_only=True)
class DiskCourse(ABC):
    """What a run or an experiment has on its disk at each of its moments, as upper bounds.

    Moments count from 1: the updates of a run, the generations of an experiment.

    Attributes:
        counts_lake: whether a Lake that pauses counts as needed.
    """

    counts_lake: bool = True

    @property
    @abstractmethod
    def stage(self) -> str:
        """See `DiskPlan.stage`."""

    @property
    @abstractmethod
    def last(self) -> int:
        """The last moment."""

    @property
    @abstractmethod
    def shown_moments(self) -> Iterable[int]:
        """The moments that are rows of the plan."""

    @property
    @abstractmethod
    def lake_config(self) -> LakeConfig | None:
        """The section of the Lake that is written."""

    def at(self, moment: int) -> int:
        """Return what `PlanRow.at` has for a moment."""
        return moment

    @abstractmethod
    def checkpoints_at(self, moment: int) -> int:
        """Return the bytes of the checkpoints that are kept after a moment."""

    @abstractmethod
    def lake_at(self, moment: int) -> int | None:
        """Return the bytes of Lakes; None if it was not measured how well the game compresses."""

    @abstractmethod
    def others_at(self, moment: int) -> int:
        """Return the bytes of everything but checkpoints and Lake."""

    @abstractmethod
    def parts_at_end(self) -> Iterable[Part]:
        """Return what is on the disk at the end, with the Lake and what an upload still needs."""

    @abstractmethod
    def needed_bytes(self, moment: int) -> int:
        """Return the free space, before the start, without which it does not get so far."""

    def needed_up_to(self, moment: int) -> int:
        """As `needed_bytes`, of this moment and all before it."""
        return self.needed_bytes(moment)

    @property
    @abstractmethod
    def lake_margin_bytes(self) -> int:
        """Bytes for Lakes that compress less, and for those that may evict."""

    @cached_property
    def lake_needed_bytes(self) -> int:
        """The part of `minimum_bytes` that is there for the Lake."""
        return self.minimum_bytes - replace(self, counts_lake=False).minimum_bytes

    @property
    @abstractmethod
    def pruned_bytes(self) -> int:
        """Bytes of the checkpoints that are pruned and the timesteps that are evicted."""

    @property
    @abstractmethod
    def compression_saved(self) -> float | None:
        """See `DiskPlan.compression_saved`."""

    @cached_property
    def minimum_bytes(self) -> int:
        """See `DiskPlan`."""
        return self.needed_up_to(self.last)

    @property
    def recommended_bytes(self) -> int:
        """See `DiskPlan`."""
        return self.minimum_bytes + calibration.DISK_MARGIN_BYTES + self.lake_margin_bytes

    @property
    def lake_pauses(self) -> bool:
        """Whether there is a Lake that pauses, and so counts as needed."""
        lake = self.lake_config
        pauses = lake is not None and lake.on_full == "pause"
        return self.counts_lake and pauses and bool(self.lake_at(self.last))

    @property
    def reserve_bytes(self) -> int:
        """What stays free at least, as a run stops or its Lake pauses below that."""
        if self.lake_pauses:
            return checkpoint_files.LAKE_MARGIN_BYTES
        return checkpoint_files.STOP_MARGIN_BYTES

    def needed_lake_bytes(self, moment: int) -> int:
        return (self.lake_at(moment) or 0) if self.lake_pauses else 0

    def full_at(self, free_bytes: int) -> int | None:
        """Return the moment in which a disk with so much free space is full; None if none."""
        every = range(1, self.last + 1)
        return next((each for each in every if self.needed_bytes(each) > free_bytes), None)

    def plan(self, installation_bytes: int, after_s: Callable[[int], float | None]) -> DiskPlan:
        """Return the plan.

        Args:
            installation_bytes: what has to be installed on the same disk.
            after_s: returns the seconds up to a moment; None if the speed was not measured.
        """
        recommended = self.recommended_bytes + installation_bytes
        parts = tuple(self.parts_at_end())
        if installation_bytes:
            parts = (*parts, Part("installation", installation_bytes))
        smaller = []
        for share in _SMALLER:
            free = int(share * self.minimum_bytes)
            full = self.full_at(free)
            if full is not None:
                disk = SmallerDisk(free + installation_bytes, self.at(full), after_s(full))
                smaller.append(disk)
        return DiskPlan(
            stage=self.stage,
            parts=parts,
            rows=tuple(
                PlanRow(
                    at=self.at(moment),
                    checkpoints=self.checkpoints_at(moment),
                    lake=self.lake_at(moment),
                    others=self.others_at(moment) + installation_bytes,
                    needed=self.needed_up_to(moment) + installation_bytes,
                    after_s=after_s(moment),
                )
                for moment in self.shown_moments
            ),
            minimum_bytes=self.minimum_bytes + installation_bytes,
            recommended_bytes=recommended,
            comfortable_bytes=recommended + self.pruned_bytes,
            margin=self._margin_words(),
            smaller=tuple(smaller),
            lake_pauses=self.lake_pauses,
            compression_saved=self.compression_saved,
        )

    def _margin_words(self) -> str:
        """Return the reason for what is recommended in addition to the minimum."""
        margin = format_bytes(calibration.DISK_MARGIN_BYTES)
        words = f"{margin} more for other programs and logs"
        if not self.lake_margin_bytes:
            return words
        why = "for the Lake, which otherwise evicts"
        if self.lake_pauses:
            why = "for frames that compress less"
        return f"{words}, {format_bytes(self.lake_margin_bytes)} {why}"


def render_plan(plan: DiskPlan, *, free_bytes: int) -> RenderableType:
    """Render the sizes with what each buys, the growth, and when a smaller disk is full.

    Args:
        free_bytes: of the disk; smaller ones are left out if it has all that is recommended.
    """
    return Group(render_sizes(plan), _rows(plan), *map(Text, smaller_lines(plan, free_bytes)))


def number_table(*names: str, title: str | None = None) -> Table:
    """Return a table of columns of numbers."""
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def sizes_table(*rows: tuple[str, int, str]) -> Table:
    """Return a table of rows that have a name, a size in bytes, and what the size buys."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column()
    for name, size, buys in rows:
        table.add_row(name, format_bytes(size), buys)
    return table


def render_sizes(plan: DiskPlan) -> Table:
    whole = "the run completes"
    if plan.free_at_end_bytes:
        whole += f" with {format_bytes(plan.free_at_end_bytes)} left"
    if plan.lake_pauses:
        whole += ", and the Lake has every timestep"
    return sizes_table(
        ("disk plan", plan.total_bytes, "in total, at the end"),
        ("  minimum", plan.minimum_bytes, whole),
        ("  recommended", plan.recommended_bytes, plan.margin),
        ("  comfortable", plan.comfortable_bytes, "nothing is pruned or evicted"),
    )


def _rows(plan: DiskPlan) -> Table:
    names = [plan.stage, "checkpoints", "Lake", "others", "disk needed"]
    is_timed = any(row.after_s is not None for row in plan.rows)
    if is_timed:
        names.insert(1, "after")
    table = number_table(*names)
    for row in plan.rows:
        cells = [f"{row.at:,}"]
        if is_timed:
            cells.append("" if row.after_s is None else format_duration(row.after_s))
        cells += [format_bytes(row.checkpoints), lake_text(row.lake)]
        cells += [format_bytes(row.others), format_bytes(row.needed)]
        table.add_row(*cells)
    return table


def lake_text(size: int | None) -> str:
    """Return the size of a Lake; 0 stands for none, None for one that was not measured."""
    if size is None:
        return "not measured"
    return format_bytes(size) if size else "no Lake"


def smaller_lines(plan: DiskPlan, free_bytes: int) -> list[str]:
    """Return a sentence on each smaller disk, and one on the share that a Lake saves.

    Args:
        free_bytes: as in `render_plan`.
    """
    then = "the Lake stops growing" if plan.lake_pauses else "the run stops"
    lines = []
    if plan.recommended_bytes > free_bytes:
        for disk in plan.smaller:
            after = "" if disk.after_s is None else f", after {format_duration(disk.after_s)}"
            full = f"{plan.stage} {disk.full_at:,}{after}"
            lines.append(f"with {format_bytes(disk.bytes)} free, {then} at {full}")
    if plan.compression_saved is not None:
        lines.append(
            f"the Lake takes {percent(plan.compression_saved, 1)} less than whole frame stacks"
        )
    return lines
