"""The run config, and the checks that its sections agree.

A config is frozen. Only code down to the `make_*` functions sees it: what they build takes plain
arguments. Editors show the docstrings of the fields, through `configs/run.schema.json`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from game_rl.config.algorithms import LEAST_VALIDATION_EPISODES, AlgorithmConfig, PPOConfig
from game_rl.config.custom_part import CustomPart, PartItems, parts_of
from game_rl.config.diagnosis import DiagnosedModel
from game_rl.config.key_hints import KEY_HINTS
from game_rl.config.learn_from import CloningConfig, OfflineConfig
from game_rl.config.network import NATURE, SMALLEST_SIDES, Network, NetworkConfig, own_network
from game_rl.config.output_config import (
    EpisodesConfig,
    LiveConfig,
    LoggingConfig,
    MonitoringConfig,
    RecordingConfig,
    UploadConfig,
)
from game_rl.config.pool_config import PoolConfig
from game_rl.config.strict_model import Key, Problem, Role, RunSection, StrictModel, with_changed
from game_rl.config.values import (
    Count,
    Name,
    Positive,
    Processes,
    RunAt,
    Timesteps,
    Weight,
    named_folder,
)
from game_rl.errors import ConfigError
from game_rl.statistics import MOST_BATCHES

MOST_FRAME_SKIP = 600
"""The most emulator frames that a timestep can have."""

_FULL_HEIGHT = 144  # a Game Boy's screen in pixels
_FULL_WIDTH = 160


class ObservationConfig(StrictModel):
    """What the agent sees: the screen in some resolution and colours, and parts of the game."""

    size: Literal["full", "half"] = "half"
    """full: every pixel (160x144 if the game crops nothing). half: the mean of each block of 2x2
    pixels."""
    colour: Literal["grey", "rgb"] = "grey"
    """grey: one channel, lossless for the four shades of a DMG game. rgb: three channels."""
    screen: bool = True
    """Whether the agent sees the screen. false: it sees parts only, and nothing is drawn in
    training, which is faster."""
    parts: tuple[Name, ...] = ()
    """Names of parts in game.yaml that the agent sees, such as [status, visited]."""

    def problems(self) -> Iterator[Problem]:
        if not self.screen and not self.parts:
            yield Problem(
                ("screen",),
                "false, and there are no parts, so the agent would see nothing; name parts of "
                "game.yaml in env.observation.parts, or remove the line",
                reads=(("parts",),),
            )
        for index, name in enumerate(self.parts):
            if name == "screen":
                yield Problem(
                    ("parts", str(index)),
                    "the screen is not a part of game.yaml: env.observation.screen says whether "
                    "the agent sees it; remove the name",
                )
            elif name in self.parts[:index]:
                yield Problem(("parts", str(index)), f"{name} is named twice; remove one")


class GrowingLimit(StrictModel):
    """A limit that grows with a variable: min(most, start + add x growth).

    Growth is by how much the variable has grown since the episode started, at least 0.
    """

    start: Timesteps
    """Limit of an episode in which the variable does not grow."""
    add: Timesteps
    """Timesteps that the limit grows by for each 1 that the variable grows."""
    per: Name
    """Name of a variable in game.yaml."""
    most: Timesteps
    """Limit above which it does not grow."""

    def problems(self) -> Iterator[Problem]:
        if self.most < self.start:
            yield Problem(
                ("most",),
                f"most is {self.most:_}, below start, {self.start:_}; make it larger, or write a "
                "limit that does not grow, as a number",
                reads=(("start",),),
            )

    def after(self, growth: float) -> float:
        """Return the limit when the variable has grown by so much."""
        return min(self.most, self.start + self.add * max(0, growth))


def _absolute(path: Path) -> Path:
    """Make the path absolute, as a resume may have another current folder."""
    return named_folder(path).absolute()


class PotentialReward(StrictModel):
    """A reward for getting closer to the game's end along the way that an exploration has found."""

    potential: Annotated[Path, AfterValidator(_absolute), Field(examples=["explored"])]
    """Folder that `game-rl explore` has written to, relative to the current folder. Its cells say
    how many timesteps there are to go: to success or, if it never reached success, to the highest
    reward. The run saves what it needs of it when it starts."""
    weight: Annotated[float, Field(gt=0, examples=[0.02])]
    """Reward for each timestep by which the agent comes closer to that end. It loses the same
    amount for each timestep by which it moves away."""


class EnvConfig(RunSection):
    """The emulators, and how an episode is played on them."""

    n_envs: Annotated[Processes, Role.LEARNING] = 8
    """Number of emulators that play at once. One vec step is one timestep in each of them."""
    n_workers: Annotated[Processes | None, Role.SPEED] = None
    """Number of processes that run the emulators, at most n_envs. null: in training 2 x (CPUs - 1),
    at least 2; in an evaluation one for each CPU."""
    frame_skip: Annotated[int, Field(ge=1, le=MOST_FRAME_SKIP), Role.SEEN] = 4
    """Number of emulator frames in one timestep; 4 frames are 1/15 s. An action holds its buttons
    for all of them, unless game.yaml says otherwise."""
    frame_stack: Annotated[int, Field(ge=1, le=64), Role.SEEN] = 4
    """Number of latest frames, one a timestep, that the agent sees together, so that it can see
    motion."""
    max_episode_timesteps: Annotated[Timesteps | GrowingLimit | None, Role.GAME] = 1_000
    """Number of timesteps after which an episode is cut off (truncated). A section lets it grow
    with a variable of the game, so that an episode lasts longer while the agent makes progress."""
    start_states: Annotated[
        Annotated[tuple[Name, ...], Field(min_length=1)]
        | Annotated[dict[Name, Weight], Field(min_length=1)]
        | None,
        Role.GAME,
    ] = None
    """Names of start states in game.yaml. Each episode starts in one of them, in training and in
    evaluations. [shore, caves]: sampled uniformly. {shore: 1, caves: 3}: sampled by weight, here
    three of four in caves. null: all of them, uniformly."""
    pool: Annotated[PoolConfig | None, Role.LEARNING] = None
    """Saved states in which training episodes may start, in addition to the start states; null:
    none."""
    max_idle_frames: Annotated[int, Field(ge=0, le=100_000), Role.GAME] = 30
    """Largest number of frames without buttons at the start of an episode. The number is sampled
    uniformly from 0 to this."""
    sticky_actions: Annotated[float, Field(ge=0, lt=1), Role.SEEN] = 0.0
    """Probability that a timestep repeats the action of the one before, whatever the agent chose
    (Machado et al. 2018 use 0.25), so that an agent cannot memorise a sequence of buttons. In
    evaluations, too. 0: never."""
    observation: Annotated[ObservationConfig, Role.SEEN] = ObservationConfig()
    """What the agent sees: the screen in some resolution and colours, and parts of the game."""
    worker_timeout_s: Annotated[float, Field(gt=0, le=86_400), Role.SPEED] = 60.0
    """Seconds without an answer after which a worker process counts as hung."""
    rewards: Annotated[dict[Name, PotentialReward], Role.GAME] = Field(default={})
    """Rewards in addition to those of game.yaml, such as {progress: {potential: explored, weight:
    0.02}}. They count in training and in evaluations."""
    wrappers: Annotated[PartItems, Field(examples=[["my_wrappers:Penalty"]]), Role.SEEN] = ()
    """Gymnasium wrappers of your own around each env, the innermost first, as module:Class or
    {module:Class: {name: value}} with arguments. The module is a .py file next to this one or in
    the current folder, or is installed. It runs with your rights. A wrapper must keep both
    spaces."""

    @property
    def most_episode_timesteps(self) -> int | None:
        """The largest number of timesteps that an episode can have; None if nothing limits it."""
        limit = self.max_episode_timesteps
        return limit.most if isinstance(limit, GrowingLimit) else limit

    def starting_in(self, names: Sequence[str] | None) -> "EnvConfig":
        """Return this config with the start states in which episodes begin; None: as it is."""
        return self if names is None else with_changed(self, {("start_states",): tuple(names)})

    @property
    def custom_wrappers(self) -> tuple[CustomPart, ...]:
        """The wrappers with their keys, the innermost first."""
        return parts_of(self.wrappers, "env", "wrappers")


class EvaluationConfig(RunSection):
    """Evaluations of the agent. The checkpoint of the best one so far is kept."""

    every_timesteps: Annotated[Timesteps, Role.BUDGET] = 50_000
    """Evaluate at the first update after each multiple of this number of timesteps, counted over
    all envs."""
    episodes: Annotated[Count, Role.BUDGET] = 20
    """Number of episodes in one evaluation."""
    final_episodes: Annotated[Count, Role.BUDGET] = 100
    """Number of episodes in the evaluation at the end of the run."""
    n_envs: Annotated[Processes, Role.LEARNING] = 4
    """Number of emulators for evaluations, in addition to those of the training."""
    deterministic: Annotated[bool | Literal["auto"], Role.LEARNING] = "auto"
    """true: the policy takes its most probable action (deterministic). false: it samples an
    action, as in training (stochastic). auto: PPO plays in both ways and the better one counts;
    DQN and PQN are deterministic. Stochastic counts as better only if its mean reward is higher
    by more than one standard error."""

    seed: Annotated[Annotated[int, Field(ge=0, le=2**31 - 1)] | None, Role.RANDOM] = None
    """Seed of the episodes of evaluations during training; null: derived from the run's seed. After
    a change, the best evaluation so far no longer counts, because it played other episodes."""

    baselines: Annotated[bool, Role.OUTPUT] = True
    """Before the training, play random actions and the best constant action, up to 20 episodes of
    each and 10 seconds in all, to compare the agent with. They have no effect on the training."""

    def envs_for(self, episodes: int) -> int:
        """Return the number of emulators for so many episodes, at most one for each."""
        return min(self.n_envs, episodes)


class CheckpointsConfig(RunSection):
    """Saved states from which the run can be resumed exactly."""

    every_timesteps: Annotated[Timesteps, Role.OUTPUT] = 100_000
    """Save at the first update after each multiple of this number of timesteps, counted over all
    envs."""
    keep_last: Annotated[Count, Role.OUTPUT] = 3
    """Number of newest checkpoints to keep, in addition to the best one. Older ones are deleted."""
    keep_every_timesteps: Annotated[Timesteps | None, Role.OUTPUT] = None
    """Also keep, for good, the first checkpoint after each multiple of this number of timesteps;
    null: no others."""
    deadline_s: Annotated[float, Field(gt=0, le=86_400), Role.OUTPUT] = 25.0
    """Longest time in seconds from SIGTERM, SIGINT, SIGHUP or SIGUSR1 to the run's last
    checkpoint. If updates take longer, the run saves after each of them."""
    save_replay_buffer: Annotated[bool, Role.OUTPUT] = False
    """Save DQN's replay with each checkpoint, so that a resumed run need not play to fill it
    again."""


class ForkConfig(StrictModel):
    """A fork: the run starts from a checkpoint of another run, its parent, which stays as it is."""

    run: Annotated[RunAt, Field(examples=["runs/duel_ppo@50176"])]
    """The parent's folder, with @T for its checkpoint of timestep T; without @T the newest one. Or
    an agent that comes with game_rl, such as pretrained:duel, or one from game-rl pull."""
    optimiser: Literal["keep", "new"] = "keep"
    """keep: take over the parent's moments. new: moments start at zero, which another algorithm
    needs."""
    counters: Literal["keep", "new"] = "keep"
    """keep: timesteps, schedules and curves continue from T, and total_timesteps counts from the
    parent's beginning. new: the run starts at timestep 0 with the parent's weights. If it has
    algorithm.learn_from.offline or played.clone, it goes through that phase first."""
    weight_noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Standard deviation of Gaussian noise that is added to the weights of each layer, in units of
    their root mean square. It is drawn from the run's seed. Biases and normalisations get no noise.
    0: no noise."""


def _folder(path: Path) -> Path:
    if path.name.lower() in {"yes", "no", "on", "off", "true", "false"}:
        raise ValueError(
            f"{path} is not a folder; write lake: {{}} for the folder lake in run_dir, or a path "
            "such as runs/lake"
        )
    return _absolute(path)


class LakeConfig(RunSection):
    """A Lake (replay on disk) that stores every timestep of the training."""

    path: Annotated[Annotated[Path, AfterValidator(_folder)] | None, Role.OUTPUT] = None
    """Folder of the Lake, which several runs may write to; null: the folder lake in run_dir."""
    capacity_transitions: Annotated[Annotated[Timesteps, Field(ge=1_000)] | None, Role.LEARNING] = (
        None
    )
    """Largest number of timesteps in the Lake. Above it, each env keeps its newest ones, as many as
    every other env; null: no limit."""
    capacity_gb: Annotated[
        Annotated[Positive, Field(ge=0.01, le=1_000_000)] | None, Role.LEARNING
    ] = None
    """Largest size of the Lake on disk, in 10^9 bytes. Above it, the oldest files are deleted;
    null: no limit."""
    on_full: Annotated[Literal["pause", "evict"], Role.LEARNING] = "pause"
    """What the Lake does when the disk is nearly full. pause: it stops growing. evict: it deletes
    its oldest files."""
    seal_every_timesteps: Annotated[Annotated[Timesteps, Field(ge=1_000)] | None, Role.LEARNING] = (
        None
    )
    """Number of timesteps after which new ones are sealed, so that other processes can read them.
    null: they are sealed only at checkpoints and when a file is full."""
    compression_level: Annotated[int, Field(ge=1, le=19), Role.OUTPUT] = 9
    """Level of zstd for a new Lake, from 1 (fast) to 19 (small); a Lake that exists keeps its own.
    game-rl preflight --probe measures what each level costs."""


class StopWhenConfig(StrictModel):
    """Conditions under which the run ends before total_timesteps. Any of them is enough."""

    success_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """Success rate that ends the run. It must be reached in the usual evaluations and then in new
    episodes; 0.95 is 95 %."""
    mean_reward: float | None = None
    """Mean reward that ends the run, reached in the same way."""
    evaluations: Count = 2
    """Number of evaluations in a row that must reach success_rate or mean_reward before new
    episodes are played. All evaluations of a run play the same episodes."""
    confirm_episodes: Count = 100
    """Number of new episodes in a batch. After each batch, all new episodes so far decide whether
    the policy has reached it, has not, or must play another batch; the fourth batch decides in any
    case. They are new each time, and played in the way that counted in the evaluation,
    deterministic or stochastic."""
    no_improvement_evaluations: Count | None = None
    """Number of evaluations in a row that may bring no new best mean reward; one more ends the run,
    as with StopTrainingOnNoModelImprovement of Stable-Baselines3."""
    hours: Annotated[Positive, Field(le=100_000)] | None = None
    """Hours of training after which the run ends, added up over all resumes."""

    @property
    def in_words(self) -> tuple[str, ...]:
        """Return a description of each condition."""
        return tuple(
            text.format(value)
            for value, text in (
                (self.success_rate, f"a success rate of {{:g}} {self._proof}"),
                (self.mean_reward, f"a mean reward of {{:g}} {self._proof}"),
                (self.no_improvement_evaluations, _NO_IMPROVEMENT),
                (self.hours, "{:g} h of training"),
            )
            if value is not None
        )

    @property
    def _proof(self) -> str:
        times = "an evaluation"
        if self.evaluations > 1:
            times = f"{self.evaluations:,} evaluations in a row"
        most = MOST_BATCHES * self.confirm_episodes
        return f"in {times} and in {self.confirm_episodes:,} to {most:,} new episodes"

    def problems(self) -> Iterator[Problem]:
        if not self.in_words:
            yield Problem(
                (),
                "has no condition, so it would never end the run; write success_rate, mean_reward, "
                "no_improvement_evaluations or hours, or stop_when: null",
            )


def _device(value: object) -> object:
    if value in ("mps", "gpu", "xpu", "hip", "rocm"):
        raise ValueError(
            f"found {value}; write auto, cpu, cuda:0 or another number: cuda is a GPU of NVIDIA's, "
            "or of AMD's with torch for ROCm, and a Mac's GPU is not used"
        )
    return value


class RunConfig(DiagnosedModel, RunSection):
    """One training run."""

    key_hints: ClassVar[dict[str, str]] = KEY_HINTS

    if TYPE_CHECKING:  # run_dir may be text and a section a dict, which fields cannot say

        def __init__(self, /, **keys: Any) -> None: ...  # noqa: ANN401

    game: Annotated[Name, Field(examples=["duel"]), Role.GAME]
    """Name of a bundled game, or path of a game.yaml, relative to this file's folder."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1), Role.RANDOM] = 0
    """Seed of every random choice of the run."""
    total_timesteps: Annotated[Timesteps, Field(examples=[400_000]), Role.BUDGET]
    """Length of the run in timesteps, counted over all envs. The run ends with the update that
    reaches it."""
    stop_when: Annotated[StopWhenConfig | None, Role.BUDGET] = None
    """Conditions under which the run ends before total_timesteps, such as {success_rate: 0.95};
    null: the run plays all its timesteps."""
    run_dir: Annotated[
        Path, Field(examples=["runs/my_run"]), AfterValidator(named_folder), Role.OUTPUT
    ]
    """Folder for all files of this run, relative to the current folder."""
    device: Annotated[
        str,
        Field(pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$", examples=["auto", "cpu", "cuda:0"]),
        BeforeValidator(_device),
        Role.SPEED,
    ] = "auto"
    """Device of the network; auto: the GPU if there is one."""
    fork: Annotated[ForkConfig | None, Role.LEARNING] = None
    """Checkpoint of another run that this run starts from; null: it starts with new weights."""
    env: EnvConfig = EnvConfig()
    """The emulators, and how an episode is played on them."""
    algorithm: AlgorithmConfig = PPOConfig()
    """The algorithm with its settings; ppo if the section has no name."""
    lake: Annotated[LakeConfig | None, Role.LEARNING] = None
    """Lake (replay on disk) that stores every timestep of the training. {}: in the folder lake of
    run_dir; null: no Lake."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Evaluations of the agent. The checkpoint of the best one so far is kept."""
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    """Saved states from which the run can be resumed exactly."""
    recording: Annotated[RecordingConfig, Role.OUTPUT] = RecordingConfig()
    """The clip of the best policy, recorded when training ends."""
    episodes: Annotated[EpisodesConfig | None, Role.OUTPUT] = EpisodesConfig()
    """The log of all episodes, of the training and of evaluations, so that game-rl record can show
    any of them later; null: none are logged."""
    monitoring: Annotated[MonitoringConfig, Role.OUTPUT] = MonitoringConfig()
    """Warnings while the run trains, when little disk or RAM is left on the machine."""
    live: Annotated[LiveConfig, Role.OUTPUT] = LiveConfig()
    """Screens of the training's emulators for `game-rl watch`."""
    logging: Annotated[LoggingConfig, Role.OUTPUT] = LoggingConfig()
    """Files and services that get the training's curves and episodes."""
    upload: Annotated[UploadConfig | None, Role.OUTPUT] = None
    """Upload of the run's checkpoints to object storage or another disk while it trains; null: no
    upload."""
    callbacks: Annotated[PartItems, Field(examples=[["my_callbacks:Lives"]]), Role.LEARNING] = ()
    """Callbacks of your own for Stable-Baselines3, called after the run's, as module:Class or
    {module:Class: {name: value}} with arguments. The module is a .py file next to this one or in
    the current folder, or is installed. It runs with your rights."""

    @property
    def custom_callbacks(self) -> tuple[CustomPart, ...]:
        """The custom callbacks, with their keys."""
        return parts_of(self.callbacks, "callbacks")

    @property
    def custom_networks(self) -> tuple[CustomPart, ...]:
        """The custom features extractor, if there is one."""
        return tuple(own_network(self.algorithm.network))

    @property
    def custom_parts(self) -> tuple[CustomPart, ...]:
        """All custom parts: wrappers, callbacks and the network."""
        return (*self.env.custom_wrappers, *self.custom_callbacks, *self.custom_networks)

    @property
    def rollout_timesteps(self) -> int:
        """Timesteps of all envs together between two updates."""
        return self.algorithm.vec_steps_per_update * self.env.n_envs

    @property
    def evaluation_ways(self) -> tuple[bool, ...]:
        """The values of `deterministic` with which an evaluation is played; drawing comes last."""
        chosen = self.evaluation.deterministic
        if isinstance(chosen, bool):
            return (chosen,)
        return (True, False) if self.algorithm.draws_actions else (True,)

    @property
    def offline(self) -> OfflineConfig | None:
        """The settings of the phase before the first timestep, if there is one."""
        lakes = self.algorithm.lakes
        return None if lakes is None else lakes.offline

    @property
    def clone(self) -> CloningConfig | None:
        """The settings of the imitation before the first timestep, if there is one."""
        played = self.algorithm.played
        return None if played is None else played.clone

    @property
    def learns_before_play(self) -> bool:
        """Whether there is a phase before the first timestep."""
        return self.offline is not None or self.clone is not None

    @property
    def learns(self) -> bool:
        """Whether the network ever learns, before the first timestep or after it."""
        return self.algorithm.learns or self.learns_before_play

    @property
    def validation_episodes(self) -> int:
        """Episodes that student and teacher each play at the end; 0 if they are not compared."""
        teacher = self.algorithm.teacher
        if teacher is None or not teacher.keep_if_better:
            return 0
        return max(LEAST_VALIDATION_EPISODES, self.evaluation.final_episodes)

    def problems(self) -> Iterator[Problem]:
        yield from self.algorithm.problems_in_run(
            n_envs=self.env.n_envs, total_timesteps=self.total_timesteps
        )
        yield from self._algorithm_problems()
        yield from self._lake_problems()
        if self.algorithm.lakes is not None:
            own = None if self.lake is None else self.lake.path or self.run_dir.absolute() / "lake"
            yield from self.algorithm.lakes.problems_in_run(own)
        yield from self._rhythm_problems()
        yield from self._env_problems()

    def _algorithm_problems(self) -> Iterator[Problem]:
        """Check keys of other sections that not every algorithm can have."""
        name = self.algorithm.name
        reads = (("algorithm", "name"),)
        if self.checkpoints.save_replay_buffer and self.algorithm.replay is None:
            yield Problem(
                ("checkpoints", "save_replay_buffer"),
                f"{name} is on-policy: it throws each rollout away after its update "
                "and has no replay buffer to save; remove the line or write false",
                reads,
            )
        if self.evaluation.deterministic is False and not self.algorithm.draws_actions:
            yield Problem(
                ("evaluation", "deterministic"),
                f"{name} has no probabilities to draw an action from: it takes the one with the "
                "highest value; remove the line or write true",
                reads,
            )
        replay = self.algorithm.replay
        if replay is not None and replay.device != "cpu" and self.device == "cpu":
            yield Problem(
                ("algorithm", "replay", "device"),
                "the network is on the CPU (device: cpu), so the replay on a GPU would only be "
                "slower; write replay: {device: cpu}, or device: auto",
                (("device",),),
            )

    def _lake_problems(self) -> Iterator[Problem]:
        """Check what DQN needs of its Lake, from which a resumed run fills its replay again."""
        replay = self.algorithm.replay
        if self.lake is None or replay is None:
            return
        reads = (("algorithm", "name"), ("algorithm", "replay", "capacity"), ("lake",))
        if self.checkpoints.save_replay_buffer:
            yield Problem(
                ("checkpoints", "save_replay_buffer"),
                "the Lake keeps the replay already, and a resumed run fills it again from there; "
                "remove the line, or lake",
                reads,
            )
        capacity = replay.capacity
        most = self.lake.capacity_transitions
        if most is not None and most < 2 * capacity:
            yield Problem(
                ("lake", "capacity_transitions"),
                f"{most:,} is less than twice the replay's capacity, {capacity:,}, which "
                f"a resumed run fills again from the Lake; use at least {2 * capacity:,}, or a "
                "smaller algorithm.replay.capacity",
                reads,
            )

    def _rhythm_problems(self) -> Iterator[Problem]:
        """Check that what happens between updates is not due more often than there are updates."""
        knob = self.algorithm.collected_in
        rollout = self.rollout_timesteps
        reads = (("algorithm", knob), ("env", "n_envs"))
        rhythms = {
            ("total_timesteps",): self.total_timesteps,
            ("evaluation", "every_timesteps"): self.evaluation.every_timesteps,
            ("checkpoints", "every_timesteps"): self.checkpoints.every_timesteps,
        }
        for key, timesteps in rhythms.items():
            if timesteps < rollout:
                yield Problem(
                    key,
                    f"{timesteps:,} is less than one rollout, {knob} x n_envs = {rollout:,}; "
                    f"use at least {rollout:,}, or a smaller algorithm.{knob}",
                    reads,
                )

    def _env_problems(self) -> Iterator[Problem]:
        env = self.env
        seen = self.env.observation
        if env.max_episode_timesteps is None:
            yield Problem(
                ("env", "max_episode_timesteps"),
                "null, so evaluation would never end with an agent that never ends its episode; "
                "write a number, for example 1_000",
            )
        if env.n_workers is not None and env.n_workers > env.n_envs:
            yield Problem(
                ("env", "n_workers"),
                f"{env.n_workers} workers for {env.n_envs} envs leave some without work; "
                f"use at most {env.n_envs}, or remove the line",
                (("env", "n_envs"),),
            )
        if not seen.screen:
            return
        channels, *sides = frame_shape(seen.size, seen.colour, _FULL_HEIGHT, _FULL_WIDTH)
        network = self.algorithm.network
        if fault := image_fault(*sides, channels=env.frame_stack * channels, network=network):
            reads = (("env", "observation"), ("algorithm", "network"))
            yield Problem(("env", "frame_stack"), fault, reads)


def without_first_phase(config: RunConfig) -> RunConfig:
    """Return the config without a phase before the first timestep."""
    keys: dict[Key, object] = {}
    if config.offline is not None:
        keys["algorithm", "learn_from", "offline"] = None
    if config.clone is not None:
        keys["algorithm", "learn_from", "played", "clone"] = None
    return with_changed(config, keys) if keys else config


def frame_shape(
    size: Literal["full", "half"], colour: Literal["grey", "rgb"], height: int, width: int
) -> tuple[int, int, int]:
    """Return (channels, height, width) of the frame made of this many pixels of the screen."""
    divisor = 2 if size == "half" else 1
    return 3 if colour == "rgb" else 1, height // divisor, width // divisor


def check_image_size(height: int, width: int, *, channels: int, network: Network = NATURE) -> None:
    """Refuse pictures that the network cannot take.

    Only the game knows its crop, so the caller must have both the config and the game.

    Args:
        height: height of one picture, in pixels as the agent sees them.
        width: width, likewise.
        channels: channels of the stacked picture, frame_stack x (1 grey or 3 rgb).

    Raises:
        ConfigError: the network cannot take the pictures; the message says what to change.
    """
    if fault := image_fault(height, width, channels=channels, network=network):
        raise ConfigError(fault)


def image_fault(height: int, width: int, *, channels: int, network: Network = NATURE) -> str | None:
    """Return why the network cannot take such a picture and what to change; None if it can."""
    smallest = 1
    way_out = "use"
    if isinstance(network, NetworkConfig):
        smallest = SMALLEST_SIDES[network.screen]
        if network.screen == "nature" and min(height, width) >= SMALLEST_SIDES["small"]:
            way_out = "use algorithm.network: {screen: small},"
    if min(height, width) < smallest:
        return (
            f"the agent's frame is {width}x{height}, and the network needs at least "
            f"{smallest}x{smallest}; {way_out} env.observation.size: full, "
            "or a larger observation.crop in game.yaml"
        )
    if channels >= min(height, width):  # SB3 takes the smallest dimension for the channels
        return (
            f"{channels} channels (frame_stack x colours) in a frame of {width}x{height}: SB3 "
            "would mistake a side of it for the channels; lower env.frame_stack"
        )
    return None


_NO_IMPROVEMENT = "more than {:,} evaluations in a row without a better mean reward"
