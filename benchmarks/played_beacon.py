"""What ten recorded games are worth on `beacon`: PPO with and without them.

    python -m benchmarks.played_beacon --folder FOLDER [--arms played alone ...] [--seeds 0]

A scripted player that has a person's delays plays ten games from `shore`. They are recorded with
the buttons of every frame. Each arm is a training from `shore` at a frame skip of 8, on variables
or on pictures, and plays 200 fresh episodes. The table has the mean of keys and doors, 12 for the
whole game, and how many games were won. The arms, each with `_pictures` for pictures:

    alone       PPO
    played      algorithm.learn_from.played with its defaults
    cloned      the same without `imitate`
    imitating   the same without `clone`
    backward    played, and episodes begin backward along the games that were won

An arm and seed that has a result in the folder is not run again. Ctrl-C and the same command go on.
"""

import argparse
import json
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

import game_rl
from benchmarks.arms import Experiment, Result, Task, game_rl_errors
from benchmarks.recorded_play import RecordedGame
from tests.games.beacon_player import (
    LONGEST_EPISODE,
    PARTS,
    WAYS,
    Beacon,
    ScriptedPlayer,
)

_ON_VARIABLES = (
    "env.frame_stack=3",
    "env.observation={screen: false, "
    "parts: [moving, status, room, item, creature_1, creature_2, creature_3]}",
    "algorithm.network={hidden: [256, 256]}",
    "algorithm.ent_coef=0.01",
)
_ARMS: Mapping[str, Sequence[str]] = {
    "alone": (),
    "played": ("algorithm.learn_from={played: {episodes: EPISODES}}",),
    "cloned": ("algorithm.learn_from={played: {episodes: EPISODES, imitate: null}}",),
    "imitating": ("algorithm.learn_from={played: {episodes: EPISODES, clone: null}}",),
    "backward": (
        "algorithm.learn_from={played: {episodes: EPISODES}}",
        "env.pool={from: EPISODES, choose: backward, size: 2_000}",
    ),
}
_PICTURES = "_pictures"
_SEED = 9000
_GAMES = 10
_LONGEST_FRAMES = 20_000


class DelayedPlayer:
    """The scripted player, who finds back where delays have led it astray."""

    def __init__(self, beacon: Beacon) -> None:
        self._beacon = beacon
        self._script = ScriptedPlayer(*PARTS)
        self._room = beacon["room"]
        self._rng = np.random.default_rng(0)

    def __call__(self) -> str:
        room = self._beacon["room"]
        route: deque[int] = self._script.route
        if room != self._room:
            is_planned = bool(route) and route[0] == room
            if not is_planned and room - self._room in WAYS:
                route.appendleft(self._room)
            self._room = room
        return self._script(self._beacon, self._rng)


def record_games(folder: Path) -> Result:
    """Record ten games, and return what came of them."""
    won = keys_and_doors = timesteps = 0
    with closing(Beacon()) as beacon:
        for seed in range(1, _GAMES + 1):
            beacon.begin("shore", seed)
            game = RecordedGame(
                console=beacon,
                name="beacon",
                start_state="shore",
                game_seed=seed,
                is_over=lambda: beacon["result"] != 0,
                has_won=lambda: beacon["result"] == 1,
                longest_frames=_LONGEST_FRAMES,
            )
            file = folder / f"{seed:02d}.json"
            won += game.record(DelayedPlayer(beacon), file)
            keys_and_doors += beacon["keys"] + beacon["doors"]
            presses = json.loads(file.read_text(encoding="utf-8"))["presses"]
            timesteps += sum(frames for _, frames in presses)
    minutes = timesteps / 60 / 60
    return {"won": won, "keys_and_doors": keys_and_doors / _GAMES, "minutes": round(minutes, 1)}


def trained(
    arm: str, seed: int, timesteps: int, run_dir: Path, games: Path, *, episodes: int
) -> Result:
    """Train an arm to its end, and return keys and doors, and the share of games won."""
    on_pictures = arm.endswith(_PICTURES)
    changes = [] if on_pictures else [*_ON_VARIABLES]
    changes += [
        change.replace("EPISODES", f"'{games}/*.json'")
        for change in _ARMS[arm.removesuffix(_PICTURES)]
    ]
    changes += [
        f"env.max_episode_timesteps={LONGEST_EPISODE}",
        f"total_timesteps={timesteps}",
        f"evaluation.every_timesteps={max(timesteps // 10, 4_096)}",
        f"checkpoints.every_timesteps={max(timesteps // 10, 4_096)}",
        f"evaluation.episodes={min(episodes, 20)}",
        "evaluation.final_episodes=1",  # the games below are what counts
        "recording.episodes=0",
        f"seed={seed}",
        f"run_dir={run_dir}",
    ]
    if run_dir.exists():
        game_rl.resume(run_dir, progress=False)
    else:
        game_rl.train(game_rl.load_config("beacon_ppo", *changes), progress=False)
    found = game_rl.evaluate(run_dir, "best", episodes=episodes, seed=_SEED)
    sums = [end.variables["keys"] + end.variables["doors"] for end in found.ends]
    return {"keys_and_doors": round(float(np.mean(sums)), 2), "won": found.success_rate}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arms = [*_ARMS, *(arm + _PICTURES for arm in _ARMS)]
    parser.add_argument("--folder", type=Path, required=True, help="of runs and results")
    parser.add_argument("--arms", nargs="+", default=arms, choices=arms)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--timesteps", type=int, default=4_000_000)
    parser.add_argument("--episodes", type=int, default=200, help="that each arm plays at its end")
    arguments = parser.parse_args()
    timesteps = arguments.timesteps
    n_episodes = arguments.episodes
    plan = {"timesteps": timesteps, "episodes": n_episodes}
    experiment = Experiment(arguments.folder, plan)
    games = (arguments.folder / "games").resolve()

    def task(arm: str, seed: int) -> Task:
        name = f"{arm}_{seed}"
        run_dir = experiment.run_dir(name).resolve()
        work_s = timesteps / (500 if arm.endswith(_PICTURES) else 1_200)

        def do() -> Result:
            return trained(arm, seed, timesteps, run_dir, games, episodes=n_episodes)

        return Task(name, work_s, do)

    recorded = Task("games", 60, lambda: record_games(games))
    tasks = [task(arm, seed) for seed in arguments.seeds for arm in arguments.arms]
    with game_rl_errors():
        experiment.open()
        experiment.run([recorded, *tasks])
    played = experiment.results["games"]
    print(
        f"{_GAMES} recorded games, {played['minutes']} minutes: {played['won']} won, "
        f"{played['keys_and_doors']:.1f} keys and doors of 12"
    )
    print(f"after {timesteps:,} timesteps, {n_episodes} games from shore:")
    print(f"{'':<24}{'keys and doors':>16}{'won':>8}")
    for each in tasks:
        result = experiment.results[each.name]
        print(f"{each.name:<24}{result['keys_and_doors']:>16}{result['won']:>8.1%}")


if __name__ == "__main__":
    main()
