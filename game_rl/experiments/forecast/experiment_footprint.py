"""What an experiment takes of a machine: memory, disk, time."""

from dataclasses import dataclass
from functools import cached_property

from game_rl.config.experiments.executor_config import ExecutorConfig, RayExecutorConfig
from game_rl.config.experiments.experiment import Experiment, ExperimentConfig
from game_rl.config.schema import RunConfig
from game_rl.experiments.forecast.experiment_disk import ExperimentDisk, GenerationRow, stretches
from game_rl.lake.lake_pool import VIEW_BYTES
from game_rl.preflight import calibration
from game_rl.preflight.disk_plan import DiskPlan
from game_rl.preflight.footprint import comfortable_ram_bytes
from game_rl.preflight.preflight import PreflightReport
from game_rl.preflight.workload import ExperimentSpeed, MeasuredSpeed, playing_s
from game_rl.system.machine import Machine
from game_rl.system.processes import CAN_FORK

_JOB_S = 1.3  # fork a process, read a checkpoint, leave a result; for two at once on two cores
_DECISION_S = 1.0  # write the record, and make the copies


@dataclass(frozen=True)
class Duration:
    """The duration of an experiment, in seconds.

    Attributes:
        members_s: time of the members in all generations; they take turns on the slots.
        learner_s: time of the learner's runs in all generations.
        champion_s: time of the episodes that choose the champion and that it plays afterwards.
        at_once: whether the learner trains at the same time as the members, and not after them.
    """

    members_s: float
    learner_s: float
    champion_s: float
    at_once: bool = False

    @property
    def wall_s(self) -> float:
        both = (self.members_s, self.learner_s)
        return (max(both) if self.at_once else sum(both)) + self.champion_s


def duration(
    experiment: Experiment,
    member: PreflightReport,
    learner: PreflightReport | None,
    measured: ExperimentSpeed | None,
    slots: int,
    episode_timesteps: float,
) -> Duration | None:
    """Estimate the duration of an experiment; None without a measurement of the machine.

    The final evaluation of a run does not count: members and learner do not play it.

    Args:
        member: report with the measured speed.
        learner: report with the measured speed, or None without a learner.
        slots: members that train at once.
        episode_timesteps: mean length of an episode.
    """
    if measured is None:
        return None
    config = experiment.config
    run = experiment.run
    speed = measured.member
    start_s = speed.start_s + _JOB_S
    learning_s = _training_s(run, member, speed, episode_timesteps) / stretches(config)
    turns = -(-config.members // slots)
    members_s = config.generations * (turns * (start_s + learning_s) + _DECISION_S)
    if config.train_on is not None:
        more = config.train_on.timesteps / config.timesteps_per_generation
        members_s += start_s + more * learning_s + _DECISION_S
    episodes = config.champion.episodes
    chosen_s = playing_s(run.evaluation, episodes, speed, episode_timesteps=episode_timesteps)
    has_extra_run = experiment.learner is not None or config.train_on is not None
    turns = -(-(config.champion.candidates + has_extra_run) // slots) + 1
    learner_s = 0.0
    if experiment.learner is not None:
        assert learner is not None
        assert measured.learner is not None
        alone = measured.learner
        once_s = _training_s(experiment.learner, learner, alone, episode_timesteps)
        learner_s = config.generations * (alone.start_s + _JOB_S + once_s)
    return Duration(members_s, learner_s, turns * (start_s + chosen_s), config.rule == "live")


def _training_s(
    run: RunConfig, report: PreflightReport, measured: MeasuredSpeed, episode_timesteps: float
) -> float:
    """Return the time of a whole run, without its start and its final evaluation.

    Its baselines, which are part of the start, are not played by members and learners.
    """
    assert report.speed is not None
    episodes = run.evaluation.final_episodes
    final_s = playing_s(run.evaluation, episodes, measured, episode_timesteps=episode_timesteps)
    return report.speed.wall_s - report.speed.seconds["start"] - final_s


CONTROLLER_BYTES = 70_000_000  # its resident size after generations of members
# What the process that has loaded torch, and forks the local members, takes in addition to what it
# shares with them, because both write to a part of it. 1, 2 and 4 members of duel_population, each
# of which would take 529 MB alone, took 680, 880 and 1,270 MB with their controller: 480 MB, and
# 197 MB a member.
LOADING_BYTES = 80_000_000
RAY_CONTROLLER_BYTES = 120_000_000  # the controller's size with Ray loaded
RAY_NODE_BYTES = 400_000_000  # Ray's own processes on a node that is also the head
RAY_WORKER_BYTES = 80_000_000
STORAGE_BYTES = 40_000_000  # obstore and its buffers, measured with three files of 30 MB to S3


def is_on_nodes(executor: ExecutorConfig) -> bool:
    """Whether members train on the nodes of an existing cluster instead of on this machine."""
    return isinstance(executor, RayExecutorConfig) and not executor.starts_cluster


def loaded_once_bytes(machine: Machine) -> int:
    """Return what local members take only once, as a process forks them that has loaded torch.

    Where processes are not forked, each member takes everything.
    """
    if not CAN_FORK:
        return 0
    return machine.imports.bytes + calibration.FORKSERVER_BYTES


def controller_bytes(executor: ExecutorConfig, machine: Machine) -> int:
    """Return the memory of everything that runs once, whatever the number of members."""
    if isinstance(executor, RayExecutorConfig):
        return RAY_CONTROLLER_BYTES + RAY_NODE_BYTES + (STORAGE_BYTES if executor.storage else 0)
    loading = LOADING_BYTES if CAN_FORK else 0
    return CONTROLLER_BYTES + loading + loaded_once_bytes(machine)


def task_bytes(executor: ExecutorConfig, machine: Machine) -> int:
    """Return the memory that each member takes in addition to a run of its own.

    It is that of Ray's worker; on the local executor it is negative, as members share what they
    have loaded.
    """
    if isinstance(executor, RayExecutorConfig):
        return RAY_WORKER_BYTES + (STORAGE_BYTES if executor.storage else 0)
    return -loaded_once_bytes(machine)


def slots_by_memory(
    report: PreflightReport, machine: Machine, *, beside_all_bytes: int, beside_each_bytes: int = 0
) -> int:
    """Return how many runs like that of `report` fit comfortably in RAM and VRAM; may be 0.

    Args:
        beside_all_bytes: RAM that is taken once, whatever the number of runs.
        beside_each_bytes: RAM that each run takes in addition to its peak; may be negative.
    """
    free = comfortable_ram_bytes(machine) - beside_all_bytes
    slots = int(free // (report.footprint.ram.peak.bytes + beside_each_bytes))
    vram = report.footprint.vram
    if vram is None:
        return slots
    room = (1 - calibration.VRAM_MARGIN_FRACTION) * machine.gpu_free_bytes(vram.gpu)
    return min(slots, int(room // vram.peak.bytes))


def slots_of(config: ExperimentConfig, member: PreflightReport, machine: Machine) -> int:
    """Return the number of members that train at once.

    It is the config's or, if that is "auto", as many as CPUs and memory allow. A node of a cluster
    never gets more than it has room for. In a live mixture, all members train at once.
    """
    if config.rule == "live":
        return config.members
    wanted = config.executor.parallel
    executor = config.executor
    most = config.members if wanted == "auto" else min(wanted, config.members)
    if wanted != "auto" and not is_on_nodes(executor):
        return most
    by_cpus = machine.cpus // config.cpus_per_member
    return max(1, min(most, by_cpus, member_slots_by_memory(executor, member, machine)))


def member_slots_by_memory(
    executor: ExecutorConfig, member: PreflightReport, machine: Machine
) -> int:
    return slots_by_memory(
        member,
        machine,
        beside_all_bytes=controller_bytes(executor, machine),
        beside_each_bytes=task_bytes(executor, machine),
    )


@dataclass(frozen=True)
class ExperimentFootprint:
    """What an experiment takes of a machine.

    Attributes:
        member: report on one member, alone on the machine with the CPUs that it gets.
        slots: members that train at once.
        disk: what is on the disk.
        duration: duration of the experiment; None if the machine was not measured.
        gpus_per_member: GPUs that a member requests from a cluster.
        learner: report on the learner, or None without one.
    """

    config: ExperimentConfig
    machine: Machine
    member: PreflightReport
    slots: int
    disk: ExperimentDisk
    duration: Duration | None = None
    gpus_per_member: float = 0.0
    learner: PreflightReport | None = None

    @property
    def is_live(self) -> bool:
        """Whether the learner trains at the same time as the members."""
        return self.config.rule == "live"

    @property
    def ram_bytes(self) -> int:
        """Memory of the members that train at once or, if it is more, of the learner alone.

        In a live mixture, it is that of all members and the learner.
        """
        if self.is_live:
            assert self.learner is not None
            learner = self.learner.footprint.ram.peak.bytes + self._task_bytes
            return self.members_ram_bytes + learner + VIEW_BYTES  # a second view, on renewal
        alone = self.largest_run_bytes + self._task_bytes
        return max(self.members_ram_bytes, alone + self._controller_bytes)

    @property
    def runs_at_once(self) -> int:
        """Runs that train at once: members and, in a live mixture, the learner."""
        return self.slots + self.is_live

    @property
    def members_ram_bytes(self) -> int:
        each = self.member.footprint.ram.peak.bytes + self._task_bytes
        return self.slots * each + self._controller_bytes

    @property
    def _task_bytes(self) -> int:
        return task_bytes(self.config.executor, self.machine)

    @property
    def _controller_bytes(self) -> int:
        return controller_bytes(self.config.executor, self.machine)

    @property
    def largest_run_bytes(self) -> int:
        """The larger one of a member's and the learner's peak memory."""
        runs = (self.member, self.learner or self.member)
        peaks: list[int] = [run.footprint.ram.peak.bytes for run in runs]
        return max(peaks)

    @property
    def is_of_a_node(self) -> bool:
        """Whether `machine` stands for each node of a cluster, as all are assumed to be like it."""
        return is_on_nodes(self.config.executor)

    @cached_property
    def plan(self) -> DiskPlan:
        """The plan of the disk."""
        took = self.duration

        def after_s(generation: int) -> float | None:
            if took is None:
                return None
            return generation * ((took.wall_s - took.champion_s) / self.config.generations)

        return self.disk.plan(self.machine.installation_bytes, after_s)

    @property
    def growth(self) -> tuple[GenerationRow, ...]:
        """The folder's size after each generation."""
        return self.disk.rows

    @property
    def momentary_bytes(self) -> int:
        """Disk space needed for a while, in addition to the last row of `growth`."""
        return self.disk.momentary_bytes

    @property
    def lacks_disk(self) -> bool:
        return self.plan.minimum_bytes > self.machine.disk_free_bytes

    @property
    def vram_bytes(self) -> int:
        vram = self.member.footprint.vram
        members = 0 if vram is None else self.slots * vram.peak.bytes
        if self.is_live and self.learner is not None and self.learner.footprint.vram is not None:
            return members + self.learner.footprint.vram.peak.bytes
        return members

    @property
    def lacks_memory(self) -> bool:
        return self.ram_bytes > self.machine.ram_available_bytes or self.lacks_vram

    @property
    def lacks_vram(self) -> bool:
        vram = self.member.footprint.vram
        room = 0 if vram is None else self.machine.gpu_free_bytes(vram.gpu)
        return self.vram_bytes > room

    @property
    def disk_bytes(self) -> int:
        return self.growth[-1].total
