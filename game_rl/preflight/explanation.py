"""Every check of a run with the numbers that it compared, also where it found nothing."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from game_rl.preflight import calibration, findings
from game_rl.preflight.estimate import Situation
from game_rl.preflight.findings import CHECKS, Check, Finding
from game_rl.preflight.footprint import GpuFootprint, comfortable_ram_bytes
from game_rl.preflight.memory import replay_gpu
from game_rl.system.units import format_bytes
from game_rl.vec_env.workers import training_workers


@dataclass(frozen=True)
class Compared:
    """What a check compares.

    Attributes:
        text: the numbers or settings.
        applies: whether the run has what the check is about; if not, `text` says what is missing.
    """

    text: str
    applies: bool = True


@dataclass(frozen=True)
class CheckResult:
    """A check of a run or an experiment, and what came of it.

    Attributes:
        name: name of the check; those of an experiment's runs have `member.` or `learner.` before
            it.
    """

    name: str
    comparison: Compared
    finding: Finding | None

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
    return tuple(
        CheckResult(find.__name__, COMPARISONS[find](situation), find(situation)) for find in CHECKS
    )


def render_checks(checks: tuple[CheckResult, ...]) -> Table:
    """Render the checks for people, in their order, one a row."""
    styles = {"found": "yellow", "holds": "green", "does_not_apply": "dim"}
    table = Table(box=None, pad_edge=False, title="checks", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in checks:
        words = check.outcome.replace("_", " ")
        table.add_row(Text(words, styles[check.outcome]), check.name, Text(check.comparison.text))
    return table


def _gpus(situation: Situation) -> str:
    n = len(situation.machine.gpus)
    return f"{n} GPU{'' if n == 1 else 's'} of the machine"


def _network_gpu(situation: Situation) -> Compared:
    device = situation.config.device
    if not device.startswith("cuda"):
        return Compared(f"device is {device}, which names no GPU", applies=False)
    return Compared(f"device {device} against {_gpus(situation)}")


def _replay_gpu(situation: Situation) -> Compared:
    gpu = replay_gpu(situation.config)
    if gpu is None:
        return Compared("there is no replay on a GPU", applies=False)
    return Compared(f"the replay's GPU cuda:{gpu} against {_gpus(situation)}")


def _ram(situation: Situation) -> Compared:
    peak = situation.footprint.ram.peak
    machine = situation.machine
    return Compared(
        f"{format_bytes(peak.bytes)} in the phase {peak.name!r} against "
        f"{format_bytes(machine.ram_available_bytes)} available, or "
        f"{format_bytes(round(comfortable_ram_bytes(machine)))} with the margin for other programs "
        f"({calibration.RAM_MARGIN_FRACTION:.0%} and {format_bytes(calibration.RAM_MARGIN_BYTES)})"
    )


def _vram(situation: Situation) -> Compared:
    if situation.footprint.vram is None:
        return Compared("the network is on the CPU", applies=False)
    return _gpu_memory(situation, situation.footprint.vram)


def _replay_vram(situation: Situation) -> Compared:
    if situation.footprint.replay_vram is None:
        return Compared("there is no replay on a second GPU", applies=False)
    return _gpu_memory(situation, situation.footprint.replay_vram)


def _gpu_memory(situation: Situation, vram: GpuFootprint) -> Compared:
    free = situation.machine.gpu_free_bytes(vram.gpu)
    return Compared(
        f"{format_bytes(vram.peak.bytes)} against {format_bytes(free)} free on cuda:{vram.gpu}, "
        f"{calibration.VRAM_MARGIN_FRACTION:.0%} of which is the margin"
    )


def _disk(situation: Situation) -> Compared:
    disk = situation.footprint.disk
    return Compared(
        f"at least {format_bytes(disk.minimum_bytes)}, better "
        f"{format_bytes(disk.recommended_bytes)}, against "
        f"{format_bytes(situation.machine.disk_room_bytes)} free"
    )


def _lake(situation: Situation) -> Compared:
    disk = situation.footprint.disk
    if situation.config.lake is None:
        return Compared("the run writes no Lake", applies=False)
    if disk.lake_bytes is None:
        return Compared("the Lake was not measured: --probe measures it", applies=False)
    return Compared(
        f"a Lake of {format_bytes(disk.lake_bytes)} on the disk of the run, of which "
        f"{format_bytes(situation.machine.disk_room_bytes)} are free"
    )


def _own_rows(situation: Situation) -> Compared:
    algorithm = situation.config.algorithm
    settings = algorithm.learn_from
    if settings is None:
        return Compared("the run does not learn from Lakes", applies=False)
    if algorithm.teacher is not None:
        return Compared("the run has a teacher", applies=False)
    least = findings.LEAST_OWN_SHARE
    return Compared(f"{settings.most_own_share:.0%} of own play in a batch against {least:.0%}")


def _rollout(situation: Situation) -> Compared:
    config = situation.config
    probe = situation.probe
    n_steps = config.algorithm.n_steps
    if n_steps is None:
        return Compared(f"{config.algorithm.name} has no rollouts", applies=False)
    longest = f"max_episode_timesteps, {config.env.most_episode_timesteps or 0:,}"
    if probe is not None:
        longest = f"{findings.EPISODES_IN_A_ROLLOUT} random episodes of {round(probe.median):,}"
    return Compared(f"n_steps, {n_steps:,}, against {longest}")


def _colour(situation: Situation) -> Compared:
    colour = situation.config.env.observation.colour
    shades = "four shades of grey" if situation.facts.four_shades else "colours"
    return Compared(f"env.observation.colour is {colour}, and the game has {shades}")


def _capacity(situation: Situation) -> Compared:
    replay = situation.config.algorithm.replay
    if replay is None:
        return Compared(f"{situation.config.algorithm.name} has no replay", applies=False)
    timesteps = situation.footprint.training.final_timesteps
    return Compared(f"room for {replay.capacity:,} timesteps against the {timesteps:,} of the run")


def _lake_capacity(situation: Situation) -> Compared:
    lake = situation.config.lake
    if lake is None or lake.path is not None:
        return Compared("the run has no Lake of its own", applies=False)
    if lake.capacity_transitions is None:
        return Compared("lake.capacity_transitions is not set", applies=False)
    timesteps = situation.footprint.training.final_timesteps
    return Compared(
        f"room for {lake.capacity_transitions:,} timesteps against the {timesteps:,} of the run"
    )


def _workers(situation: Situation) -> Compared:
    env = situation.config.env
    cpus = situation.machine.cpus
    workers = training_workers(env.n_workers, n_envs=env.n_envs, cpus=situation.facts.cpus)
    return Compared(
        f"{workers} processes with emulators against {cpus} CPU{'' if cpus == 1 else 's'}"
    )


def _restarts(situation: Situation) -> Compared:
    exploration = situation.config.algorithm.exploration
    if exploration is None or not exploration.restarts:
        return Compared("exploration does not restart", applies=False)
    n = len(exploration.restarts)
    return Compared(
        f"{n} restart{'' if n == 1 else 's'} against the usual share of random actions there, "
        "the length of a rollout and the run's end"
    )


def _torch(situation: Situation) -> Compared:
    build = situation.machine.imports.cuda
    name = "CPUs" if build is None else f"CUDA {build}"
    return Compared(f"torch is built for {name}, against {_gpus(situation)}")


def _own_parts(situation: Situation) -> Compared:
    count = len(situation.config.custom_parts)
    if not count:
        return Compared(
            "callbacks and env.wrappers are empty, and algorithm.network is no class", applies=False
        )
    return Compared(
        f"{count} part{'' if count == 1 else 's'} in callbacks, env.wrappers and algorithm.network"
    )


def _changes(situation: Situation) -> Compared:
    count = len(situation.facts.game_changes)
    if not count:
        return Compared("start states neither write nor hold values", applies=False)
    return Compared(f"{count} start state{'' if count == 1 else 's'} with write or hold_values")


def _longest_timestep(situation: Situation) -> Compared:
    frames = situation.facts.longest_wait_frames
    if not frames:
        return Compared("no timestep waits for `step.until`", applies=False)
    return Compared(
        f"{frames:,} frames in each of {findings.envs_of_a_worker(situation)} envs of a worker, "
        f"some {findings.longest_timestep_s(situation):,.0f} s, against "
        f"{situation.config.env.worker_timeout_s:g} s of env.worker_timeout_s"
    )


def _parts(situation: Situation) -> Compared:
    form = situation.facts.observation_format(situation.config)
    if not form.is_dict:
        return Compared("an observation is the screens alone", applies=False)
    in_network = f"{form.nbytes:,} bytes as the network gets it"
    return Compared(
        f"bytes of each part of a timestep as stored: {findings.part_bytes_in_words(form)}; an "
        f"observation is {in_network}"
    )


COMPARISONS: Mapping[Check, Callable[[Situation], Compared]] = {
    findings.gpu_missing: _network_gpu,
    findings.replay_gpu_missing: _replay_gpu,
    findings.ram_short: _ram,
    findings.vram_short: _vram,
    findings.replay_vram_short: _replay_vram,
    findings.disk_short: _disk,
    findings.lake_outgrows_disk: _lake,
    findings.few_own_rows: _own_rows,
    findings.n_steps_is_no_episode_length: _rollout,
    findings.colour_of_four_shades: _colour,
    findings.replay_is_never_full: _capacity,
    findings.lake_is_never_full: _lake_capacity,
    findings.machine_under_used: _workers,
    findings.restart_without_effect: _restarts,
    findings.torch_for_cuda: _torch,
    findings.own_parts_not_counted: _own_parts,
    findings.game_is_changed: _changes,
    findings.step_may_outlast_workers: _longest_timestep,
    findings.observation_has_parts: _parts,
}
"""What each of `findings.CHECKS` compares; a test holds that none is missing."""
