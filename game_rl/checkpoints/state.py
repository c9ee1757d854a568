"""What the files of a checkpoint say in words and numbers."""

from typing import Annotated

from pydantic import Field, JsonValue, model_validator

from game_rl.checkpoints.evaluation_files import was_deterministic
from game_rl.checkpoints.log import LogState
from game_rl.checkpoints.random_numbers import RandomNumbers
from game_rl.config.saved import Blob, Saved
from game_rl.envs.game_boy_env import EnvState

_Count = Annotated[int, Field(ge=0)]


class Best(Saved):
    """The best evaluation of a run so far, and the checkpoint that gave it."""

    timesteps: _Count
    mean_reward: float
    offline_gradient_steps: _Count = 0
    """Of a checkpoint of the phase before the first timestep; 0: it is none of those."""
    deterministic: bool = True
    """Whether the policy took its likeliest actions, or drew them."""
    seed: int | None = None
    """`evaluation.seed` then, which has chosen the games."""


class CheckpointState(Saved):
    """What a checkpoint is of; small, so that many can be listed."""

    num_timesteps: _Count
    """Timesteps that the weights have learned from."""
    n_updates: _Count
    """SB3's counter of epochs done."""
    offline_gradient_steps: _Count = 0
    """Of those, before the first timestep."""
    schedule_timesteps: Annotated[int, Field(gt=0)]
    """What schedules are stretched over: the `total_timesteps` that the run began with."""
    best: Best | None
    evaluation_due: bool = False
    """At this moment; a stop has broken it off."""
    events_bytes: _Count = 0
    """Length of the run's account of events."""
    rom_sha256: str
    config: dict[str, JsonValue]
    """The run's config then."""
    game: dict[str, JsonValue]
    """Its game file then."""
    versions: dict[str, str]
    computing: dict[str, str]

    @model_validator(mode="before")
    @classmethod
    def _best_of_the_last_release(cls, data: object) -> object:
        """It does not say how it was played: the config then was true or false."""
        if not isinstance(data, dict) or not isinstance(data.get("best"), dict):
            return data
        way = was_deterministic(data.get("config"))
        return data | {"best": {"deterministic": way} | data["best"]}


class Episode(Saved):
    """One of the last episodes, as SB3 keeps them for `rollout/ep_rew_mean`."""

    reward: float
    length: int
    seconds: float


class TrainingState(Saved):
    """The state of everything around the network."""

    random: RandomNumbers | None
    """None: in a fork with another seed, all generators begin anew."""
    log: LogState
    n_episodes: _Count
    episodes: tuple[Episode, ...]
    successes: tuple[float, ...]
    envs: tuple[EnvState, ...] | None
    """None: a worker had died just then, the envs are not ours, or a fork has others; new episodes
    begin."""
    seeds: tuple[int | None, ...]
    evaluations: str
    """The run's table of evaluations so far."""
    evaluation_episodes: Blob = b""
    """Its file of their episodes."""
    algorithm: dict[str, JsonValue]
    """What it alone keeps, such as how much DQN explores; empty: nothing, or it begins anew."""
