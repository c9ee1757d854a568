"""The fake of a worker process gives the same bytes as the process."""

import functools
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.errors import WorkerError
from game_rl.games.definition import load_game
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.make_vec_env import make_training_env, restore_vec_env, save_vec_env
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.worker import workers_in_process
from tests.vec_env.envs import Faulty, RandomEpisodes

CONFIG = EnvConfig(n_envs=3, n_workers=2, frame_skip=8, max_episode_timesteps=15)


def training_env() -> HalvedVecEnv:
    vec_env = make_training_env(CONFIG, load_game("duel"), seed=5)
    assert isinstance(vec_env, HalvedVecEnv)
    return vec_env


def played(vec_env: HalvedVecEnv) -> list[Any]:
    """What a learner and a checkpoint get, also after a return to a state and after a death."""
    random = np.random.default_rng(0)

    def steps() -> list[Any]:
        seen: list[Any] = []
        for _ in range(20):
            outcome = vec_env.step(random.integers(3, size=3))
            for info in outcome[3]:
                info.get("episode", {}).pop("t", None)  # wall time
            packed = vec_env.packed_frames(outcome[0])
            assert packed is not None
            seen += [outcome, packed.shown, packed.reached, list(vec_env.reset_infos)]
        return seen

    seen: list[Any] = [vec_env.reset(), *steps()]
    state = save_vec_env(vec_env, seen[-4][0])
    assert state is not None
    seen += [[env.emulator for env in state.envs], *steps()]
    restore_vec_env(vec_env, state)
    seen += steps()
    vec_env.processes[0].kill()
    vec_env.processes[0].join()
    seen += [*steps(), [death.text for death in vec_env.worker_deaths]]
    return [*seen, vec_env.get_attr("reward_terms"), vec_env.get_images()]


def test_the_fake_gives_the_same_bytes_as_the_process() -> None:
    with closing(training_env()) as vec_env:
        assert all(process.pid != os.getpid() for process in vec_env.processes)
        expected = played(vec_env)
    with workers_in_process(), closing(training_env()) as vec_env:
        assert [process.pid for process in vec_env.processes] == [None, None]
        np.testing.assert_equal(played(vec_env), expected)


@pytest.mark.parametrize("start_method", ["forkserver", "in_process"])
def test_an_exception_in_an_env_closes_all_envs_and_has_its_traceback(
    tmp_path: Path, start_method: Any
) -> None:
    bad = functools.partial(Faulty, 1, fault="ValueError", where="step", trace=tmp_path)
    good = functools.partial(Faulty, 0, fault="", where="", trace=tmp_path)
    vec_env = SharedMemoryVecEnv([good, bad, RandomEpisodes], start_method=start_method)
    vec_env.reset()
    with pytest.raises(WorkerError) as raised:
        vec_env.step(np.zeros(3, int))
    first, *traceback = str(raised.value).splitlines()
    assert first == "env 1 raised ValueError: the ROM exploded"
    assert "in misbehave" in "".join(traceback)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["closed_0", "closed_1"]
    with pytest.raises(WorkerError, match="closed because env 1 raised ValueError"):
        vec_env.reset()
