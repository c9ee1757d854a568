"""The map: 24 rooms of 10 x 8 cells, four in a row, from the lighthouse down to the shore.

# wall    o obstacle   ~ water   . , floor   ^ spikes   L the lamp
1-6 door  a-f its key  h heart   C crab   B bat   G ghost
"""

from __future__ import annotations

WIDTH, HEIGHT, ROOMS_IN_A_ROW = 10, 8, 4
ROOMS_IN_A_PART = 8
PARTS = ("LIGHTHOUSE", "CAVES", "SHORE")  # from the top of the map down

LIGHTHOUSE = """
##########  ##########  ##########  ##########
#.e.#....#  #..B.^G..#  #...oo...#  #....f...#
#...#.B..#  #.o..^...#  #..B..B..#  #.oo..oo.#
#...#....#  #....^....  .......L.#  #...^^...#
#.G.....o#  #.G..^....  .........#  #.G.^^.G.#
#...#....#  #^^^######  #..^^^^..#  #.oo..oo.#
#^^^#....#  #........#  #..Goo...#  #........#
####..####  ####..####  ##########  ####..####

####..####  ####66####  ##########  ####55####
#..^..^..#  #........#  #.o....o.#  #........#
#..#..#..#  #.o.##.o.#  #........#  #^^^..^^^#
#.h#..#...  ....##....  ...G......  ......B..#
#..#..#...  ....##....  ..........  .....G...#
#..^..^..#  #..G.....#  #........#  #^^^..^^^#
#.....G,.#  #.^.^^.^.#  #.o....o.#  #........#
##########  ##########  ####..####  ##########
"""

CAVES = """
##########  ##########  ####..####  ##########
#..~~~...#  ###.,^.###  #..#..#..#  #B...c..B#
#..~~~B..#  #...^^.h.#  #..#..#..#  #..o..o..#
#........4  ....^^....  ...#..#.B#  #.^^..^^.#
#...o....4  ....^^....  ...#..#..#  #........#
#.^^..^^.#  #...^^...#  #..^..^..#  #.o....o.#
#........#  ###.^,.###  #..B.....#  #...^^...#
####..####  ##########  ##########  ####..####

####..####  ##########  ##########  ####..####
#.^....^.#  #..#..o..#  #....#..h#  #.^....^.#
#.^.oo.^.#  #........#  #.o..#...#  #.^.~~.^.#
#...oo....  ......B...  ......B...  ....~~.^.#
#.B.......  ..o.......  ...B......  ....~~...#
#.^....^.#  #......o.#  #..#...o.#  #..B.....#
#.^....o.#  #..,.....#  #..#..,..#  #.....B..#
##########  ####..####  ##########  ##########
"""

SHORE = """
##########  ####22####  ##########  ##########
#.....~~~#  #,.....o.#  #.,...#..#  #....~..,#
#.d...~.,#  #........#  #.C...#..#  #..C.~.b.#
#.....~...  3......C.#  #..o..#...  .....~...#
#..C......  3..C..~~.#  #..C......  .....~.o.#
#.....~..#  #.....~~.#  #.....#..#  #.o......#
#~~.C.~,.#  #.o......#  #.o...#..#  #....C...#
##########  ####..####  ####..####  ##########

##########  ####..####  ####11####  ##########
#..#....##  #........#  #........#  #....##.h#
#..#.,...#  #..,...o.#  #......,.#  #.,..##..#
#..#......  ..........  .....o....  .....##C.#
#..#..a...  ..........  ...C......  .........#
#..#.C...#  #.o....,.#  #..o..C..#  #..C.....#
#,....o..#  #........#  #....,...#  #......,.#
~~~~~~~~~~  ~~~~~~~~~~  ~~~~~~~~~~  ~~~~~~~~~~
"""

SOLID = "#o~L123456"
KEYS = "abcdef"
DOORS = "123456"
HEART = "h"
CREATURES = "CBG"
MOST_CREATURES = 3


def read_rooms() -> list[list[str]]:
    """Return each room as eight rows of ten letters; refuse rooms that do not fit together."""
    rooms: list[list[str]] = []
    for part in (LIGHTHOUSE, CAVES, SHORE):
        for block in part.strip("\n").split("\n\n"):
            lines = [line.split() for line in block.splitlines()]
            rooms += [list(rows) for rows in zip(*lines, strict=True)]
    for number, room in enumerate(rooms):
        if len(room) != HEIGHT or {len(row) for row in room} != {WIDTH}:
            raise SystemExit(f"room {number} is not {WIDTH} x {HEIGHT}")
        if len(cells_of(room, CREATURES)) > MOST_CREATURES:
            raise SystemExit(f"room {number} has over {MOST_CREATURES} creatures")
        if any(distance(room, x, y) < 3 for x, y in cells_of(room, CREATURES)):
            raise SystemExit(f"room {number}: a creature is too near an entrance")
    check_ways(rooms)
    return rooms


def cells_of(room: list[str], letters: str) -> list[tuple[int, int]]:
    return [(x, y) for y, row in enumerate(room) for x, c in enumerate(row) if c in letters]


def distance(room: list[str], x: int, y: int) -> int:
    """Return the number of cells to the nearest entrance."""
    return min(
        max(abs(x - a), abs(y - b))
        for b in range(HEIGHT)
        for a in range(WIDTH)
        if (a in (0, WIDTH - 1) or b in (0, HEIGHT - 1)) and is_open(room[b][a])
    )


def check_ways(rooms: list[list[str]]) -> None:
    """Check that each exit of a room is an entrance of its neighbour and none leaves the map."""
    for number, room in enumerate(rooms):
        column = number % ROOMS_IN_A_ROW
        right = [row[-1] for row in room]
        left_of_next = [row[0] for row in rooms[number + 1]] if column < 3 else ["#"] * HEIGHT
        below = rooms[number + ROOMS_IN_A_ROW][0] if number < 20 else "~" * WIDTH
        for kind, here, there in (("right", right, left_of_next), ("down", room[-1], below)):
            for a, b in zip(here, there, strict=True):
                if is_open(a) != is_open(b):
                    raise SystemExit(f"room {number}: the way {kind} does not fit its neighbour")


def is_open(letter: str) -> bool:
    return letter not in "#o~L"
