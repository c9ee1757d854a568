"""An experiment whose disk is full, at every write, and what it comes to once there is room."""

from contextlib import suppress

import pytest

from game_rl.errors import GameRLError
from tests.experiments.broken_off import account_of
from tests.experiments.conftest import MakePopulation
from tests.experiments.plans.test_population_plan import carry_out
from tests.faults.faulty_run import Faults, injected

SHORT = ("generations=2", "members=3")


@pytest.mark.parametrize("stride", [60, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_is_full_from_any_write_on_costs_nothing_that_is_written(
    make_population: MakePopulation, stride: int
) -> None:
    whole_run = make_population("whole", *SHORT)
    counted = Faults("none:0:none", str(whole_run.config.run_dir))
    with injected(counted):
        whole = account_of(carry_out(whole_run))
    for operation in ("write", "mkdir", "rename", "link"):
        for number in range(1, counted.counts[operation] + 1, stride):
            population = make_population(f"{operation}_{number}", *SHORT)
            faults = Faults(f"{operation}:{number}:ENOSPC", str(population.config.run_dir))
            with injected(faults), suppress(OSError, GameRLError):
                carry_out(population)
            assert faults.has_struck
            assert account_of(carry_out(population)) == whole, f"{operation} {number}"
