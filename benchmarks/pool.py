"""What a pool of states costs a training: CPU time of a timestep, its workers' included.

    python -m benchmarks.pool [--config configs/duel_ppo.yaml] [--turns 12] [--variable player_x]

Two trainings run in turns, each in a process of its own: one without a pool, and one with a pool
of 200 states that grows at new maxima of a variable and draws them by success. A ratio is the
median of those of the turns, with the smallest and the largest.
"""

import argparse
import json
import tempfile
from contextlib import ExitStack
from statistics import median

from benchmarks.trainings.counted import CountedTraining

_UPDATES = 2  # of a turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="configs/duel_ppo.yaml")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--variable", default="player_x", help="of save_on")
    arguments = parser.parse_args()
    pool = {"save_on": {"new_maximum": arguments.variable}, "choose": "success", "goal": "reward"}
    contenders = {"without a pool": "null", "with a pool": json.dumps(pool)}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    with ExitStack() as stack:
        trainings = {}
        for name, section in contenders.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            words = [f"env.pool={section}"]
            training = CountedTraining(arguments.config, folder, words, updates=_UPDATES)
            trainings[name] = stack.enter_context(training)
        for training in trainings.values():
            training.wait_until_settled()
        for _ in range(arguments.turns):
            for name, training in trainings.items():
                turn = training.turn()
                taken[name].append(1e6 * turn.cpu_s / turn.timesteps)
        for training in trainings.values():
            assert training.stdin is not None
            training.stdin.close()
    print(f"CPU time of a timestep of {arguments.config}")
    first = taken["without a pool"]
    for name, found in taken.items():
        ratios = [one / other for one, other in zip(found, first, strict=True)]
        spread = f"x {median(ratios):.4f} ({min(ratios):.4f} - {max(ratios):.4f})"
        print(f"{name:<18}{median(found):9.2f} µs   {spread}")


if __name__ == "__main__":
    main()
