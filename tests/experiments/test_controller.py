"""What an experiment writes, byte for byte, with members that train on paper.

A new key of a config changes the digests of `experiment.yaml` and `configs`; nothing else may.
"""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import Experiment, dump_experiment
from game_rl.events.event_log import EventFile, ExperimentEventLog
from game_rl.experiments.controller import ExperimentRun
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.plans.plan import Plan
from game_rl.system.stop_request import StopRequest
from tests.experiments.conftest import MakeMixture, MakePopulation
from tests.experiments.paper_executor import PaperExecutor

WRITTEN: dict[str, dict[str, str]] = {
    "population": {
        "experiment.yaml": "35e00f1205c5d163",
        "state.json": "0ea6af63cd8ed2f7",
        "champion.json": "870a91884b1bba05",
        "records": "27bd4c1f3f8a9364",
        "configs": "e8d8b154ea8a5425",
    },
    "train_on": {
        "experiment.yaml": "eb6af8dbe76e0632",
        "state.json": "0826de6e937aebda",
        "champion.json": "20d5bf89548e6efb",
        "records": "f2c602a5c80ff511",
        "configs": "68181525e179ef8e",
    },
    "erl": {
        "experiment.yaml": "271b33653f002395",
        "state.json": "8687e3408543502b",
        "champion.json": "eec6ba91a4de92ec",
        "records": "2450eaf293e1f2f1",
        "configs": "d76e761a083fc874",
    },
    "shares": {
        "experiment.yaml": "11df1a11dffe19a9",
        "state.json": "4ee784142b6db5f5",
        "champion.json": "4e8494ca7f068224",
        "records": "bfdf974f49786cb5",
        "configs": "8afc311f1b7d88cd",
    },
    "mixture": {
        "experiment.yaml": "65bbd923c929dfac",
        "state.json": "e5177540876be5d0",
        "champion.json": "49c38a416d6a36e1",
        "records": "348b5bd43253c9a0",
        "configs": "e4737cfa0e7fcd18",
    },
    "best_member": {
        "experiment.yaml": "b91343de8700bb18",
        "state.json": "6087585862663279",
        "champion.json": "368816cb7848832d",
        "records": "af8a0ca1b1eb89fa",
        "configs": "cec9329438566708",
    },
    "live": {
        "experiment.yaml": "8bc60f6d44e0d24a",
        "state.json": "2c238b222cf54e14",
        "champion.json": "b7c1e0ecb261481c",
        "records": "0dca95b12a7904da",
        "configs": "f7bfa9b0aed0fb1c",
    },
}


def carry_out_whole(experiment: Experiment, executor: PaperExecutor) -> ExperimentDir:
    folder = ExperimentDir(experiment.config.run_dir)
    folder.root.mkdir(exist_ok=True)
    folder.config.write_text(dump_experiment(experiment), encoding="utf-8")
    with EventFile(folder.events) as file:
        plan, stop = Plan(folder, experiment), StopRequest(math.inf)
        ExperimentRun(plan, executor, ExperimentEventLog(file), stop).run()
    return folder


def digest(files: list[Path], place: Path) -> str:
    """Return the beginning of the sha256 of the files' names and text, whatever `place` is."""
    sha256 = hashlib.sha256()
    for path in files:
        text = path.read_text(encoding="utf-8").replace(str(place), "PLACE")
        sha256.update(f"{path.relative_to(place)}\n{text}\n".encode())
    return sha256.hexdigest()[:16]


@pytest.mark.parametrize("name", WRITTEN)
def test_an_experiment_writes_the_same_bytes_as_ever(
    tmp_path: Path,
    make_population: MakePopulation,
    make_mixture: MakeMixture,
    make_erl: MakePopulation,
    name: str,
) -> None:
    learns, best = "member.algorithm.n_epochs=1", "learner.member_shares={best_member: 3}"
    cloned = ("learner_starts=best_member", "clone={to: worst, only_if_better: false}")
    make: dict[str, Callable[[], Experiment]] = {
        "population": lambda: make_population("x"),
        "train_on": lambda: make_population("x", "train_on={timesteps: 64}", "generations=2"),
        "erl": lambda: make_erl("x", learns, "learner.teacher=best_member"),
        "shares": lambda: make_erl("x", learns, best, "control=1"),
        "mixture": lambda: make_mixture("x", "learner.member_shares={best_member: 3, 1: 2}"),
        "best_member": lambda: make_mixture("x", *cloned),
        "live": lambda: make_mixture("x", "learner.member_shares={1: 2}", is_live=True),
    }
    broken = [("01", 100), ("01", 128), ("learner.g0002", 64)]
    folder = carry_out_whole(make[name](), PaperExecutor(5, non_finite=broken))
    written = {
        "experiment.yaml": [folder.config],
        "state.json": [folder.state],
        "champion.json": [folder.champion_record],
        "records": sorted(folder.generations.glob("*/record.json")),
        "configs": sorted(folder.members.glob("*/config.yaml")),
    }
    found = {what: digest(files, tmp_path) for what, files in written.items()}
    assert found == WRITTEN[name]
