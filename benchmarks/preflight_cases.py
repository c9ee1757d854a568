"""The runs that `benchmarks.preflight_accuracy` measures."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_CONFIGS = Path(__file__).parents[1] / "configs"
_GRADIENT_STEPS = 12  # the heap has reached its size by then
_FEWEST_UPDATES, _MOST_TIMESTEPS = 3, 20_000
_DQN_TIMESTEPS = 4_096
_DQN_BEGINS = 1_024
_SOURCE = "duel_pqn_lake"  # the run whose Lake and policy others learn from
_SOURCE_TIMESTEPS = 8_192


@dataclass(frozen=True)
class Case:
    """One row: a bundled config with these values.

    Attributes:
        n_steps: vec steps between two updates; DQN's train_freq.
        epochs: epochs of an update; for DQN, its gradient steps.
        config: name of the config's file.
        game: game to use instead of the config's, or None.
        has_lake: whether the run writes a Lake. If it does not, DQN's checkpoints save the replay.
        source: whether the run learns from another one's Lake, or has its policy as teacher; such
            rows have that run's pictures: half size, grey, four in a stack.
        updates: number of updates; None: three or more, until the heaps have their size.
        parts: parts of the observation; those of the game's `game.yaml`.
        has_screen: whether the agent sees the screen, too.
        memory: kind of the memory of PPO, of 256 units and sequences of 64 timesteps or fewer.
    """

    n_envs: int
    n_steps: int
    size: Literal["full", "half"]
    colour: Literal["grey", "rgb"]
    stack: int
    batch: int
    epochs: int
    precision: Literal["float32", "bf16"] = "float32"
    micro_batch: int | Literal["auto"] | None = None
    config: str = "duel_ppo"
    game: str | None = None
    has_lake: bool = False
    source: Literal["lake", "teacher"] | None = None
    updates: int | None = None
    parts: tuple[str, ...] = ()
    has_screen: bool = True
    memory: Literal["lstm", "gru"] | None = None

    @property
    def path(self) -> Path:
        return _CONFIGS / f"{self.config}.yaml"

    @property
    def algorithm(self) -> str:
        return self.config.rpartition("_")[2]

    @property
    def name(self) -> str:
        """The game, the algorithm, and for DQN the store of its timesteps."""
        kept = "" if self.algorithm != "dqn" else " lake" if self.has_lake else " pond"
        kept = {"lake": " learner", "teacher": " taught", None: kept}[self.source]
        seen = f" {'+'.join(self.parts)}" if self.parts else ""
        seen += "" if self.has_screen else " alone"
        seen += "" if self.memory is None else f" {self.memory}"
        return f"{self.game or self.config.partition('_')[0]} {self.algorithm}{kept}{seen}"

    @property
    def is_short(self) -> bool:
        """Whether the run ends before its third update."""
        return self._total // self._rollout < _FEWEST_UPDATES

    def overrides(self, run_dir: Path, source: Path, *, device: str) -> list[str]:
        """Return the words of a command line after the config.

        Args:
            source: directory of the run that `source_words` makes.
            device: of the network.
        """
        values: dict[str, object] = {
            "run_dir": run_dir,
            "device": device,
            "total_timesteps": self._total,
            "env.n_envs": self.n_envs,
            "env.frame_stack": self.stack,
            "env.observation.size": self.size,
            "env.observation.colour": self.colour,
            "env.observation.parts": f"[{', '.join(self.parts)}]",
            "env.observation.screen": str(self.has_screen).lower(),
            "algorithm.batch_size": self.batch,
            "algorithm.precision": self.precision,
            "lake": "{}" if self.has_lake else "null",
            "evaluation.every_timesteps": self._total,
            "evaluation.episodes": 4,
            "evaluation.final_episodes": 4,
            **self._learning(),
        }
        if self.source == "lake":
            values["algorithm.learn_from"] = f"{{lakes: [{source / 'lake'}]}}"
        if self.source == "teacher":
            values["algorithm.teacher"] = f"{{run: {source}, keep_if_better: false}}"
        if self.game is not None:
            values |= {"game": self.game, "env.start_states": "null"}
        return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]

    @property
    def _rollout(self) -> int:
        return self.n_envs * self.n_steps

    @property
    def _total(self) -> int:
        """Timesteps of the run, a multiple of an update's."""
        if self.algorithm == "dqn":
            return _DQN_TIMESTEPS // self._rollout * self._rollout
        if self.updates is not None:
            return self.updates * self._rollout
        wanted = _GRADIENT_STEPS // (self.epochs * (self._rollout // self.batch))
        updates = max(_FEWEST_UPDATES, min(wanted, _MOST_TIMESTEPS // self._rollout))
        return updates * self._rollout

    def _learning(self) -> dict[str, object]:
        if self.algorithm == "dqn":
            return {
                "algorithm.train_freq": self.n_steps,
                "algorithm.gradient_steps": self.epochs,
                "algorithm.learning_starts": _DQN_BEGINS,
                "algorithm.replay.capacity": _DQN_TIMESTEPS // 2,
                "checkpoints.save_replay_buffer": str(not self.has_lake).lower(),
                "checkpoints.every_timesteps": _DQN_TIMESTEPS // 4,
            }
        micro = {"algorithm.micro_batch_size": self.micro_batch or "null"}
        return {
            "algorithm.n_steps": self.n_steps,
            "algorithm.n_epochs": self.epochs,
            "checkpoints.every_timesteps": self._rollout,
            **(micro if self.algorithm == "ppo" else {}),
            **self._remembering(),
        }

    def _remembering(self) -> dict[str, object]:
        if self.memory is None:
            return {}
        sequence = math.gcd(self.n_steps, self.batch, 64)
        return {"algorithm.memory": f"{{kind: {self.memory}, sequence: {sequence}}}"}


def source_words(run_dir: Path) -> list[str]:
    """Return the arguments of `train.py` for the run that other rows learn from."""
    settings = (
        f"run_dir={run_dir}",
        "device=cpu",
        f"total_timesteps={_SOURCE_TIMESTEPS}",
        f"evaluation.every_timesteps={_SOURCE_TIMESTEPS}",
        "evaluation.episodes=4",
        "evaluation.final_episodes=4",
        "recording.episodes=0",
    )
    return [str(_CONFIGS / f"{_SOURCE}.yaml"), *settings]


def drawn_cases(count: int, seed: int) -> Iterator[Case]:
    """Yield rows whose values are drawn at random."""
    rng = random.Random(seed)
    for _ in range(count):
        size: Literal["half", "full"] = rng.choice(("half", "half", "full"))
        colour: Literal["grey", "rgb"] = rng.choice(("grey", "grey", "rgb"))
        precision: Literal["float32", "bf16"] = rng.choice(("float32", "bf16"))
        stack = rng.choice((1, 2, 3, 4))
        game = rng.choice(("duel", "beacon", "seasons"))
        algorithm = rng.choice(("ppo", "pqn", "dqn"))
        n_envs = rng.choice((1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64))
        batch = rng.choice((64, 96, 128, 192, 256, 384, 512))
        if algorithm == "dqn":
            yield Case(
                min(n_envs, 16), rng.choice((4, 8)), size, colour, stack, min(batch, 128), 2,
                precision, config="duel_dqn", game=game, has_lake=rng.random() < 0.5,
            )  # fmt: skip
        else:
            unit = batch // math.gcd(batch, n_envs)  # of n_steps: a rollout has whole batches
            n_steps = unit * rng.randint(1, max(1, 4_096 // (unit * n_envs)))
            config = f"{'duel' if algorithm == 'ppo' else 'beacon'}_{algorithm}"
            yield Case(
                n_envs, n_steps, size, colour, stack, batch, rng.choice((1, 2)), precision,
                config=config, game=game,
            )  # fmt: skip


CASES = (
    Case(8, 256, "half", "grey", 4, 256, 4, "bf16"),
    Case(8, 128, "half", "grey", 4, 64, 2, "float32"),
    Case(2, 256, "half", "grey", 4, 512, 3, "bf16"),
    Case(4, 512, "half", "grey", 1, 1024, 2, "float32"),
    Case(8, 512, "half", "grey", 4, 1024, 2, "float32"),
    Case(8, 512, "half", "grey", 4, 2048, 1, "bf16"),
    Case(16, 128, "half", "grey", 2, 512, 4, "float32"),
    Case(1, 512, "half", "grey", 4, 128, 2, "bf16"),
    Case(4, 128, "half", "rgb", 4, 256, 2, "float32"),
    Case(4, 128, "full", "grey", 4, 64, 2, "bf16"),
    Case(8, 128, "full", "grey", 4, 256, 1, "float32"),
    Case(2, 512, "full", "grey", 2, 128, 2, "float32"),
    Case(4, 256, "full", "grey", 4, 1024, 1, "bf16"),
    Case(8, 256, "full", "grey", 4, 512, 1, "float32"),
    Case(2, 256, "full", "rgb", 4, 128, 2, "bf16"),
    Case(16, 256, "half", "grey", 4, 4096, 1, "float32"),
    Case(32, 64, "half", "grey", 4, 512, 2, "bf16"),
    Case(64, 32, "half", "grey", 4, 256, 1, "float32"),
    Case(2, 1024, "half", "rgb", 2, 256, 2, "bf16"),
    Case(12, 128, "half", "grey", 3, 384, 3, "float32"),
    Case(2, 512, "full", "rgb", 4, 256, 1, "float32"),
    Case(8, 256, "full", "grey", 4, 128, 1, "bf16"),
    Case(16, 64, "full", "grey", 1, 1024, 2, "float32"),
    Case(6, 200, "full", "rgb", 1, 300, 2, "bf16"),
    Case(2, 2048, "full", "rgb", 4, 1024, 1, "float32", 128),
    Case(64, 64, "half", "grey", 4, 1024, 1, "bf16", 256),
    Case(4, 512, "full", "grey", 4, 1024, 1, "bf16", 256),
    Case(8, 512, "half", "grey", 4, 2048, 2, "float32", 512),
    Case(16, 128, "half", "rgb", 4, 2048, 2, "float32", 1024),
    Case(2, 512, "full", "rgb", 4, 1024, 1, "bf16", 64),
    Case(10, 96, "half", "grey", 4, 192, 2, "bf16"),
    Case(3, 400, "full", "grey", 3, 240, 2, "float32"),
    Case(24, 64, "half", "rgb", 3, 768, 1, "float32"),
    Case(5, 256, "full", "rgb", 2, 160, 1, "bf16"),
    Case(20, 100, "half", "grey", 2, 1000, 2, "bf16", 250),
    Case(6, 256, "full", "grey", 4, 768, 1, "float32", 96),
    Case(14, 112, "half", "grey", 4, 224, 2, "bf16"),
    Case(7, 180, "half", "rgb", 4, 420, 1, "bf16"),
    Case(2, 600, "full", "rgb", 3, 200, 1, "float32"),
    Case(9, 160, "full", "grey", 2, 480, 2, "bf16"),
    Case(40, 50, "half", "grey", 3, 500, 3, "float32", 125),
    Case(3, 900, "full", "rgb", 4, 900, 1, "bf16", 90),
    Case(2, 512, "full", "rgb", 4, 512, 1, "bf16", "auto"),
    Case(4, 256, "full", "rgb", 4, 1024, 1, "float32", "auto", config="seasons_ppo"),
    Case(8, 128, "half", "grey", 4, 256, 4, "bf16", config="seasons_ppo"),
    Case(8, 128, "half", "rgb", 4, 256, 2, "float32", config="seasons_ppo"),
    Case(4, 256, "full", "grey", 4, 256, 1, "float32", config="seasons_ppo"),
    Case(3, 300, "full", "rgb", 4, 180, 2, "bf16", config="seasons_ppo"),
    Case(16, 32, "half", "grey", 4, 128, 2, "bf16", config="seasons_pqn"),
    Case(8, 64, "half", "rgb", 4, 128, 2, "float32", config="seasons_pqn"),
    Case(6, 64, "full", "rgb", 4, 128, 1, "bf16", config="seasons_pqn"),
    Case(8, 4, "half", "grey", 4, 64, 1, "bf16", config="duel_dqn", game="seasons"),
    Case(8, 8, "half", "rgb", 4, 64, 2, "float32", config="duel_dqn", game="seasons"),
    Case(4, 8, "full", "rgb", 4, 32, 1, "bf16", config="duel_dqn", game="seasons"),
    Case(
        8, 4, "half", "grey", 4, 64, 1, "float32", config="duel_dqn", game="seasons", has_lake=True
    ),
    Case(6, 8, "half", "rgb", 4, 64, 2, "bf16", config="duel_dqn", game="seasons", has_lake=True),
    Case(4, 8, "full", "rgb", 4, 32, 1, "bf16", config="duel_dqn", game="seasons", has_lake=True),
    Case(8, 128, "half", "grey", 4, 256, 4, "bf16", config="beacon_ppo"),
    Case(4, 256, "full", "rgb", 4, 512, 1, "bf16", "auto", config="beacon_ppo"),
    Case(16, 32, "half", "grey", 4, 128, 2, "float32", config="beacon_pqn"),
    Case(6, 64, "full", "rgb", 4, 128, 1, "float32", config="beacon_pqn"),
    Case(8, 4, "half", "grey", 4, 64, 1, "bf16", config="duel_dqn", game="beacon"),
    Case(
        4, 8, "full", "grey", 4, 32, 1, "float32", config="duel_dqn", game="beacon", has_lake=True
    ),
    Case(32, 128, "half", "grey", 4, 512, 4, "bf16", config="beacon_ppo"),
    Case(32, 128, "half", "grey", 4, 512, 4, "bf16", config="seasons_ppo"),
    Case(8, 4, "half", "grey", 4, 64, 2, "bf16", config="duel_dqn", source="lake"),
    Case(4, 8, "half", "grey", 4, 128, 1, "float32", config="duel_dqn", source="lake"),
    Case(8, 4, "half", "grey", 4, 64, 2, "bf16", config="duel_dqn", source="teacher"),
    Case(4, 8, "half", "grey", 4, 128, 1, "float32", config="duel_dqn", source="teacher"),
    Case(64, 16, "half", "grey", 4, 256, 2, "bf16", config="duel_pqn"),
    Case(1, 256, "half", "grey", 4, 64, 2, "float32", config="duel_pqn"),
    Case(32, 64, "half", "grey", 2, 128, 6, "bf16", updates=1),
    Case(8, 256, "half", "grey", 4, 256, 4, "bf16", updates=2),
    Case(4, 128, "full", "rgb", 4, 64, 2, "float32", updates=1),
    Case(16, 64, "half", "grey", 2, 128, 6, "float32", updates=2),
    Case(8, 256, "half", "grey", 4, 256, 4, parts=("status",), has_screen=False),
    Case(8, 256, "half", "grey", 4, 256, 2, "bf16", parts=("status",)),
    Case(
        8, 256, "half", "grey", 4, 256, 2, config="seasons_ppo", parts=("status", "tiles"),
        has_screen=False,
    ),
    Case(8, 128, "half", "grey", 4, 256, 2, "bf16", config="seasons_ppo", parts=("tiles",)),
    Case(16, 32, "half", "grey", 4, 128, 2, config="seasons_pqn", parts=("status", "tiles")),
    Case(
        8, 4, "half", "grey", 4, 64, 1, config="duel_dqn", game="seasons", has_lake=True,
        parts=("status", "tiles"),
    ),
    Case(8, 4, "half", "grey", 4, 64, 1, "bf16", config="duel_dqn", parts=("status",)),
    Case(
        8, 4, "half", "grey", 4, 64, 1, config="duel_dqn", has_lake=True, parts=("status",),
        has_screen=False,
    ),
    Case(8, 128, "half", "grey", 1, 256, 4, "bf16", memory="lstm"),
    Case(8, 128, "half", "grey", 1, 256, 4, "float32", memory="gru"),
    Case(8, 128, "half", "grey", 1, 256, 4, "bf16", updates=20, memory="lstm"),
)  # fmt: skip


@dataclass(frozen=True)
class ExperimentCase:
    """A row that is an experiment: a bundled config, shortened.

    Attributes:
        settings: further keys to override.
    """

    name: str
    config: str
    settings: tuple[str, ...]

    def words(self, run_dir: Path) -> list[str]:
        """Return the arguments of `train.py`."""
        short = ("champion.episodes=4", "champion.candidates=1", "fitness.episodes=4")
        settings = (f"run_dir={run_dir}", "member.device=cpu", *short, *self.settings)
        return [str(_CONFIGS / f"{self.config}.yaml"), *settings]


EXPERIMENTS = (
    ExperimentCase(
        "population, 2 at once",
        "duel_population",
        ("members=2", "generations=2", "timesteps_per_generation=4096", "executor.parallel=2"),
    ),
    ExperimentCase(
        "population, 1 at once",
        "duel_population",
        ("members=2", "generations=1", "timesteps_per_generation=4096", "executor.parallel=1"),
    ),
    ExperimentCase(
        "population, 4 at once",
        "duel_population",
        ("members=4", "generations=2", "timesteps_per_generation=4096", "executor.parallel=4"),
    ),
    ExperimentCase(
        "mixture",
        "duel_mixture",
        (
            "members=2",
            "rounds=1",
            "timesteps_per_round=8192",
            "learner.device=cpu",
            "learner_per_round={gradient_steps: 200, timesteps: 2048}",
            "learner.algorithm.learning_starts=512",
        ),
    ),
)
