"""The run config: every knob a user turns, and every check that two of them agree."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_Positive = Annotated[int, Field(gt=0)]
_UnitInterval = Annotated[float, Field(ge=0, le=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LinearSchedule(_Section):
    """From `start` at timestep 0 to `end` at `total_timesteps`, in a straight line."""

    start: Annotated[float, Field(ge=0)]
    end: Annotated[float, Field(ge=0)]


Schedule = Annotated[float, Field(ge=0)] | LinearSchedule


class ObservationConfig(_Section):
    """What the agent sees of a frame."""

    size: Literal["full", "half"] = "half"
    colour: Literal["grey", "rgb"] = "grey"


class EnvConfig(_Section):
    n_envs: _Positive = 8
    n_workers: _Positive | None = None
    frame_skip: _Positive = 4
    frame_stack: _Positive = 4
    max_episode_timesteps: _Positive | None = 1_000
    start_states: tuple[str, ...] | None = None
    max_idle_frames: Annotated[int, Field(ge=0)] = 30
    observation: ObservationConfig = ObservationConfig()
    worker_timeout_s: Annotated[float, Field(gt=0)] = 60.0


class PPOConfig(_Section):
    """SB3's PPO; names and defaults are SB3's where it has them."""

    name: Literal["ppo"] = "ppo"
    n_steps: _Positive = 256
    batch_size: _Positive = 256
    n_epochs: _Positive = 4
    learning_rate: Schedule = 3e-4
    clip_range: Schedule = 0.2
    clip_range_vf: Schedule | None = None
    gamma: _UnitInterval = 0.99
    gae_lambda: _UnitInterval = 0.95
    normalize_advantage: bool = True
    ent_coef: Annotated[float, Field(ge=0)] = 0.0
    vf_coef: Annotated[float, Field(ge=0)] = 0.5
    max_grad_norm: Annotated[float, Field(gt=0)] = 0.5
    target_kl: Annotated[float, Field(gt=0)] | None = None
    stats_window_size: _Positive = 100


class EvaluationConfig(_Section):
    every_timesteps: _Positive = 50_000
    episodes: _Positive = 20
    final_episodes: _Positive = 100
    n_envs: _Positive = 4
    deterministic: bool = True


class CheckpointsConfig(_Section):
    every_timesteps: _Positive = 100_000
    keep_last: _Positive = 3
    save_replay_buffer: bool = False


class RecordingConfig(_Section):
    """The clip of the best policy made when training ends."""

    episodes: Annotated[int, Field(ge=0)] = 2
    format: Literal["gif", "mp4"] = "gif"


class RunConfig(_Section):
    game: str
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    total_timesteps: _Positive
    run_dir: Path
    device: Annotated[str, Field(pattern=r"^(auto|cpu|cuda(:\d+)?)$")] = "auto"
    env: EnvConfig = EnvConfig()
    algorithm: PPOConfig = PPOConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checkpoints: CheckpointsConfig = CheckpointsConfig()
    recording: RecordingConfig = RecordingConfig()

    @model_validator(mode="after")
    def _batch_divides_rollout(self) -> Self:
        return self
