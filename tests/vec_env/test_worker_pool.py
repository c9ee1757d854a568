"""Whatever happens to a worker, the user learns what and where, and nothing is left behind."""

import copy
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from game_rl.errors import RomError, WorkerError
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.vec_env.envs import Faulty, Interrupting, RandomEpisodes

N_ENVS = 5  # in two workers: envs 0-1 and 2-4
BAD_ENV = 3
CLOSED_WITHIN_S = 5.0
ROOT = Path(__file__).parents[2]

RAISES = {
    "ValueError": "ValueError: the ROM exploded",
    "EOFError": "EOFError: a truncated file",
    "SystemExit": "SystemExit: out of patience",
    "KeyboardInterrupt": "KeyboardInterrupt: ",
}
DIES = {
    "exit": "exited with code 7",
    "SIGKILL": r"was killed \(SIGKILL\), probably because the machine is out of memory",
    "SIGSEGV": "was ended by SIGSEGV, a crash in native code",
}
HANGS = ("hang", "SIGSTOP")


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    SharedMemoryVecEnv([RandomEpisodes]).close()  # the forkserver is there from now on, and stays
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


def faulty_vec_env(
    trace: Path, *, fault: str, where: str, timeout_s: float = 60.0
) -> SharedMemoryVecEnv:
    healthy = [
        functools.partial(Faulty, number, fault="", where="", trace=trace)
        for number in range(N_ENVS)
    ]
    bad = functools.partial(Faulty, BAD_ENV, fault=fault, where=where, trace=trace)
    env_fns = [*healthy[:BAD_ENV], bad, *healthy[BAD_ENV + 1 :]]
    return SharedMemoryVecEnv(env_fns, n_workers=2, timeout_s=timeout_s)


def use(vec_env: SharedMemoryVecEnv) -> None:
    vec_env.reset()
    vec_env.step(np.zeros(N_ENVS, int))
    vec_env.env_method("ask", indices=BAD_ENV)


def build_and_use(trace: Path, *, fault: str, where: str, timeout_s: float = 60.0) -> None:
    """Fails within build or use; the vec env is closed by nobody but itself."""
    use(faulty_vec_env(trace, fault=fault, where=where, timeout_s=timeout_s))


def use_until_it_fails(vec_env: SharedMemoryVecEnv) -> None:
    vec_env.reset()
    for _ in range(9):
        vec_env.step(np.zeros(N_ENVS, int))


@pytest.mark.parametrize("where", ["constructor", "reset", "step", "ask"])
@pytest.mark.parametrize("fault", RAISES)
def test_an_exception_arrives_with_its_env_number_and_traceback(
    tmp_path: Path, fault: str, where: str
) -> None:
    with pytest.raises(WorkerError) as caught:
        build_and_use(tmp_path, fault=fault, where=where)
    message = str(caught.value)
    assert message.startswith(f"env {BAD_ENV} raised {RAISES[fault]}")
    assert "in misbehave" in message
    assert "Traceback (most recent call last):" in message


@pytest.mark.parametrize("where", ["constructor", "step"])
def test_an_error_for_the_user_keeps_its_class_and_text(tmp_path: Path, where: str) -> None:
    with pytest.raises(RomError) as caught:
        build_and_use(tmp_path, fault="RomError", where=where)
    assert str(caught.value) == "bad.gb is not a ROM"
    assert caught.value.exit_code == 2
    assert f"env {BAD_ENV} raised RomError" in str(caught.value.__cause__)
    assert "in misbehave" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("where", "command"), [("constructor", "build"), ("reset", "reset"), ("step", "step")]
)
@pytest.mark.parametrize("fault", DIES)
def test_a_worker_that_dies_is_named_with_its_envs_and_its_end(
    tmp_path: Path, fault: str, where: str, command: str
) -> None:
    message = rf"worker 1 \(envs 2-4\) {DIES[fault]}.* during `{command}`"
    with pytest.raises(WorkerError, match=message) as caught:
        use_until_it_fails(faulty_vec_env(tmp_path, fault=fault, where=where))
    assert str(caught.value).endswith("third time in a row") == (where != "constructor")


@pytest.mark.parametrize("where", ["reset", "step"])
@pytest.mark.parametrize("fault", HANGS)
def test_a_worker_that_hangs_is_named_with_its_envs_and_what_it_was_to_do(
    tmp_path: Path, fault: str, where: str
) -> None:
    message = rf"no answer within 0.5 s from worker 1 \(envs 2-4\) to `{where}`.*worker_timeout_s"
    with pytest.raises(WorkerError, match=message):
        build_and_use(tmp_path, fault=fault, where=where, timeout_s=0.5)


@pytest.mark.parametrize("fault", [*RAISES, *DIES, *HANGS, "RomError"])
def test_everything_is_closed_within_five_seconds_of_any_fault(tmp_path: Path, fault: str) -> None:
    timeout_s = 0.5
    vec_env = faulty_vec_env(tmp_path, fault=fault, where="step", timeout_s=timeout_s)
    start = time.monotonic()
    with pytest.raises((WorkerError, RomError)):
        use_until_it_fails(vec_env)
    vec_env.close()
    vec_env.close()
    assert time.monotonic() - start < timeout_s + CLOSED_WITHIN_S
    assert vec_env.closed
    assert not any(process.is_alive() for process in vec_env.processes)


def test_the_envs_of_all_workers_are_closed_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(WorkerError):
        build_and_use(tmp_path, fault="ValueError", where="step")
    assert {path.name for path in tmp_path.iterdir()} == {f"closed_{n}" for n in range(N_ENVS)}


def test_an_env_that_cannot_be_built_does_not_leave_the_others_open(tmp_path: Path) -> None:
    with pytest.raises(WorkerError):
        build_and_use(tmp_path, fault="ValueError", where="constructor")
    built = (0, 1, 2)  # the second worker stops at env 3
    assert {path.name for path in tmp_path.iterdir()} == {f"closed_{n}" for n in built}


@pytest.mark.parametrize("fault", ["hang", "SIGSTOP", "SIGKILL", "exit", "ValueError"])
def test_close_returns_though_an_env_misbehaves_in_its_own_close(
    tmp_path: Path, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    vec_env = faulty_vec_env(tmp_path, fault=fault, where="close")
    vec_env.reset()
    vec_env.close()
    assert not any(process.is_alive() for process in vec_env.processes)
    capfd.readouterr()


def test_close_during_a_step_ends_a_hanging_worker(tmp_path: Path) -> None:
    vec_env = faulty_vec_env(tmp_path, fault="hang", where="step")
    vec_env.reset()
    vec_env.step_async(np.zeros(N_ENVS, int))
    vec_env.close()
    assert not any(process.is_alive() for process in vec_env.processes)


def test_after_an_error_a_call_says_why_there_are_no_environments(tmp_path: Path) -> None:
    vec_env = faulty_vec_env(tmp_path, fault="ValueError", where="step")
    with pytest.raises(WorkerError):
        use(vec_env)
    with pytest.raises(WorkerError, match="are closed because env 3 raised ValueError: the ROM"):
        vec_env.reset()


def test_after_close_a_call_says_that_the_environments_are_closed(tmp_path: Path) -> None:
    vec_env = faulty_vec_env(tmp_path, fault="", where="")
    vec_env.close()
    for call in (vec_env.reset, lambda: vec_env.step(np.zeros(N_ENVS, int))):
        with pytest.raises(WorkerError, match="the environments are closed; make new ones"):
            call()


def test_what_cannot_be_pickled_is_an_error_with_a_name(tmp_path: Path) -> None:
    vec_env = faulty_vec_env(tmp_path, fault="", where="")
    with pytest.raises(WorkerError, match=r"worker 0 \(envs 0-1\) raised .*pickle"):
        vec_env.get_attr("unpicklable", indices=0)


def test_an_unknown_attribute_is_an_error_with_the_env_and_the_name(tmp_path: Path) -> None:
    vec_env = faulty_vec_env(tmp_path, fault="", where="")
    with pytest.raises(WorkerError, match=r"env 4 raised AttributeError: .*nonsense"):
        vec_env.get_attr("nonsense", indices=4)


def test_ctrl_c_of_the_whole_group_leaves_the_workers_alone(tmp_path: Path) -> None:
    vec_env = faulty_vec_env(tmp_path, fault="", where="")
    vec_env.reset()
    for process in vec_env.processes:
        os.kill(process.pid, signal.SIGINT)
    use(vec_env)
    assert all(process.is_alive() for process in vec_env.processes)
    vec_env.close()


def test_after_ctrl_c_in_a_step_the_workers_answer_the_next_call() -> None:
    vec_env = SharedMemoryVecEnv([functools.partial(Interrupting, os.getpid())])
    vec_env.seed(0)
    vec_env.reset()
    vec_env.step(np.zeros(1, int))
    vec_env.step(np.zeros(1, int))
    with pytest.raises(KeyboardInterrupt):
        vec_env.step(np.zeros(1, int))
    assert vec_env.get_attr("steps") == [3]
    vec_env.step(np.zeros(1, int))
    assert vec_env.get_attr("steps") == [4]
    vec_env.close()


PARENT = """
import sys

if __name__ == "__main__":  # the workers import this program again, and are to stay without torch
    import numpy as np
    from game_rl.vec_env.vec_env import SharedMemoryVecEnv
    from tests.vec_env.envs import Loud, RandomEpisodes

    env = Loud if sys.argv[1] == "hang" else RandomEpisodes
    vec_env = SharedMemoryVecEnv([env] * 2, start_method=sys.argv[2])
    vec_env.reset()
    print(*(process.pid for process in vec_env.processes), flush=True)
    if sys.argv[1] == "exit":
        sys.exit()
    if sys.argv[1] == "idle":
        sys.stdin.read()
    vec_env.step(np.zeros(2, int))
"""


def start_parent(folder: Path, mode: str, start_method: str) -> subprocess.Popen[str]:
    script = folder / "parent.py"
    script.write_text(PARENT, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(script), mode, start_method],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


@pytest.mark.slow
@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
@pytest.mark.parametrize("mode", ["idle", "hang"])
def test_workers_leave_when_their_parent_is_killed(
    tmp_path: Path, mode: str, start_method: str
) -> None:
    with start_parent(tmp_path, mode, start_method) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2
        if mode == "hang":
            assert [parent.stdout.readline() for _ in workers] == ["hanging\n"] * 2
        family = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
        _, alive = psutil.wait_procs([*workers, *family], timeout=CLOSED_WITHIN_S)
    assert not alive


@pytest.mark.slow
def test_a_program_that_forgets_to_close_still_ends_in_silence(tmp_path: Path) -> None:
    with start_parent(tmp_path, "exit", "forkserver") as parent:
        output, errors = parent.communicate()
    workers = [int(pid) for pid in output.split()]
    assert len(workers) == 2
    assert not any(psutil.pid_exists(pid) for pid in workers)
    assert (parent.returncode, errors) == (0, "")


def test_a_vec_env_is_not_copied() -> None:
    vec_env = SharedMemoryVecEnv([RandomEpisodes])
    with pytest.raises(TypeError, match=r"make another one with make_vec_env\(config\)"):
        copy.deepcopy(vec_env)
    vec_env.close()


SCRIPT = """\
from game_rl.errors import WorkerError
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.vec_env.envs import RandomEpisodes
if __name__ == "__main__":
    try:
        SharedMemoryVecEnv([RandomEpisodes]).close()
    except WorkerError as error:
        print(error)
    else:
        print("closed")
"""


def run_script(*words: str, **variables: str) -> str:
    return subprocess.run(
        [sys.executable, *words],
        input=SCRIPT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=120,
    ).stdout


@pytest.mark.slow
def test_workers_start_where_the_folder_of_temporary_files_has_a_long_name(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    place = tmp_path / ("long" * 35)
    place.mkdir()
    assert run_script(str(script), TMPDIR=str(place)) == "closed\n"


def test_a_script_from_standard_input_is_told_to_be_a_file() -> None:
    assert "write it to a file" in run_script("-")
