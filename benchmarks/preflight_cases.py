"""The runs that `benchmarks.preflight_accuracy` measures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_CONFIGS = Path(__file__).parents[1] / "configs"
_GRADIENT_STEPS = 12  # the heap has reached its size by then
_FEWEST_UPDATES, _MOST_TIMESTEPS = 3, 20_000
_DQN_TIMESTEPS = 4_096
_DQN_BEGINS = 1_024


@dataclass(frozen=True)
class Case:
    """One row: a bundled config with these values.

    Attributes:
        n_steps: vec steps between two updates; DQN's train_freq.
        epochs: epochs of an update; for DQN, its gradient steps.
        config: name of the config's file.
        game: game to use instead of the config's, or None.
        has_lake: whether the run writes a Lake. If it does not, DQN's checkpoints save the replay.
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
        return f"{self.game or self.config.partition('_')[0]} {self.algorithm}{kept}"

    def overrides(self, run_dir: Path) -> list[str]:
        values: dict[str, object] = {
            "run_dir": run_dir,
            "device": "cpu",
            "total_timesteps": self._total,
            "env.n_envs": self.n_envs,
            "env.frame_stack": self.stack,
            "env.observation.size": self.size,
            "env.observation.colour": self.colour,
            "algorithm.batch_size": self.batch,
            "algorithm.precision": self.precision,
            "lake": "{}" if self.has_lake else "null",
            "evaluation.every_timesteps": self._total,
            "evaluation.episodes": 4,
            "evaluation.final_episodes": 4,
            **self._learning(),
        }
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
        }


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
)
