"""What rewards from an exploration, and of novelty, add to a forecast."""

import pickle
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.explore.potentials import PotentialsFeature, SavedPotentials
from game_rl.games.cell import Cell, CoarseVariable
from game_rl.games.potential import Potential
from game_rl.preflight.disk import predicted_checkpoint_bytes
from game_rl.preflight.footprint import estimate
from tests.preflight.conftest import FACTS, make_config

HAS_POTENTIAL = replace(FACTS, n_potentials=1)


def _potential() -> Potential:
    """Return one with cells as beacon has them: a room, keys, doors, a result, and a place."""
    names = ("room", "keys_taken", "doors_open", "result", "player_x", "player_y")
    cell = tuple(CoarseVariable(variable=name) for name in names)
    to_go: dict[Cell, int] = {
        (room, 2**keys - 1, 2**doors - 1, 0, x, y): 40 * (12 - keys - doors) + x * y % 37
        for keys in range(7)
        for doors in (keys - 1, keys)
        for room in range(24)
        for x in range(6)
        for y in range(5)
    }
    return Potential(Path("explored"), cell, 8, to_go)


def test_the_file_has_about_the_size_that_is_counted() -> None:
    potential = _potential()
    assert len(potential.to_go) == pytest.approx(10_000, rel=0.05)
    saved = len(SavedPotentials(terms={"progress": potential.saved()}).model_dump_json())
    counted = PotentialsFeature().checkpoint_bytes(HAS_POTENTIAL.planned(make_config()), 0)
    assert counted == pytest.approx(saved, rel=0.6)


def test_the_cells_of_a_process_take_about_the_memory_that_is_counted() -> None:
    pickled = pickle.dumps(_potential())
    tracemalloc.start()
    try:
        there = pickle.loads(pickled)  # noqa: S301 - our own
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert there == _potential()
    run = HAS_POTENTIAL.planned(make_config())
    (part,) = PotentialsFeature().memory(run)
    assert part.bytes / run.n_processes == pytest.approx(taken, rel=0.4)


def test_a_potential_is_a_part_of_memory_checkpoints_and_the_folder() -> None:
    config = make_config()
    without, with_one = (estimate(config, facts) for facts in (FACTS, HAS_POTENTIAL))
    ram = [{p.name: p.bytes for p in each.ram.phases[0].parts} for each in (without, with_one)]
    assert "potentials" not in ram[0]
    assert 2_000_000 < ram[1]["potentials"] < 30_000_000
    checkpoints = [predicted_checkpoint_bytes(config, facts) for facts in (FACTS, HAS_POTENTIAL)]
    assert 30_000 < checkpoints[1] - checkpoints[0] < 100_000
    disk = [{part.name for part in each.disk.parts} for each in (without, with_one)]
    assert disk[1] - disk[0] == {"potentials"}


def test_visits_of_a_run_are_a_part_of_memory_and_checkpoints() -> None:
    config = make_config()
    has_novelty = replace(FACTS, n_novelty_terms=1)
    without, with_one = (estimate(config, facts) for facts in (FACTS, has_novelty))
    ram = [{p.name: p.bytes for p in each.ram.phases[0].parts} for each in (without, with_one)]
    name = "places that the run has visited"
    assert name not in ram[0]
    assert ram[1][name] == (1 + config.env.n_envs) * 10_000_000
    checkpoints = [predicted_checkpoint_bytes(config, facts) for facts in (FACTS, has_novelty)]
    assert 50_000 < checkpoints[1] - checkpoints[0] < 200_000
