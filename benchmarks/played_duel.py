"""What five recorded fights are worth on `duel`: timesteps until PPO wins 90 % of its fights.

    python -m benchmarks.played_duel --folder FOLDER [--arms alone played ...] [--seeds 0 1 2]

A scripted player that has a person's delays fights five times on level 1. Each arm is a training of
`configs/duel_ppo.yaml` (pictures) or `configs/duel_variables_ppo.yaml` that ends when 90 % of fresh
fights are won, or after all its timesteps. The arms, each with `_pictures` for pictures:

    alone       PPO
    played      algorithm.learn_from.played with its defaults
    cloned      the same without `imitate`
    imitating   the same without `clone`

An arm and seed that has a result in the folder is not run again. Ctrl-C and the same command go on.
"""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

import game_rl
from benchmarks.arms import Experiment, Result, Task, game_rl_errors
from benchmarks.recorded_play import RecordedGame
from tests.games.duel_player import Duel, sensible_player, start_state

_ARMS: Mapping[str, Sequence[str]] = {
    "alone": (),
    "played": ("algorithm.learn_from={played: {episodes: EPISODES}}",),
    "cloned": ("algorithm.learn_from={played: {episodes: EPISODES, imitate: null}}",),
    "imitating": ("algorithm.learn_from={played: {episodes: EPISODES, clone: null}}",),
}
_PICTURES = "_pictures"
_FIGHTS = 5
_LONGEST_FRAMES = 6_000


def record_fights(folder: Path) -> Result:
    """Record five fights, and return how many were won."""
    won = 0
    rng = np.random.default_rng(0)
    with closing(Duel()) as duel:
        for seed in range(1, _FIGHTS + 1):
            duel.load(start_state(1), seed)
            game = RecordedGame(
                console=duel,
                name="duel",
                start_state="level_1",
                game_seed=seed,
                is_over=lambda: duel["fight_result"] != 0,
                has_won=lambda: duel["fight_result"] == 1,
                longest_frames=_LONGEST_FRAMES,
            )
            won += game.record(lambda: sensible_player(duel, 0, rng), folder / f"{seed}.json")
    return {"won": won}


def trained(arm: str, seed: int, timesteps: int, run_dir: Path, episodes: Path) -> Result:
    """Train an arm until it wins 90 %, and return the timestep; None if it does not."""
    name = "duel_ppo" if arm.endswith(_PICTURES) else "duel_variables_ppo"
    changes = [
        change.replace("EPISODES", f"'{episodes}/*.json'")
        for change in _ARMS[arm.removesuffix(_PICTURES)]
    ]
    changes += [
        f"total_timesteps={timesteps}",
        "evaluation.every_timesteps=5_000",
        "stop_when={success_rate: 0.9, evaluations: 1, confirm_episodes: 100}",
        "recording.episodes=0",
        f"seed={seed}",
        f"run_dir={run_dir}",
    ]
    if run_dir.exists():
        result = game_rl.resume(run_dir, progress=False)
    else:
        result = game_rl.train(game_rl.load_config(name, *changes), progress=False)
    success = None if result.evaluation is None else result.evaluation.success_rate
    return {"timesteps": result.timesteps if result.ended_by else None, "success": success}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arms = [*_ARMS, *(arm + _PICTURES for arm in _ARMS)]
    parser.add_argument("--folder", type=Path, required=True, help="of runs and results")
    parser.add_argument("--arms", nargs="+", default=arms, choices=arms)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--timesteps", type=int, default=150_000)
    arguments = parser.parse_args()
    experiment = Experiment(arguments.folder, {"timesteps": arguments.timesteps})
    episodes = (arguments.folder / "fights").resolve()

    def task(arm: str, seed: int) -> Task:
        name = f"{arm}_{seed}"
        run_dir = experiment.run_dir(name).resolve()
        return Task(name, 100, lambda: trained(arm, seed, arguments.timesteps, run_dir, episodes))

    recorded = Task("fights", 10, lambda: record_fights(episodes))
    tasks = {(arm, seed): task(arm, seed) for seed in arguments.seeds for arm in arguments.arms}
    with game_rl_errors():
        experiment.open()
        experiment.run([recorded, *tasks.values()])
    print(f"{_FIGHTS} recorded fights, {experiment.results['fights']['won']} won")
    print(
        f"timesteps until 90 % of fresh fights are won, by seed (at most {arguments.timesteps:,}):"
    )
    for arm in arguments.arms:
        found = [experiment.results[tasks[arm, seed].name]["timesteps"] for seed in arguments.seeds]
        print(f"{arm:<22}" + "".join(f"{'never' if at is None else f'{at:,}':>10}" for at in found))


if __name__ == "__main__":
    main()
