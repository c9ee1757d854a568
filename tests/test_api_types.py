"""A program that uses the public API is checked by mypy against the installed package."""

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSUMER = """
from pathlib import Path

import game_rl

config: game_rl.RunConfig = game_rl.load_config("duel_ppo", "seed=1")
made = game_rl.RunConfig(
    game="duel", total_timesteps=100_000, run_dir="runs/x", env={"n_envs": 4}
)
version: str = game_rl.__version__
report: game_rl.PreflightReport = game_rl.preflight("duel_ppo", "seed=1", run_dir=Path("runs/x"))
fits: bool = report.verdict == "fits"
result: game_rl.TrainingResult = game_rl.train(config, until=64, listeners=[print])
again: game_rl.TrainingResult = game_rl.resume(result.run_dir, total_timesteps=200_000)
forked: game_rl.TrainingResult = game_rl.fork(again, "runs/fork", seed=2)
evaluation: game_rl.Evaluation = game_rl.evaluate(result, "latest", episodes=3, deterministic=True)
mean: float = evaluation.mean_reward
clip: Path = game_rl.record("runs/mine", "clip.gif")
zipped: Path = game_rl.export(config, "policy.zip", 4_096)
rewards: list[float] = [
    event.mean_reward
    for event in game_rl.read_events("runs/mine")
    if isinstance(event, game_rl.events.Evaluated)
]
policy: game_rl.TrainedPolicy = game_rl.load_policy("runs/mine", checkpoint="latest")
env = game_rl.make_env("duel_ppo")
observation, info = env.reset()
action, state = policy.predict(observation, deterministic=True)
observation, reward, terminated, truncated, info = env.step(action)
lake: game_rl.Lake = game_rl.open_lake("runs/mine")
sampler = game_rl.Sampler(lake.view())
"""
WRONG = """
import game_rl

game_rl.load_config(7)
game_rl.train(["duel_ppo"])
game_rl.no_such_name
wrong: int = game_rl.evaluate("runs/mine").mean_reward
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with this package and with what is installed here."""
    folder = tmp_path_factory.mktemp("consumer") / "env"
    venv.create(folder, with_pip=False)
    own = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", vars=own))
    (packages / "game_rl").symlink_to(ROOT / "game_rl")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder / "bin" / "python"


def checked(python: Path, folder: Path, *files: Path) -> list[str]:
    """Return what mypy complains about, without the summary and packages without types."""
    options = ["--strict", "--no-error-summary", "--python-executable", str(python)]
    options += ["--disable-error-code", "import-untyped"]  # onnxruntime has no types
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(file.name for file in files)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stdout.splitlines()


def examples() -> list[str]:
    """The programs of README and docs that use the API, but for the cell of a notebook."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return [block for block in blocks if "import game_rl" in block and "IPython" not in block]


@pytest.mark.slow
def test_mypy_accepts_programs_that_use_it_rightly_and_no_others(
    python: Path, tmp_path: Path
) -> None:
    programs = [CONSUMER, *examples()]
    assert len(programs) > 4
    files = [tmp_path / f"program_{n}.py" for n in range(len(programs))]
    wrong = tmp_path / "wrong.py"
    for file, text in zip([*files, wrong], [*programs, WRONG], strict=True):
        file.write_text(text, encoding="utf-8")
    found = checked(python, tmp_path, *files, wrong)
    lines = {int(line.split(":")[1]) for line in found if line.startswith("wrong.py")}
    assert lines == {4, 5, 6, 7}, found
    assert not [line for line in found if not line.startswith("wrong.py")]
