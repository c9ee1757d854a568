"""Ray is for those who ask for it."""

import subprocess
import sys
from pathlib import Path

from tests.faults.population_faults import write_population

_WITHOUT_RAY = """
import sys
sys.modules["ray"] = None  # what `import` finds where it is not installed
from game_rl.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_the_extra_it_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    file = write_population(tmp_path, tmp_path / "x")
    arguments = ["train", "--config", str(file), "--set", "executor={kind: ray}"]
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT_RAY, *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ended.returncode == 2
    assert "pip install 'game_rl[ray]'" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "x").exists()


def test_local_members_load_no_ray() -> None:
    code = """
import sys
from pathlib import Path
from game_rl.config.experiments.executor_config import LocalExecutorConfig
from game_rl.experiments.executors.executor import Demand
from game_rl.experiments.executors.executor import check_installed, make_executor
demand = Demand(slots=1, members=2, cpus=1, ram_bytes=1, gpus=0, patience_s=1, folder=Path(),
                warn=print)
check_installed(LocalExecutorConfig())
with make_executor(LocalExecutorConfig(), demand) as executor:
    print(executor.slots, "ray" in sys.modules)
"""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert found.stdout == "1 False\n"
