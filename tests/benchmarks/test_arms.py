"""The experiments that fork and learn from others: what they count, and the whole path, tiny."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.arms import Experiment, Task
from benchmarks.recovery import recovered_after
from game_rl.errors import UsageError


def test_a_task_with_a_result_is_not_done_again_and_another_plan_is_refused(tmp_path: Path) -> None:
    done: list[str] = []

    def task(name: str) -> Task:
        def found() -> dict[str, object]:
            done.append(name)
            return {"found": name}

        return Task(name, 1.0, found)

    for names in (["a"], ["a", "b"]):
        experiment = Experiment(tmp_path, {"seeds": (0, 1)})
        experiment.open()
        experiment.run([task(name) for name in names])
    assert done == ["a", "b"]
    assert experiment.results["a"]["found"] == "a"
    with pytest.raises(UsageError, match="seeds"):
        Experiment(tmp_path, {"seeds": (0,)}).open()


def test_recovery_is_the_first_of_two_evaluations_that_are_as_good() -> None:
    rates = [0.5, 0.9, 0.7, 0.9, 0.8]
    curve = [(100 + 10 * number, rate) for number, rate in enumerate(rates, start=1)]
    assert recovered_after(curve, reference=0.8, broken_at=100) == 40
    assert recovered_after(curve, reference=0.7, broken_at=100) == 20
    assert recovered_after(curve, reference=0.81, broken_at=100) is None
    assert recovered_after(curve[:1], reference=0.1, broken_at=100) is None


@pytest.mark.soak
@pytest.mark.parametrize(("name", "n_results"), [("recovery", 4), ("offline_learning", 7)])
def test_the_whole_path_works_and_goes_on_where_a_result_is_missing(
    name: str, n_results: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--smoke", "--folder", str(tmp_path)]
    first = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    results = sorted((tmp_path / "results").glob("*.json"))
    assert len(results) == n_results
    assert list(tmp_path.glob("*.png"))
    table = first[first.index("| ") :]
    found = json.loads(results[0].read_text(encoding="utf-8"))
    results[0].unlink()
    again = subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
    assert again.count("minutes left") == 1
    seconds = found.pop("seconds")
    assert seconds > 0
    once_more = json.loads(results[0].read_text(encoding="utf-8"))
    assert once_more.pop("seconds") > 0
    assert once_more == found
    report = subprocess.run(
        [*command, "--report"], check=True, capture_output=True, encoding="utf-8"
    )
    assert report.stdout.splitlines()[0] == table.splitlines()[0]
