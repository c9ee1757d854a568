"""A population of real members that only play, with a real learner."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import CopyRecord, GenerationRecord, read_record
from game_rl.lake.lake import Lake
from tests.faults.erl_files import write_erl


def record(folder: ExperimentDir, generation: int) -> GenerationRecord:
    found = read_record(folder.generation(generation).record, GenerationRecord)
    assert found is not None
    return found


def weights_of(folder: ExperimentDir, generation: int, number: int) -> dict[str, torch.Tensor]:
    tensors = Checkpoint(folder.generation(generation).checkpoint(number)).policy()
    return {name: t for name, t in tensors.items() if name.startswith("q_net.")}


def assert_goes_on(folder: ExperimentDir, generation: int, copy: CopyRecord) -> None:
    """A member plays the generation after with its parent's weights, but for noise on a copy's."""
    parent = weights_of(folder, generation, copy.parent)
    child = weights_of(folder, generation + 1, copy.number)
    for name, tensor in parent.items():
        moved = (child[name] - tensor).square().mean().sqrt()
        size = tensor.square().mean().sqrt()
        expected = copy.weight_noise if tensor.ndim > 1 else 0.0
        assert float(moved) == pytest.approx(expected * float(size), rel=0.2), name


@pytest.mark.soak
def test_members_play_mutate_and_give_way_to_what_learns_from_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ExperimentDir(tmp_path / "erl")
    assert main(["train", "--config", str(write_erl(tmp_path, folder.root))]) == 0
    copies = [(g, copy) for g in (1, 2) for copy in record(folder, g).copies]
    assert {copy.reason for _, copy in copies} == {"worse", "injected"}
    for generation, copy in copies:
        assert_goes_on(folder, generation, copy)

    streams = Lake.open(folder.root / "lake").view().streams
    writers = [p.name for p in folder.members.iterdir() if p.name[0].isdigit()]
    assert streams == sorted(folder.member(name).identity().id for name in writers)
    rows = Lake.open(folder.root / "lake").view().n_transitions
    assert np.sum(rows) == 3 * 2 * 64

    capsys.readouterr()
    for command in ("status", "lineage"):
        assert main([command, str(folder.root), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        if command == "status":
            assert told["timesteps_of_all"] == 3 * (2 * 64 + 32)
    assert main(["evaluate", str(folder.root), "--episodes", "2"]) == 0
