"""The smallest machine that a run or an experiment fits, and what further cores gain."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from game_rl.algorithms.sizes import n_minibatch_parts
from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration
from game_rl.preflight.disk_plan import number_table
from game_rl.preflight.facts import RunFacts
from game_rl.preflight.footprint import Footprint, estimate, verdict
from game_rl.preflight.memory import network_gpu, replay_gpu, together
from game_rl.preflight.workload import MeasuredSpeed, forecast_speed
from game_rl.statistics import percent
from game_rl.system.machine import Machine
from game_rl.system.placement import Gpu
from game_rl.system.units import GIB, counted, format_bytes, format_duration
from game_rl.vec_env.workers import evaluation_workers, training_workers

# Sizes that machines have.
RAM_SIZES = tuple(2**power * GIB for power in range(1, 13))
VRAM_SIZES = tuple(
    n * GIB for n in (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192)
)
DISK_SIZES = tuple(n * 10**power for power in range(9, 15) for n in (1, 2, 3, 4, 5, 6, 8))
CORES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_MOST_CORES = 1_024  # that are tried for a time limit
_PLENTY = 2**60  # bytes of what is not searched

Fits = Callable[[Machine], bool]


@dataclass(frozen=True)
class Sizes:
    """Smallest sizes with the verdict "fits"; None: no size of the lists is enough.

    Attributes:
        vram_bytes: memory of each GPU; None as well if no GPU is used.
    """

    ram_bytes: int | None
    vram_bytes: int | None
    disk_bytes: int | None


@dataclass(frozen=True)
class CoreRow:
    """A machine with so many cores.

    Attributes:
        at_once: processes with emulators, or members of an experiment, that work at once.
        collecting: factor by which playing is at most faster than with the first row's cores.
        updating: likewise for gradient steps, or for what members of an experiment do.
        wall_s: time of the whole run; None if the speed was not measured.
        is_measured: whether the speed was measured with so many cores, and not computed.
    """

    cpus: int
    ram_bytes: int | None
    at_once: int
    collecting: float
    updating: float
    wall_s: float | None
    is_measured: bool


@dataclass(frozen=True)
class Recommendation:
    """The smallest machine that fits, and what further cores gain.

    Attributes:
        cpus: cores of the smallest machine.
        n_gpus: GPUs that it must have.
        rows: the smallest machine and those with further cores, up to where nothing is gained.
        hours: time limit that was asked for; None: no limit.
        cpus_in_time: fewest cores with which it ends in that time; None if it was not asked or not
            measured, or if no number of cores is enough.
        is_experiment: whether members of an experiment share the cores.
        is_of_a_node: whether the machine stands for each node of a cluster.
        lake_is_unknown: whether the disk is without a Lake that was not measured.
    """

    cpus: int
    n_gpus: int
    sizes: Sizes
    rows: tuple[CoreRow, ...]
    hours: float | None = None
    cpus_in_time: CoreRow | None = None
    is_experiment: bool = False
    is_of_a_node: bool = False
    lake_is_unknown: bool = False

    @property
    def is_found(self) -> bool:
        """Whether some machine fits and ends in time."""
        sizes = self.sizes
        has_sizes = sizes.ram_bytes is not None and sizes.disk_bytes is not None
        has_gpu = not self.n_gpus or sizes.vram_bytes is not None
        return has_sizes and has_gpu and (self.hours is None or self.cpus_in_time is not None)

    @property
    def is_measured(self) -> bool:
        return any(row.wall_s is not None for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return plain data; sizes are in bytes."""
        return {
            "smallest": {"cpus": self.cpus, "gpus": self.n_gpus, **asdict(self.sizes)},
            "cores": [asdict(row) for row in self.rows],
            "hours": self.hours,
            "cpus_in_time": None if self.cpus_in_time is None else self.cpus_in_time.cpus,
            "lake_is_unknown": self.lake_is_unknown,
        }


def with_plenty(machine: Machine, *, cpus: int, n_gpus: int) -> Machine:
    """Return a machine with this one's processor, so many cores and GPUs, and plenty of memory."""
    gpus = (Gpu(_PLENTY, _PLENTY),) * n_gpus
    sized = with_ram(machine, _PLENTY)
    return replace(sized, gpus=gpus, disk_free_bytes=_PLENTY, cpus=cpus)


def smallest_sizes(machine: Machine, fits: Fits, *, cpus: int, n_gpus: int) -> Sizes:
    """Return the smallest RAM, VRAM and disk, each with plenty of the others.

    Args:
        machine: machine with the processor that is meant.
        fits: whether something fits a machine; if it fits one, it fits each larger one.
    """
    plenty = with_plenty(machine, cpus=cpus, n_gpus=n_gpus)

    def with_vram(size: int) -> Machine:
        return replace(plenty, gpus=(Gpu(size, size),) * n_gpus)

    def smallest(sizes: Sequence[int], sized: Callable[[int], Machine]) -> int | None:
        start = bisect_left(sizes, True, key=lambda size: fits(sized(size)))
        return sizes[start] if start < len(sizes) else None

    return Sizes(
        ram_bytes=smallest(RAM_SIZES, lambda size: with_ram(plenty, size)),
        vram_bytes=smallest(VRAM_SIZES, with_vram) if n_gpus else None,
        disk_bytes=smallest(DISK_SIZES, lambda size: replace(plenty, disk_free_bytes=size)),
    )


def with_ram(machine: Machine, size: int) -> Machine:
    return replace(machine, ram_bytes=size, ram_available_bytes=size)


def gpus_needed(config: RunConfig, facts: RunFacts) -> int:
    """Return how many GPUs a machine must have for the network and the replay; 0 without one."""
    wanted = (network_gpu(config, facts), replay_gpu(config))
    return max((gpu + 1 for gpu in wanted if gpu is not None), default=0)


@dataclass(frozen=True)
class RunNeeds:
    """A run on machines of other sizes than the one that it was measured on.

    Attributes:
        machine: machine with the processor and GPU that are meant; where `measured` was measured.
        measured: None: the speed was not measured.
        episode_timesteps: mean length of an episode; None: that of `facts`.
    """

    config: RunConfig
    facts: RunFacts
    machine: Machine
    measured: MeasuredSpeed | None = None
    episode_timesteps: float | None = None

    @cached_property
    def _model(self) -> "RunOnCores":
        return RunOnCores(self.config, self.facts)

    @cached_property
    def _footprints(self) -> dict[int, Footprint]:
        return {}

    def recommendation(self, hours: float | None = None) -> Recommendation:
        """Return the smallest machine on which the run fits, and what further cores gain.

        Args:
            hours: time in which the run should end.
        """
        config = self.config
        facts = self.facts
        return Recommendation(
            cpus=1,
            n_gpus=gpus_needed(config, facts),
            sizes=self._sizes(1),
            rows=useful_rows({*CORES, facts.cpus}, self._row),
            hours=hours,
            cpus_in_time=first_in_time(hours, range(1, _MOST_CORES + 1), self._row),
            lake_is_unknown=config.lake is not None and facts.lake_bytes_per_timestep is None,
        )

    def _footprint(self, cpus: int) -> Footprint:
        if cpus not in self._footprints:
            self._footprints[cpus] = estimate(self.config, replace(self.facts, cpus=cpus))
        return self._footprints[cpus]

    def _fits(self, machine: Machine) -> bool:
        return verdict(self._footprint(machine.cpus), machine) == "fits"

    def _sizes(self, cpus: int) -> Sizes:
        n_gpus = gpus_needed(self.config, self.facts)
        return smallest_sizes(self.machine, self._fits, cpus=cpus, n_gpus=n_gpus)

    def _row(self, cpus: int) -> CoreRow:
        playing, updating = self._model.factors(cpus)
        return CoreRow(
            cpus,
            self._sizes(cpus).ram_bytes,
            self._model.workers(cpus),
            playing,
            updating,
            self._wall_s(cpus),
            is_measured=self.measured is not None and cpus == self.facts.cpus,
        )

    def _wall_s(self, cpus: int) -> float | None:
        if self.measured is None:
            return None
        forecast = forecast_speed(
            self.config,
            self._footprint(cpus).training,
            self._model.speed(self.measured, cpus),
            episode_timesteps=self.episode_timesteps or self.facts.episode_timesteps,
        )
        return min(forecast.wall_s, forecast.limit_s or forecast.wall_s)


def useful_rows(cores: set[int], row: Callable[[int], CoreRow]) -> tuple[CoreRow, ...]:
    """Return a row for each number of cores, up to the last one that gains a hundredth or more.

    Args:
        row: returns a row whose factors may be of any unit; here the first row's are 1.
    """
    rows = [row(cpus) for cpus in sorted(cores)]

    def gains(one: CoreRow, other: CoreRow) -> bool:
        if one.wall_s is not None and other.wall_s is not None:
            return other.wall_s < 0.99 * one.wall_s
        return other.collecting > one.collecting or other.updating > one.updating

    useful = [n for n in range(1, len(rows)) if gains(rows[n - 1], rows[n])]
    measured = [n for n, each in enumerate(rows) if each.is_measured]
    playing = rows[0].collecting
    updating = rows[0].updating
    return tuple(
        replace(each, collecting=each.collecting / playing, updating=each.updating / updating)
        for each in rows[: max([0, *useful, *measured]) + 1]
    )


def first_in_time(
    hours: float | None, cores: Sequence[int], row: Callable[[int], CoreRow]
) -> CoreRow | None:
    """Return the first row that ends within the time; None if there is none or no limit."""
    if hours is None:
        return None

    def in_time() -> Iterator[CoreRow]:
        for found in map(row, cores):
            if found.wall_s is None:
                return
            if found.wall_s <= hours * 3_600:
                yield found

    return next(in_time(), None)


@dataclass(frozen=True)
class RunOnCores:
    """A model of how the pieces of a run take less time on more cores.

    In a vec step, the halves of the workers take turns with the network, which one core computes.
    So a vec step takes at least as long as the network, as all work divided by the cores, and as
    half of the network with one worker's emulators after it. Evaluations play on as many cores as
    they have workers. A minibatch is divided among all cores, where it is large enough. Caches and
    memory, which cores share, are left out, so the times of more cores than were measured are lower
    bounds.
    """

    config: RunConfig
    facts: RunFacts

    def workers(self, cpus: int) -> int:
        env = self.config.env
        return training_workers(env.n_workers, n_envs=env.n_envs, cpus=cpus)

    def factors(self, cpus: int) -> tuple[float, int]:
        """Return how many emulators' processes work at once, and how many parts of a minibatch."""
        return float(min(self.workers(cpus), cpus)), self._parts(cpus)

    def _parts(self, cpus: int) -> int:
        facts = replace(self.facts, cpus=cpus)
        if facts.uses_gpu:
            return 1
        return n_minibatch_parts(together(self.config, facts), cpus)

    def speed(self, measured: MeasuredSpeed, cpus: int) -> MeasuredSpeed:
        """Return the speed with so many cores, from the one measured with `facts.cpus` cores."""
        here = self.facts.cpus
        network_s = measured.inference_s
        if cpus == here:
            return measured
        emulators_s = self._emulators_s(network_s, network_s + measured.emulation_s)
        vec_step_s = self._vec_step_s(network_s, emulators_s, cpus)
        return replace(
            measured,
            emulation_s=vec_step_s - network_s,
            gradient_step_s=measured.gradient_step_s * self._parts(here) / self._parts(cpus),
            evaluation_vec_step_s=self._evaluation_s(measured, cpus),
        )

    def _vec_step_s(self, network_s: float, emulators_s: float, cpus: int) -> float:
        workers = self.workers(cpus)
        if workers == 1:  # nothing plays while the network computes
            return network_s + emulators_s
        in_turns = network_s / 2 + emulators_s / workers
        return max(network_s, (network_s + emulators_s) / cpus, in_turns)

    def _emulators_s(self, network_s: float, vec_step_s: float) -> float:
        """Return the time of all emulators on one core with which `_vec_step_s` is as measured."""
        workers = self.workers(self.facts.cpus)
        cpus = self.facts.cpus
        if workers == 1:
            return vec_step_s - network_s
        return min(cpus * vec_step_s - network_s, workers * (vec_step_s - network_s / 2))

    def _evaluation_s(self, measured: MeasuredSpeed, cpus: int) -> float:
        evaluation = self.config.evaluation
        env = self.config.env
        n_envs = evaluation.envs_for(evaluation.episodes)
        network_s = min(measured.inference_s * n_envs / env.n_envs, measured.evaluation_vec_step_s)

        def at_once(cpus: int) -> int:
            return min(evaluation_workers(env.n_workers, n_envs=n_envs, cpus=cpus), cpus)

        playing_s = measured.evaluation_vec_step_s - network_s
        return network_s + playing_s * at_once(self.facts.cpus) / at_once(cpus)


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
    vram = "0" if sizes.vram_bytes is None else f"{sizes.vram_bytes // GIB}GiB"
    ram = (sizes.ram_bytes or 0) // GIB
    disk = (sizes.disk_bytes or 0) // 10**9
    return f"ram={ram}GiB,vram={vram},disk={disk}GB,cpus={found.cpus}"


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
            f" has so much {' and '.join(too_much)}: preflight without --recommend shows the fix",
        )
    gpu = "no GPU"
    if sizes.vram_bytes is not None:
        n = found.n_gpus
        gpu = f"{f'{n} GPUs' if n > 1 else 'a GPU'} of {sizes.vram_bytes // GIB} GiB (estimated)"
    return Text.assemble(
        ("SMALLEST NODE" if found.is_of_a_node else "SMALLEST MACHINE", "bold green"),
        f"  {counted(found.cpus, 'core')}, {(sizes.ram_bytes or 0) // GIB:,} GiB of RAM, {gpu}, "
        f"{(sizes.disk_bytes or 0) // 10**9:,} GB of free disk",
    )


def _margins(found: Recommendation) -> Text:
    gpu = f", {percent(calibration.VRAM_MARGIN_FRACTION)} of the GPU" if found.n_gpus else ""
    return Text(
        "this includes what stays free for other programs: "
        f"{percent(calibration.RAM_MARGIN_FRACTION)} and "
        f"{format_bytes(calibration.RAM_MARGIN_BYTES)} of RAM{gpu}, "
        f"{format_bytes(calibration.DISK_MARGIN_BYTES)} of disk; and the installation; check it "
        f"with --on {machine_option(found)}"
    )


def _cores(found: Recommendation) -> Table:
    what = "at once" if found.is_experiment else "workers"
    last = ("ends in", "gain", "") if found.is_measured else _FACTORS[found.is_experiment]
    table = number_table("cores", "RAM", what, *last)
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
        faster = before.wall_s / row.wall_s - 1
        gain = f"{'+' if faster > 0 else ''}{percent(faster)}"
    return format_duration(row.wall_s), gain, "measured" if row.is_measured else "computed"


def _notes(found: Recommendation, unmeasured: str | None) -> Iterator[str]:
    if found.is_measured:
        yield (
            "Only one row is measured. The others assume cores that are as fast as this machine's "
            "and do not slow each other down, so the times of more cores are lower bounds."
        )
    else:
        yield f"speed     not measured: {unmeasured}"
        if found.hours is not None:
            yield "Without the speed, no number of cores can be named for a time limit."
        if found.is_experiment:
            yield "The factors come from the smaller number of turns in which the members train."
        else:
            yield (
                "The factors come from the processes that play at once and the parts into which a "
                "batch is divided, relative to the first row; the network's own time while "
                "playing is left out."
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
            f"IN {limit}: no number of cores is enough, the shortest time is "
            f"{format_duration(least)}; train fewer timesteps, or evaluate less often"
        )
    assert row.wall_s is not None
    ram = "" if row.ram_bytes is None else f" and {row.ram_bytes // GIB:,} GiB of RAM"
    return f"IN {limit}: {counted(row.cpus, 'core')}{ram} ({format_duration(row.wall_s)})"
