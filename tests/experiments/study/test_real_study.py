"""A study of real runs, killed on its way, from its registration to its report."""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

from game_rl.cli.main import main
from tests.faults.population_faults import HANG_S, Controller
from tests.faults.study_faults import results_of, write_study


@pytest.mark.slow
def test_a_study_that_is_killed_goes_on_and_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    place = tmp_path / "study"
    file = write_study(tmp_path, place)
    first = Controller(place)
    deadline = time.monotonic() + HANG_S
    while not results_of(place) and time.monotonic() < deadline:
        first.run_for(0.2)  # until a first run has its result, and others are under way
    first.process.kill()
    first.process.wait(HANG_S)
    kept = results_of(place)
    assert first.orphans() == []

    assert main(["compare", str(file)]) == 1
    assert "results are missing" in capsys.readouterr().err
    assert main(["train", "--config", str(file)]) == 0
    found = results_of(place)
    assert {name: found[name] for name in kept} == kept
    assert sorted(found) == ["best-3.json", "best-4.json", "one-3.json", "one-4.json"]
    assert all(result["timesteps"] == 160 for result in found.values())
    for seed in (3, 4):
        own = place / "runs" / f"best-{seed}"
        champion = json.loads((own / "champion.json").read_text(encoding="utf-8"))
        assert {each["number"] for each in champion["candidates"]} >= {2}  # who trained on
        assert found[f"best-{seed}.json"]["weights_sha256"] == _policy(own / "champion")
    capsys.readouterr()
    assert main(["compare", str(file), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [arm["total_timesteps"] for arm in report["arms"]] == [160, 160]
    assert (place / "results" / "report.png").stat().st_size > 10_000


def _policy(run: Path) -> str:
    """Hash of the weights of a run's only checkpoint."""
    (path,) = run.glob("checkpoints/*/policy.safetensors")
    return hashlib.sha256(path.read_bytes()).hexdigest()
