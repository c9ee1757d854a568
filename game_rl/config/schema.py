"""The run config: every knob a user turns, and every check that two of them agree.

A config is frozen, and stops at the `make_*` functions: nothing below them knows that it exists.
The texts under the fields are what an editor shows, through `configs/run.schema.json`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from game_rl.config.algorithms import AlgorithmConfig, DQNConfig, PPOConfig
from game_rl.config.fork import ForkConfig
from game_rl.config.image_size import image_fault
from game_rl.config.key_hints import KEY_HINTS
from game_rl.config.lake import LakeConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.teacher import LEAST_VALIDATION_EPISODES
from game_rl.config.upload import UploadConfig
from game_rl.config.values import Count, Name, Processes, Timesteps, named_folder

_FULL_HEIGHT, _FULL_WIDTH = 144, 160  # a Game Boy's screen in pixels


class ObservationConfig(StrictModel):
    """What the agent sees of a frame."""

    size: Literal["full", "half"] = "half"
    """full: every pixel (160x144 if the game crops nothing). half: sums of 2x2 pixels."""
    colour: Literal["grey", "rgb"] = "grey"
    """grey: one channel, lossless for the four shades of a DMG game. rgb: three channels."""


class EnvConfig(StrictModel):
    """The emulators and how an episode is played on them."""

    n_envs: Processes = 8
    """Emulators that play at once; each vec step makes n_envs timesteps."""
    n_workers: Processes | None = None
    """Processes for the emulators, at most n_envs; null: 2 x (CPUs - 1), at least 2, in training,
    and one for each CPU in an evaluation."""
    frame_skip: Annotated[int, Field(ge=1, le=600)] = 4
    """Emulator frames in one timestep, all with the same buttons; 4 are 1/15 s."""
    frame_stack: Annotated[int, Field(ge=1, le=64)] = 4
    """How many of the last pictures the agent sees together, so that it can see motion."""
    max_episode_timesteps: Timesteps | None = 1_000
    """After so many timesteps an episode is cut off (truncated)."""
    start_states: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    """Names from game.yaml; each episode begins in one of them, drawn evenly. null: all."""
    max_idle_frames: Annotated[int, Field(ge=0, le=100_000)] = 30
    """Each episode begins with a random number of frames without buttons, up to this many."""
    observation: ObservationConfig = ObservationConfig()
    """What the agent sees of a frame."""
    worker_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """A worker process that is silent for so many seconds counts as hung."""


class EvaluationConfig(StrictModel):
    """The games that show how good the agent is; the best one so far is kept."""

    every_timesteps: Timesteps = 50_000
    """At the first update after each so many timesteps of all envs together."""
    episodes: Count = 20
    """Episodes in one evaluation."""
    final_episodes: Count = 100
    """Episodes in the evaluation that ends the run."""
    n_envs: Processes = 4
    """Emulators for it, beside those of the training."""
    deterministic: bool | Literal["auto"] = "auto"
    """Take the likeliest action (true) or draw one as in training (false); auto: PPO plays in both
    ways and counts the better, DQN and PQN take the likeliest. Drawing wins only by more than one
    standard error."""

    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Chooses the games of the evaluations that the run plays on its way; null: follows from the
    run's seed. A best that other games have found does not count any more."""

    def envs_for(self, episodes: int) -> int:
        """Emulators for so many episodes: no more than those."""
        return min(self.n_envs, episodes)


class CheckpointsConfig(StrictModel):
    """States from which the run can go on exactly."""

    every_timesteps: Timesteps = 100_000
    """At the first update after each so many timesteps of all envs together."""
    keep_last: Count = 3
    """Older ones are deleted; the best one is kept besides."""
    keep_every_timesteps: Timesteps | None = None
    """Keep for good the first one after each so many timesteps; null: none."""
    deadline_s: Annotated[float, Field(gt=0, le=86_400)] = 25.0
    """How long a run that gets SIGTERM, SIGINT or SIGUSR1 may take to its last checkpoint."""
    save_replay_buffer: bool = False
    """Keeps DQN's replay with each checkpoint, so that it need not be played again on resuming."""


class RecordingConfig(StrictModel):
    """The clip of the best policy that is made when training ends."""

    episodes: Annotated[int, Field(ge=0, le=1_000)] = 2
    """Episodes in the clip; 0: no clip."""
    max_s: Annotated[float, Field(gt=0, le=3_600)] | None = 60.0
    """Seconds after which the clip ends, within an episode too; null: only with its episodes."""
    format: Literal["gif", "mp4"] = "gif"
    """The kind of file."""


class RunConfig(StrictModel):
    """One training run."""

    key_hints: ClassVar[dict[str, str]] = KEY_HINTS

    game: Annotated[Name, Field(examples=["duel"])]
    """A bundled game, or the path of a game.yaml, relative to this file's folder."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Every random choice follows from it."""
    total_timesteps: Annotated[Timesteps, Field(examples=[400_000])]
    """Timesteps of all envs together; the run ends with the update that reaches them."""
    run_dir: Annotated[Path, Field(examples=["runs/my_run"]), AfterValidator(named_folder)]
    """The folder that everything of this run is written to, relative to the current one."""
    device: Annotated[
        str, Field(pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$", examples=["auto", "cpu", "cuda:0"])
    ] = "auto"
    """Where the network is; auto: the GPU if there is one."""
    fork: ForkConfig | None = None
    """The checkpoint of another run that this one begins from; null: it begins by itself."""
    env: EnvConfig = EnvConfig()
    """The emulators and how an episode is played on them."""
    algorithm: AlgorithmConfig = PPOConfig()
    """How the agent learns: ppo if it has no name."""
    lake: LakeConfig | None = None
    """Replay on disk that gets every timestep; {}: in run_dir; null: none."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """The games that show how good the agent is; the best one so far is kept."""
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    """States from which the run can go on exactly."""
    recording: RecordingConfig = RecordingConfig()
    """The clip of the best policy that is made when training ends."""
    upload: UploadConfig | None = None
    """Copies the run's checkpoints to object storage or another disk while it trains; null: no."""

    @property
    def rollout_timesteps(self) -> int:
        """Timesteps of all envs together between two updates."""
        return self.algorithm.vec_steps_per_update * self.env.n_envs

    @property
    def evaluation_ways(self) -> tuple[bool, ...]:
        """`deterministic` of each way in which an evaluation is played; drawing comes last."""
        chosen = self.evaluation.deterministic
        if isinstance(chosen, bool):
            return (chosen,)
        return (True, False) if isinstance(self.algorithm, PPOConfig) else (True,)

    @property
    def validation_episodes(self) -> int:
        """That student and teacher each play at the end; 0 where they do not."""
        teacher = self.algorithm.teacher if isinstance(self.algorithm, DQNConfig) else None
        if teacher is None or not teacher.keep_if_better:
            return 0
        return max(LEAST_VALIDATION_EPISODES, self.evaluation.final_episodes)

    def problems(self) -> Iterator[Problem]:
        yield from self.algorithm.problems_in_run(
            n_envs=self.env.n_envs, total_timesteps=self.total_timesteps
        )
        yield from self._algorithm_problems()
        yield from self._lake_problems()
        yield from self._learn_from_problems()
        yield from self._rhythm_problems()
        yield from self._env_problems()

    def _algorithm_problems(self) -> Iterator[Problem]:
        """Keys of other sections that not every algorithm can have."""
        name, reads = self.algorithm.name, (("algorithm", "name"),)
        if self.checkpoints.save_replay_buffer and name != "dqn":
            yield Problem(
                ("checkpoints", "save_replay_buffer"),
                f"{name} is on-policy: it throws each rollout away after its update "
                "and has no replay buffer to save; remove the line or write false",
                reads,
            )
        if self.evaluation.deterministic is False and name != "ppo":
            yield Problem(
                ("evaluation", "deterministic"),
                f"{name} has no probabilities to draw an action from, it knows which is best; "
                "remove the line or write true",
                reads,
            )
        on_gpu = isinstance(self.algorithm, DQNConfig) and self.algorithm.replay.device != "cpu"
        if on_gpu and self.device == "cpu":
            yield Problem(
                ("algorithm", "replay", "device"),
                "the network is on the CPU (device: cpu), so the replay on a GPU would only be "
                "slower; write replay: {device: cpu}, or device: auto",
                (("device",),),
            )

    def _lake_problems(self) -> Iterator[Problem]:
        """What DQN, which fills its replay again from the Lake, asks of it."""
        if self.lake is None or not isinstance(self.algorithm, DQNConfig):
            return
        reads = (("algorithm", "name"), ("algorithm", "replay", "capacity"), ("lake",))
        if self.checkpoints.save_replay_buffer:
            yield Problem(
                ("checkpoints", "save_replay_buffer"),
                "the Lake keeps the replay already, and a resumed run fills it again from there; "
                "remove the line, or lake",
                reads,
            )
        capacity, most = self.algorithm.replay.capacity, self.lake.capacity_transitions
        if most is not None and most < 2 * capacity:
            yield Problem(
                ("lake", "capacity_transitions"),
                f"{most:,} is less than twice the replay's capacity, {capacity:,}, which "
                f"a resumed run fills again from the Lake; use at least {2 * capacity:,}, or a "
                "smaller algorithm.replay.capacity",
                reads,
            )

    def _learn_from_problems(self) -> Iterator[Problem]:
        if isinstance(self.algorithm, DQNConfig) and self.algorithm.learn_from is not None:
            own = None if self.lake is None else self.lake.path or self.run_dir.absolute() / "lake"
            yield from self.algorithm.learn_from.problems_in_run(own)

    def _rhythm_problems(self) -> Iterator[Problem]:
        """Whatever happens between updates cannot happen more often than they do."""
        knob = "train_freq" if isinstance(self.algorithm, DQNConfig) else "n_steps"
        rollout, reads = self.rollout_timesteps, (("algorithm", knob), ("env", "n_envs"))
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
        env, seen = self.env, self.env.observation
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
        divisor = 2 if seen.size == "half" else 1
        height, width = _FULL_HEIGHT // divisor, _FULL_WIDTH // divisor
        channels = env.frame_stack * (3 if seen.colour == "rgb" else 1)
        if fault := image_fault(height, width, channels=channels):
            yield Problem(("env", "frame_stack"), fault, (("env", "observation"),))
