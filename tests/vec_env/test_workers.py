"""Numbers of processes, and that the vec envs start as many."""

import functools
import os
import signal
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.config.schema import EnvConfig
from game_rl.errors import WorkerError
from game_rl.games.definition import load_game
from game_rl.system.machine import effective_cpus
from game_rl.vec_env.make_vec_env import make_training_env, make_vec_env
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from game_rl.vec_env.workers import WorkerDeaths, evaluation_workers, training_workers
from tests.vec_env.envs import Mortal, RandomEpisodes, processes_of


@pytest.mark.parametrize(
    ("n_envs", "cpus", "expected"), [(8, 1, 2), (8, 2, 2), (64, 16, 30), (3, 16, 3), (1, 4, 1)]
)
def test_one_cpu_is_left_to_the_network(n_envs: int, cpus: int, expected: int) -> None:
    assert training_workers(None, n_envs=n_envs, cpus=cpus) == expected


@pytest.mark.parametrize(
    ("n_envs", "cpus", "expected"), [(8, 1, 1), (8, 2, 2), (64, 16, 16), (3, 16, 3)]
)
def test_an_evaluation_has_a_process_for_each_cpu(n_envs: int, cpus: int, expected: int) -> None:
    assert evaluation_workers(None, n_envs=n_envs, cpus=cpus) == expected


@pytest.mark.parametrize("count", [training_workers, evaluation_workers])
@pytest.mark.parametrize(("wanted", "expected"), [(1, 1), (5, 5), (9, 6)])
def test_a_number_in_the_config_counts_up_to_the_number_of_envs(
    count: Callable[..., int], wanted: int, expected: int
) -> None:
    assert count(wanted, n_envs=6, cpus=2) == expected


@pytest.mark.parametrize("n_workers", [None, 1, 3])
def test_vec_envs_start_so_many_processes(n_workers: int | None) -> None:
    config, game = EnvConfig(n_envs=4, n_workers=n_workers), load_game("duel")
    cpus = effective_cpus()
    training = make_training_env(config, game, seed=0)
    assert _closed(training) == training_workers(n_workers, n_envs=4, cpus=cpus)
    evaluation = make_vec_env(config, game, n_envs=2, seed=0)
    assert _closed(evaluation) == evaluation_workers(n_workers, n_envs=2, cpus=cpus)


def _closed(vec_env: VecEnv) -> int:
    """How many processes it had."""
    n_processes = len(processes_of(vec_env))
    vec_env.close()
    return n_processes


KILLED = WorkerError("worker 0 was killed")


def test_the_third_death_of_one_worker_in_a_row_is_an_error_with_its_cause() -> None:
    deaths = WorkerDeaths(2)
    deaths.note(0, KILLED)
    deaths.note(0, KILLED)
    with pytest.raises(WorkerError, match="worker 0 was killed; it is the third time in a row"):
        deaths.note(0, KILLED)


def test_each_worker_has_its_own_row() -> None:
    deaths = WorkerDeaths(4)
    for worker in (0, 1, 2, 3, 3, 2, 1, 0):
        deaths.note(worker, KILLED)
    assert [deaths.count(worker) for worker in range(4)] == [2] * 4
    assert len(deaths.noted) == 8


def test_a_thousand_vec_steps_end_a_row_from_its_last_death_on() -> None:
    deaths = WorkerDeaths(1)
    for vec_steps in (0, 1_000, 2_001, 2_002, 3_003):
        deaths.vec_steps = vec_steps
        deaths.note(0, KILLED)
    deaths.vec_steps = 4_003
    deaths.note(0, KILLED)
    deaths.vec_steps = 5_003
    with pytest.raises(WorkerError, match="third time"):
        deaths.note(0, KILLED)


N_ENVS = 5  # in two workers: envs 0-1 and 2-4
BAD_ENV = 3
LOST = [2, 3, 4]
OTHERS = [0, 1]
Step = tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    SharedMemoryVecEnv([RandomEpisodes]).close()  # the forkserver is there from now on, and stays
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


def mortal_vec_env(
    folder: Path,
    *,
    fault: str = "SIGKILL",
    where: str = "step",
    at: Collection[int] = (),
    n_workers: int = 2,
    **lost_info: object,
) -> SharedMemoryVecEnv:
    folder.mkdir(exist_ok=True)
    (folder / "tally").write_text("", encoding="utf-8")
    bad = functools.partial(Mortal, fault=fault, where=where, at=at, tally=folder / "tally")
    env_fns: list[Any] = [*[RandomEpisodes] * BAD_ENV, bad, RandomEpisodes]
    vec_env = SharedMemoryVecEnv(env_fns, n_workers=n_workers, frame_stack=3, lost_info=lost_info)
    vec_env.seed(1)
    return vec_env


def steps(vec_env: SharedMemoryVecEnv, n_steps: int) -> list[Step]:
    random = np.random.default_rng(2)
    found: list[Any] = [vec_env.step(random.integers(4, size=N_ENVS)) for _ in range(n_steps)]
    return found


def of_envs(step: Step, envs: list[int]) -> list[Any]:
    *arrays, infos = step
    return [*(array[envs] for array in arrays), [infos[env] for env in envs]]


@pytest.mark.parametrize("fault", ["SIGKILL", "SIGSEGV", "exit"])
def test_a_death_in_a_step_ends_the_episodes_of_that_worker_alone(
    tmp_path: Path, fault: str
) -> None:
    undisturbed = mortal_vec_env(tmp_path / "a")
    disturbed = mortal_vec_env(tmp_path / "b", fault=fault, at=[20])
    np.testing.assert_array_equal(undisturbed.reset(), disturbed.reset())
    pairs = list(zip(steps(undisturbed, 60), steps(disturbed, 60), strict=True))
    undisturbed.close()
    disturbed.close()
    for expected, seen in pairs[:19]:
        np.testing.assert_equal(seen, expected)
    for expected, seen in pairs[19:]:
        np.testing.assert_equal(of_envs(seen, OTHERS), of_envs(expected, OTHERS))
    last_seen = pairs[18][1][0]
    observations, rewards, dones, infos = pairs[19][1]
    for env in LOST:
        assert (rewards[env], dones[env]) == (0, True)
        assert infos[env].keys() == {
            "TimeLimit.truncated",
            "terminal_observation",
            "worker_restarted",
        }
        assert infos[env]["TimeLimit.truncated"] is True
        np.testing.assert_array_equal(infos[env]["terminal_observation"], last_seen[env])
        assert not observations[env, :-2].any()
        assert observations[env, -2:].any()
    assert not any("worker_restarted" in infos[env] for env in OTHERS)


def test_what_the_owner_wants_known_is_in_the_infos_of_lost_episodes_alone(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, at=[5], is_success=False)
    vec_env.reset()
    infos = [step[3] for step in steps(vec_env, 10)]
    vec_env.close()
    told = [[env for env in range(N_ENVS) if "is_success" in of[env]] for of in infos]
    assert told == [[]] * 4 + [LOST] + [[]] * 5
    assert [infos[4][env]["is_success"] for env in LOST] == [False] * len(LOST)


def test_the_stacks_of_the_new_episodes_begin_anew(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, at=[5])
    vec_env.reset()
    first, second, third = (step[0][LOST[0]].reshape(3, -1) for step in steps(vec_env, 7)[4:])
    vec_env.close()
    assert [frame.any() for frame in first] == [False, False, True]
    np.testing.assert_array_equal(second[:2], first[1:])
    np.testing.assert_array_equal(third[:2], second[1:])


def test_the_same_deaths_give_the_same_episodes(tmp_path: Path) -> None:
    first, second = (mortal_vec_env(tmp_path, at=[7]) for _ in range(2))
    seen = []
    for vec_env in (first, second):
        (tmp_path / "tally").write_text("", encoding="utf-8")
        vec_env.reset()
        seen.append((steps(vec_env, 40), vec_env.reset_infos, vec_env.get_attr("reset_calls")))
        vec_env.close()
    np.testing.assert_equal(seen[0], seen[1])


def test_a_new_process_plays_other_episodes_than_the_dead_one_did(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, at=[1])
    before: Any = vec_env.reset()
    after: Any = vec_env.step(np.zeros(N_ENVS, int))[0]
    seeds = [calls[0][0] for calls in vec_env.get_attr("reset_calls")]
    vec_env.close()
    assert not np.array_equal(before[LOST], after[LOST])
    assert seeds[:2] == [1, 2]
    assert len(set(seeds)) == N_ENVS
    assert not set(seeds[2:]) & set(range(1, 1 + N_ENVS))


def test_the_monitor_counts_the_episodes_that_were_cut_short(tmp_path: Path) -> None:
    vec_env = VecMonitor(mortal_vec_env(tmp_path, at=[1]))
    vec_env.reset()
    infos = vec_env.step(np.zeros(N_ENVS, int))[3]
    vec_env.close()
    assert [infos[env]["episode"]["l"] for env in LOST] == [1, 1, 1]


@pytest.mark.parametrize("n_killed", [1, 2])
def test_workers_killed_between_two_steps_are_replaced_at_the_next(
    tmp_path: Path, n_killed: int
) -> None:
    vec_env = mortal_vec_env(tmp_path)
    last_seen = vec_env.reset()
    for process in vec_env.processes[:n_killed]:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    lost = range(N_ENVS if n_killed == 2 else 2)
    infos = vec_env.step(np.zeros(N_ENVS, int))[3]
    assert [env for env in range(N_ENVS) if "worker_restarted" in infos[env]] == list(lost)
    for env in lost:
        np.testing.assert_array_equal(infos[env]["terminal_observation"], last_seen[env])
    assert not any("worker_restarted" in info for step in steps(vec_env, 20) for info in step[3])
    assert [death.text[:8] for death in vec_env.worker_deaths] == ["worker 0", "worker 1"][
        :n_killed
    ]
    assert all(process.is_alive() for process in vec_env.processes)
    vec_env.close()


def test_a_death_in_reset_changes_nothing_that_is_seen(tmp_path: Path) -> None:
    undisturbed = mortal_vec_env(tmp_path / "a")
    disturbed = mortal_vec_env(tmp_path / "b", where="reset", at=[1, 2])
    np.testing.assert_array_equal(undisturbed.reset(), disturbed.reset())
    assert undisturbed.reset_infos == disturbed.reset_infos
    np.testing.assert_equal(steps(undisturbed, 20), steps(disturbed, 20))
    assert len(disturbed.worker_deaths) == 2
    undisturbed.close()
    disturbed.close()


def test_a_death_in_a_method_is_asked_again_and_told_by_the_next_step(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, where="ask", at=[1])
    last_seen = vec_env.reset()
    assert vec_env.env_method("ask", indices=BAD_ENV) == ["answer"]
    infos = vec_env.step(np.zeros(N_ENVS, int))[3]
    assert [env for env in range(N_ENVS) if "worker_restarted" in infos[env]] == LOST
    np.testing.assert_array_equal(infos[BAD_ENV]["terminal_observation"], last_seen[BAD_ENV])
    vec_env.close()


def test_a_reset_after_a_death_is_an_ordinary_reset(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, where="ask", at=[1])
    vec_env.reset()
    vec_env.env_method("ask", indices=BAD_ENV)
    vec_env.reset()
    infos = vec_env.step(np.zeros(N_ENVS, int))[3]
    assert not any("worker_restarted" in info for info in infos)
    vec_env.close()


@pytest.mark.parametrize("at", [[5, 6, 7], [5, 1_000, 1_999]])
def test_the_third_death_in_a_row_ends_the_run_with_its_cause(
    tmp_path: Path, at: list[int]
) -> None:
    vec_env = mortal_vec_env(tmp_path, at=at)
    vec_env.reset()
    cause = r"worker 1 \(envs 2-4\) was killed \(SIGKILL\).* `step`"
    with pytest.raises(WorkerError, match=rf"{cause}; it is the third time in a row"):
        steps(vec_env, 2_010)
    assert vec_env.closed
    assert not any(process.is_alive() for process in vec_env.processes)
    with pytest.raises(WorkerError, match="are closed because worker 1"):
        vec_env.reset()


def test_deaths_far_from_each_other_go_on_for_ever(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, at=[5, 1_100, 2_200, 3_300])
    vec_env.reset()
    for _ in range(3_400):
        vec_env.step(np.zeros(N_ENVS, int))
    assert len(vec_env.worker_deaths) == 4
    vec_env.close()


def test_a_new_process_that_dies_while_it_builds_its_envs_counts_too(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, where="constructor", at=[2, 3])
    vec_env.reset()
    vec_env.processes[1].kill()
    with pytest.raises(WorkerError, match="during `build`; it is the third time in a row"):
        steps(vec_env, 5)
    assert len(vec_env.worker_deaths) == 3


def test_an_exception_of_a_new_process_is_told_as_what_it_is(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path, fault="ValueError", where="constructor", at=[2])
    vec_env.reset()
    vec_env.processes[1].kill()
    with pytest.raises(WorkerError, match="env 3 raised ValueError: the ROM exploded"):
        steps(vec_env, 5)


def test_after_a_death_everything_can_still_be_closed_at_once(tmp_path: Path) -> None:
    vec_env = mortal_vec_env(tmp_path)
    vec_env.reset()
    for process in vec_env.processes:
        process.kill()
    vec_env.close()
    assert not any(process.is_alive() for process in vec_env.processes)
