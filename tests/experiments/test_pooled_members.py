"""A population whose members' episodes begin in pools of their own."""

from pathlib import Path

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.pool.pool import POOL_FILE, SavedPool
from tests.faults.population_faults import write_pair

POOL = "pool: {save_on: {new_maximum: player_x}, size: 200, goal: reward}"


def replaced(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def pools_after(folder: ExperimentDir, generation: int) -> dict[int, SavedPool]:
    """Return the pools in the members' checkpoints, by their numbers."""
    record = read_record(folder.generation(generation).record, GenerationRecord)
    assert record is not None
    found = {}
    for member in record.members:
        checkpoint = Checkpoint(folder.generation(generation).checkpoint(member.number))
        pool = checkpoint.read(POOL_FILE)
        assert pool is not None
        found[member.number] = pool
    return found


@pytest.mark.slow
def test_each_member_has_its_own_pool_and_a_copy_goes_on_with_its_parents(tmp_path: Path) -> None:
    folder = ExperimentDir(tmp_path / "population")
    file = write_pair(tmp_path, folder.root)
    replaced(tmp_path / "run.yaml", "[level_1]}", f"[level_1], {POOL}}}")
    replaced(file, "{last: 1}", "{last: 2}")
    assert main(["train", "--config", str(file)]) == 0

    before, after = (pools_after(folder, generation) for generation in (1, 2))
    assert before[0].states != before[1].states
    assert all(pool.states for pool in before.values())
    record = read_record(folder.generation(1).record, GenerationRecord)
    assert record is not None
    (copy,) = record.copies
    goes_on = {state.number: state for state in after[copy.number].states}
    for state in before[copy.parent].states:  # none was dropped, so it must have them all
        now = goes_on[state.number]
        assert (now.state, now.reward) == (state.state, state.reward)
        assert now.tally.episodes >= state.tally.episodes
    assert after[copy.number].starts.episodes + sum(s.tally.episodes for s in goes_on.values()) > 0
