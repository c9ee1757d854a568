"""Checks of whether a run fits its machine: memory, disk, GPUs, and what it would never use."""

from collections.abc import Callable
from dataclasses import replace

from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration, fixes, footprint
from game_rl.preflight.findings import Compared, Severity, absent
from game_rl.preflight.fixes import Fix
from game_rl.preflight.footprint import Footprint, Situation, comfortable_ram_bytes
from game_rl.preflight.memory import (
    GpuFootprint,
    Phase,
    filled_capacity,
    network_gpu,
    replay_gpu,
    reserved_replay_bytes,
    storage,
)
from game_rl.statistics import percent
from game_rl.system.import_cost import USUAL_IMPORT_COST
from game_rl.system.machine import Machine
from game_rl.system.units import counted, format_bytes
from game_rl.vec_env.workers import training_workers


def gpu_missing(situation: Situation) -> Compared:
    device = situation.config.device
    if not device.startswith("cuda"):
        return absent(f"device is {device}, which names no GPU")
    compared = Compared(f"device {device} against {_gpus(situation)}")
    gpu = network_gpu(situation.config, situation.facts)
    if gpu is None or gpu < len(situation.machine.gpus):
        return compared
    message = f"device is {device}, but {_gpus_there(situation.machine)}"
    return compared.found("error", "gpu_missing", "device", message, Fix("device", "auto"))


def replay_gpu_missing(situation: Situation) -> Compared:
    gpu = replay_gpu(situation.config)
    if gpu is None:
        return absent("there is no replay on a GPU")
    compared = Compared(f"the replay's GPU cuda:{gpu} against {_gpus(situation)}")
    if gpu < len(situation.machine.gpus):
        return compared
    key = "algorithm.replay.device"
    message = f"the replay should be on cuda:{gpu}, but {_gpus_there(situation.machine)}"
    return compared.found("error", "replay_gpu_missing", key, message, Fix(key, "cpu"))


def ram_short(situation: Situation) -> Compared:
    machine = situation.machine
    result = footprint.ram_verdict(situation.footprint, machine)
    peak = situation.footprint.ram.peak
    limit = machine.ram_available_bytes
    compared = Compared(
        f"{format_bytes(peak.bytes)} in the phase {peak.name!r} against {format_bytes(limit)} "
        f"available, or {format_bytes(round(comfortable_ram_bytes(machine)))} with the "
        f"margin for other programs ({percent(calibration.RAM_MARGIN_FRACTION)} and "
        f"{format_bytes(calibration.RAM_MARGIN_BYTES)})"
    )
    if result == "fits":
        return compared
    fix = fixes.cheapest_fix(situation, footprint.ram_verdict, fixes.ram_changes(situation))
    return compared.found(
        _severity(result),
        f"ram_{result}",
        fix.key if fix else fixes.storage_key(situation.config),
        f"needs {format_bytes(peak.bytes)} of RAM in the phase {peak.name!r}, mostly "
        f"{_largest(peak)}, and {format_bytes(limit)} are available{_margin_note(result)}"
        f"{_same_learning_note(fix)}",
        fix,
    )


def vram_short(situation: Situation) -> Compared:
    """Report a lack of memory on the network's GPU."""
    vram = situation.footprint.vram
    if vram is None:
        return absent("the network is on the CPU")
    result = footprint.vram_verdict(situation.footprint, situation.machine)
    compared = _gpu_memory(situation, vram)
    if vram.gpu >= len(situation.machine.gpus) or result == "fits":
        return compared
    fix = fixes.cheapest_fix(situation, footprint.vram_verdict, fixes.vram_changes(situation))
    key = fix.key if fix else "algorithm.batch_size"
    message = f"{_gpu_needs(vram, situation.machine)}{_margin_note(result)}"
    message += _same_learning_note(fix)
    return compared.found(_severity(result), f"vram_{result}", key, message, fix)


def replay_vram_short(situation: Situation) -> Compared:
    """Report a lack of memory on the replay's GPU, if that is not the network's."""
    vram = situation.footprint.replay_vram
    if vram is None:
        return absent("there is no replay on a second GPU")
    result = footprint.replay_vram_verdict(situation.footprint, situation.machine)
    compared = _gpu_memory(situation, vram)
    if vram.gpu >= len(situation.machine.gpus) or result == "fits":
        return compared
    candidates = fixes.replay_vram_changes(situation)
    fix = fixes.cheapest_fix(situation, footprint.replay_vram_verdict, candidates)
    key = "algorithm.replay.device"
    needs = _gpu_needs(vram, situation.machine)
    message = f"cuda:{vram.gpu}: {needs}{_margin_note(result)}"
    return compared.found(_severity(result), f"replay_vram_{result}", key, message, fix)


def disk_short(situation: Situation) -> Compared:
    """Report a disk that is too small for the run, whatever its Lake takes."""
    whole = situation.footprint.disk
    without = _without_lake(situation.footprint)
    result = footprint.disk_verdict(without, situation.machine)
    room = situation.machine.disk_room_bytes
    compared = Compared(
        f"at least {format_bytes(whole.minimum_bytes)}, better "
        f"{format_bytes(whole.recommended_bytes)}, against {format_bytes(room)} free"
    )
    if result == "fits":
        return compared
    disk = without.disk
    full_at = whole.full_at_timestep(room)
    when = f"the disk is full at timestep {full_at:,}: " if full_at is not None else ""
    return compared.found(
        _severity(result),
        f"disk_{result}",
        "checkpoints.keep_last",
        f"{when}the run takes {format_bytes(disk.bytes)}, and {format_bytes(disk.minimum_bytes)} "
        "with the checkpoint that is being written and the margin at which a run stops; "
        f"{format_bytes(room)} are free{_margin_note(result)}",
        fixes.cheapest_fix(situation, footprint.disk_verdict, fixes.disk_changes(situation)),
    )


def _without_lake(whole: Footprint) -> Footprint:
    """Return the footprint of the run if its Lake took nothing."""
    return replace(whole, disk=replace(whole.disk, counts_lake=False))


def lake_outgrows_disk(situation: Situation) -> Compared:
    """Report a Lake that will fill the disk of a run that would fit without it."""
    config = situation.config
    machine = situation.machine
    lake = config.lake
    size = situation.footprint.disk.lake_bytes
    room = machine.disk_room_bytes
    if lake is None:
        return absent("the run writes no Lake")
    if size is None:
        return absent("the Lake was not measured: --probe measures it")
    compared = Compared(
        f"a Lake of {format_bytes(size)} on the disk of the run, of which {format_bytes(room)} "
        "are free"
    )
    result = footprint.disk_verdict(situation.footprint, machine)
    without = _without_lake(situation.footprint)
    if result == footprint.disk_verdict(without, machine):
        return compared
    left = max(0, room - without.disk.recommended_bytes)
    full_at = situation.footprint.disk.full_at_timestep(room)
    then = "it stops growing" if lake.on_full == "pause" else "its oldest files are deleted"
    when = "" if full_at is None else f"; from timestep {full_at:,} on {then}"
    key = "lake.capacity_gb"
    room_gb = left // 10**9
    return compared.found(
        _severity(result),
        "lake_outgrows_disk",
        key,
        f"the Lake takes {format_bytes(size)} over the run, "
        f"but checkpoints, logs and margin leave only {format_bytes(left)} of the disk for it"
        f"{when}",
        Fix(key, room_gb) if room_gb else None,
    )


def replay_is_never_full(situation: Situation) -> Compared:
    config = situation.config
    facts = situation.facts
    replay = config.algorithm.replay
    timesteps = situation.footprint.training.final_timesteps
    if replay is None:
        return absent(f"{config.algorithm.name} has no replay")
    capacity = replay.capacity
    compared = Compared(f"room for {capacity:,} timesteps against the {timesteps:,} of the run")
    enough = _rounded_up(filled_capacity(config, facts))
    if capacity <= max(enough, timesteps):
        return compared
    fix = Fix("algorithm.replay.capacity", enough)
    smaller = fixes.apply_fix(config, fix)
    severity: Severity = "info"
    note = ""
    reserved = reserved_replay_bytes(config, facts)
    machine = situation.machine
    most = machine.ram_bytes if machine.reservable_bytes is None else machine.reservable_bytes
    if replay_gpu(config) is None and reserved > most:
        severity = "error"
        note = (
            f". All of it is reserved at the start: {format_bytes(reserved)}, which Linux refuses "
            f"where memory and swap have {format_bytes(most)}"
        )
    elif smaller is not None and replay_gpu(config) is not None:
        saved = storage(config, facts).bytes - storage(smaller, facts).bytes
        note = f", and leave {format_bytes(saved)} more of GPU memory free"
    return compared.found(
        severity,
        "replay_is_never_full",
        "algorithm.replay.capacity",
        f"the replay has room for {capacity:,} timesteps, and the run plays {timesteps:,}; "
        f"{enough:,} hold them all, with the last frames of their episodes{note}",
        fix if smaller is not None else None,
    )


def lake_is_never_full(situation: Situation) -> Compared:
    """Report a Lake of the run's own with room for more timesteps than it plays."""
    lake = situation.config.lake
    timesteps = situation.footprint.training.final_timesteps
    if lake is None or lake.path is not None:
        return absent("the run has no Lake of its own")
    if lake.capacity_transitions is None:
        return absent("lake.capacity_transitions is not set")
    compared = Compared(
        f"room for {lake.capacity_transitions:,} timesteps against the {timesteps:,} of the run"
    )
    enough = max(1_000, _rounded_up(timesteps))  # a config allows no fewer
    if lake.capacity_transitions <= enough:
        return compared
    return compared.found(
        "info",
        "lake_is_never_full",
        "lake.capacity_transitions",
        f"the Lake may keep {lake.capacity_transitions:,} timesteps, and the run plays "
        f"{timesteps:,}: nothing is ever evicted; {enough:,} would be enough",
        Fix("lake.capacity_transitions", enough),
    )


def machine_under_used(situation: Situation) -> Compared:
    config = situation.config
    machine = situation.machine
    n_envs = config.env.n_envs
    cpus = situation.facts.cpus
    busy = training_workers(config.env.n_workers, n_envs=n_envs, cpus=cpus)
    compared = Compared(f"{busy} processes with emulators against {counted(machine.cpus, 'CPU')}")
    if busy >= machine.cpus or footprint.verdict(situation.footprint, machine) != "fits":
        return compared
    if busy < config.env.n_envs:
        fix: Fix | None = Fix("env.n_workers", min(machine.cpus, config.env.n_envs))
    else:
        fix = fixes.first_fix(
            config,
            (Fix("env.n_envs", n) for n in fixes.larger_n_envs(config, machine.cpus)),
            lambda changed: footprint.verdict(situation.footprint_of(changed), machine) == "fits",
        )
    if fix is None:
        return compared
    return compared.found(
        "info",
        "machine_under_used",
        fix.key,
        f"{config.env.n_envs} envs keep {busy} of {machine.cpus} CPUs busy; {fix.value} "
        f"{'workers' if fix.key == 'env.n_workers' else 'envs'} fit{_rollout_note(config, fix)}",
        fix,
    )


def torch_for_cuda(situation: Situation) -> Compared:
    """Report a build of torch for GPUs on a machine that has none."""
    imports = situation.machine.imports
    gpus = situation.machine.gpus
    build = "CPUs" if imports.cuda is None else f"CUDA {imports.cuda}"
    compared = Compared(f"torch is built for {build}, against {_gpus(situation)}")
    if imports.cuda is None or gpus:
        return compared
    more = imports.bytes - USUAL_IMPORT_COST.bytes
    return compared.found(
        "info",
        "torch_for_cuda",
        "device",
        f"torch is built for CUDA {imports.cuda}, but there is no GPU that it can use; importing "
        f"it takes {format_bytes(more)} more of RAM than importing the build for CPUs, which comes "
        "with pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu",
    )


def _largest(phase: Phase) -> str:
    part = max(phase.parts, key=lambda part: part.bytes)
    return f"{part.name} ({format_bytes(part.bytes)})"


def _gpu_needs(vram: GpuFootprint, machine: Machine) -> str:
    return (
        f"needs {format_bytes(vram.peak.bytes)} of GPU memory, mostly {_largest(vram.peak)}, and "
        f"{format_bytes(machine.gpu_free_bytes(vram.gpu))} are free"
    )


def _gpu_memory(situation: Situation, vram: GpuFootprint) -> Compared:
    free = situation.machine.gpu_free_bytes(vram.gpu)
    return Compared(
        f"{format_bytes(vram.peak.bytes)} against {format_bytes(free)} free on cuda:{vram.gpu}, "
        f"{percent(calibration.VRAM_MARGIN_FRACTION)} of which is the margin"
    )


def _gpus(situation: Situation) -> str:
    return f"{counted(len(situation.machine.gpus), 'GPU')} of the machine"


def _gpus_there(machine: Machine) -> str:
    if not machine.gpus:
        return "the machine has no GPU that torch can use"
    return f"the last GPU of the machine that torch can use is cuda:{len(machine.gpus) - 1}"


def _severity(result: footprint.Verdict) -> Severity:
    return "error" if result == "does_not_fit" else "warning"


def _margin_note(result: footprint.Verdict) -> str:
    return "" if result == "does_not_fit" else ", which leaves no margin for other programs"


def _same_learning_note(fix: Fix | None) -> str:
    if fix is None or fix.key != "algorithm.micro_batch_size":
        return ""
    parts = "" if fix.value == "auto" else f" of {fix.value}"
    return (
        f"; batches computed in parts{parts} learn the same: the gradient is that of the whole "
        "batch"
    )


def _rounded_up(number: int) -> int:
    """Round up to two significant digits."""
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def _rollout_note(config: RunConfig, fix: Fix) -> str:
    """Name the n_steps that keeps the rollout's length: more envs at the same n_steps raise it."""
    changed = fixes.apply_fix(config, fix) if fix.key == "env.n_envs" else None
    if changed is None or config.algorithm.replay is not None:
        return ""
    unit = fixes.n_steps_unit(changed)
    n_steps = config.rollout_timesteps // changed.env.n_envs // unit * unit
    if n_steps == 0:
        return ""
    return (
        f" (with algorithm.n_steps={n_steps} as well, a rollout has "
        f"{n_steps * changed.env.n_envs:,} timesteps instead of {changed.rollout_timesteps:,})"
    )


FIT_CHECKS: tuple[Callable[[Situation], Compared], ...] = (
    gpu_missing,
    replay_gpu_missing,
    ram_short,
    vram_short,
    replay_vram_short,
    disk_short,
    lake_outgrows_disk,
    replay_is_never_full,
    lake_is_never_full,
    machine_under_used,
    torch_for_cuda,
)
