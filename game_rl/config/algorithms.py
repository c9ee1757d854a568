"""The section `algorithm`: PPO, DQN and PQN with replay, exploration and teacher."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag

from game_rl.config.learn_from import (
    LearnFromConfig,
    PlayedForPPO,
    PlayedForQ,
    PPOLearnFrom,
    PQNLearnFrom,
)
from game_rl.config.network import NATURE, MemoryConfig, Network
from game_rl.config.strict_model import Key, Problem, Role, RunSection, StrictModel
from game_rl.config.values import (
    Count,
    NotNegative,
    Positive,
    RunAt,
    Schedule,
    Timesteps,
    UnitInterval,
    nearest_divisors,
    schedule_values,
)
from game_rl.schedules import Ramp, Restart, RestartingRamp

_Precision = Literal["float32", "bf16", "auto"]
LayerNorm = Literal["none", "channels", "picture"]


def _constant(value: object) -> object:
    if isinstance(value, dict):
        raise ValueError("SB3 reads ent_coef once and has no schedule for it; write one number")
    return value


class RewardConfig(StrictModel):
    """What the algorithm makes of rewards before it learns from them: normalised, scaled, clipped.

    Lakes, replays, curves and evaluations have the rewards of the game.
    """

    scale: Positive = 1.0
    """Factor of each reward, after `normalize` and before `clip`."""
    clip: Positive | None = None
    """Limit of each reward, in both directions: 1 leaves -1 to 1; null: no limit."""
    normalize: bool = False
    """Whether each reward is divided by the standard deviation of the discounted returns so far, as
    SB3's VecNormalize does. The mean is not subtracted. Checkpoints keep the statistics, and forks
    take them over."""


RAW = RewardConfig()
"""The section of a config that says nothing about rewards: they are learned as they are."""


class CuriosityConfig(RunSection):
    """A reward for what is new to the run, beside the game's own.

    As in random network distillation (Burda et al. 2018), a network learns to predict what a random
    network makes of an observation, and its error is the reward. A value network of its own
    estimates the sums of that reward, which go on over the ends of episodes. Of the screens only
    the newest one counts. Curves and evaluations have the rewards of the game.
    """

    kind: Annotated[Literal["rnd"], Role.LEARNING] = "rnd"
    """How it is measured what is new: rnd, random network distillation."""
    coef: Annotated[Positive, Role.LEARNING] = 0.5
    """Weight of the advantages of what is new, beside those of the game's rewards. Its rewards are
    scaled to the same size in each game."""
    gamma: Annotated[float, Field(ge=0, lt=1), Role.LEARNING] = 0.99
    """Discount of what is new one timestep away."""


class _AnyAlgorithm(RunSection):
    """What is asked of the section of every algorithm.

    A key that an algorithm lacks is None there, or 0 if it is a number of timesteps to wait:
    `replay`, `lakes`, `teacher` and `learning_starts` on-policy; `n_steps`, `n_epochs` and
    `target_kl` off-policy; `exploration`, `memory`, `curiosity`, `micro_batch_size` and `vf_coef`
    where there are none.
    """

    collected_in: ClassVar[Literal["n_steps", "train_freq"]]
    """Key of the number of vec steps between two updates."""
    draws_actions: ClassVar[bool]
    """Whether a policy can draw its actions from probabilities, and not only take the best one."""
    has_q_network: ClassVar[bool]
    """Whether the network has a value for each action; else it has a value head and probabilities.
    """
    has_target_network: ClassVar[bool] = False
    optimiser: ClassVar[Literal["adam", "radam"]] = "adam"
    is_in_sb3: ClassVar[bool] = False
    """Whether Stable-Baselines3 has the algorithm, without layer normalisation."""

    @property
    def trace_decay(self) -> float:
        """Lambda of the returns; 0 where there is none."""
        return 0.0

    @property
    def whole_timesteps(self) -> int:
        """Timesteps of one env that are learned together: a sequence of a memory, or 1."""
        return 1

    @property
    def vec_steps_per_update(self) -> int:
        """Vec steps between two updates."""
        raise NotImplementedError

    @property
    def learns(self) -> bool:
        """Whether the run takes gradient steps; otherwise it only plays."""
        raise NotImplementedError

    def minibatches_per_epoch(self, n_envs: int) -> int | None:
        """Minibatches in one pass over a rollout; None without rollouts."""
        raise NotImplementedError

    def gradient_steps_per_update(self, n_envs: int) -> int:
        raise NotImplementedError

    def frames_of_a_sample(self, frame_stack: int) -> int:
        """Frames that are unpacked for one timestep of a minibatch."""
        raise NotImplementedError

    def with_least_storage(self, n_envs: int) -> Self:
        """Return the section with the smallest rollout or replay, to build but not to train."""
        raise NotImplementedError


class _OnPolicyConfig(_AnyAlgorithm):
    """What PPO and PQN share."""

    collected_in: ClassVar[Literal["n_steps"]] = "n_steps"
    replay: ClassVar[None] = None
    lakes: ClassVar[None] = None
    teacher: ClassVar[None] = None
    learning_starts: ClassVar[int] = 0

    if TYPE_CHECKING:  # each declares them with its own default
        n_steps: Count
        n_epochs: int
        batch_size: int

    @property
    def vec_steps_per_update(self) -> int:
        return self.n_steps

    @property
    def learns(self) -> bool:
        return self.n_epochs > 0

    def minibatches_per_epoch(self, n_envs: int) -> int:
        return -(-self.n_steps * n_envs // self.batch_size)

    def gradient_steps_per_update(self, n_envs: int) -> int:
        return self.n_epochs * self.minibatches_per_epoch(n_envs)

    def frames_of_a_sample(self, frame_stack: int) -> int:
        return frame_stack

    def with_least_storage(self, n_envs: int) -> Self:  # noqa: ARG002
        return self.model_copy(update={"n_steps": 2, "batch_size": 2})


class PPOConfig(_OnPolicyConfig):
    """SB3's PPO, with SB3's names and defaults."""

    draws_actions: ClassVar[bool] = True
    has_q_network: ClassVar[bool] = False
    is_in_sb3: ClassVar[bool] = True
    exploration: ClassVar[None] = None
    layer_norm: ClassVar[LayerNorm] = "none"

    name: Annotated[Literal["ppo"], Role.NETWORK] = "ppo"
    """The algorithm."""
    n_steps: Annotated[Count, Role.LEARNING] = 2048
    """Timesteps that each env plays between two updates; a rollout is n_steps x n_envs."""
    batch_size: Annotated[Count, Role.LEARNING] = 64
    """Timesteps in one gradient step; must divide n_steps x n_envs."""
    micro_batch_size: Annotated[Count | Literal["auto"] | None, Role.SPEED] = "auto"
    """Number of timesteps of a batch that go through the network together. Smaller parts take less
    memory and give the same gradient. null: the whole batch. auto: chosen by the network's size,
    the CPUs and their caches; on a GPU the whole batch. A run keeps its first number. With a
    memory it is rounded down to a multiple of memory.sequence, but at least one sequence.
    """
    n_epochs: Annotated[int, Field(ge=0, le=1_000), Role.LEARNING] = 10
    """Number of passes over the whole rollout in one update; 0: the run plays and learns
    nothing."""
    learning_rate: Annotated[Schedule, Role.LEARNING] = 3e-4
    """Adam's step size: a number, or {start, end} for a straight line over the run."""
    clip_range: Annotated[Schedule, Role.LEARNING] = 0.2
    """How far an update may move an action's probability ratio from 1; a number or {start, end}."""
    clip_range_vf: Annotated[Schedule | None, Role.LEARNING] = None
    """How far an update may move a predicted value, in units of the return; a number or {start,
    end}; null: no limit."""
    gamma: Annotated[UnitInterval, Role.LEARNING] = 0.99
    """Discount of a reward one timestep away."""
    reward: Annotated[RewardConfig, Role.LEARNING] = RAW
    """What the algorithm makes of rewards before it learns from them."""
    gae_lambda: Annotated[UnitInterval, Role.LEARNING] = 0.95
    """Lambda of generalised advantage estimation: 0 trusts the value function, 1 the returns."""
    normalize_advantage: Annotated[bool, Role.LEARNING] = True
    """Whether the advantages of each batch are scaled to mean 0 and standard deviation 1."""
    ent_coef: Annotated[NotNegative, BeforeValidator(_constant), Role.LEARNING] = 0.0
    """Weight of the entropy bonus, which keeps the policy from settling early."""
    vf_coef: Annotated[NotNegative, Role.LEARNING] = 0.5
    """Weight of the value loss."""
    max_grad_norm: Annotated[Positive, Role.LEARNING] = 0.5
    """Largest norm of the gradient; a longer gradient is scaled down to it."""
    target_kl: Annotated[Positive | None, Role.LEARNING] = None
    """An update stops early once the KL divergence between the new and the old policy is more than
    1.5 times this; null: never."""
    network: Annotated[Network, Role.NETWORK] = NATURE
    """The network, as a section, or a features extractor of your own for Stable-Baselines3, as
    module:Class or {module:Class: {name: value}} with arguments, before hidden layers of [64, 64].
    Its module is a .py file next to this one or in the current folder, or is installed. It runs
    with your rights."""
    memory: Annotated[MemoryConfig | None, Role.NETWORK] = None
    """What the agent remembers of its episode, beyond the screens that it sees; null: nothing."""
    curiosity: Annotated[CuriosityConfig | None, Role.LEARNING] = None
    """A reward for what is new to the run; null: none. Checkpoints keep its networks. A fork takes
    them over, unless its counters are new, or it has other observations or another n_envs."""
    precision: Annotated[_Precision, Role.LEARNING] = "auto"
    """Precision of the screens' network. bf16 is faster on hardware that has it; auto takes it
    there. A run keeps the precision that it started with."""
    learn_from: Annotated[PPOLearnFrom | None, Role.LEARNING] = None
    """What PPO learns from in addition to its own play; null: nothing."""
    stats_window_size: Annotated[Count, Role.OUTPUT] = 100
    """Number of latest episodes in the logged means of reward and length."""

    @property
    def played(self) -> PlayedForPPO | None:
        """The played episodes that it learns from, if any."""
        return None if self.learn_from is None else self.learn_from.played

    @property
    def trace_decay(self) -> float:
        return self.gae_lambda

    @property
    def whole_timesteps(self) -> int:
        return 1 if self.memory is None else self.memory.sequence

    def problems_in_run(self, *, n_envs: int, total_timesteps: int) -> Iterator[Problem]:  # noqa: ARG002
        """Yield what does not agree within this section or with the rest of the run."""
        yield from self._batch_problems(n_envs)
        micro = self.micro_batch_size
        batch = self.batch_size
        if isinstance(micro, int) and micro > batch:
            yield Problem(
                _at("micro_batch_size"),
                f"{micro:,} is more than batch_size, {batch:,}, which it is a part of; "
                f"use at most {batch:,}, or remove the line",
                (_at("batch_size"),),
            )
        yield from self._memory_problems()
        yield from _diverging(self, "learning_rate", "clip_range")

    def _memory_problems(self) -> Iterator[Problem]:
        if self.memory is None:
            return
        sequence = self.memory.sequence
        key = _at("memory", "sequence")
        for name in ("n_steps", "batch_size"):
            number = getattr(self, name)
            if number % sequence:
                near = " or ".join(f"{size:,}" for size in nearest_divisors(sequence, number))
                yield Problem(
                    key,
                    f"{sequence:,} does not divide {name}, {number:,}, and only whole sequences "
                    f"are learned; use {near or 1}, or another {name}",
                    (_at(name),),
                )
        if self.learn_from is not None:
            yield Problem(
                _at("memory"),
                "an agent with a memory cannot learn from played episodes, of which single "
                "timesteps are drawn; remove memory or learn_from",
                (_at("learn_from"),),
            )

    def _batch_problems(self, n_envs: int) -> Iterator[Problem]:
        batch = self.batch_size
        rollout = self.n_steps * n_envs
        if not (self.normalize_advantage and 1 in (batch, rollout)):
            yield from _batch_problems(batch, n_steps=self.n_steps, n_envs=n_envs)
            return
        key = _at("batch_size")
        reads = (_at("n_steps"), ("env", "n_envs"))
        what = "batch_size is 1" if batch == 1 else _rollout_product(self.n_steps, n_envs)
        yield Problem(
            key if batch == 1 and rollout > 1 else reads[0],
            f"{what}, and the advantage of a single timestep cannot be normalised; "
            "use at least 2, or normalize_advantage: false",
            (*reads, key, _at("normalize_advantage")),
        )


class ReplayConfig(RunSection):
    """DQN's replay: a ring buffer of past timesteps, which stores each frame once, packed."""

    store: ClassVar[Literal["pond"]] = "pond"
    """Name of its row in the tables of replay stores and of their layouts."""

    capacity: Annotated[int, Field(ge=1, le=10**10), Role.LEARNING] = 100_000
    """Number of timesteps that it holds, of all envs together. New ones replace the oldest."""
    device: Annotated[
        str,
        Field(pattern=r"^(cpu|cuda(:\d{1,3})?)$", examples=["cpu", "cuda", "cuda:0"]),
        Role.SPEED,
    ] = "cpu"
    """Memory that holds the frames: cpu is RAM, cuda the memory of a GPU."""


_MOST_RESTARTS = 1_000


class RestartConfig(StrictModel):
    """A restart of exploration: for a while, more actions are random again."""

    at: Timesteps
    """Timestep at which the restart starts, counted from the beginning of the run."""
    start: UnitInterval
    """Exploration rate at that timestep."""
    over: Timesteps
    """Number of timesteps in which the rate goes in a straight line to what it would be without
    the restart."""


class ExplorationConfig(StrictModel):
    """The share of actions that are random instead of those with the highest value."""

    start: UnitInterval = 1.0
    """Exploration rate at timestep 0."""
    end: UnitInterval = 0.05
    """Exploration rate from `fraction` of the run on."""
    fraction: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Part of total_timesteps in which the rate goes from start to end, in a straight line."""
    restarts: Annotated[tuple[RestartConfig, ...], Field(max_length=_MOST_RESTARTS)] = ()
    """Restarts, the earliest first: each one raises the exploration rate again for a while. The
    rate is never lower than it would be without them."""

    def schedule(self, *, timesteps: int) -> RestartingRamp:
        """Return the share of random actions over a run of `timesteps` timesteps."""
        share = max(1, round(self.fraction * timesteps))
        restarts = (Restart(at=each.at, start=each.start, over=each.over) for each in self.restarts)
        return RestartingRamp(Ramp(self.start, self.end, share), tuple(restarts))

    def problems_in_run(self, *, total_timesteps: int) -> Iterator[Problem]:
        """Yield restarts that do not agree with one another or with the run."""
        places = [_at("exploration", "restarts", str(n)) for n in range(len(self.restarts))]
        for place, restart in zip(places, self.restarts, strict=True):
            if restart.at >= total_timesteps:
                yield Problem(
                    (*place, "at"),
                    f"{restart.at:,} is not before the run's end, total_timesteps: "
                    f"{total_timesteps:,}; use a smaller one, or remove the restart",
                    (("total_timesteps",),),
                )
        for (_, before), (place, restart) in pairwise(zip(places, self.restarts, strict=True)):
            yield from _order_problems(before, restart, place)


class TeacherConfig(StrictModel):
    """A policy that the agent is drawn towards (QDagger).

    weight x KL(teacher's softmax || student's softmax) is added to the loss.
    """

    run: Annotated[RunAt, Field(examples=["runs/duel_pqn", "runs/duel_pqn@200704"])]
    """A run of dqn or pqn, or the folder of such an agent, from game-rl pull. Its best policy is
    the teacher, or its checkpoint of timestep T with @T."""
    weight: Positive = 3.0
    """Weight of the divergence at the beginning. It falls to 0 as the student's success rate in
    evaluations approaches the teacher's."""
    temperature: Positive | Literal["auto"] = "auto"
    """Number by which the values of actions are divided before the softmax. auto: such that the
    teacher's most probable action has a probability of at least 0.75 in half of the situations."""
    until: Timesteps | None = None
    """Timestep from which the weight is 0; null: only the success rates decide."""
    keep_if_better: bool = True
    """Whether student and teacher play the same new episodes at the end. The run's best policy is
    then the teacher, unless the student has the higher mean reward."""


class DQNConfig(_AnyAlgorithm):
    """SB3's DQN with a compact replay. Names are SB3's, defaults those of its Atari presets."""

    collected_in: ClassVar[Literal["train_freq"]] = "train_freq"
    draws_actions: ClassVar[bool] = False
    memory: ClassVar[None] = None
    curiosity: ClassVar[None] = None
    has_q_network: ClassVar[bool] = True
    has_target_network: ClassVar[bool] = True
    is_in_sb3: ClassVar[bool] = True
    n_steps: ClassVar[None] = None
    n_epochs: ClassVar[None] = None
    target_kl: ClassVar[None] = None
    micro_batch_size: ClassVar[None] = None
    vf_coef: ClassVar[None] = None

    name: Annotated[Literal["dqn"], Role.NETWORK]
    """The algorithm."""
    replay: ReplayConfig = ReplayConfig()
    """The ring buffer of past timesteps that DQN learns from."""
    n_step: Annotated[int, Field(ge=1, le=100), Role.LEARNING] = 1
    """Number of timesteps whose rewards a target adds up before it adds the value of the next
    state."""
    double_q: Annotated[bool, Role.LEARNING] = False
    """Whether targets use double Q-learning: the network chooses the best next action, and the
    target network gives its value."""
    learning_starts: Annotated[int, Field(ge=0, le=10**12), Role.LEARNING] = 10_000
    """Number of timesteps, of all envs together, that are played at random before learning
    starts."""
    train_freq: Annotated[Count, Role.LEARNING] = 4
    """Number of vec steps between two updates; each vec step is n_envs timesteps."""
    gradient_steps: Annotated[int, Field(ge=0, le=1_000_000), Role.LEARNING] = 1
    """Number of gradient steps in one update; 0: the run plays and learns nothing."""
    target_update_interval: Annotated[Count, Role.LEARNING] = 10_000
    """Number of timesteps, of all envs together, between two updates of the target network."""
    tau: Annotated[float, Field(gt=0, le=1), Role.LEARNING] = 1.0
    """How far each such update moves the target network towards the network; 1 makes it a copy."""
    exploration: Annotated[ExplorationConfig, Role.LEARNING] = ExplorationConfig()
    """Exploration rate (the share of random actions) over the run."""
    teacher: Annotated[TeacherConfig | None, Role.LEARNING] = None
    """Policy of another run that the agent is drawn towards until it plays equally well; null:
    none."""
    layer_norm: Annotated[LayerNorm, Role.NETWORK] = "none"
    """Layer normalisation before each ReLU, including those of hidden layers and grids. none:
    nothing is normalised. channels: each position of a picture, over its channels. picture: all
    positions and channels together. Both normalise a layer of units over all of them."""
    learn_from: Annotated[LearnFromConfig | None, Role.LEARNING] = None
    """What DQN learns from in addition to its own play: Lakes of other runs, played episodes; null:
    nothing."""
    batch_size: Annotated[Count, Role.LEARNING] = 32
    """Timesteps in one gradient step."""
    gamma: Annotated[UnitInterval, Role.LEARNING] = 0.99
    """Discount of a reward one timestep away."""
    reward: Annotated[RewardConfig, Role.LEARNING] = RAW
    """What the algorithm makes of rewards before it learns from them."""
    learning_rate: Annotated[Schedule, Role.LEARNING] = 1e-4
    """Adam's step size: a number, or {start, end} for a straight line over the run."""
    max_grad_norm: Annotated[Positive, Role.LEARNING] = 10.0
    """Largest norm of the gradient; a longer gradient is scaled down to it."""
    network: Annotated[Network, Role.NETWORK] = NATURE
    """The network, as a section, or a features extractor of your own for Stable-Baselines3, as
    module:Class or {module:Class: {name: value}} with arguments, before hidden layers of [64, 64].
    Its module is a .py file next to this one or in the current folder, or is installed. It runs
    with your rights."""
    precision: Annotated[_Precision, Role.LEARNING] = "auto"
    """Precision of the screens' network. bf16 is faster on hardware that has it; auto takes it
    there. A run keeps the precision that it started with."""
    stats_window_size: Annotated[Count, Role.OUTPUT] = 100
    """Number of latest episodes in the logged means of reward and length."""

    @property
    def lakes(self) -> LearnFromConfig | None:
        """The section with the Lakes that it learns from; None if there are none."""
        settings = self.learn_from
        return None if settings is None or not settings.lakes else settings

    @property
    def played(self) -> PlayedForQ | None:
        """The played episodes that it learns from, if any."""
        return None if self.learn_from is None else self.learn_from.played

    @property
    def vec_steps_per_update(self) -> int:
        return self.train_freq

    @property
    def learns(self) -> bool:
        return self.gradient_steps > 0

    def minibatches_per_epoch(self, n_envs: int) -> None:  # noqa: ARG002
        return None

    def gradient_steps_per_update(self, n_envs: int) -> int:  # noqa: ARG002
        return self.gradient_steps

    def frames_of_a_sample(self, frame_stack: int) -> int:
        """As of any algorithm; with n_step = 1 both stacks share all frames but one."""
        return frame_stack + 1 if self.n_step == 1 else 2 * frame_stack

    def least_capacity(self, n_envs: int) -> int:
        """Return the smallest capacity of the replay: an n-step return of each env."""
        return n_envs * (self.n_step + 1)

    def with_least_storage(self, n_envs: int) -> Self:
        replay = ReplayConfig(capacity=self.least_capacity(n_envs))
        return self.model_copy(update={"replay": replay})

    def problems_in_run(self, *, n_envs: int, total_timesteps: int) -> Iterator[Problem]:
        """Yield what does not agree within this section or with the rest of the run."""
        capacity = self.replay.capacity
        batch = self.batch_size
        capacity_key = _at("replay", "capacity")
        capacity_reads = (("env", "n_envs"),)
        if batch > capacity:
            yield Problem(
                _at("batch_size"),
                f"{batch:,} is more than the replay holds, {capacity:,}; "
                f"use at most {capacity:,}, or a larger replay.capacity",
                (capacity_key,),
            )
        least = self.least_capacity(n_envs)
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
        if self.reward.normalize and self.learn_from is not None and self.learn_from.offline:
            yield Problem(
                _at("reward", "normalize"),
                "true, but in the phase before its first timestep (learn_from.offline) the run has "
                "no returns of its own to normalise by; use reward: {scale: 0.1} or another fixed "
                "factor instead, or remove offline",
                (_at("learn_from", "offline"), _at("name")),
            )
        yield from self.exploration.problems_in_run(total_timesteps=total_timesteps)
        yield from _diverging(self, "learning_rate")


class PQNExplorationConfig(ExplorationConfig):
    """The share of actions that are random instead of those with the highest value."""

    end: UnitInterval = 0.001
    """Exploration rate from `fraction` of the run on."""


class PQNConfig(_OnPolicyConfig):
    """PQN (Gallici et al. 2024): Q-learning on many envs without a replay or a target network.

    The defaults are those that its authors use for Atari, on 128 envs.
    """

    draws_actions: ClassVar[bool] = False
    memory: ClassVar[None] = None
    curiosity: ClassVar[None] = None
    has_q_network: ClassVar[bool] = True
    optimiser: ClassVar[Literal["adam", "radam"]] = "radam"
    target_kl: ClassVar[None] = None
    micro_batch_size: ClassVar[None] = None
    vf_coef: ClassVar[None] = None

    name: Annotated[Literal["pqn"], Role.NETWORK]
    """The algorithm."""
    n_steps: Annotated[Count, Role.LEARNING] = 32
    """Timesteps that each env plays between two updates; a rollout is n_steps x n_envs."""
    batch_size: Annotated[Count, Role.LEARNING] = 128
    """Timesteps in one gradient step; must divide n_steps x n_envs."""
    n_epochs: Annotated[int, Field(ge=0, le=1_000), Role.LEARNING] = 2
    """Number of passes over the whole rollout in one update; 0: the run plays and learns
    nothing."""
    q_lambda: Annotated[UnitInterval, Role.LEARNING] = 0.65
    """Lambda of the Q(lambda) targets: 0 trusts the value of the next state, 1 the returns."""
    gamma: Annotated[UnitInterval, Role.LEARNING] = 0.99
    """Discount of a reward one timestep away."""
    reward: Annotated[RewardConfig, Role.LEARNING] = RAW
    """What the algorithm makes of rewards before it learns from them."""
    learning_rate: Annotated[Schedule, Role.LEARNING] = 2.5e-4
    """RAdam's step size: a number, or {start, end} for a straight line over the run."""
    exploration: Annotated[PQNExplorationConfig, Role.LEARNING] = PQNExplorationConfig()
    """Exploration rate (the share of random actions) over the run."""
    layer_norm: Annotated[LayerNorm, Role.NETWORK] = "channels"
    """Layer normalisation before each ReLU, including those of hidden layers and grids. none:
    nothing is normalised. channels: each position of a picture, over its channels. picture: all
    positions and channels together. Both normalise a layer of units over all of them."""
    max_grad_norm: Annotated[Positive, Role.LEARNING] = 10.0
    """Largest norm of the gradient; a longer gradient is scaled down to it."""
    network: Annotated[Network, Role.NETWORK] = NATURE
    """The network, as a section, or a features extractor of your own for Stable-Baselines3, as
    module:Class or {module:Class: {name: value}} with arguments, before hidden layers of [64, 64].
    Its module is a .py file next to this one or in the current folder, or is installed. It runs
    with your rights."""
    precision: Annotated[_Precision, Role.LEARNING] = "auto"
    """Precision of the screens' network. bf16 is faster on hardware that has it; auto takes it
    there. A run keeps the precision that it started with."""
    learn_from: Annotated[PQNLearnFrom | None, Role.LEARNING] = None
    """What PQN learns from in addition to its own play; null: nothing."""
    stats_window_size: Annotated[Count, Role.OUTPUT] = 100
    """Number of latest episodes in the logged means of reward and length."""

    @property
    def played(self) -> PlayedForQ | None:
        """The played episodes that it learns from, if any."""
        return None if self.learn_from is None else self.learn_from.played

    @property
    def trace_decay(self) -> float:
        return self.q_lambda

    def problems_in_run(self, *, n_envs: int, total_timesteps: int) -> Iterator[Problem]:
        """Yield what does not agree within this section or with the rest of the run."""
        yield from _batch_problems(self.batch_size, n_steps=self.n_steps, n_envs=n_envs)
        yield from self.exploration.problems_in_run(total_timesteps=total_timesteps)
        yield from _diverging(self, "learning_rate")


def _name(section: Any) -> str:  # noqa: ANN401 - whatever a file has
    """Return the name of the algorithm that a section configures, PPO by default."""
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
    key = _at("batch_size")
    reads = (_at("n_steps"), ("env", "n_envs"))
    rollout = n_steps * n_envs
    product = _rollout_product(n_steps, n_envs)
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
    """Yield a problem for each value above 1 of these schedules."""
    for name in names:
        usual = type(config).model_fields[name].default
        for key, value in schedule_values(getattr(config, name)):
            if value > 1:
                message = f"{value:g} is more than 1: training diverges; the default is {usual:g}"
                yield Problem(_at(name, *key), message)


def _order_problems(before: RestartConfig, restart: RestartConfig, place: Key) -> Iterator[Problem]:
    reads = (place[:-1],)
    if restart.at <= before.at:
        yield Problem(
            (*place, "at"),
            f"{restart.at:,} is not after the restart before it, at {before.at:,}; "
            "write the earliest first, and each timestep once",
            reads,
        )
    elif restart.at < before.at + before.over:
        yield Problem(
            (*place, "at"),
            f"{restart.at:,} is within the restart before it, which goes from {before.at:,} to "
            f"{before.at + before.over:,}; use at least {before.at + before.over:,}, or shorten "
            f"that one to over: {restart.at - before.at:_}",
            reads,
        )


LEAST_VALIDATION_EPISODES = 200
"""A success rate of one half in 200 episodes has a standard error of 3.5 points."""
