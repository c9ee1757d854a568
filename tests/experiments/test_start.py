"""Going on with an experiment: what that changes in its folder."""

from game_rl.config.experiments.population_files import dump_population
from game_rl.experiments.train_experiment import ExperimentCommand, resume_experiment
from game_rl.system.stop_request import StopFlag
from tests.experiments.conftest import MakePopulation
from tests.experiments.plans.test_population import carry_out


def test_members_with_lakes_of_their_own_keep_them_when_the_population_goes_on(
    make_population: MakePopulation,
) -> None:
    population = make_population("whole", "generations=1", "member.lake={}")
    folder = carry_out(population)
    folder.config.write_text(dump_population(population), encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.members.rglob("config.yaml")}
    assert len(before) == 4
    champion = resume_experiment(folder.root, ExperimentCommand(stop=StopFlag(), force=True))
    assert champion.number in range(4)
    assert {path: path.read_bytes() for path in before} == before
    assert not folder.lake.exists()
