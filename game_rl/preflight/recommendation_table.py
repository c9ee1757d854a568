"""A recommended machine for people: its sizes, and a table of cores."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.preflight import calibration
from game_rl.preflight.recommendation import CoreRow, Recommendation
from game_rl.system.units import GIB, format_bytes, format_duration


def render_recommendation(found: Recommendation, *, unmeasured: str | None) -> RenderableType:
    """Render the smallest machine, what further cores gain, and the cores for a time limit.

    Args:
        unmeasured: why the speed was not measured; None if it was.
    """
    return Group(
        _smallest(found),
        *([_margins(found)] if found.is_found or found.sizes.ram_bytes else ()),
        _cores(found),
        *(Text(line) for line in _notes(found, unmeasured)),
    )


def machine_option(found: Recommendation) -> str:
    """Return the smallest machine as `--on` takes it."""
    sizes = found.sizes
    vram = "0" if sizes.vram_bytes is None else _gib(sizes.vram_bytes)
    ram = sizes.ram_bytes or 0
    disk = sizes.disk_bytes or 0
    return f"ram={_gib(ram)},vram={vram},disk={_gb(disk)},cpus={found.cpus}"


def _gib(size: int) -> str:
    return f"{size // GIB}GiB"


def _gb(size: int) -> str:
    return f"{size // 10**9}GB"


def _smallest(found: Recommendation) -> Text:
    sizes = found.sizes
    too_much = [
        name
        for name, size, is_used in (
            ("RAM", sizes.ram_bytes, True),
            ("GPU memory", sizes.vram_bytes, found.n_gpus > 0),
            ("disk", sizes.disk_bytes, True),
        )
        if is_used and size is None
    ]
    if too_much:
        return Text.assemble(
            ("NO MACHINE", "bold red"),
            f" has so much {' and '.join(too_much)}: preflight without --recommend has the fix",
        )
    gpu = "no GPU"
    if sizes.vram_bytes is not None:
        n = found.n_gpus
        gpu = f"{f'{n} GPUs' if n > 1 else 'a GPU'} of {sizes.vram_bytes // GIB} GiB (estimated)"
    return Text.assemble(
        ("SMALLEST NODE" if found.is_of_a_node else "SMALLEST MACHINE", "bold green"),
        f"  {_n_cores(found.cpus)}, {(sizes.ram_bytes or 0) // GIB:,} GiB of RAM, {gpu}, "
        f"{(sizes.disk_bytes or 0) // 10**9:,} GB of free disk",
    )


def _n_cores(cpus: int) -> str:
    return f"{cpus} core{'' if cpus == 1 else 's'}"


def _margins(found: Recommendation) -> Text:
    gpu = f", {calibration.VRAM_MARGIN_FRACTION:.0%} of the GPU" if found.n_gpus else ""
    return Text(
        f"with what stays free for other programs: {calibration.RAM_MARGIN_FRACTION:.0%} and "
        f"{format_bytes(calibration.RAM_MARGIN_BYTES)} of RAM{gpu}, "
        f"{format_bytes(calibration.DISK_MARGIN_BYTES)} of disk; the installation is counted; "
        f"check it with --on {machine_option(found)}"
    )


def _cores(found: Recommendation) -> Table:
    table = Table(box=None, pad_edge=False)
    what = "at once" if found.is_experiment else "workers"
    last = ("ends in", "gain", "") if found.is_measured else _FACTORS[found.is_experiment]
    for name in ("cores", "RAM", what, *last):
        table.add_column(name, justify="right", no_wrap=True)
    before: CoreRow | None = None
    for row in found.rows:
        ram = "too much" if row.ram_bytes is None else f"{row.ram_bytes // GIB:,} GiB"
        table.add_row(str(row.cpus), ram, str(row.at_once), *_last_cells(found, row, before))
        before = row
    return table


_FACTORS = {
    False: ("playing, at most", "updating, at most"),
    True: ("members, at most",),
}


def _last_cells(found: Recommendation, row: CoreRow, before: CoreRow | None) -> tuple[str, ...]:
    if row.wall_s is None:
        factors = (row.collecting,) if found.is_experiment else (row.collecting, row.updating)
        return tuple(f"{factor:.3g} x" for factor in factors)
    gain = ""
    if before is not None and before.wall_s is not None:
        gain = f"{before.wall_s / row.wall_s - 1:+.0%}"
    return format_duration(row.wall_s), gain, "measured" if row.is_measured else "computed"


def _notes(found: Recommendation, unmeasured: str | None) -> Iterator[str]:
    if found.is_measured:
        yield (
            "Only one row is measured. The others count on cores as fast as this machine's that "
            "do not slow each other down, so the times of more cores are lower bounds."
        )
    else:
        yield f"speed     not measured: {unmeasured}"
        if found.hours is not None:
            yield "Without the speed, no number of cores can be named for a time limit."
        if found.is_experiment:
            yield "The factors are the fewer turns in which the members train."
        else:
            yield (
                "The factors are the processes that play at once and the parts into which a batch "
                "is divided, against the first row; the network's own time while playing is left "
                "out."
            )
    if found.lake_is_unknown:
        yield "lake      not measured, so the disk is without it: --probe adds it"
    if found.hours is not None and found.is_measured:
        yield _in_time(found)


def _in_time(found: Recommendation) -> str:
    row = found.cpus_in_time
    limit = format_duration((found.hours or 0) * 3_600)
    if row is None:
        least = min(each.wall_s for each in found.rows if each.wall_s is not None)
        return (
            f"IN {limit}: no number of cores is enough, the least is {format_duration(least)}; "
            "train fewer timesteps, or evaluate less often"
        )
    assert row.wall_s is not None
    ram = "" if row.ram_bytes is None else f" and {row.ram_bytes // GIB:,} GiB of RAM"
    return f"IN {limit}: {_n_cores(row.cpus)}{ram} ({format_duration(row.wall_s)})"
