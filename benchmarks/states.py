"""The cost of PyBoy's states: what one takes, and what building envs takes with fewer of them.

    python -m benchmarks.states [--repeats 15] [--game duel]

The first table compares files to save a state to and to load it from. PyBoy makes Python calls for
each byte, so a file that keeps nothing shows the least that any file can take. The second builds
the envs of a worker up to the first observation: each saves its emulator at power-on twice, as all
did once, or the first one of the process does it for all. All contenders of a table run in turns,
and their states and observations are compared. Times are of this process's CPU, in milliseconds.
"""

import argparse
import functools
import io
import struct
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from pyboy import PyBoy

from game_rl.config.schema import EnvConfig
from game_rl.emulator import pyboy_emulator
from game_rl.envs import episode_starts
from game_rl.envs.make_env import make_env
from game_rl.games.definition import Game, load_game

_N_ENVS = 8

Measured = Callable[[], object]


class _File:
    def flush(self) -> None:
        pass


class _KeepsNothing(_File):
    def __init__(self) -> None:
        self.write = len  # of one byte: 1, as a real file would answer


class _Iterated(_File):
    """A file whose `read(1)` is `next(its bytes, 1)`."""

    def __init__(self, state: bytes) -> None:
        self.read = functools.partial(next, iter(struct.unpack(f"{len(state)}c", state)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--game", default="duel")
    arguments = parser.parse_args()
    game = load_game(arguments.game)
    compare_files(game, arguments.repeats)
    compare_buildings(game, arguments.repeats)


def compare_files(game: Game, repeats: int) -> None:
    pyboy = PyBoy(io.BytesIO(game.rom.data), window="null", cgb=game.is_colour, log_level=5)
    pyboy.tick(300, True, False)
    state = _saved(pyboy)
    for load in (io.BytesIO, _Iterated):
        pyboy.tick(60, True, False)
        pyboy.load_state(load(state))
        assert _saved(pyboy) == state
    print(f"a state of {len(state):,} bytes")
    in_turns(
        {
            "save to BytesIO": lambda: pyboy.save_state(io.BytesIO()),
            "save to a file that keeps nothing": lambda: pyboy.save_state(_KeepsNothing()),
        },
        repeats,
    )
    in_turns(
        {
            "load from BytesIO": lambda: pyboy.load_state(io.BytesIO(state)),
            "load from an iterator": lambda: pyboy.load_state(_Iterated(state)),
        },
        repeats,
    )
    pyboy.stop(save=False)


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
    """Measure the contenders in turns; print each median, and its ratio to the first one's."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, measured in contenders.items():
            started = time.process_time()
            measured()
            seconds[name].append(time.process_time() - started)
    first = median(next(iter(seconds.values())))
    for name, found in seconds.items():
        print(f"{name:<36}{1000 * median(found):8.1f} ms   x {median(found) / first:.2f}")


def _saved(pyboy: PyBoy) -> bytes:
    file = io.BytesIO()
    pyboy.save_state(file)
    return file.getvalue()


if __name__ == "__main__":
    main()
