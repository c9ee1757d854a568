"""What the files of an exploration say, compared with the archive in memory."""

import json
from collections import Counter
from pathlib import Path

import pytest

from game_rl.errors import UsageError
from game_rl.explore.archive import Archive
from game_rl.explore.exploration import Exploration
from game_rl.explore.exploration_view import CellPlaces, ExplorationView
from game_rl.explore.explore_dir import ExploreDir
from game_rl.games.cell import CoarseVariable
from game_rl.places.joined_maps import joined_maps
from game_rl.places.screen_map import read_screen_map
from tests.explore.explored_beacon import BEACON


def view_of(folder: ExploreDir) -> ExplorationView:
    return ExplorationView(folder, BEACON.definition.place, BEACON.map_offsets())


def test_the_view_counts_what_the_archive_has(beacon: Exploration) -> None:
    view = view_of(beacon.folder)
    view.refresh()
    archive = beacon.archive
    places = {(record.cell[0], *record.cell[4:6]) for record in archive.cells}
    last = view.last
    assert (last.cells, last.timesteps) == (len(archive.cells), archive.timesteps)
    assert (last.places, last.maps) == (len(places), len({room for room, *_ in places}))
    assert last.reward == archive.best().score.reward
    assert view.has_success == bool(archive.successes())
    assert {term.name: term.most for term in view.terms} == archive.earned
    assert view.state == "stopped"


def test_a_reward_term_is_dated_by_the_first_round_that_has_earned_it(beacon: Exploration) -> None:
    view = view_of(beacon.folder)
    view.refresh()
    (term,) = view.terms
    rounds = [json.loads(line) for line in beacon.folder.archive.read_text("utf-8").splitlines()][
        1:
    ]
    assert not rounds[0]["earned"]
    assert "key" in rounds[1]["earned"]
    assert term.timesteps == rounds[0]["timesteps"] + rounds[1]["timesteps"]
    progress = beacon.folder.progress.read_text("utf-8").splitlines()
    assert term.seconds == json.loads(progress[1])["seconds"]
    assert term.has_route


def test_the_map_has_the_trips_of_all_cells_of_a_place(beacon: Exploration) -> None:
    view = view_of(beacon.folder)
    view.refresh()
    counts = view.place_counts()
    assert counts is not None
    expected: Counter[tuple[int, ...]] = Counter()
    for record in beacon.archive.cells:
        expected[record.cell[0], record.cell[4], record.cell[5]] += record.seen
    found = {
        (*sheet.map_id, sheet.x + column, sheet.y + row): int(sheet.visits[row, column])
        for sheet in counts.sheets()
        for row, column in zip(*sheet.visits.nonzero(), strict=True)
    }
    assert found == {place: times for place, times in expected.items() if times}
    x, y = BEACON.map_offsets()[0]
    assert counts.offsets[0] == (x // 16, y // 16)


def test_a_map_on_screens_has_its_visits_where_the_places_are(beacon: Exploration) -> None:
    view = view_of(beacon.folder)
    view.refresh()
    counts = view.place_counts_on_screens()
    assert counts is not None
    screens = read_screen_map(beacon.folder.place_screens)
    (world,) = joined_maps(counts, screens, pixels=screens.pixels, names={}, side=16)
    assert world.layer is not None
    assert world.layer.cell_side == 16
    rooms = {record.cell[0] for record in beacon.archive.cells}
    offsets = BEACON.map_offsets()
    corners = {(picture.x, picture.y) for picture in world.pictures}
    assert corners == {(offsets[room][0], offsets[room][1] + 16) for room in rooms}
    record = beacon.archive.cells[0]
    room, x, y = record.cell[0], *record.cell[4:6]
    column = (offsets[room][0] + 16 * x - world.layer.x0) // 16
    row = (offsets[room][1] + 16 * y - world.layer.y0) // 16
    there = [
        each for each in beacon.archive.cells if (each.cell[0], *each.cell[4:6]) == (room, x, y)
    ]
    assert world.layer.counts[row, column] == sum(each.seen for each in there)


def test_maps_whose_offsets_are_between_squares_lie_alone_on_their_screens(
    beacon: Exploration,
) -> None:
    odd = {room: (x + 5, y) for room, (x, y) in BEACON.map_offsets().items()}
    view = ExplorationView(beacon.folder, BEACON.definition.place, odd)
    view.refresh()
    counts = view.place_counts_on_screens()
    assert counts is not None
    screens = read_screen_map(beacon.folder.place_screens)
    found = joined_maps(counts, screens, pixels=screens.pixels, names={}, side=16)
    rooms = {record.cell[0] for record in beacon.archive.cells}
    assert [each.map_id for each in found] == [(room,) for room in sorted(rooms)]
    assert all((each.pictures[0].x, each.pictures[0].y) == (0, 16) for each in found)


def test_without_screens_there_is_no_map_on_them(beacon: Exploration, tmp_path: Path) -> None:
    for path in (beacon.folder.saved, beacon.folder.archive, beacon.folder.progress):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    view = view_of(ExploreDir(tmp_path))
    view.refresh()
    assert view.place_counts() is not None
    assert view.place_counts_on_screens() is None


def test_reading_bit_by_bit_gives_what_reading_at_once_gives(
    beacon: Exploration, tmp_path: Path
) -> None:
    whole = beacon.folder.archive.read_bytes()
    folder = ExploreDir(tmp_path)
    for path in (beacon.folder.saved, beacon.folder.progress):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    view = view_of(folder)
    view.refresh()
    assert view.last.cells == 0
    for end in (10, len(whole) // 3, 2 * len(whole) // 3, len(whole)):  # torn lines, too
        folder.archive.write_bytes(whole[:end])
        view.refresh()
    at_once = view_of(beacon.folder)
    at_once.refresh()
    assert view.points == at_once.points
    assert view.terms == at_once.terms
    slow = view_of(beacon.folder)
    for lines in range(1, len(at_once.points) + 1):
        slow.refresh(within_s=0)  # a line at a time; the first is the beginning
        assert list(slow.points) == list(at_once.points)[: lines - 1]
    # another file, as after it was compacted
    compacted = "".join(f"{line}\n" for line in beacon.archive.compacted(folder.archive))
    (tmp_path / "new").write_text(compacted, encoding="utf-8")
    (tmp_path / "new").replace(folder.archive)
    view.refresh()
    assert view.points == at_once.points


def test_a_damaged_line_is_named_by_its_place(beacon: Exploration, tmp_path: Path) -> None:
    (tmp_path / "explore.json").write_bytes(beacon.folder.saved.read_bytes())
    (tmp_path / "archive.jsonl").write_text('{"finds": 3}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"at byte 0: this is not a line of an archive"):
        view_of(ExploreDir(tmp_path)).refresh()


def test_without_all_variables_of_the_place_nobody_knows_where_a_cell_is() -> None:
    entries = [CoarseVariable(variable="room"), CoarseVariable(variable="player_x", per=8)]
    assert CellPlaces(entries, ("room", "player_x", "player_y")).of((3, 4)) is None
    assert CellPlaces(entries, None).of((3, 4)) is None
    known = CellPlaces(entries, ("player_x",))
    assert (known.of((3, 4)), known.sides) == ((4,), (8, 8))


def test_an_archive_read_without_its_states_is_the_same_otherwise(beacon: Exploration) -> None:
    read = Archive.read(beacon.folder.archive, 10**9, has_states=False)
    assert not any(record.state for record in read.cells)
    for record, whole in zip(read.cells, beacon.archive.cells, strict=True):
        assert (record.cell, record.score, record.seen) == (whole.cell, whole.score, whole.seen)
        assert record.way.whole() == whole.way.whole()
    assert read.firsts.keys() == beacon.archive.firsts.keys()
