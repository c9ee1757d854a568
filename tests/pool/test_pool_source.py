"""What is read of an archive for a pool, against the archive read as a whole."""

from pathlib import Path

import pytest

from game_rl.explore.archive import Archive, known_cells, known_routes, states_of, unpacked
from tests.pool.explored import explore


@pytest.mark.slow
def test_cells_and_routes_of_the_file_are_those_of_the_archive(tmp_path: Path) -> None:
    path = explore(tmp_path / "x", "beacon", start_state="shore", rounds=4) / "archive.jsonl"
    archive = Archive.read(path, 10**9)
    held = [record for record in archive.cells if record.state]
    known = known_cells(path)
    assert [each.score for each in known] == [record.score for record in held]
    some = sorted(known[::3], key=lambda each: (each.line, each.find))
    states = dict(zip(some, states_of(path, some), strict=True))
    for cell, record in list(zip(known, held, strict=True))[::3]:
        assert states[cell] == unpacked(record.state)
    routes = known_routes(path, 5, to_success=False)
    best = sorted(archive.cells, key=lambda record: record.score, reverse=True)[:5]
    assert [each.score for each in routes] == [record.score for record in best]
    assert routes[0].actions == best[0].way.whole()
    assert len(routes[0].actions) == best[0].score.timesteps
    assert known_routes(path, 5, to_success=True) == []
