"""What counting the places of a run takes of a timestep.

    python -m benchmarks.places_cost [--config FILE] [--timesteps 4096] [--pairs 7]

An env plays random actions, and the places are noted. Then, in turns, the same actions are played
without counting, and the noted places are counted, collected and added up as a training does it
after each rollout. The table has the median of the shares, turn by turn, with the smallest and the
largest. The network, which the share leaves out, makes it smaller.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.way import ROOT
from game_rl.config.loader import load_config
from game_rl.envs.episode_tracker import RunningEpisode
from game_rl.envs.make_env import make_game_env
from game_rl.games.definition import load_game
from game_rl.games.variables import Values, as_tuple
from game_rl.places.place_counts import PlaceCounts, PlaceTally

_BAR = 0.01


def cpu_s(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--config", default=str(ROOT / "configs/beacon_explored_variables_ppo.yaml")
    )
    parser.add_argument("--timesteps", type=int, default=4_096)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    config = load_config(Path(options.config), [])
    game = load_game(config.game)
    names = game.definition.place
    if names is None:
        raise SystemExit(f"{config.game} has no `place`")
    env_config = config.env.model_copy(update={"pool": None, "rewards": {}})
    env = make_game_env(env_config, game)
    actions = np.random.default_rng(0).integers(len(game.action_names), size=options.timesteps)
    moments: list[Values] = []

    def play(*, notes: bool = False) -> None:
        env.reset(seed=1)
        for action in actions:
            *_, terminated, truncated, _ = env.step(int(action))
            if notes:
                values = env.read_variables()
                moments.append({name: as_tuple(values[name])[0] for name in names})
            if terminated or truncated:
                env.reset()

    counts = PlaceCounts(names, game.map_offsets())

    def count() -> None:
        tally = PlaceTally(names)
        episode = RunningEpisode()
        for values in moments:
            episode.values = values
            tally.step(episode)
        counts.add(tally.take(), until=options.timesteps)

    play(notes=True)
    shares: list[float] = []
    for turn in range(options.pairs):
        works = [play, count] if turn % 2 else [count, play]
        taken = {work: cpu_s(work) for work in works}
        shares.append(taken[count] / taken[play])
        ours, whole = (1e6 * taken[work] / options.timesteps for work in (count, play))
        print(f"turn {turn + 1}: {ours:.2f} us of {whole:.0f} us")
    verdict = "kept" if median(shares) <= _BAR else "BROKEN"
    print(
        f"share of a timestep: {median(shares):.2%} ({min(shares):.2%} - {max(shares):.2%}); "
        f"bar {_BAR:.0%}: {verdict}"
    )


if __name__ == "__main__":
    main()
