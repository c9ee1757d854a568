"""Real experiments that are uploaded, and go on on another machine, in another folder."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.storage.inventory import stored_experiments
from game_rl.storage.object_store import ObjectStore
from tests.faults.population_faults import (
    HANG_S,
    WRITERS,
    Controller,
    hashes_of,
    records_of,
)
from tests.storage.conftest import disk_address as disk_address  # a fixture


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("erl", marks=pytest.mark.slow),
        pytest.param("population", marks=pytest.mark.soak),
        pytest.param("mixture", marks=pytest.mark.soak),
    ],
)
def test_an_experiment_whose_machine_vanished_goes_on_from_storage(
    kind: str, tmp_path: Path, disk_address: str
) -> None:
    whole, here, there = (tmp_path / name for name in ("whole", "here", "there"))
    write = WRITERS[kind]
    write(tmp_path, whole)
    assert Controller(whole).process.wait(HANG_S) == 0
    file = write(tmp_path, here)
    file.write_text(
        f"{file.read_text(encoding='utf-8')}upload: {{to: '{disk_address}'}}\n", encoding="utf-8"
    )
    controller = Controller(here)
    folder = ExperimentDir(here)
    while not stored_experiments(ObjectStore(disk_address)):
        assert controller.run_for(0.2), controller.output
    controller.process.kill()
    controller.process.wait()
    experiment = folder.identity().id
    shutil.rmtree(here)

    (listed,) = json.loads(game_rl("remote", "list", disk_address, "--json"))
    assert listed["experiment"] == experiment
    assert listed["kind"] == ("mixture" if kind == "mixture" else "population")
    assert listed["generations"][0] == 1
    game_rl("remote", "verify", disk_address)
    url = f"{disk_address}/experiments/{experiment}"
    resume = ["train", "--resume", f"{url}@1", "--set", f"run_dir={there}"]
    assert "--take-over" in game_rl(*resume, code=1)  # who vanished might come back
    game_rl(*resume, "--take-over")
    assert (records_of(there), hashes_of(there)) == (records_of(whole), hashes_of(whole))
    last = stored_experiments(ObjectStore(disk_address))[0]
    assert last.generation == len(list((whole / "generations").iterdir()))
    assert not last.is_active
    assert "every byte" in game_rl("remote", "verify", url)


def game_rl(*arguments: str, code: int = 0) -> str:
    """What the command prints; it must end with this exit code."""
    command = [sys.executable, "-m", "game_rl", *arguments]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=HANG_S, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr
