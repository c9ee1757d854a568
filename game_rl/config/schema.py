"""The run config: every knob a user turns, and every check that two of them agree.

A config is frozen, and stops at the `make_*` functions: nothing below them knows that it exists.
The texts under the fields are what an editor shows, through `configs/run.schema.json`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from game_rl.config.image_size import image_fault
from game_rl.config.key_hints import KEY_HINTS
from game_rl.config.section import Problem, Section

_FULL_HEIGHT, _FULL_WIDTH = 144, 160  # a Game Boy's screen in pixels


def _constant(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("SB3 reads ent_coef once and has no schedule for it; write one number")
    return value


def _printable(text: str) -> str:
    if any(character < " " for character in text):
        raise ValueError("has a control character in it; remove that")
    return text


def _named_folder(path: Path) -> Path:
    if not Path(_printable(str(path))).name:
        raise ValueError("names no folder; write one, for example runs/my_run")
    return expanded_path(str(path))


def expanded_path(text: str) -> Path:
    """The path with the home folder for `~`, where there is one."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # ~somebody, who is unknown here
        return Path(text)


_Count = Annotated[int, Field(ge=1, le=1_000_000)]
_Timesteps = Annotated[int, Field(ge=1, le=10**12)]
_Processes = Annotated[int, Field(ge=1, le=1024)]
_UnitInterval = Annotated[float, Field(ge=0, le=1)]
_Positive = Annotated[float, Field(gt=0)]
_NotNegative = Annotated[float, Field(ge=0)]
_Name = Annotated[str, Field(min_length=1), AfterValidator(_printable)]


class LinearSchedule(Section):
    """From `start` at timestep 0 to `end` at `total_timesteps`, in a straight line."""

    start: _Positive
    """The value at timestep 0."""
    end: _NotNegative
    """The value at total_timesteps."""


Schedule = _Positive | LinearSchedule


class ObservationConfig(Section):
    """What the agent sees of a frame."""

    size: Literal["full", "half"] = "half"
    """full: every pixel (160x144 if the game crops nothing). half: sums of 2x2 pixels."""
    colour: Literal["grey", "rgb"] = "grey"
    """grey: one channel, lossless for the four shades of a DMG game. rgb: three channels."""


class EnvConfig(Section):
    """The emulators and how an episode is played on them."""

    n_envs: _Processes = 8
    """Emulators that play at once; each vec step makes n_envs timesteps."""
    n_workers: _Processes | None = None
    """Processes that the emulators are shared out to; null: one for each CPU, at most n_envs."""
    frame_skip: Annotated[int, Field(ge=1, le=600)] = 4
    """Emulator frames in one timestep, all with the same buttons; 4 are 1/15 s."""
    frame_stack: Annotated[int, Field(ge=1, le=64)] = 4
    """How many of the last pictures the agent sees together, so that it can see motion."""
    max_episode_timesteps: _Timesteps | None = 1_000
    """After so many timesteps an episode is cut off (truncated)."""
    start_states: Annotated[tuple[_Name, ...], Field(min_length=1)] | None = None
    """Names from game.yaml; each episode begins in one of them, drawn evenly. null: all."""
    max_idle_frames: Annotated[int, Field(ge=0, le=100_000)] = 30
    """Each episode begins with a random number of frames without buttons, up to this many."""
    observation: ObservationConfig = ObservationConfig()
    """What the agent sees of a frame."""
    worker_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    """A worker process that is silent for so many seconds counts as hung."""


class PPOConfig(Section):
    """SB3's PPO; names and defaults are SB3's."""

    name: Literal["ppo"] = "ppo"
    """The algorithm."""
    n_steps: _Count = 2048
    """Timesteps that each env plays between two updates; a rollout is n_steps x n_envs."""
    batch_size: _Count = 64
    """Timesteps in one gradient step; must divide n_steps x n_envs."""
    micro_batch_size: _Count | None = None
    """Computes each gradient step's batch in parts of this size, in less memory; null: at once."""
    n_epochs: Annotated[int, Field(ge=1, le=1_000)] = 10
    """How often an update goes through the whole rollout."""
    learning_rate: Schedule = 3e-4
    """Adam's step size: a number, or {start, end} for a straight line over the run."""
    clip_range: Schedule = 0.2
    """How far an update may move an action's probability ratio from 1; a number or {start, end}."""
    clip_range_vf: Schedule | None = None
    """The same for the value function, in units of the return; null: not clipped."""
    gamma: _UnitInterval = 0.99
    """Discount of a reward one timestep away."""
    gae_lambda: _UnitInterval = 0.95
    """Generalised advantage estimation: 0 trusts the value function, 1 the returns."""
    normalize_advantage: bool = True
    """Whether each batch's advantages get mean 0 and standard deviation 1."""
    ent_coef: Annotated[_NotNegative, BeforeValidator(_constant)] = 0.0
    """Weight of the entropy bonus, which keeps the policy from settling early."""
    vf_coef: _NotNegative = 0.5
    """Weight of the value loss."""
    max_grad_norm: _Positive = 0.5
    """Gradients longer than this are shortened to it."""
    target_kl: _Positive | None = None
    """An update stops early when the policy has moved 1.5 times this far; null: never."""
    precision: Literal["float32", "bf16", "auto"] = "float32"
    """Of the convolutions: bf16 is faster where the hardware has it; auto takes it there."""
    stats_window_size: _Count = 100
    """Over how many episodes the logged means of reward and length go."""


class EvaluationConfig(Section):
    """The games that show how good the agent is; the best one so far is kept."""

    every_timesteps: _Timesteps = 50_000
    """At the first update after each so many timesteps of all envs together."""
    episodes: _Count = 20
    """Episodes in one evaluation."""
    final_episodes: _Count = 100
    """Episodes in the evaluation that ends the run."""
    n_envs: _Processes = 4
    """Emulators for it, beside those of the training."""
    deterministic: bool = True
    """Take the likeliest action (true) or draw one as in training (false)."""


class CheckpointsConfig(Section):
    """States from which the run can go on exactly."""

    every_timesteps: _Timesteps = 100_000
    """At the first update after each so many timesteps of all envs together."""
    keep_last: _Count = 3
    """Older ones are deleted; the best one is kept besides."""
    keep_every_timesteps: _Timesteps | None = None
    """Keep for good the first one after each so many timesteps; null: none."""
    deadline_s: Annotated[float, Field(gt=0, le=86_400)] = 25.0
    """How long a run that gets SIGTERM, SIGINT or SIGUSR1 may take to its last checkpoint."""
    save_replay_buffer: bool = False
    """For off-policy algorithms only."""


class RecordingConfig(Section):
    """The clip of the best policy that is made when training ends."""

    episodes: Annotated[int, Field(ge=0, le=1_000)] = 2
    """Episodes in the clip; 0: no clip."""
    format: Literal["gif", "mp4"] = "gif"
    """The kind of file."""


class RunConfig(Section):
    """One training run."""

    key_hints: ClassVar[dict[str, str]] = KEY_HINTS

    game: Annotated[_Name, Field(examples=["duel"])]
    """A bundled game, or the path of a game.yaml, relative to this file's folder."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Every random choice follows from it."""
    total_timesteps: Annotated[_Timesteps, Field(examples=[400_000])]
    """Timesteps of all envs together; the run ends with the update that reaches them."""
    run_dir: Annotated[Path, Field(examples=["runs/my_run"]), AfterValidator(_named_folder)]
    """The folder that everything of this run is written to, relative to the current one."""
    device: Annotated[
        str, Field(pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$", examples=["auto", "cpu", "cuda:0"])
    ] = "auto"
    """Where the network is; auto: the GPU if there is one."""
    env: EnvConfig = EnvConfig()
    """The emulators and how an episode is played on them."""
    algorithm: PPOConfig = PPOConfig()
    """How the agent learns."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """The games that show how good the agent is; the best one so far is kept."""
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    """States from which the run can go on exactly."""
    recording: RecordingConfig = RecordingConfig()
    """The clip of the best policy that is made when training ends."""

    @property
    def rollout_timesteps(self) -> int:
        """Timesteps of all envs together between two updates."""
        return self.algorithm.n_steps * self.env.n_envs

    def problems(self) -> Iterator[Problem]:
        yield from self._batch_problems()
        yield from self._ppo_problems()
        yield from self._rhythm_problems()
        yield from self._env_problems()

    def _batch_problems(self) -> Iterator[Problem]:
        key, reads = ("algorithm", "batch_size"), (("algorithm", "n_steps"), ("env", "n_envs"))
        batch, rollout = self.algorithm.batch_size, self.rollout_timesteps
        product = f"n_steps x n_envs = {self.algorithm.n_steps:,} x {self.env.n_envs} = {rollout:,}"
        if self.algorithm.normalize_advantage and 1 in (batch, rollout):
            what = "batch_size is 1" if batch == 1 else product
            yield Problem(
                key if batch == 1 and rollout > 1 else reads[0],
                f"{what}, and the advantage of a single timestep cannot be normalised; "
                "use at least 2, or normalize_advantage: false",
                (*reads, key, ("algorithm", "normalize_advantage")),
            )
        elif batch > rollout:
            yield Problem(
                key,
                f"{batch:,} is more than a rollout has, {product}; "
                f"use at most {rollout:,}, or n_steps of at least {-(-batch // self.env.n_envs):,}",
                reads,
            )
        elif rollout % batch:
            near = " or ".join(f"{size:,}" for size in nearest_divisors(batch, rollout))
            yield Problem(key, f"{batch:,} does not divide {product}; use {near}", reads)

    def _ppo_problems(self) -> Iterator[Problem]:
        micro, batch = self.algorithm.micro_batch_size, self.algorithm.batch_size
        if micro is not None and micro > batch:
            yield Problem(
                ("algorithm", "micro_batch_size"),
                f"{micro:,} is more than batch_size, {batch:,}, which it is a part of; "
                f"use at most {batch:,}, or remove the line",
                (("algorithm", "batch_size"),),
            )
        for name in ("learning_rate", "clip_range"):
            usual = PPOConfig.model_fields[name].default
            for key, value in _schedule_values(getattr(self.algorithm, name)):
                if value > 1:
                    message = f"{value:g} is more than 1: training diverges; usual is {usual:g}"
                    yield Problem(("algorithm", name, *key), message)
        if self.checkpoints.save_replay_buffer:
            yield Problem(
                ("checkpoints", "save_replay_buffer"),
                f"{self.algorithm.name} is on-policy: it throws each rollout away after its update "
                "and has no replay buffer to save; remove the line or write false",
                (("algorithm", "name"),),
            )

    def _rhythm_problems(self) -> Iterator[Problem]:
        """Whatever happens between updates cannot happen more often than they do."""
        rollout, reads = self.rollout_timesteps, (("algorithm", "n_steps"), ("env", "n_envs"))
        rhythms = {
            ("total_timesteps",): self.total_timesteps,
            ("evaluation", "every_timesteps"): self.evaluation.every_timesteps,
            ("checkpoints", "every_timesteps"): self.checkpoints.every_timesteps,
        }
        for key, timesteps in rhythms.items():
            if timesteps < rollout:
                yield Problem(
                    key,
                    f"{timesteps:,} is less than one rollout, n_steps x n_envs = {rollout:,}; "
                    f"use at least {rollout:,}, or a smaller algorithm.n_steps",
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


def _schedule_values(schedule: Schedule) -> list[tuple[tuple[str, ...], float]]:
    if isinstance(schedule, LinearSchedule):
        return [(("start",), schedule.start), (("end",), schedule.end)]
    return [((), schedule)]


def nearest_divisors(wanted: int, whole: int) -> list[int]:
    """The divisors of `whole`, other than 1, next to `wanted` on either side."""
    small = [n for n in range(1, int(whole**0.5) + 1) if whole % n == 0]
    divisors = {*small, *(whole // n for n in small)} - {1}
    below = max((n for n in divisors if n < wanted), default=None)
    above = min((n for n in divisors if n > wanted), default=None)
    return [n for n in (below, above) if n is not None]
