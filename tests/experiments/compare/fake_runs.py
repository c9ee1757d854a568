"""Run directories as a training leaves them, written in a millisecond."""

from collections.abc import Sequence
from pathlib import Path

from game_rl.checkpoints.evaluation_files import EpisodeLists, write_episodes
from game_rl.config.loader import dump_config, load_config
from game_rl.events import Ended, Evaluated
from game_rl.events.event_log import EventFile
from game_rl.files.run_dir import RunDir
from tests.tiny_run import TINY

EPISODES = 20


def write_run(
    root: Path,
    *,
    seed: int,
    final: float | None,
    curve: Sequence[float] = (0.1, 0.5, 0.8),
    overrides: Sequence[str] = (),
    failure: str | None = None,
) -> RunDir:
    """A run of 192 timesteps with an evaluation after each third.

    Args:
        final: success rate of its final evaluation; None: it has not come to its end.
        curve: success rate of each evaluation; each success brings a reward of 1.
        failure: why it broke off.
    """
    root.mkdir(parents=True)
    file = root.with_suffix(".yaml")
    file.write_text(TINY.format(run_dir=root), encoding="utf-8")
    run_dir = RunDir(root)
    run_dir.config.write_text(
        dump_config(load_config(file, [f"seed={seed}", *overrides])), encoding="utf-8"
    )
    run_dir.identity()
    write_episodes(run_dir, _episodes(curve))
    with EventFile(run_dir.events) as events:
        for number, rate in enumerate(curve, start=1):
            events.add(_evaluated(64 * number, rate, is_final=False))
        if final is not None:
            events.add(_evaluated(192, final, is_final=True))
            events.add(Ended(timesteps=192, reason="completed", exit_code=0))
        elif failure is not None:
            timesteps = 64 * len(curve)
            events.add(Ended(timesteps=timesteps, reason="failed", exit_code=1, text=failure))
    return run_dir


def _episodes(curve: Sequence[float]) -> EpisodeLists:
    successes = [[place < round(rate * EPISODES) for place in range(EPISODES)] for rate in curve]
    return EpisodeLists(
        timesteps=[64 * number for number in range(1, len(curve) + 1)],
        results=[[float(success) for success in row] for row in successes],
        lengths=[[5] * EPISODES for _ in curve],
        successes=successes,
    )


def _evaluated(timesteps: int, rate: float, *, is_final: bool) -> Evaluated:
    return Evaluated(
        timesteps=timesteps,
        policy_timesteps=timesteps,
        episodes=EPISODES,
        mean_reward=rate,
        std_reward=0.1,
        success_rate=rate,
        mean_length=5,
        seconds=1,
        is_final=is_final,
    )
