"""Every check of a run: what it compares, and what is wrong or could be better, with its fix."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any, Literal

from game_rl.config.algorithms import ExplorationConfig, RestartConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration, fixes, footprint
from game_rl.preflight.fixes import GREY, Fix, has_needless_colour
from game_rl.preflight.footprint import (
    Footprint,
    Situation,
    comfortable_ram_bytes,
)
from game_rl.preflight.memory import (
    GpuFootprint,
    Phase,
    filled_capacity,
    gradient_step_bytes,
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

# A wait looks at the variables after each frame. A core of a shared machine played 9,000 to 10,000
# such frames of the bundled games in a second; a busy one has a third of it.
_FRAMES_A_SECOND_ONE_BY_ONE = 3_000

# Two frames show what moves; more of them show what a memory keeps.
_STACK_BESIDE_MEMORY = 2

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One sentence for the user about a run.

    Attributes:
        severity: "error": the run does not fit, or cannot begin; "warning": the user should look
            at it; "info": the run could be better.
        key: the config key that the finding is about.
        fix: a single change after which the finding is gone; None if there is none.
    """

    severity: Severity
    code: str
    key: str
    message: str
    fix: Fix | None


@dataclass(frozen=True)
class Compared:
    """What a check compares, and what it finds.

    Attributes:
        text: the numbers or settings.
        applies: whether the run has what the check is about; if not, `text` says what is missing.
    """

    text: str
    finding: Finding | None = None
    applies: bool = True

    def found(
        self, severity: Severity, code: str, key: str, message: str, fix: Fix | None = None
    ) -> "Compared":
        """Return the same with a finding."""
        return replace(self, finding=Finding(severity, code, key, message, fix))


@dataclass(frozen=True)
class CheckResult:
    """A check of a run or an experiment, and what came of it.

    Attributes:
        name: name of the check; those of an experiment's runs have `member.` or `learner.` before
            it.
    """

    name: str
    comparison: Compared

    @property
    def finding(self) -> Finding | None:
        return self.comparison.finding

    @property
    def outcome(self) -> Literal["found", "holds", "does_not_apply"]:
        if self.finding is not None:
            return "found"
        return "holds" if self.comparison.applies else "does_not_apply"

    def of_section(self, section: str) -> "CheckResult":
        """Return the result under the name that it has in an experiment."""
        return replace(self, name=f"{section}.{self.name}")

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "outcome": self.outcome,
            "compared": self.comparison.text,
            "finding": None if self.finding is None else asdict(self.finding),
        }


def explain(situation: Situation) -> tuple[CheckResult, ...]:
    """Run every check; return each with what it compared."""
    return tuple(CheckResult(check.__name__, check(situation)) for check in CHECKS)


def _absent(text: str) -> Compared:
    return Compared(text, applies=False)


def gpu_missing(situation: Situation) -> Compared:
    device = situation.config.device
    if not device.startswith("cuda"):
        return _absent(f"device is {device}, which names no GPU")
    compared = Compared(f"device {device} against {_gpus(situation)}")
    gpu = network_gpu(situation.config, situation.facts)
    if gpu is None or gpu < len(situation.machine.gpus):
        return compared
    message = f"device is {device}, but {_gpus_there(situation.machine)}"
    return compared.found("error", "gpu_missing", "device", message, Fix("device", "auto"))


def replay_gpu_missing(situation: Situation) -> Compared:
    gpu = replay_gpu(situation.config)
    if gpu is None:
        return _absent("there is no replay on a GPU")
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
        return _absent("the network is on the CPU")
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
        return _absent("there is no replay on a second GPU")
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
        return _absent("the run writes no Lake")
    if size is None:
        return _absent("the Lake was not measured: --probe measures it")
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


_SHORTEST_ROLLOUT = 128  # n_steps below this make advantages noisy; SB3's Atari presets use it
EPISODES_IN_A_ROLLOUT = 4


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


def n_steps_is_no_episode_length(situation: Situation) -> Compared:
    """Warn if a rollout of each env is much longer than an episode.

    n_steps says how often the network is updated. Episodes continue across rollouts.
    """
    config = situation.config
    probe = situation.probe
    n_steps = config.algorithm.n_steps
    if n_steps is None:
        return _absent(f"{config.algorithm.name} has no rollouts")
    longest = config.env.most_episode_timesteps
    against = f"max_episode_timesteps, {longest or 0:,}"
    if probe is not None:
        reference = round(probe.median)
        bound = round(probe.median) * EPISODES_IN_A_ROLLOUT
        lengths = probe.timesteps
        what = f"a random episode has {min(lengths):,} to {max(lengths):,} timesteps, half of "
        what += f"them at most {reference:,}"
        against = f"{EPISODES_IN_A_ROLLOUT} random episodes of {reference:,}"
    elif longest is not None:
        reference = longest
        bound = longest - 1
        what = f"no episode is longer than max_episode_timesteps, {longest:,}"
    else:
        return Compared(f"n_steps, {n_steps:,}, against {against}")
    compared = Compared(f"n_steps, {n_steps:,}, against {against}")
    fix = _shorter_rollout(config, reference)
    if n_steps <= bound or fix is None:
        return compared
    return compared.found(
        "warning",
        "n_steps_is_no_episode_length",
        "algorithm.n_steps",
        f"n_steps is {n_steps:,}, and {what}; n_steps is the number of timesteps that each env "
        "plays between two updates, across episodes: with a smaller one the network learns more "
        "often and needs less memory",
        fix,
    )


def colour_of_four_shades(situation: Situation) -> Compared:
    config = situation.config
    facts = situation.facts
    grey = fixes.apply_fix(config, GREY)
    shades = "four shades of grey" if facts.four_shades else "colours"
    compared = Compared(
        f"env.observation.colour is {config.env.observation.colour}, and the game has {shades}"
    )
    if not has_needless_colour(situation) or grey is None:
        return compared
    step, grey_step = (gradient_step_bytes(changed, facts) for changed in (config, grey))
    memory = f"{format_bytes(step)} where grey takes {format_bytes(grey_step)}, and "
    if grey_step > step:  # grey pictures go through the network in larger parts
        memory = ""
    return compared.found(
        "warning",
        "colour_of_four_shades",
        "env.observation.colour",
        "the game has four shades of grey, so red, green and blue are the same frame, which the "
        f"network reads three times: a gradient step takes {memory}more time",
        GREY,
    )


def replay_is_never_full(situation: Situation) -> Compared:
    config = situation.config
    facts = situation.facts
    replay = config.algorithm.replay
    timesteps = situation.footprint.training.final_timesteps
    if replay is None:
        return _absent(f"{config.algorithm.name} has no replay")
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
        return _absent("the run has no Lake of its own")
    if lake.capacity_transitions is None:
        return _absent("lake.capacity_transitions is not set")
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


def _rounded_up(number: int) -> int:
    """Round up to two significant digits."""
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def _shorter_rollout(config: RunConfig, episode_timesteps: int) -> Fix | None:
    """Return a smaller n_steps, about one episode of each env, with whole batches in a rollout."""
    present = config.algorithm.n_steps
    assert present is not None
    unit = fixes.n_steps_unit(config)
    target = max(_SHORTEST_ROLLOUT, 2 ** (max(1, episode_timesteps).bit_length() - 1))
    for n_steps in (target // unit * unit, -(-target // unit) * unit):
        fix = Fix("algorithm.n_steps", n_steps)
        if 0 < n_steps < present and fixes.apply_fix(config, fix) is not None:
            return fix
    return None


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


def restart_without_effect(situation: Situation) -> Compared:
    """Report the first restart with a fault; fixing it may change the faults of later ones."""
    config = situation.config
    exploration = config.algorithm.exploration
    if exploration is None or not exploration.restarts:
        return _absent("exploration does not restart")
    compared = Compared(
        f"{counted(len(exploration.restarts), 'restart')} against the usual exploration rate "
        "there, the length of a rollout and the run's end"
    )
    for index, restart in enumerate(exploration.restarts):
        if (fault := _fault(config, exploration, restart)) is not None:
            key = f"algorithm.exploration.restarts.{index}"
            return compared.found("warning", "restart_without_effect", key, fault)
    return compared


def _fault(config: RunConfig, exploration: ExplorationConfig, restart: RestartConfig) -> str | None:
    algorithm = config.algorithm
    total = config.total_timesteps
    at = restart.at
    back = restart.at + restart.over
    main_line = exploration.model_copy(update={"restarts": ()})
    usual = main_line.schedule(timesteps=total).at(at)
    if restart.start <= usual:
        return (
            f"it starts at {restart.start:g}, but the usual exploration rate is {usual:.3g} at "
            f"timestep {at:,}, and the rate never falls below that: use a larger start, or a "
            "later at"
        )
    if at < algorithm.learning_starts:
        return (
            f"it starts at timestep {at:,}, but every action is random before learning_starts, "
            f"{algorithm.learning_starts:,}: use a later at"
        )
    if restart.over < config.rollout_timesteps and algorithm.replay is None:
        return (
            f"it lasts {restart.over:,} timesteps, less than one rollout of "
            f"{config.rollout_timesteps:,}, in which the rate stays the same: use a larger over"
        )
    if back > total:
        return (
            f"it lasts until timestep {back:,}, but the run ends at {total:,}, with its "
            "exploration rate still raised: use an earlier at, or a smaller over"
        )
    return None


LEAST_OWN_SHARE = 0.1


def few_own_rows(situation: Situation) -> Compared:
    """Warn of the tandem effect: 10 to 20 % of own play reduce it greatly, and 50 % remove it."""
    algorithm = situation.config.algorithm
    settings = algorithm.lakes
    if settings is None:
        return _absent("the run does not learn from Lakes")
    if algorithm.teacher is not None:
        return _absent("the run has a teacher")
    share = settings.most_own_share
    compared = Compared(
        f"{percent(share)} of own play in a batch against {percent(LEAST_OWN_SHARE)}"
    )
    if share >= LEAST_OWN_SHARE:
        return compared
    return compared.found(
        "warning",
        "few_own_rows",
        "algorithm.learn_from.own_share",
        f"at most {percent(share)} of each batch is the run's own play, and there is no teacher: a "
        "network that learns from others' play alone fails where they succeed, because nothing "
        "corrects its values of actions that the others do not take (the tandem effect, Ostrovski "
        "et al. 2021, arXiv 2110.14020; 10 to 20 % of own play reduce it greatly, and 50 % remove "
        "it)",
        Fix("algorithm.learn_from.own_share", "0.5"),
    )


MOST_RANDOM_AFTER_CLONE = 0.5


def clone_is_not_played(situation: Situation) -> Compared:
    """Warn of a run that imitates a player and then begins with random actions all the same."""
    config = situation.config
    exploration = config.algorithm.exploration
    if config.clone is None:
        return _absent("the run does not imitate a player before its first timestep")
    if exploration is None:
        return _absent("the policy samples its own actions")
    start = exploration.start
    compared = Compared(
        f"{percent(start)} random actions at first, against {percent(MOST_RANDOM_AFTER_CLONE)}"
    )
    if start <= MOST_RANDOM_AFTER_CLONE:
        return compared
    return compared.found(
        "warning",
        "clone_is_not_played",
        "algorithm.exploration.start",
        f"the network imitates a player before the first timestep, but then {percent(start)} of "
        "its actions are random, so that the run plays as if it were untrained",
        Fix("algorithm.exploration.start", "0.1"),
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


def own_parts_not_counted(situation: Situation) -> Compared:
    """List the custom parts, whose memory and time nobody knows before they run."""
    parts = situation.config.custom_parts
    if not parts:
        return _absent("callbacks and env.wrappers are empty, and algorithm.network is not a class")
    names = ", ".join(f"{part.reference} ({'.'.join(part.key)})" for part in parts)
    return Compared(
        f"{counted(len(parts), 'part')} in callbacks, env.wrappers and algorithm.network"
    ).found(
        "info",
        "own_parts_not_counted",
        parts[0].key[0],
        f"{names}: the memory and time of Python of your own are not part of this forecast; "
        "--probe measures with wrappers, but without callbacks",
    )


def game_is_changed(situation: Situation) -> Compared:
    """Say which variables the start states set: the agent does not learn the game as it is."""
    changes = situation.facts.game_changes
    if not changes:
        return _absent("start states neither write nor hold values")
    return Compared(f"{counted(len(changes), 'start state')} with write or hold_values").found(
        "info",
        "game_is_changed",
        "env.start_states",
        f"the game is modified, and results are those of the modified game: {'; '.join(changes)} "
        "(write and hold_values in game.yaml)",
    )


def step_may_outlast_workers(situation: Situation) -> Compared:
    """Warn of a `step` in game.yaml with which a worker may take longer than it has."""
    env = situation.config.env
    frames = situation.facts.longest_wait_frames
    if not frames:
        return _absent("no timestep waits for `step.until`")
    workers = training_workers(env.n_workers, n_envs=env.n_envs, cpus=situation.facts.cpus)
    envs = -(-env.n_envs // workers)
    seconds = envs * frames / _FRAMES_A_SECOND_ONE_BY_ONE
    compared = Compared(
        f"{frames:,} frames in each of {envs} envs of a worker, about {seconds:,.0f} s, against "
        f"{env.worker_timeout_s:g} s of env.worker_timeout_s"
    )
    if seconds <= env.worker_timeout_s:
        return compared
    return compared.found(
        "warning",
        "step_may_outlast_workers",
        "env.worker_timeout_s",
        "if `step.until` of the game does not hold, a timestep takes up to `step.at_most_frames`, "
        f"{frames:,} frames, in each of the {envs} envs of a worker: about {seconds:,.0f} s, and a "
        f"worker that takes longer than {env.worker_timeout_s:g} s ends the run; a lower "
        "step.at_most_frames in game.yaml helps as well",
        Fix("env.worker_timeout_s", math.ceil(2 * seconds)),
    )


def observation_has_parts(situation: Situation) -> Compared:
    """Say how many bytes each part of an observation takes."""
    form = situation.facts.observation_format(situation.config)
    if not form.is_dict:
        return _absent("an observation consists of the screens only")
    sizes = sorted(form.part_bytes.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{name} {size:,}" for name, size in sizes)
    text = f"a timestep is stored in {form.row_bytes:,} bytes: {parts}"
    compared = Compared(
        f"bytes of each part of a timestep as stored: {parts}; an observation is "
        f"{form.nbytes:,} bytes as the network gets it"
    )
    return compared.found("info", "observation_has_parts", "env.observation", text)


def stack_beside_memory(situation: Situation) -> Compared:
    """Say that an agent with a memory needs no stack of screens or parts."""
    config = situation.config
    stack = config.env.frame_stack
    seen = situation.facts.observation_format(config)
    stacked = [name for name, part in seen.parts if part.is_stacked]
    if config.algorithm.memory is None:
        return _absent("the agent has no memory")
    if seen.screen is None and not stacked:
        return _absent("the agent sees nothing that is stacked")
    compared = Compared(f"frame_stack {stack} against {_STACK_BESIDE_MEMORY} with a memory")
    if stack <= _STACK_BESIDE_MEMORY:
        return compared
    what = f"{stack} screens"
    if seen.screen is None:
        what = f"{' and '.join(stacked)} of {stack} timesteps"
    return compared.found(
        "info",
        "stack_beside_memory",
        "env.frame_stack",
        f"the agent sees {what} at once, and has a memory of those before; with frame_stack: 1 "
        "the memory does both, and the network reads less",
        Fix("env.frame_stack", 1),
    )


def exploration_missing(situation: Situation) -> Compared:
    """Report an exploration that the run begins with and that is not there."""
    config = situation.config
    if config.env.pool is None and not situation.facts.n_potentials:
        return _absent("no pool and no potential of a reward names an exploration")
    missing = situation.facts.missing_explorations
    if not missing:
        return Compared("the explorations that env.pool.from and potentials of rewards name exist")
    key, folder = next(iter(missing.items()))
    command = f"game-rl explore {quote(config.game)} --output {quote(str(folder))}"
    compared = Compared(f"{', '.join(missing)} against the folders that exist")
    message = f"there is no folder {folder}; make it first with {command}, or correct the path"
    return compared.found("error", "exploration_missing", key, message)


CHECKS: tuple[Callable[[Situation], Compared], ...] = (
    gpu_missing,
    replay_gpu_missing,
    ram_short,
    vram_short,
    replay_vram_short,
    disk_short,
    lake_outgrows_disk,
    few_own_rows,
    clone_is_not_played,
    n_steps_is_no_episode_length,
    colour_of_four_shades,
    replay_is_never_full,
    lake_is_never_full,
    machine_under_used,
    restart_without_effect,
    torch_for_cuda,
    own_parts_not_counted,
    game_is_changed,
    step_may_outlast_workers,
    observation_has_parts,
    stack_beside_memory,
    exploration_missing,
)


def worst_first(findings: Iterable[Finding | None]) -> tuple[Finding, ...]:
    """Return those that are findings, the most severe first."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    found = [finding for finding in findings if finding is not None]
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))
