"""The training of rl_zoo3 with its settings for Atari games (`hyperparams/ppo.yml`, `atari`).

    python -m benchmarks.trainings.rl_zoo [--vec-env dummy|subproc] [--updates 8] ...

As in `ExperimentManager`, there are a Monitor with a file for each env, a DummyVecEnv (unless
`--vec-env` says otherwise), VecFrameStack, VecTransposeImage, schedules that fall linearly to 0, a
seed, and torch's own number of threads. Evaluations are left out, as for all peers. The settings'
n_envs, n_steps, n_epochs and batch_size are the defaults of `Work`; options can change them.
"""

import argparse
import tempfile
from collections.abc import Callable

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecTransposeImage,
)

from benchmarks.trainings.duel_env import make_duel
from benchmarks.trainings.update_clock import UpdateClock
from benchmarks.trainings.work import FRAME_STACK, Work

_SEED = 0


def linear(start: float) -> Callable[[float], float]:
    return lambda progress_remaining: progress_remaining * start


def train(work: Work, vec_env: str, log_folder: str) -> UpdateClock:
    set_random_seed(_SEED)
    env = make_vec_env(
        make_duel,
        n_envs=work.n_envs,
        seed=_SEED,
        monitor_dir=log_folder,
        vec_env_cls=SubprocVecEnv if vec_env == "subproc" else DummyVecEnv,
        env_kwargs=work.env_kwargs(),
    )
    env = VecTransposeImage(VecFrameStack(env, FRAME_STACK))
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=work.n_steps,
        batch_size=work.batch_size,
        n_epochs=work.n_epochs,
        learning_rate=linear(2.5e-4),
        clip_range=linear(0.1),
        vf_coef=0.5,
        ent_coef=0.01,
        seed=_SEED,
        device=work.device,
    )
    clock = UpdateClock()
    model.learn(work.total_timesteps, callback=clock)
    env.close()
    return clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vec-env", choices=["dummy", "subproc"], default="dummy")
    work, options = Work.parse(parser)
    with tempfile.TemporaryDirectory() as log_folder:
        print(train(work, options.vec_env, log_folder).to_json())


if __name__ == "__main__":
    main()
