"""What the end of an episode says, and the episodes of a worker that died."""

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecMonitor

from game_rl.callbacks.episode_logging import ended_episode, is_logged
from game_rl.config.schema import EnvConfig
from game_rl.envs.button_log import EPISODE_LOG, EpisodeLog
from game_rl.games.definition import load_game
from game_rl.vec_env.make_vec_env import make_vec_env
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.tiny_run import TINY_GAME

LOG = EpisodeLog("level_1", 3, 7, 2, b"\x01\x02", b"", 0.5)
MONITOR = {"episode": {"r": np.float32(0.5), "l": 2, "t": 1.0}}


@pytest.mark.parametrize(
    ("info", "ending", "terminated"),
    [
        ({"ending": "over", "TimeLimit.truncated": False}, "over", True),
        ({"ending": "lost", "TimeLimit.truncated": True}, "lost", False),
        ({"TimeLimit.truncated": True}, "(limit)", False),
        ({"lock_up": "an opcode", "TimeLimit.truncated": True}, "(locked up)", False),
        ({"TimeLimit.truncated": False}, "(wrapper)", True),
    ],
)
def test_an_ended_episode_says_how(info: dict[str, Any], ending: str, terminated: bool) -> None:
    found = ended_episode(3, info | MONITOR | {EPISODE_LOG: LOG})
    assert (found.ending, found.terminated) == (ending, terminated)
    assert (found.env, found.length, found.reward, found.log) == (3, 2, 0.5, LOG)
    assert found.success is None
    assert ended_episode(0, info | MONITOR | {"is_success": True}).success is True


def test_an_env_that_does_not_log_says_nothing() -> None:
    assert not is_logged({"ending": "over", **MONITOR})


def test_the_episodes_of_a_worker_that_died_are_counted_and_cannot_be_played_again() -> None:
    config = EnvConfig(n_workers=1, max_episode_timesteps=5, frame_skip=8)
    game = load_game(str(TINY_GAME))
    with closing(make_vec_env(config, game, n_envs=2, seed=0, logs=True)) as vec_env:
        assert isinstance(vec_env, VecMonitor)
        assert isinstance(vec_env.venv, SharedMemoryVecEnv)
        vec_env.reset()
        vec_env.step(np.zeros(2, np.int64))
        (worker,) = vec_env.venv.processes
        worker.kill()
        _, _, dones, infos = vec_env.step(np.zeros(2, np.int64))
        assert dones.all()
        for env, info in enumerate(infos):
            assert is_logged(info)
            found = ended_episode(env, info)
            assert (found.ending, found.length, found.log.played) == ("(worker died)", 2, b"")
            assert "its worker process died" in found.log.fault
        for _ in range(5):
            _, _, dones, infos = vec_env.step(np.ones(2, np.int64))
        assert dones.all()
        for env, info in enumerate(infos):  # the next ones are whole
            log = ended_episode(env, info).log
            assert (log.played, log.fault) == (b"\x01" * 5, "")
