"""Files in the current folder with names of modules are never run by a program of ours."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import game_rl
from tests.cli.test_main import kept_run
from tests.cli.test_watch_command import token_of, watch
from tests.experiments.executors.job_program import MODULE, asking
from tests.viewer.live_run import Watching

NAMES = """
abc argparse array ast asyncio base64 bisect calendar cloudpickle codecs collections configparser
contextlib copy csv ctypes dataclasses datetime decimal enum filelock fractions functools gc
gymnasium gzip h11 hashlib heapq html http importlib inspect io itertools json keyword linecache
locale logging math multiprocessing numpy operator os pathlib pickle PIL platform psutil pyboy
pydantic queue random re resource rich safetensors secrets select selectors shlex shutil signal
socket stable_baselines3 starlette stat statistics string struct subprocess tempfile tensorboard
textwrap threading time token tokenize torch traceback types typing typing_extensions unicodedata
urllib uuid uvicorn warnings weakref yaml zipfile zlib zstandard
click shtab matplotlib av obstore ray wandb game_rl config events profile errors
"""  # of modules that our programs import, and of files as people call them
HANG_GUARD_S = 600
ROOT = Path(game_rl.__file__).parents[1]
STRAY = """\
import os
with open(os.path.join(os.path.dirname(__file__), "has run"), "a") as file:
    file.write(__name__ + " ")
raise SystemExit("a stray file has run")
"""

PROGRAM = """\
import os, sys, time
from game_rl.config.schema import EnvConfig
from game_rl.emulator.pyboy_emulator import PyBoyEmulator, try_raw_state
from game_rl.games.definition import load_game
from game_rl.system.child_process import started
from game_rl.system.fork_server import ForkServer, OwnProcess
from game_rl.system.child_process import LeashedProcess
from game_rl.vec_env.make_vec_env import make_vec_env

if __name__ == "__main__":
    module, request = sys.argv[1:]
    with open("log", "ab") as log:
        server = ForkServer(["game_rl.errors"], os.environ)
        starts = (server.fork, OwnProcess, LeashedProcess)
        jobs = [start(module, [request], os.environ, log.fileno()) for start in starts]
        for job in jobs:
            while not job.has_ended():
                time.sleep(0.02)
            print(job.kill_and_wait())
        server.close()
    game = load_game("duel")
    env = make_vec_env(EnvConfig(n_envs=2, n_workers=2), game, n_envs=2, seed=0)
    print(len(env.reset()))
    env.close()
    emulator = PyBoyEmulator(game.rom, colour=False)
    try_raw_state(game.rom, emulator._raw_state(), colour=False)
    emulator.close()
    print(started("game_rl.errors").wait())
"""


@pytest.fixture
def stray(tmp_path: Path) -> Iterator[Path]:
    """A folder of modules that write a file when they run."""
    folder = tmp_path / "stray"
    folder.mkdir()
    for name in NAMES.split():
        (folder / f"{name}.py").write_text(STRAY, encoding="utf-8")
    yield folder
    ran = folder / "has run"
    assert not ran.exists(), ran.read_text(encoding="utf-8")


def run_there(folder: Path, *command: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=HANG_GUARD_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_processes_of_ours_do_not_run_modules_of_the_current_folder(
    stray: Path, tmp_path: Path
) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM, encoding="utf-8")
    told = run_there(stray, str(script), MODULE, str(asking(tmp_path, "end", "3")))
    assert told.split() == [
        "3",
        "3",
        "3",
        "2",
        "1",
    ]  # the last has no `main`, which it has found out


FEW_TIMESTEPS = [
    "total_timesteps=256",
    "env.n_envs=2",
    "env.max_episode_timesteps=60",
    "evaluation.episodes=1",
    "evaluation.final_episodes=1",
    "algorithm.learning_starts=64",
    "algorithm.replay.capacity=500",
    "run_dir=run",
]
COMMAND = "import sys; from game_rl.__main__ import main; sys.exit(main())"


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("train", "duel_ppo", "--smoke"),
        ("train", "duel_population", "--smoke"),
        ("train", "duel_dqn", *FEW_TIMESTEPS),
        ("tune", "--config", "duel_ppo", "--seconds", "1"),
    ],
)
def test_commands_do_not_run_modules_of_the_current_folder(
    stray: Path, words: tuple[str, ...]
) -> None:
    run_there(stray, "-P", "-c", COMMAND, *words)


def test_watching_from_a_folder_of_such_modules(
    stray: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `python -m`, whose own imports come first, and in which nothing can be mended."""
    before = "importlib warnings contextlib collections keyword operator functools types game_rl"
    for name in before.split():
        (stray / f"{name}.py").unlink()
    kept_run(tmp_path / "run", timesteps=64)
    monkeypatch.chdir(stray)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with watch(tmp_path / "run") as (_, printed, port):
        server = Watching(port, f"game_rl_watch_%d={token_of(printed)}")
        assert server.json("/api/settings?run=")


def test_each_start_of_a_python_says_where_its_modules_come_from() -> None:
    lacking = []
    for file in sorted((ROOT / "game_rl").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
        starts = any(isinstance(n, ast.Attribute) and n.attr == "executable" for n in nodes)
        is_safe = any(isinstance(n, ast.Name) and n.id == "python_variables" for n in nodes)
        is_isolated = any(isinstance(n, ast.Constant) and n.value == "-I" for n in nodes)
        if starts and not is_safe and not is_isolated:
            lacking.append(file.name)
    assert lacking == []
