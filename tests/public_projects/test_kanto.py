"""kanto.yaml, the world of Pokémon Red for the map of visited places, beside connections of maps.

The figures are those of pret/pokered, in blocks of 2 x 2 places: sizes from
constants/map_constants.asm, connections from data/maps/headers.
"""

from pathlib import Path

import pytest

from game_rl.games.definition import load_game
from game_rl.games.place import read_map_offsets
from tests.public_projects.scripted import EXAMPLES

FILES = sorted(EXAMPLES.glob("pokemon_red_*/kanto.yaml"))
SIZES = {
    0: (10, 9), 1: (20, 18), 2: (20, 18), 3: (20, 18), 4: (10, 9), 5: (20, 18), 6: (25, 18),
    7: (20, 18), 8: (10, 9), 9: (10, 9), 10: (20, 18), 12: (10, 18), 13: (10, 36), 14: (35, 9),
    15: (45, 9), 16: (10, 18), 17: (10, 18), 18: (10, 9), 19: (30, 9), 20: (30, 9), 21: (10, 36),
    22: (30, 9), 23: (10, 54), 24: (30, 9), 25: (10, 27), 26: (30, 9), 27: (20, 9), 28: (10, 72),
    29: (25, 9), 30: (10, 27), 31: (50, 9), 32: (10, 45), 33: (20, 9), 34: (10, 72), 35: (10, 18),
    36: (30, 9),
}  # fmt: skip
NORTH = [  # a map, the map north of it, and how far that is to the right
    (0, 12, 0), (1, 13, 5), (3, 35, 5), (4, 21, 0), (5, 17, 5), (8, 32, 0), (10, 16, 5),
    (12, 1, -5), (13, 2, -5), (14, 15, 25), (16, 3, -5), (17, 10, -5), (23, 4, 0), (24, 23, 20),
    (28, 27, 0), (29, 28, 0), (30, 7, -5), (32, 0, 0), (33, 34, 0), (34, 9, 0),
]  # fmt: skip
WEST = [  # a map, the map west of it, and how far that is downwards
    (1, 33, 4), (3, 15, 4), (4, 19, 0), (6, 27, 4), (7, 29, 4), (10, 18, 4), (14, 2, -4),
    (18, 6, -4), (19, 10, -4), (20, 3, -4), (21, 20, 0), (22, 5, -4), (23, 22, 27), (24, 25, 0),
    (25, 26, 18), (26, 7, -4), (30, 31, 18), (31, 8, 0), (36, 35, 0),
]  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_an_example_of_pokemon_red_has_the_world_with_its_names(file: Path) -> None:
    assert file.read_bytes() == FILES[0].read_bytes(), "one file, in each folder that is shared"
    game = load_game(str(file.parent / "game.yaml"), without_rom=True)
    offsets, names = game.map_offsets(), game.map_names()
    assert offsets.keys() <= names.keys()
    assert (names[0], names[51], names[245]) == ("pallet town", "viridian forest", "lorelei's room")
    for here, there, shift in NORTH:
        (x, y), (_, height) = offsets[here], SIZES[there]
        assert offsets[there] == (x + 2 * shift, y - 2 * height), (names[here], names[there])
    for here, there, shift in WEST:
        (x, y), (width, _) = offsets[here], SIZES[there]
        assert offsets[there] == (x - 2 * width, y + 2 * shift), (names[here], names[there])


def test_every_example_whose_player_walks_through_kanto_has_it() -> None:
    with_place = [
        file.parent
        for file in EXAMPLES.glob("pokemon_red_*/game.yaml")
        if load_game(str(file), without_rom=True).definition.place
    ]
    assert sorted(with_place) == [file.parent for file in FILES]
    assert len({file.read_bytes() for file in FILES}) == 1


def test_the_observation_of_v2_is_that_of_its_source_where_it_differs() -> None:
    """PokemonRedExperiments leaves room for Route 22's gate south of Route 23."""
    game = load_game(str(EXAMPLES / "pokemon_red_v2" / "game.yaml"), without_rom=True)
    part = game.definition.game_parts()["visited"]
    ((_, file),) = part.offset_files()
    assert file == Path("maps.yaml")
    seen, drawn = read_map_offsets(game.folder / file).maps, game.map_offsets()
    assert seen.keys() == drawn.keys()
    assert {number: seen[number] for number in seen if seen[number] != drawn[number]} == {
        9: (14, 84),
        34: (14, 102),
        193: (17, 246),
    }
