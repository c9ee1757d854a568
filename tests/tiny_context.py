"""The BuildContext of an algorithm that plays TinyEnv."""

from stable_baselines3.common.vec_env import VecEnv

from game_rl.algorithms.algorithm import BuildContext
from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.system.placement import Placement, Precision
from tests.tiny_env import FRAME


def tiny_context(
    vec_env: VecEnv,
    *,
    frame_stack: int = 1,
    seed: int = 0,
    schedule_timesteps: int = 1_000,
    precision: Precision = "float32",
) -> BuildContext:
    return BuildContext(
        vec_env=vec_env,
        observation_format=ObservationFormat(FramePacking(FRAME), frame_stack),
        seed=seed,
        placement=Placement("cpu", precision),
        schedule_timesteps=schedule_timesteps,
    )
