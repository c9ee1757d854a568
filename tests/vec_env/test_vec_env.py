"""SharedMemoryVecEnv against SB3's own SubprocVecEnv, and against SB3's contract."""

import functools
import gc
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecFrameStack,
    VecMonitor,
)

from game_rl.errors import WorkerError
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.vec_env.envs import (
    SHAPE,
    Careless,
    Continuous,
    Numbers,
    RandomEpisodes,
    TracedWrapper,
    Wrong,
    wrapped,
)

Maker = Callable[..., SharedMemoryVecEnv]


@pytest.fixture
def make() -> Iterator[Maker]:
    made: list[SharedMemoryVecEnv] = []

    def _make(*env_fns: Callable[[], gym.Env], **settings: Any) -> SharedMemoryVecEnv:
        made.append(SharedMemoryVecEnv(env_fns, **settings))
        return made[-1]

    yield _make
    for vec_env in made:
        vec_env.close()


FRAME_STACK = 3


def stacked_by_sb3(vec_env: VecEnv) -> VecEnv:
    return VecFrameStack(vec_env, FRAME_STACK, channels_order="first")


def played(vec_env: VecEnv, n_steps: int) -> list[Any]:
    """Everything that a learner sees in `n_steps` random vec steps with a reset on the way."""
    vec_env = VecMonitor(vec_env)
    vec_env.seed(11)
    random = np.random.default_rng(0)
    seen: list[Any] = [vec_env.reset(), vec_env.reset_infos]
    for step in range(n_steps):
        if step == n_steps // 2:
            vec_env.seed(23)
            vec_env.set_options({"level": 2})
            seen += [vec_env.reset(), list(vec_env.reset_infos)]
        observations, rewards, dones, infos = vec_env.step(
            random.integers(4, size=vec_env.num_envs)
        )
        for info in infos:
            if "episode" in info:
                del info["episode"]["t"]  # wall time
        seen += [observations.copy(), np.float32(rewards), dones, list(infos)]
        seen.append(list(vec_env.reset_infos))
    vec_env.close()
    return seen


@pytest.fixture(scope="module")
def played_by_sb3() -> list[Any]:
    return played(stacked_by_sb3(SubprocVecEnv([RandomEpisodes] * 3)), 600)


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_a_learner_sees_what_it_sees_with_the_subproc_vec_env_of_sb3(
    make: Maker, played_by_sb3: list[Any], n_workers: int
) -> None:
    vec_env = make(*[RandomEpisodes] * 3, n_workers=n_workers, frame_stack=FRAME_STACK)
    np.testing.assert_equal(played(vec_env, 600), played_by_sb3)


@pytest.mark.slow
def test_thousands_of_steps_equal_those_of_the_dummy_vec_env_of_sb3(make: Maker) -> None:
    seen = played(make(*[RandomEpisodes] * 5, n_workers=2, frame_stack=FRAME_STACK), 3_000)
    oracle = stacked_by_sb3(DummyVecEnv([RandomEpisodes] * 5))
    np.testing.assert_equal(seen, played(oracle, 3_000))


@pytest.mark.parametrize("frame_stack", [1, 2, 5])
def test_any_number_of_frames_can_be_stacked(make: Maker, frame_stack: int) -> None:
    vec_env = make(*[RandomEpisodes] * 2, frame_stack=frame_stack)
    oracle = VecFrameStack(DummyVecEnv([RandomEpisodes] * 2), frame_stack, channels_order="first")
    assert vec_env.observation_space == oracle.observation_space
    np.testing.assert_equal(played(vec_env, 100), played(oracle, 100))


@pytest.mark.slow
def test_spawned_workers_do_the_same(make: Maker) -> None:
    vec_env = make(*[RandomEpisodes] * 3, n_workers=2, start_method="spawn")
    np.testing.assert_equal(played(vec_env, 50), played(DummyVecEnv([RandomEpisodes] * 3), 50))


def test_an_observation_can_be_one_number(make: Maker) -> None:
    vec_env = make(*[Numbers] * 3, n_workers=2)
    np.testing.assert_equal(played(vec_env, 100), played(DummyVecEnv([Numbers] * 3), 100))


def test_workers_are_not_forked_from_a_process_with_threads(make: Maker) -> None:
    with pytest.raises(ValueError, match="is 'fork', but workers are"):
        make(RandomEpisodes, start_method="fork")


def test_the_start_method_of_none_is_the_default_as_in_sb3(make: Maker) -> None:
    assert make(RandomEpisodes, start_method=None).get_attr("colour") == [7]


def test_numbers_are_not_stacked(make: Maker) -> None:
    with pytest.raises(ValueError, match="only uint8 pictures"):
        make(Continuous, frame_stack=2)


def test_it_is_a_subproc_vec_env_to_everyone_who_asks(make: Maker) -> None:
    assert isinstance(make(RandomEpisodes), SubprocVecEnv)


@pytest.mark.parametrize(
    ("n_envs", "n_workers", "sizes"),
    [(1, 1, [1]), (7, 3, [2, 2, 3]), (6, 3, [2, 2, 2]), (2, 9, [1, 1]), (3, None, [1, 1, 1])],
)
def test_workers_get_contiguous_blocks_that_differ_by_one_at_most(
    make: Maker, n_envs: int, n_workers: int | None, sizes: list[int]
) -> None:
    vec_env = make(*[RandomEpisodes] * n_envs, n_workers=n_workers)
    blocks = [(pid, len(list(envs))) for pid, envs in itertools.groupby(vec_env.env_method("pid"))]
    assert blocks == list(zip([process.pid for process in vec_env.processes], sizes, strict=True))


@pytest.mark.parametrize("frame_stack", [1, 3])
def test_returned_arrays_never_change_afterwards(make: Maker, frame_stack: int) -> None:
    vec_env = make(*[RandomEpisodes] * 3, n_workers=2, frame_stack=frame_stack)
    vec_env.seed(0)
    held = [vec_env.reset()]
    for _ in range(8):
        held += vec_env.step(np.ones(3, int))[:3]
    copies = [array.copy() for array in held]
    for _ in range(20):
        vec_env.step(np.zeros(3, int))
    np.testing.assert_equal(held, copies)
    assert len({array.ctypes.data for array in held}) == len(held)


def test_what_the_caller_does_to_its_arrays_changes_no_later_one(make: Maker) -> None:
    one, other = (make(*[RandomEpisodes] * 2, frame_stack=3) for _ in range(2))
    for vec_env in (one, other):
        vec_env.seed(0)
    first: Any = one.reset()
    first[:] = 1
    first = other.reset()
    np.testing.assert_array_equal(first[:, :-2], 0)
    for _ in range(30):
        mine: Any = one.step(np.ones(2, int))[:3]
        np.testing.assert_equal(mine, other.step(np.ones(2, int))[:3])
        for array in mine:
            array[:] = 1


def test_infos_are_fresh_dicts_of_python_bools(make: Maker) -> None:
    vec_env = make(*[Continuous] * 2)
    vec_env.reset()
    first = vec_env.step(np.zeros((2, 3), np.float32))[3]
    first[0]["mine"] = 1
    second = vec_env.step(np.zeros((2, 3), np.float32))[3]
    assert second == [{"TimeLimit.truncated": False}] * 2
    assert second[0]["TimeLimit.truncated"] is False
    assert second[0] is not second[1]


def test_the_terminal_observation_survives_an_env_that_reuses_its_array(make: Maker) -> None:
    vec_env = make(Careless)
    vec_env.reset()
    for _ in range(2):
        vec_env.step(np.array([0]))
    observations, _, dones, infos = vec_env.step(np.array([0]))
    assert dones.tolist() == [True]
    assert observations.tolist() == [[0]]
    assert infos[0]["terminal_observation"].tolist() == [3]


def test_an_env_gets_its_seed_and_options_at_the_first_reset_only(make: Maker) -> None:
    vec_env = make(*[RandomEpisodes] * 3, n_workers=2)
    vec_env.seed(40)
    vec_env.set_options([{"level": 1}, {}, {"level": 3}])
    vec_env.reset()
    vec_env.reset()
    while True:
        if vec_env.step(np.zeros(3, int))[2][0]:
            break
    calls = vec_env.get_attr("reset_calls")
    assert calls[0][:3] == [(40, {"level": 1}), (None, None), (None, None)]
    assert [call[0] for call in calls[1:]] == [(41, None), (42, {"level": 3})]


def test_attributes_and_methods_reach_the_envs_that_were_asked(make: Maker) -> None:
    vec_env = make(*[RandomEpisodes] * 5, n_workers=2)
    vec_env.set_attr("colour", 9, indices=[1, 4])
    assert vec_env.get_attr("colour") == [7, 9, 7, 7, 9]
    assert vec_env.get_attr("colour", indices=[4, 0, 4, -1]) == [9, 7, 9, 9]
    assert vec_env.get_attr("colour", indices=3) == [7]
    assert vec_env.env_method("add", 1, second=2, indices=[4, 3]) == [12, 10]
    vec_env.set_attr("colour", None)
    assert vec_env.get_attr("colour") == [None] * 5
    with pytest.raises(IndexError):
        vec_env.get_attr("colour", indices=5)


def test_has_attr_does_not_need_to_pickle_the_value(make: Maker) -> None:
    vec_env = make(wrapped, wrapped)
    assert vec_env.has_attr("unpicklable")
    assert not vec_env.has_attr("nonsense")


def test_wrappers_are_found_at_any_depth_and_by_their_parent_class(make: Maker) -> None:
    vec_env = make(wrapped, RandomEpisodes)
    assert vec_env.env_is_wrapped(gym.wrappers.TimeLimit) == [True, False]
    assert vec_env.env_is_wrapped(TracedWrapper) == [True, False]
    assert vec_env.env_is_wrapped(gym.Wrapper) == [True, False]
    assert vec_env.env_is_wrapped(Monitor, indices=0) == [False]


def test_pictures_of_all_envs_are_tiled(make: Maker) -> None:
    vec_env = make(*[RandomEpisodes] * 4, n_workers=2)
    vec_env.set_attr("colour", 200, indices=2)
    assert vec_env.render_mode == "rgb_array"
    assert [picture[0, 0, 0] for picture in vec_env.get_images()] == [7, 7, 200, 7]
    assert vec_env.render().shape == (8, 6, 3)


def test_no_picture_without_a_render_mode(make: Maker) -> None:
    vec_env = make(Continuous)
    with pytest.warns(UserWarning, match="render_mode is None"):
        assert vec_env.get_images() == [None]


def test_continuous_actions_arrive_and_are_private(make: Maker) -> None:
    vec_env = make(*[Continuous] * 3, n_workers=2)
    vec_env.reset()
    actions = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_array_equal(vec_env.step(actions)[0], actions)


def test_actions_of_another_shape_or_kind_are_refused(make: Maker) -> None:
    vec_env = make(*[RandomEpisodes] * 2)
    vec_env.reset()
    with pytest.raises(ValueError, match=r"\(3,\), not \(2,\)"):
        vec_env.step(np.zeros(3, int))
    with pytest.raises(TypeError, match="float64"):
        vec_env.step(np.zeros(2))
    vec_env.step(np.zeros(2, np.int32))


def test_env_functions_can_be_lambdas_and_share_what_they_hold(make: Maker) -> None:
    rom = bytes(1_000_000)
    env_fns = [lambda: RandomEpisodes(rom) for _ in range(3)]
    ids = make(*env_fns, n_workers=2).get_attr("shared_id")
    assert ids[1] == ids[2]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("shape", r"float32 \(1,\), its space says float32 \(3,\)"),
        ("dtype", r"float64 \(3,\), its space says float32 \(3,\)"),
        ("reward", "the reward is nan"),
    ],
)
def test_an_env_that_breaks_its_own_promise_is_named(make: Maker, what: str, message: str) -> None:
    vec_env = make(Continuous, functools.partial(Wrong, what))
    vec_env.reset()
    with pytest.raises(WorkerError, match=f"env 1 raised ValueError: .*{message}"):
        vec_env.step(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("n_workers", [1, 2])
def test_envs_with_different_spaces_are_refused(make: Maker, n_workers: int) -> None:
    with pytest.raises(WorkerError, match=r"env 1.*Box\(-1.0, 1.0, \(3,\)"):
        make(RandomEpisodes, Continuous, n_workers=n_workers)


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_workers_are_free_of_torch_even_after_questions_about_sb3(
    make: Maker, start_method: str
) -> None:
    vec_env = make(RandomEpisodes, start_method=start_method)
    vec_env.env_is_wrapped(Monitor)
    maps = Path(f"/proc/{vec_env.processes[0].pid}/maps").read_text(encoding="utf-8")
    assert "numpy" in maps
    assert "torch" not in maps


def test_workers_have_one_numeric_thread_and_the_parent_keeps_its_own(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    vec_env = make(RandomEpisodes, start_method="spawn")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        assert vec_env.env_method("variable", name) == ["1"]
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "MKL_NUM_THREADS" not in os.environ


def test_the_shared_memory_has_no_name(make: Maker) -> None:
    vec_env = make(RandomEpisodes)
    maps = Path(f"/proc/{vec_env.processes[0].pid}/maps").read_text(encoding="utf-8")
    assert "memfd:game_rl" in maps
    assert "/dev/shm" not in maps  # noqa: S108


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="a policy of Linux")
def test_a_worker_that_wakes_takes_no_core_from_who_computes(make: Maker) -> None:
    mine = os.sched_getscheduler(0)
    vec_env = make(RandomEpisodes)
    policies = [os.sched_getscheduler(process.pid or 0) for process in vec_env.processes]
    assert policies == [os.SCHED_BATCH]
    assert os.sched_getscheduler(0) == mine


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="a policy of Linux")
def test_a_worker_keeps_the_policy_that_the_user_chose() -> None:
    code = (
        "import os; from game_rl.system.processes import let_others_finish\n"
        "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); let_others_finish()\n"
        "assert os.sched_getscheduler(0) == os.SCHED_IDLE"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_forgotten_vec_env_takes_its_workers_with_it() -> None:
    vec_env = SharedMemoryVecEnv([RandomEpisodes] * 2)
    workers = [psutil.Process(process.pid) for process in vec_env.processes]
    del vec_env
    gc.collect()
    assert not any(worker.is_running() for worker in workers)


def test_observations_outlive_the_vec_env(make: Maker) -> None:
    vec_env = make(RandomEpisodes)
    vec_env.seed(0)
    observations = vec_env.reset()
    vec_env.close()
    assert observations.shape == (1, *SHAPE)
    assert observations.any()
