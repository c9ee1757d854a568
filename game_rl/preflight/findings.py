"""What is wrong with a run, or could be better, each with the smallest change that mends it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from game_rl.config.algorithms import DQNConfig
from game_rl.config.schema import RunConfig
from game_rl.preflight import calibration, changes, verdict
from game_rl.preflight.changes import Fix
from game_rl.preflight.disk import timestep_of_full_disk
from game_rl.preflight.footprint import Footprint, Phase
from game_rl.preflight.growth import lake_bytes
from game_rl.preflight.memory import gradient_step_bytes, is_storage_on_gpu, n_training_workers
from game_rl.preflight.situation import Situation
from game_rl.system.machine import Machine
from game_rl.system.units import format_bytes

_SHORTEST_ROLLOUT = 128  # n_steps below this make advantages noisy; SB3's Atari presets use it
_EPISODES_IN_A_ROLLOUT = 4


Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One sentence for the user; `key` is the config key that it is about.

    Attributes:
        severity: error: the run does not fit; warning: look at it; info: could be better.
        fix: after this change alone the finding is gone; None where no single change does it.
    """

    severity: Severity
    code: str
    key: str
    message: str
    fix: Fix | None


def check(situation: Situation) -> tuple[Finding, ...]:
    """Every finding, the worst first."""
    order: tuple[Severity, ...] = ("error", "warning", "info")
    found = [finding for find in FINDINGS if (finding := find(situation)) is not None]
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


# ---- does it fit? --------------------------------------------------------------------------------


def gpu_missing(situation: Situation) -> Finding | None:
    device = situation.config.device
    if not device.startswith("cuda") or situation.machine.vram_bytes is not None:
        return None
    return Finding(
        "error",
        "gpu_missing",
        "device",
        f"device is {device}, but the machine has no GPU that torch could use",
        Fix("device", "auto"),
    )


def replay_gpu_missing(situation: Situation) -> Finding | None:
    if not is_storage_on_gpu(situation.config) or situation.machine.vram_bytes is not None:
        return None
    return Finding(
        "error",
        "replay_gpu_missing",
        "algorithm.replay.device",
        "the replay shall be on a GPU, but the machine has none that torch could use",
        Fix("algorithm.replay.device", "cpu"),
    )


def ram_short(situation: Situation) -> Finding | None:
    result = verdict.ram_verdict(situation.footprint, situation.machine)
    if result == "fits":
        return None
    peak, limit = situation.footprint.ram.peak, situation.machine.ram_available_bytes
    fix = _cheapest_fix(situation, verdict.ram_verdict, _ram_changes(situation))
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"ram_{result}",
        fix.key if fix else _storage_key(situation.config),
        f"needs {format_bytes(peak.bytes)} of RAM in the phase {peak.name!r}, mostly "
        f"{_largest(peak)}, and {format_bytes(limit)} are available{_margin_note(result)}"
        f"{_same_learning_note(fix)}",
        fix,
    )


def vram_short(situation: Situation) -> Finding | None:
    result = verdict.vram_verdict(situation.footprint, situation.machine)
    vram = situation.footprint.vram
    if vram is None or situation.machine.vram_bytes is None or result == "fits":
        return None
    free = situation.machine.vram_available_bytes or 0
    fix = _cheapest_fix(situation, verdict.vram_verdict, _vram_changes(situation))
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"vram_{result}",
        fix.key if fix else "algorithm.batch_size",
        f"needs {format_bytes(vram.peak.bytes)} of GPU memory, mostly {_largest(vram.peak)}, and "
        f"{format_bytes(free)} are free{_margin_note(result)}{_same_learning_note(fix)}",
        fix,
    )


def disk_short(situation: Situation) -> Finding | None:
    result = verdict.disk_verdict(situation.footprint, situation.machine)
    if result == "fits":
        return None
    disk, free = situation.footprint.disk, situation.machine.disk_free_bytes
    full_at = timestep_of_full_disk(situation.config, situation.footprint, free)
    when = f"the disk is full at timestep {full_at:,}: " if full_at is not None else ""
    return Finding(
        "error" if result == "does_not_fit" else "warning",
        f"disk_{result}",
        "checkpoints.keep_last",
        f"{when}the run takes {format_bytes(disk.bytes)} and, while a checkpoint is written, "
        f"{format_bytes(disk.momentary_bytes)} more; {format_bytes(free)} are free"
        f"{_margin_note(result)}",
        _cheapest_fix(situation, verdict.disk_verdict, _disk_changes(situation)),
    )


def lake_outgrows_disk(situation: Situation) -> Finding | None:
    """The training goes on without space for more; so the verdict does not count the Lake."""
    config, disk = situation.config, situation.footprint.disk
    lake = config.lake
    if lake is None:
        return None
    total = situation.footprint.training.final_timesteps
    size = lake_bytes(config, situation.facts, total)
    needed = disk.bytes + disk.momentary_bytes + calibration.DISK_MARGIN_BYTES
    left = situation.machine.disk_free_bytes - needed
    if size is None or size <= left or not situation.lake_is_on_this_disk:
        return None
    per_timestep = situation.facts.lake_bytes_per_timestep
    assert per_timestep is not None
    then = "it stops growing" if lake.on_full == "pause" else "its oldest files go"
    key = "lake.capacity_gb"
    room_gb = max(0, left) // 10**9
    return Finding(
        "warning",
        "lake_outgrows_disk",
        key,
        f"the Lake takes {format_bytes(size)} over the run, but beside checkpoints and logs "
        f"{format_bytes(max(0, left))} are free; from timestep "
        f"{round(max(0, left) / per_timestep):,} on {then}",
        Fix(key, room_gb) if room_gb else None,
    )


# ---- is it what was meant? -----------------------------------------------------------------------


def machine_under_used(situation: Situation) -> Finding | None:
    config, machine = situation.config, situation.machine
    busy = n_training_workers(config, situation.facts)
    if busy >= machine.cpus or verdict.verdict(situation.footprint, machine) != "fits":
        return None
    if busy < config.env.n_envs:
        fix: Fix | None = Fix("env.n_workers", min(machine.cpus, config.env.n_envs))
    else:
        fix = changes.first_fix(
            config,
            (Fix("env.n_envs", n) for n in changes.larger_n_envs(config, machine.cpus)),
            lambda changed: verdict.verdict(situation.footprint_of(changed), machine) == "fits",
        )
    if fix is None:
        return None
    return Finding(
        "info",
        "machine_under_used",
        fix.key,
        f"{config.env.n_envs} envs keep {busy} of {machine.cpus} CPUs busy; {fix.value} "
        f"{'workers' if fix.key == 'env.n_workers' else 'envs'} fit{_rollout_note(config, fix)}",
        fix,
    )


def n_steps_is_no_episode_length(situation: Situation) -> Finding | None:
    """n_steps is when PPO updates; episodes run across rollouts."""
    config, probe = situation.config, situation.probe
    if isinstance(config.algorithm, DQNConfig):
        return None
    n_steps, longest = config.algorithm.n_steps, config.env.max_episode_timesteps
    if probe is not None:
        reference, bound = round(probe.median), round(probe.median) * _EPISODES_IN_A_ROLLOUT
        what = f"a random episode has {probe.shortest:,} to {probe.longest:,} timesteps, half of "
        what += f"them at most {reference:,}"
    elif longest is not None:
        reference, bound = longest, longest - 1
        what = f"no episode is longer than max_episode_timesteps, {longest:,}"
    else:
        return None
    fix = _shorter_rollout(config, reference)
    if n_steps <= bound or fix is None:
        return None
    return Finding(
        "warning",
        "n_steps_is_no_episode_length",
        "algorithm.n_steps",
        f"n_steps is {n_steps:,}, and {what}; n_steps is how long each env plays between two "
        "updates, through as many episodes as that takes: a smaller one learns more often in less "
        "memory",
        fix,
    )


def colour_of_four_shades(situation: Situation) -> Finding | None:
    config, facts = situation.config, situation.facts
    fix = Fix("env.observation.colour", "grey")
    grey = changes.apply_fix(config, fix)
    if config.env.observation.colour == "grey" or not facts.four_shades or grey is None:
        return None
    step, grey_step = (gradient_step_bytes(changed, facts) for changed in (config, grey))
    return Finding(
        "warning",
        "colour_of_four_shades",
        "env.observation.colour",
        "the game has four shades of grey, so red, green and blue are one picture that the network "
        f"reads three times: a gradient step takes {format_bytes(step)} where grey takes "
        f"{format_bytes(grey_step)}, and longer",
        fix,
    )


FINDINGS: tuple[Callable[[Situation], Finding | None], ...] = (
    gpu_missing,
    replay_gpu_missing,
    ram_short,
    vram_short,
    disk_short,
    lake_outgrows_disk,
    n_steps_is_no_episode_length,
    colour_of_four_shades,
    machine_under_used,
)


# ---- fixes ---------------------------------------------------------------------------------------

_Judge = Callable[[Footprint, Machine], verdict.Verdict]
_Change = tuple[str, Sequence[int | str]]


def _cheapest_fix(situation: Situation, judge: _Judge, candidates: list[_Change]) -> Fix | None:
    """The first key with a value that makes it fit; else one that at least lets it run."""
    present = judge(situation.footprint, situation.machine)
    wanted: list[set[verdict.Verdict]] = [{"fits"}]
    if present == "does_not_fit":
        wanted.append({"fits", "tight"})
    for good in wanted:

        def holds(changed: RunConfig, good: set[verdict.Verdict] = good) -> bool:
            return judge(situation.footprint_of(changed), situation.machine) in good

        for key, values in candidates:
            fix = changes.smallest_fix(situation.config, key, values, holds)
            if fix is not None:
                return fix
    return None


def _micro_batch_change(config: RunConfig) -> _Change:
    """First of all: it changes nothing about what is learned."""
    return ("algorithm.micro_batch_size", changes.smaller_micro_batch_sizes(config))


def _storage_key(config: RunConfig) -> str:
    is_replay = isinstance(config.algorithm, DQNConfig)
    return "algorithm.replay.capacity" if is_replay else "algorithm.n_steps"


def _storage_change(config: RunConfig) -> _Change:
    is_replay = isinstance(config.algorithm, DQNConfig)
    smaller = changes.smaller_capacities if is_replay else changes.smaller_n_steps
    return _storage_key(config), smaller(config)


def _colour_change(situation: Situation) -> list[_Change]:
    """Before anything that changes the learning: it loses nothing."""
    return [("env.observation.colour", ["grey"])] if colour_of_four_shades(situation) else []


def _size_change(situation: Situation) -> list[_Change]:
    """Last: small things on the screen may be lost."""
    crop, size = situation.facts.crop, situation.config.env.observation.size
    halves = size == "full" and crop.height % 2 == crop.width % 2 == 0
    return [("env.observation.size", ["half"])] if halves else []


def _ram_changes(situation: Situation) -> list[_Change]:
    config = situation.config
    batch: _Change = ("algorithm.batch_size", changes.smaller_batch_sizes(config))
    rollout = _storage_change(config)
    is_update = situation.footprint.ram.peak.name == "update"
    return [
        *([_micro_batch_change(config)] if is_update else []),
        *_colour_change(situation),
        *([batch, rollout] if is_update else [rollout, batch]),
        ("env.n_envs", changes.smaller_n_envs(config)),
        *_size_change(situation),
    ]


def _vram_changes(situation: Situation) -> list[_Change]:
    """Of GPU memory, which a gradient step fills, and a replay that is there."""
    config = situation.config
    batch: _Change = ("algorithm.batch_size", changes.smaller_batch_sizes(config))
    replay: list[_Change] = []
    if is_storage_on_gpu(config):
        replay = [("algorithm.replay.device", ["cpu"]), _storage_change(config)]
    return [
        _micro_batch_change(config),
        *_colour_change(situation),
        *replay,
        batch,
        *_size_change(situation),
    ]


def _disk_changes(situation: Situation) -> list[_Change]:
    keep_last, episodes = (
        situation.config.checkpoints.keep_last,
        situation.config.recording.episodes,
    )
    return [
        ("checkpoints.keep_last", range(keep_last - 1, 0, -1)),
        ("recording.episodes", range(episodes - 1, -1, -1)),
        *_size_change(situation),
    ]


def _shorter_rollout(config: RunConfig, episode_timesteps: int) -> Fix | None:
    """About one episode of each env, in whole batches."""
    assert not isinstance(config.algorithm, DQNConfig)
    unit = changes.n_steps_unit(config)
    target = max(_SHORTEST_ROLLOUT, 2 ** (max(1, episode_timesteps).bit_length() - 1))
    for n_steps in (target // unit * unit, -(-target // unit) * unit):
        fix = Fix("algorithm.n_steps", n_steps)
        if 0 < n_steps < config.algorithm.n_steps and changes.apply_fix(config, fix) is not None:
            return fix
    return None


# ---- words ---------------------------------------------------------------------------------------


def _largest(phase: Phase) -> str:
    part = max(phase.parts, key=lambda part: part.bytes)
    return f"{part.name} ({format_bytes(part.bytes)})"


def _margin_note(result: verdict.Verdict) -> str:
    return "" if result == "does_not_fit" else ", which leaves no margin for other programs"


def _same_learning_note(fix: Fix | None) -> str:
    if fix is None or fix.key != "algorithm.micro_batch_size":
        return ""
    return (
        f"; batches in parts of {fix.value} learn the same: the gradient is that of the whole batch"
    )


def _rollout_note(config: RunConfig, fix: Fix) -> str:
    """More envs at the same n_steps make longer rollouts; what would keep them as they are."""
    changed = changes.apply_fix(config, fix) if fix.key == "env.n_envs" else None
    if changed is None or isinstance(config.algorithm, DQNConfig):
        return ""
    unit = changes.n_steps_unit(changed)
    n_steps = config.rollout_timesteps // changed.env.n_envs // unit * unit
    if n_steps == 0:
        return ""
    return (
        f" (with algorithm.n_steps={n_steps} as well, a rollout has "
        f"{n_steps * changed.env.n_envs:,} timesteps instead of {changed.rollout_timesteps:,})"
    )
