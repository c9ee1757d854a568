"""The cost of emulator states, by the compiled module and by PyBoy alone.

    python -m benchmarks.states [--repeats 15] [--game duel] [--turns 0] [--longest 32]

The first table saves and loads a state both ways, and packs and unpacks it as a run keeps it. The
second builds the envs of a worker up to the first observation: each saves its emulator at power-on
twice, as all did once, or the first one of the process does it for all. With `--turns`, the third
trains the game's PPO config with short episodes, both ways, each in a process of its own, and
compares the weights. The contenders of a table run in turns, and what they return is compared. A
ratio is the median of those of the turns, with the smallest and the largest. Times are of CPU, of a
training with its workers'.
"""

import argparse
import functools
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from statistics import median
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from benchmarks.trainings.counted import CountedTraining
from game_rl.config.schema import EnvConfig
from game_rl.emulator import fast_states, pyboy_emulator
from game_rl.emulator.pyboy_emulator import PyBoyEmulator, PyBoysOwnWay
from game_rl.emulator.saved_state import pack_state, unpack_state
from game_rl.emulator.state_speed import SWITCH, describe_states
from game_rl.envs import episode_starts
from game_rl.envs.make_env import make_env
from game_rl.games.definition import Game, load_game

_N_ENVS = 8
_UPDATES = 3  # of a turn

Measured = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--game", default="duel", choices=["duel", "seasons"])
    parser.add_argument("--turns", type=int, default=0, help="of the trainings")
    parser.add_argument("--longest", type=int, default=32, help="episode, in timesteps")
    arguments = parser.parse_args()
    print(f"states are {describe_states()}")
    game = load_game(arguments.game)
    compare_ways(game, arguments.repeats)
    compare_buildings(game, arguments.repeats)
    if arguments.turns:
        compare_trainings(arguments.game, arguments.turns, arguments.longest)


def compare_ways(game: Game, repeats: int) -> None:
    own = PyBoysOwnWay()
    with closing(PyBoyEmulator(game.rom, colour=game.is_colour)) as emulator:
        emulator.tick(300, render=True)
        pyboy = emulator._running()
        state = own.save(pyboy)
        assert fast_states.save(pyboy) == state
        for load in (own.load, fast_states.load):
            emulator.tick(60, render=True)
            assert load(pyboy, state) == len(state)
            assert own.save(pyboy) == state
        print(f"a state of {len(state):,} bytes")
        in_turns(
            {
                "save by PyBoy alone": lambda: own.save(pyboy),
                "save by the module": lambda: fast_states.save(pyboy),
            },
            repeats,
        )
        in_turns(
            {
                "load by PyBoy alone": lambda: own.load(pyboy, state),
                "load by the module": lambda: fast_states.load(pyboy, state),
            },
            repeats,
        )
        owner = game.rom.sha256
        is_colour = game.is_colour
        packed = pack_state(state, rom_sha256=owner, is_colour=is_colour)
        print(f"packed to {len(packed):,} bytes")
        in_turns(
            {
                "pack": lambda: pack_state(state, rom_sha256=owner, is_colour=is_colour),
                "unpack": lambda: unpack_state(packed, rom_sha256=owner, is_colour=is_colour),
            },
            repeats,
        )


def compare_buildings(game: Game, repeats: int) -> None:
    before = functools.partial(first_observations, game, each_saves=True)
    now = functools.partial(first_observations, game, each_saves=False)
    np.testing.assert_array_equal(before(), now())
    print(f"\n{_N_ENVS} envs of one worker, built and reset")
    in_turns({"each saves at power-on": before, "the first does": now}, repeats)


def first_observations(game: Game, *, each_saves: bool) -> NDArray[np.uint8]:
    """Return the first observations of the envs of a process that has not built any yet."""
    episode_starts._made.clear()
    envs: list[gymnasium.Env[Any, Any]] = []
    for _ in range(_N_ENVS):
        if each_saves or not envs:
            pyboy_emulator._power_on_states.clear()
        if each_saves:
            _forget_power_on()
        envs.append(make_env(EnvConfig(), game))
    observations = np.stack([env.reset(seed=number)[0] for number, env in enumerate(envs)])
    for env in envs:
        env.close()
    return observations


def _forget_power_on() -> None:
    for key in [key for key in episode_starts._made if not key[2]]:
        del episode_starts._made[key]


def in_turns(contenders: Mapping[str, Measured], repeats: int) -> None:
    """Measure the contenders in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, measured in contenders.items():
            started = time.process_time()
            measured()
            seconds[name].append(time.process_time() - started)
    _print_ratios({name: [1e3 * each for each in taken] for name, taken in seconds.items()}, "ms")


def compare_trainings(game: str, turns: int, max_episode_timesteps: int) -> None:
    taken: dict[str, list[float]] = {"by PyBoy alone": [], "by the module": []}
    with ExitStack() as stack:
        trainings = {}
        for name, switch in zip(taken, "01", strict=True):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            training = CountedTraining(
                f"configs/{game}_ppo.yaml",
                folder,
                [f"env.max_episode_timesteps={max_episode_timesteps}"],
                updates=_UPDATES,
                variables={SWITCH: switch},
            )
            trainings[name] = stack.enter_context(training)
        for training in trainings.values():
            training.wait_until_settled()
        weights: dict[int, str] = {}  # after so many timesteps
        for _ in range(turns):
            for name, training in trainings.items():
                turn = training.turn()
                taken[name].append(1e6 * turn.cpu_s / turn.timesteps)
                assert weights.setdefault(turn.done, turn.weights) == turn.weights
        for training in trainings.values():
            assert training.stdin is not None
            training.stdin.close()
    print(f"\nCPU time of a timestep of training, episodes of at most {max_episode_timesteps}")
    _print_ratios(taken, "µs")


def _print_ratios(taken: Mapping[str, Sequence[float]], unit: str) -> None:
    """Print each median, and the ratios to the first one's turns."""
    first = next(iter(taken.values()))
    for name, found in taken.items():
        ratios = [one / other for one, other in zip(found, first, strict=True)]
        spread = f"x {median(ratios):.4f} ({min(ratios):.4f} - {max(ratios):.4f})"
        print(f"{name:<28}{median(found):9.2f} {unit}   {spread}")


if __name__ == "__main__":
    main()
