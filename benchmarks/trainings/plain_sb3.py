"""The training script that a user of SB3 writes: all defaults, as in its documentation.

python -m benchmarks.trainings.plain_sb3 [--n-envs 8] [--updates 8] ...
"""

import argparse

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack

from benchmarks.trainings.duel_env import make_duel
from benchmarks.trainings.update_clock import UpdateClock
from benchmarks.trainings.work import FRAME_STACK, Work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-threads", type=int, help="default: torch's own choice")
    work, options = Work.parse(parser)
    if options.torch_threads is not None:
        torch.set_num_threads(options.torch_threads)
    env = make_vec_env(
        make_duel,
        n_envs=work.n_envs,
        vec_env_cls=SubprocVecEnv,
        env_kwargs=work.env_kwargs(),
    )
    env = VecFrameStack(env, FRAME_STACK)
    model = PPO(
        "CnnPolicy",
        env,
        n_steps=work.n_steps,
        batch_size=work.batch_size,
        n_epochs=work.n_epochs,
        device=work.device,
    )
    clock = UpdateClock()
    model.learn(work.total_timesteps, callback=clock)
    env.close()
    print(clock.to_json())


if __name__ == "__main__":
    main()
