"""What each ingredient is worth where rewards are far away: short trainings of `beacon`.

    game-rl explore beacon --output explored/beacon --timesteps 2_200_000
    python -m benchmarks.far_rewards --folder FOLDER [--arms all no_pool ...] [--seeds 0]

Each arm is the beginning of `configs/beacon_explored_variables_ppo.yaml`, changed in one point,
and plays 200 fresh episodes from each start state, in which its actions are drawn. The table has
the mean of keys and doors, 12 for the whole game, of which 4 are done at `caves` and 8 at
`lighthouse`. The arms:

    all            as the config is
    ppo            without pool and potential, from `shore` alone: PPO
    no_pool        without the pool
    no_potential   without the reward from the map
    uniform        states of the pool drawn evenly
    by_success     states of the pool drawn by the success from there
    backward       beginnings go back along the best route (Salimans and Chen 2018)
    cloned         the policy first imitates the best routes to the lamp, at most 20
    memory         an LSTM of 256 units sees one moment at a time, instead of three
    one_moment     the agent sees one moment at a time and has no memory
    rnd            ppo, with random network distillation of all that the agent sees
    rnd_place      ppo, with that of keys, doors, room and position, in which no creature is new

An arm and seed that has a result in the folder is not run again. Ctrl-C and the same command go on;
only the networks of `rnd_place` begin anew then.
"""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

import game_rl
from benchmarks.arms import Experiment, Result, Task, game_rl_errors
from benchmarks.curiosity import PartialCuriosity
from game_rl.envs.make_env import make_observation_format
from game_rl.explore.archive import known_routes
from game_rl.explore.explore_dir import ExploreDir
from game_rl.games.definition import load_game

_CONFIG = "beacon_explored_variables_ppo"
_FROM_SHORE = ("env.start_states=[shore]",)
_ALONE = ("env.pool=null", "env.rewards={}", *_FROM_SHORE)
_CHANGES: Mapping[str, Sequence[str]] = {
    "all": (),
    "ppo": _ALONE,
    "no_pool": ("env.pool=null",),
    "no_potential": ("env.rewards={}",),
    "uniform": ("env.pool.choose=uniform",),
    "by_success": ("env.pool.choose=success",),
    "backward": ("env.pool.choose=backward", "env.pool.goal=success"),
    "cloned": (),
    "memory": (
        "env.frame_stack=1",
        "algorithm.memory={kind: lstm, size: 256, sequence: 64}",
    ),
    "one_moment": ("env.frame_stack=1",),
    "rnd": (*_ALONE, "algorithm.curiosity={kind: rnd, coef: 0.5, gamma: 0.99}"),
    "rnd_place": _ALONE,
}
_STARTS = ("shore", "caves", "lighthouse")
_EPISODES = 200
_SEED = 9000
_N_ROUTES = 20
_EPOCHS = 10
_BATCH_SIZE = 512


class ImitatingFirst(BaseCallback):
    """Before the first timestep, teaches the policy the actions of an exploration's best routes.

    It minimises the negative log-likelihood of the actions (behavioural cloning).

    Args:
        config: of the training.
        exploration: folder of the exploration.
    """

    def __init__(self, config: game_rl.RunConfig, exploration: Path) -> None:
        super().__init__()
        self._config = config
        self._exploration = exploration

    def _on_step(self) -> bool:
        return True

    def _on_training_start(self) -> None:
        if self.model.num_timesteps:
            return
        observations, actions = _routes_played(self._config, self._exploration)
        policy = self.model.policy
        for _ in range(_EPOCHS):
            for batch in torch.randperm(len(actions)).split(_BATCH_SIZE):
                chosen = {
                    name: torch.from_numpy(part[batch]) for name, part in observations.items()
                }
                _, log_prob, _ = policy.evaluate_actions(chosen, torch.from_numpy(actions[batch]))
                policy.optimizer.zero_grad()
                (-log_prob.mean()).backward()
                policy.optimizer.step()


def _routes_played(
    config: game_rl.RunConfig, exploration: Path
) -> tuple[dict[str, NDArray[np.generic]], NDArray[np.int64]]:
    """Return what the agent sees on the routes, [timesteps, ...], and the actions."""
    folder = ExploreDir(exploration)
    settings = folder.read().settings
    routes = known_routes(folder.archive, _N_ROUTES, to_success=True)
    seen: list[dict[str, NDArray[np.generic]]] = []
    taken: list[int] = []
    as_explored = ("env.start_states=null", f"env.max_episode_timesteps={10**9}")
    whole = game_rl.load_config(config, *_ALONE, *as_explored)
    with closing(game_rl.make_env(whole)) as env:
        for route in routes:
            observation, _ = env.reset(
                seed=settings.seed, options={"start_state": settings.start_state}
            )
            for action in route.actions:
                seen.append(observation)
                taken.append(action)
                observation, *_ = env.step(action)
    names = list(seen[0])
    return {name: np.stack([each[name] for each in seen]) for name in names}, np.array(taken)


def _callbacks(arm: str, config: game_rl.RunConfig, exploration: Path) -> list[BaseCallback]:
    if arm == "cloned":
        return [ImitatingFirst(config, exploration)]
    if arm != "rnd_place":
        return []
    form = make_observation_format(config.env, load_game(config.game))
    (n_moving,) = dict(form.parts)["moving"].shape
    position = slice(-n_moving, 2 - n_moving)  # of the newest moment, which is the last
    seen = {"moving": position, "status": slice(0, 12), "room": slice(None)}
    return [PartialCuriosity(form, seen)]


def trained(arm: str, seed: int, timesteps: int, run_dir: Path, exploration: Path) -> Result:
    """Train an arm up to a timestep, and return keys and doors by start state."""
    place = (
        ()
        if arm in ("ppo", "rnd", "rnd_place")
        else (f"env.rewards.progress.potential={exploration}", f"env.pool.from={exploration}")
    )
    changes = [*place, *_CHANGES[arm], f"seed={seed}", f"run_dir={run_dir}"]
    config = game_rl.load_config(_CONFIG, *changes)
    callbacks = _callbacks(arm, config, exploration)
    if run_dir.exists():
        game_rl.resume(run_dir, until=timesteps, callbacks=callbacks, progress=False)
    else:
        game_rl.train(config, until=timesteps, callbacks=callbacks, progress=False)
    found: Result = {}
    for start in _STARTS:
        result = game_rl.evaluate(
            run_dir,
            "latest",
            episodes=_EPISODES,
            deterministic=False,
            seed=_SEED,
            start_state=start,
        )
        sums = [end.variables["keys"] + end.variables["doors"] for end in result.ends]
        found[start] = round(float(np.mean(sums)), 2)
        found[f"{start}_won"] = result.success_rate
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="of runs and results")
    parser.add_argument("--exploration", type=Path, default=Path("explored/beacon"))
    parser.add_argument("--arms", nargs="+", default=list(_CHANGES), choices=list(_CHANGES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--timesteps", type=int, default=1_500_000)
    arguments = parser.parse_args()
    experiment = Experiment(arguments.folder, {"timesteps": arguments.timesteps})
    exploration = arguments.exploration.resolve()

    def task(arm: str, seed: int) -> Task:
        name = f"{arm}_{seed}"
        run_dir = experiment.run_dir(name).resolve()
        return Task(
            name, 700, lambda: trained(arm, seed, arguments.timesteps, run_dir, exploration)
        )

    tasks = [task(arm, seed) for seed in arguments.seeds for arm in arguments.arms]
    with game_rl_errors():
        experiment.open()
        experiment.run(tasks)
    print(f"keys and doors of 12 after {arguments.timesteps:,} timesteps, and games won, from")
    print(f"{'':<16}" + "".join(f"{start:>18}" for start in _STARTS))
    for each in tasks:
        result = experiment.results[each.name]
        cells = [f"{result[start]:>10.2f} {result[f'{start}_won']:>6.1%}" for start in _STARTS]
        print(f"{each.name:<16}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main()
