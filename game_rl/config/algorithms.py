"""How an agent learns: a section for each algorithm, and what must agree in it and with a run."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from game_rl.config.exploration import ExplorationConfig
from game_rl.config.learn_from import LearnFromConfig
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.config.teacher import TeacherConfig
from game_rl.config.values import (
    Count,
    NotNegative,
    Positive,
    Schedule,
    UnitInterval,
    nearest_divisors,
    schedule_values,
)

_Precision = Literal["float32", "bf16", "auto"]
LayerNorm = Literal["none", "channels", "picture"]


def _constant(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("SB3 reads ent_coef once and has no schedule for it; write one number")
    return value


class PPOConfig(StrictModel):
    """SB3's PPO; names and defaults are SB3's."""

    name: Literal["ppo"] = "ppo"
    """The algorithm."""
    n_steps: Count = 2048
    """Timesteps that each env plays between two updates; a rollout is n_steps x n_envs."""
    batch_size: Count = 64
    """Timesteps in one gradient step; must divide n_steps x n_envs."""
    micro_batch_size: Count | Literal["auto"] | None = "auto"
    """Computes each gradient step's batch in parts of this size, in less memory, with the same
    gradient; null: at once; auto: by the network's size, the CPUs and their caches, on a GPU at
    once. A run keeps the number that it began with."""
    n_epochs: Annotated[int, Field(ge=0, le=1_000)] = 10
    """How often an update goes through the whole rollout; 0: the run plays and learns nothing."""
    learning_rate: Schedule = 3e-4
    """Adam's step size: a number, or {start, end} for a straight line over the run."""
    clip_range: Schedule = 0.2
    """How far an update may move an action's probability ratio from 1; a number or {start, end}."""
    clip_range_vf: Schedule | None = None
    """The same for the value function, in units of the return; null: not clipped."""
    gamma: UnitInterval = 0.99
    """Discount of a reward one timestep away."""
    gae_lambda: UnitInterval = 0.95
    """Generalised advantage estimation: 0 trusts the value function, 1 the returns."""
    normalize_advantage: bool = True
    """Whether each batch's advantages get mean 0 and standard deviation 1."""
    ent_coef: Annotated[NotNegative, BeforeValidator(_constant)] = 0.0
    """Weight of the entropy bonus, which keeps the policy from settling early."""
    vf_coef: NotNegative = 0.5
    """Weight of the value loss."""
    max_grad_norm: Positive = 0.5
    """Gradients longer than this are shortened to it."""
    target_kl: Positive | None = None
    """An update stops early when the policy has moved 1.5 times this far; null: never."""
    precision: _Precision = "auto"
    """Of the convolutions: bf16 is faster where the hardware has it; auto takes it there, and a run
    keeps what it began with."""
    stats_window_size: Count = 100
    """Over how many episodes the logged means of reward and length go."""

    @property
    def vec_steps_per_update(self) -> int:
        """Vec steps between two updates."""
        return self.n_steps

    @property
    def learns(self) -> bool:
        """Whether the run takes gradient steps, or plays only."""
        return self.n_epochs > 0

    def problems_in_run(self, *, n_envs: int, total_timesteps: int) -> Iterator[Problem]:  # noqa: ARG002
        """What does not agree in this section and with the rest of the run, from its top."""
        yield from self._batch_problems(n_envs)
        micro, batch = self.micro_batch_size, self.batch_size
        if isinstance(micro, int) and micro > batch:
            yield Problem(
                _at("micro_batch_size"),
                f"{micro:,} is more than batch_size, {batch:,}, which it is a part of; "
                f"use at most {batch:,}, or remove the line",
                (_at("batch_size"),),
            )
        yield from _diverging(self, "learning_rate", "clip_range")

    def _batch_problems(self, n_envs: int) -> Iterator[Problem]:
        batch, rollout = self.batch_size, self.n_steps * n_envs
        if not (self.normalize_advantage and 1 in (batch, rollout)):
            yield from _batch_problems(batch, n_steps=self.n_steps, n_envs=n_envs)
            return
        key, reads = _at("batch_size"), (_at("n_steps"), ("env", "n_envs"))
        what = "batch_size is 1" if batch == 1 else _rollout_product(self.n_steps, n_envs)
        yield Problem(
            key if batch == 1 and rollout > 1 else reads[0],
            f"{what}, and the advantage of a single timestep cannot be normalised; "
            "use at least 2, or normalize_advantage: false",
            (*reads, key, _at("normalize_advantage")),
        )


class ReplayConfig(StrictModel):
    """The ring of past timesteps that DQN learns from: each frame once, packed."""

    capacity: Annotated[int, Field(ge=1, le=10**10)] = 100_000
    """Timesteps of all envs together; the oldest make room for new ones."""
    device: Annotated[
        str, Field(pattern=r"^(cpu|cuda(:\d{1,3})?)$", examples=["cpu", "cuda", "cuda:0"])
    ] = "cpu"
    """Where the frames are: cpu is RAM, cuda the memory of a GPU."""


class DQNConfig(StrictModel):
    """SB3's DQN on lean storage; names are SB3's, defaults those of its Atari presets."""

    name: Literal["dqn"]
    """The algorithm."""
    replay: ReplayConfig = ReplayConfig()
    """The ring of past timesteps that DQN learns from."""
    n_step: Annotated[int, Field(ge=1, le=100)] = 1
    """Timesteps whose rewards are summed up before the value function continues."""
    double_q: bool = False
    """The network chooses the best next action, the target network says what it is worth."""
    learning_starts: Annotated[int, Field(ge=0, le=10**12)] = 10_000
    """Timesteps of all envs together that are played at random before learning begins."""
    train_freq: Count = 4
    """Vec steps between two updates; each vec step is n_envs timesteps."""
    gradient_steps: Annotated[int, Field(ge=0, le=1_000_000)] = 1
    """Gradient steps in one update; 0: the run plays and learns nothing."""
    target_update_interval: Count = 10_000
    """Timesteps of all envs together after which the target network follows the network."""
    tau: Annotated[float, Field(gt=0, le=1)] = 1.0
    """How far the target network then follows: 1 is a copy."""
    exploration: ExplorationConfig = ExplorationConfig()
    """How often an action is drawn at random."""
    teacher: TeacherConfig | None = None
    """A policy that the agent is drawn towards until it plays as well; null: none."""
    layer_norm: LayerNorm = "none"
    """What is normalised before each ReLU: each place over its channels, the picture, nothing."""
    learn_from: LearnFromConfig | None = None
    """Lakes of other runs that DQN learns from too; null: none."""
    batch_size: Count = 32
    """Timesteps in one gradient step."""
    gamma: UnitInterval = 0.99
    """Discount of a reward one timestep away."""
    learning_rate: Schedule = 1e-4
    """Adam's step size: a number, or {start, end} for a straight line over the run."""
    max_grad_norm: Positive = 10.0
    """Gradients longer than this are shortened to it."""
    precision: _Precision = "auto"
    """Of the convolutions: bf16 is faster where the hardware has it; auto takes it there, and a run
    keeps what it began with."""
    stats_window_size: Count = 100
    """Over how many episodes the logged means of reward and length go."""

    @property
    def vec_steps_per_update(self) -> int:
        """Vec steps between two updates."""
        return self.train_freq

    @property
    def learns(self) -> bool:
        """Whether the run takes gradient steps, or plays only."""
        return self.gradient_steps > 0

    def problems_in_run(self, *, n_envs: int, total_timesteps: int) -> Iterator[Problem]:
        """What does not agree in this section and with the rest of the run, from its top."""
        capacity, batch = self.replay.capacity, self.batch_size
        capacity_key, capacity_reads = _at("replay", "capacity"), (("env", "n_envs"),)
        if batch > capacity:
            yield Problem(
                _at("batch_size"),
                f"{batch:,} is more than the replay holds, {capacity:,}; "
                f"use at most {capacity:,}, or a larger replay.capacity",
                (capacity_key,),
            )
        least = n_envs * (self.n_step + 1)
        if capacity < least:
            yield Problem(
                capacity_key,
                f"{capacity:,} is too few for {n_envs} envs and n_step: {self.n_step}; "
                f"use at least {least:,}",
                (*capacity_reads, _at("n_step")),
            )
        if self.learning_starts > total_timesteps:
            yield Problem(
                _at("learning_starts"),
                f"{self.learning_starts:,} is more than total_timesteps, {total_timesteps:,}, "
                f"so nothing would be learned; use at most {total_timesteps:,}",
                (("total_timesteps",),),
            )
        yield from self.exploration.problems_in_run(
            total_timesteps=total_timesteps, key=_at("exploration")
        )
        yield from _diverging(self, "learning_rate")


class PQNConfig(StrictModel):
    """PQN (Gallici et al. 2024): Q-learning on many envs without replay and target network.

    Defaults are those of its authors for Atari, which they train on 128 envs.
    """

    name: Literal["pqn"]
    """The algorithm."""
    n_steps: Count = 32
    """Timesteps that each env plays between two updates; a rollout is n_steps x n_envs."""
    batch_size: Count = 128
    """Timesteps in one gradient step; must divide n_steps x n_envs."""
    n_epochs: Annotated[int, Field(ge=0, le=1_000)] = 2
    """How often an update goes through the whole rollout; 0: the run plays and learns nothing."""
    q_lambda: UnitInterval = 0.65
    """How far targets look: 0 trusts the value of the next state, 1 the returns."""
    gamma: UnitInterval = 0.99
    """Discount of a reward one timestep away."""
    learning_rate: Schedule = 2.5e-4
    """RAdam's step size: a number, or {start, end} for a straight line over the run."""
    exploration: ExplorationConfig = ExplorationConfig(end=0.001)
    """How often an action is drawn at random."""
    layer_norm: LayerNorm = "channels"
    """What is normalised before each ReLU: each place over its channels, the picture, nothing."""
    max_grad_norm: Positive = 10.0
    """Gradients longer than this are shortened to it."""
    precision: _Precision = "auto"
    """Of the convolutions: bf16 is faster where the hardware has it; auto takes it there, and a run
    keeps what it began with."""
    stats_window_size: Count = 100
    """Over how many episodes the logged means of reward and length go."""

    @property
    def vec_steps_per_update(self) -> int:
        """Vec steps between two updates."""
        return self.n_steps

    @property
    def learns(self) -> bool:
        """Whether the run takes gradient steps, or plays only."""
        return self.n_epochs > 0

    def problems_in_run(self, *, n_envs: int, total_timesteps: int) -> Iterator[Problem]:
        """What does not agree in this section and with the rest of the run, from its top."""
        yield from _batch_problems(self.batch_size, n_steps=self.n_steps, n_envs=n_envs)
        yield from self.exploration.problems_in_run(
            total_timesteps=total_timesteps, key=_at("exploration")
        )
        yield from _diverging(self, "learning_rate")


def _name(section: Any) -> str:  # noqa: ANN401 - whatever stands in a file
    """The algorithm that a section is of: PPO if it does not say."""
    if isinstance(section, dict):
        return str(section.get("name", "ppo"))
    return getattr(section, "name", "ppo")


AlgorithmConfig = Annotated[
    Annotated[PPOConfig, Tag("ppo")]
    | Annotated[DQNConfig, Tag("dqn")]
    | Annotated[PQNConfig, Tag("pqn")],
    Discriminator(_name),
]


def _at(*names: str) -> tuple[str, ...]:
    return ("algorithm", *names)


def _rollout_product(n_steps: int, n_envs: int) -> str:
    return f"n_steps x n_envs = {n_steps:,} x {n_envs} = {n_steps * n_envs:,}"


def _batch_problems(batch: int, *, n_steps: int, n_envs: int) -> Iterator[Problem]:
    key, reads = _at("batch_size"), (_at("n_steps"), ("env", "n_envs"))
    rollout, product = n_steps * n_envs, _rollout_product(n_steps, n_envs)
    if batch > rollout:
        yield Problem(
            key,
            f"{batch:,} is more than a rollout has, {product}; "
            f"use at most {rollout:,}, or n_steps of at least {-(-batch // n_envs):,}",
            reads,
        )
    elif rollout % batch:
        near = " or ".join(f"{size:,}" for size in nearest_divisors(batch, rollout))
        yield Problem(key, f"{batch:,} does not divide {product}; use {near}", reads)


def _diverging(config: StrictModel, *names: str) -> Iterator[Problem]:
    """Schedules with a value above 1."""
    for name in names:
        usual = type(config).model_fields[name].default
        for key, value in schedule_values(getattr(config, name)):
            if value > 1:
                message = f"{value:g} is more than 1: training diverges; usual is {usual:g}"
                yield Problem(_at(name, *key), message)
