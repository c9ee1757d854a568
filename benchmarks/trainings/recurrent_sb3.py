"""The training script that a user of sb3-contrib writes for a policy with a memory.

python -m benchmarks.trainings.recurrent_sb3 [--lstm-size 256] [--n-envs 8] [--updates 8] ...
"""

import argparse

from sb3_contrib import RecurrentPPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from benchmarks.trainings.duel_env import make_duel
from benchmarks.trainings.update_clock import UpdateClock
from benchmarks.trainings.work import Work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lstm-size", type=int, default=256)
    work, options = Work.parse(parser)
    env = make_vec_env(
        make_duel,
        n_envs=work.n_envs,
        vec_env_cls=SubprocVecEnv,
        env_kwargs=work.env_kwargs(),
    )
    model = RecurrentPPO(
        "CnnLstmPolicy",
        env,
        n_steps=work.n_steps,
        batch_size=work.batch_size,
        n_epochs=work.n_epochs,
        policy_kwargs={"lstm_hidden_size": options.lstm_size},
        device=work.device,
    )
    clock = UpdateClock()
    model.learn(work.total_timesteps, callback=clock)
    env.close()
    print(clock.to_json())


if __name__ == "__main__":
    main()
