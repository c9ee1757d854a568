"""The cost of watching an episode: the guard against loops and the milestones, in a timestep.

    python -m benchmarks.repetition [--timesteps 1500]

The table has the CPU time of a timestep with random actions, and of the two calls in it that watch:
on average over eight timesteps, and with every reward term earned in each of them.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Literal

import numpy as np
from gymnasium import spaces

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.episode_progress import MilestoneWatch, RepetitionGuard
from game_rl.envs.episode_tracker import RunningEpisode
from game_rl.envs.make_env import make_game_env
from game_rl.games.definition import load_game

_CALLS, _REPEATS = 16_000, 5
_CASES: tuple[tuple[str, int, Literal["half", "full"]], ...] = (
    ("duel", 8, "half"),
    ("seasons", 4, "half"),
    ("beacon", 4, "half"),
    ("duel", 4, "full"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timesteps", type=int, default=1_500)
    arguments = parser.parse_args()
    print("game     frames  size     timestep   watched  share   all earned  share")
    for game, frame_skip, size in _CASES:
        print(_row(game, frame_skip, size, arguments.timesteps))


def _row(name: str, frame_skip: int, size: Literal["half", "full"], timesteps: int) -> str:
    game = load_game(name)
    observation = ObservationConfig(size=size, colour="grey")
    config = EnvConfig(frame_skip=frame_skip, max_episode_timesteps=10**6, observation=observation)
    random = np.random.default_rng(0)
    with closing(make_game_env(config, game)) as env:
        assert isinstance(env.action_space, spaces.Discrete)
        n_actions = env.action_space.n
        env.reset(seed=0)

        def step(_: int) -> None:
            _observation, _reward, terminated, truncated, _info = env.step(
                random.integers(n_actions)
            )
            if terminated or truncated:
                env.reset()

        step_us = _microseconds(step, timesteps, repeats=1)
        episode = RunningEpisode(values=env.read_variables(), observation=env.observed)
    guard = RepetitionGuard(game.definition)
    watch = MilestoneWatch(game.definition.milestones)
    watch.reset(episode)

    def call(gained: Sequence[str]) -> Callable[[int], None]:
        def look(timestep: int) -> None:
            episode.timesteps = timestep
            episode.gained = list(gained)
            guard.step(episode)
            watch.step(episode)

        return look

    found = [
        _microseconds(call(gained), _CALLS, repeats=_REPEATS)
        for gained in ((), tuple(game.definition.rewards))
    ]
    shares = [f"{each:7.2f} us  {each / step_us:6.3%}" for each in found]
    return f"{name:<8} {frame_skip:>6}  {size:<6} {step_us:7.0f} us  " + "  ".join(shares)


def _microseconds(act: Callable[[int], None], calls: int, *, repeats: int) -> float:
    """Return the CPU time of a call, the least over the repeats."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        for number in range(calls):
            act(number)
        times.append((time.process_time() - start) / calls)
    return 1e6 * min(times)


if __name__ == "__main__":
    main()
