"""The reward of pokemonred_puffer, as far as it can be read from memory, and its ending."""

from collections.abc import Mapping
from typing import Any

Variables = Mapping[str, Any]

WEIGHTS = {
    "event": 0.7267916798591614,
    "seen_pokemon": 2.1898984909057617,
    "caught_pokemon": 3.076385498046875,
    "obtained_move_ids": 4.091134548187256,
    "hm_count": 8.083643913269043,
    "level": 1.098945999145508,
    "badges": 1.9426719546318056,
    "required_event": 7.134671688079834,
    "required_item": 3.3519155979156494,
    "useful_item": 1.3436599969863892,
    "exploration": 0.02902716636657715,
    "safari_zone": 10.2822847366333,
}
KNEE, SLOPE_ABOVE = 15, 0.25  # of levels
SAFARI_STEPS = 502
UNFINISHED_SCALE = 9.539340019226074

REQUIRED_EVENTS = (
    *(0, 32, 33, 34, 35, 37, 56, 57, 81, 119, 152, 167, 191, 192, 239, 271, 279, 296, 337, 352),
    *(353, 359, 425, 441, 568, 569, 601, 665, 865, 1089, 1116, 1118, 1231, 1313, 1318, 1328, 1334),
    *(1360, 1371, 1372, 1373, 1374, 1375, 1401, 1504, 1505, 1701, 1702, 1703, 1856, 1935, 2176),
    *(2273, 2281, 2289, 2302, 2305, 2311, 2482, 2486, 2488),
)
REQUIRED_ITEMS = (43, 48, 63, 64, 70, 72, 73, 74, 196, 198, 199)
USEFUL_ITEMS = (6, 45, 60, 61, 62)
HM_ITEMS = (196, 197, 198, 199, 200)
CUTTERS = (  # species that can learn to cut
    *(9, 11, 21, 24, 26, 29, 30, 46, 64, 78, 96, 97, 109, 114, 138, 153, 154, 155, 176, 178, 180),
    *(185, 186, 187, 188, 189, 190),
)
SAFARI_MAPS = (217, 218, 219, 220, 221, 222, 224, 225)
LAPRAS, MANSION_KEY, GOLD_TEETH = "lapras", "mansion_key", "gold_teeth"
HIDDEN_OBJECTS = {MANSION_KEY: 194, GOLD_TEETH: 204}

Flag = int | str
UNFINISHED: tuple[tuple[tuple[int, ...], tuple[Flag, ...], tuple[Flag, ...]], ...] = (
    # maps that count more once all of the first flags are set, until all of the second are
    ((54,), (), (119,)),
    ((65,), (), (191,)),
    ((92,), (), (359,)),
    ((134,), (), (425,)),
    ((178,), (), (865,)),
    ((157,), (), (601,)),
    ((166,), (), (665,)),
    ((45,), (), (81,)),
    ((135, 199, 200, 201, 202, 203), (), (1703,)),
    ((181, 207, 208, 209, 210, 211, 212, 213, 233, 234, 235), (), (LAPRAS, 1935)),
    ((236,), (), (1935,)),
    ((23,), (865, LAPRAS), (1167,)),
    ((27,), (865, LAPRAS), (1225,)),
    ((165, 214, 215, 216), (), (MANSION_KEY,)),
    ((142, 143, 144, 145, 146, 147, 148), (1703,), (296,)),
    ((149,), (), (296,)),
    ((156, 217, 218, 219, 220, 221, 222, 224, 225), (), (2176, GOLD_TEETH)),
    ((34,), (81,), (2305,)),
    ((108, 194, 198, 9, 174, 245, 246, 247, 113, 120), (), (2305,)),
)


class Progress:
    """The change of a score of all that was reached, seen and found.

    An episode ends when nobody in the party can learn to cut, which costs half of the score.
    """

    def reset(self, variables: Variables) -> None:
        self.base_events = sum(variables["events"])
        self.most_events = self.most_levels = 0
        self.moves: dict[int, bool] = {}
        self.places: dict[tuple[int, int, int], float] = {}
        self.explored = 0.0
        self.safari = dict.fromkeys(SAFARI_MAPS, 0)
        self.can_cut = True
        self._remember(variables)
        self.score = self._score(variables)

    def step(self, variables: Variables) -> dict[str, float]:
        map_id, steps = self.safari_before
        if map_id in self.safari:
            self.safari[map_id] = max(self.safari[map_id], steps)
        self._visit(variables)
        before, self.score = self.score, self._score(variables)
        self._remember(variables)
        party = variables["species"][: variables["party_size"]]
        self.can_cut = any(species in CUTTERS for species in party)
        if not self.can_cut:
            return {"no_cutter": -0.5 * sum(self.score.values())}
        return {name: self.score[name] - before[name] for name in self.score}

    def endings(self) -> dict[str, bool]:
        return {"no_cutter": not self.can_cut}

    def _visit(self, variables: Variables) -> None:
        """Count the place, by what was set before the timestep."""
        place = variables["map_id"], variables["x"], variables["y"]
        value = UNFINISHED_SCALE if variables["map_id"] in self.unfinished else 1.0
        self.explored += value - self.places.get(place, 0.0)
        self.places[place] = value

    def _remember(self, variables: Variables) -> None:
        """Keep what the next timestep takes from before its action."""
        self.safari_before = variables["map_id"], variables["safari_steps"]
        self.unfinished = [
            map_id
            for maps, after, until in UNFINISHED
            if all(_is_set(flag, variables) for flag in after)
            and not all(_is_set(flag, variables) for flag in until)
            for map_id in maps
        ]

    def _score(self, variables: Variables) -> dict[str, float]:
        self.most_events = max(self.most_events, variables["n_events"] - self.base_events)
        size, bag = variables["party_size"], variables["bag_items"][: variables["n_items"]]
        self.most_levels = max(self.most_levels, sum(variables["levels"][:size]))
        self.moves.update(dict.fromkeys(variables["moves"][: 4 * size], True))
        counts = {
            "event": self.most_events,
            "seen_pokemon": variables["seen"],
            "caught_pokemon": variables["owned"],
            "obtained_move_ids": len(self.moves),
            "hm_count": sum(item in bag for item in HM_ITEMS),
            "level": min(self.most_levels, KNEE) + SLOPE_ABOVE * max(0, self.most_levels - KNEE),
            "badges": variables["badges"],
            "required_event": _required(variables),
            "required_item": sum(item in bag for item in REQUIRED_ITEMS),
            "useful_item": sum(item in bag for item in USEFUL_ITEMS),
            "exploration": self.explored,
            "safari_zone": sum(self.safari.values()) / SAFARI_STEPS,
        }
        return {name: WEIGHTS[name] * count for name, count in counts.items()}


def _required(variables: Variables) -> int:
    others = variables["game_corner_rocket"] + variables["saffron_guard"] + variables["lapras"]
    found = sum(variables["events"][index] for index in REQUIRED_EVENTS)
    return int(found + others + (variables["ss_anne_script"] == 4))


def _is_set(flag: Flag, variables: Variables) -> bool:
    if flag == LAPRAS:
        return bool(variables["lapras"])
    if isinstance(flag, str):
        return bool(variables["hidden_objects"][HIDDEN_OBJECTS[flag]])
    return bool(variables["events"][flag])
