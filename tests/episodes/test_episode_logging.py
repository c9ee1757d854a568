"""What the end of an episode says, and the episodes of a worker that died."""

import errno
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.episodes.button_log import EPISODE_LOG, EpisodeLog, EpisodeNotes
from game_rl.episodes.episode_files import EndedEpisode, EpisodeWriter, PlayedUnder
from game_rl.episodes.episode_logging import EpisodeLogger, ended_episode, is_logged
from game_rl.episodes.logged_episodes import read_episodes_of
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
    trackers = [EpisodeNotes.of]
    with closing(make_vec_env(config, game, n_envs=2, seed=0, trackers=trackers)) as vec_env:
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


UNDER = PlayedUnder(
    config={"env": {"n_envs": 2}}, game={"title": "Fake"}, rom_sha256="ab" * 32, versions={}
)
JUMP = "game/looped/jump"


def make_logger(folder: Path, heard: list[str] | None = None) -> EpisodeLogger:
    def open_writer() -> EpisodeWriter:
        writer = EpisodeWriter(folder, limit_bytes=10**6, under=UNDER, next_number=1)
        writer.begin()
        return writer

    logger = EpisodeLogger(open_writer, (heard if heard is not None else []).append)
    logger.begin()
    return logger


def add(logger: EpisodeLogger, values: dict[str, float] | None, *, fault: str = "") -> None:
    log = EpisodeLog("level_1", 3, 7, 2, b"\x01\x02", b"", 0.5, fault)
    ended = EndedEpisode(0, 2, 0.5, None, False, "(limit)", log)
    logger.add(ended, timesteps=8, kind="training", deterministic=False, values=values)


@given(
    st.lists(
        st.tuples(
            st.none() | st.dictionaries(st.sampled_from([JUMP, "other"]), st.integers(0, 3)),
            st.booleans(),
        ),
        max_size=130,
    )
)
def test_the_newest_of_the_highest_episodes_shows_it(
    tmp_path_factory: pytest.TempPathFactory,
    added: list[tuple[dict[str, float] | None, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("run") / "episodes"
    logger = make_logger(folder)
    best = None
    able = [n for n, (values, has_fault) in enumerate(added) if values and not has_fault]
    for n in able[-100:]:
        value = (added[n][0] or {}).get(JUMP, 0)
        if value and (best is None or value >= (added[best][0] or {})[JUMP]):
            best = n
    for values, has_fault in added:
        add(logger, values, fault="it cannot" if has_fault else "")
    found = logger.showing(JUMP)
    assert found == (None if best is None else best + 1)
    assert len(read_episodes_of(folder)) == len(added)  # it can be read at once
    logger.close()


def test_a_failing_disk_leaves_no_episode_that_could_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    logger = make_logger(tmp_path / "episodes", heard)
    add(logger, {JUMP: 1.0})
    assert logger.showing(JUMP) == 1
    add(logger, {JUMP: 2.0})
    with monkeypatch.context() as broken:

        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        broken.setattr(EpisodeWriter, "_write", fail)
        assert logger.showing(JUMP) is None
        add(logger, {JUMP: 3.0})
        assert logger.showing(JUMP) is None
    logger.sync()  # the disk is well again
    assert logger.showing(JUMP) is None
    add(logger, {JUMP: 0.5})
    shown = logger.showing(JUMP)
    assert shown in read_episodes_of(tmp_path / "episodes").rows["number"]
    assert shown == 4
    assert len(heard) == 2
    logger.close()


def test_nothing_shows_it_without_a_writer() -> None:
    def open_writer() -> EpisodeWriter:
        raise OSError(errno.ENOSPC, "No space left on device")

    logger = EpisodeLogger(open_writer, lambda _: None)
    logger.begin()
    add(logger, {JUMP: 1.0})
    assert logger.showing(JUMP) is None
