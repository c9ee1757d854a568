"""An experiment's page from the records that the experiment leaves."""

from game_rl.config.experiments.experiment import dump_experiment
from game_rl.experiments.records import read_records
from game_rl.viewer.experiment_summary import experiment_summary
from game_rl.viewer.watched_place import WatchedPlace
from tests.experiments.conftest import MakePopulation, make_population
from tests.experiments.plans.test_population_plan import carry_out
from tests.viewer.live_run import watching

__all__ = ["make_population"]  # a fixture


def test_generations_members_and_copies_are_those_of_the_records(
    make_population: MakePopulation,
) -> None:
    population = make_population("population")
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    records = read_records(folder)
    found = experiment_summary(folder.root)
    assert (found["state"], found["kind"], found["stage"]) == (
        "completed",
        "population",
        "generation",
    )
    assert len(found["table"]) == len(records) == 5
    for row, record in zip(found["table"], records, strict=True):
        values = [member.fitness.value for member in record.members if member.fitness]
        assert (row["best"], row["worst"]) == (max(values), min(values))
        assert row["copies"] == [f"{c.folder} from {c.parent_folder}" for c in record.copies]
    cells = {(cell["generation"], cell["number"]): cell for cell in found["lineage"]}
    for record in records[:-1]:
        parents = {copy.number: copy.parent for copy in record.copies}
        for number in range(4):
            assert cells[record.generation + 1, number]["from"] == parents.get(number)
    assert {m["folder"] for m in found["members"]} == {m.folder for m in records[-1].members}
    assert found["champion"]["number"] in range(4)


def test_an_experiment_is_shown_with_its_members(
    make_population: MakePopulation,
) -> None:
    population = make_population("population")
    folder = carry_out(population)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    place = WatchedPlace(folder.root)
    assert place.kind == "experiment"
    names = {path.name for path in folder.members.iterdir() if (path / "config.yaml").exists()}
    assert set(place.runs()) - {"champion"} == names
    with watching(folder.root) as server:
        overview = server.news()["overview"]
        assert overview["generation"] == 5
        member = sorted(names)[0]
        assert server.news(member)["state"]["name"] == f"population, member {member}"
        assert server.get("/api/state?run=none")[0] == 404
