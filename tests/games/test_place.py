"""`place` and `place_offsets` of a game file: what they change, and what they leave as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.envs.make_env import make_env
from game_rl.errors import GameFileError
from game_rl.games.definition import Game, load_game
from game_rl.games.parts.part_spec import unused_parts
from game_rl.lake.origin import disagreement, origin_of
from game_rl.places.place_counts import PlaceCounts, PlaceTally, take_visits
from game_rl.storage.background import game_files
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import fake_game
from tests.games.example import VALID_GAME, write_game
from tests.places.test_place_counts import as_counter


def saved(game: Game) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(game.definition.model_dump_json(by_alias=True))
    return found


def test_a_game_without_offsets_is_saved_as_before() -> None:
    assert "place_offsets" not in saved(fake_game(place=["level", "x", "health"]))


@pytest.mark.parametrize(("own", "of_part", "expected"), [
    (None, None, None),
    (None, "part.yaml", "part.yaml"),
    ("own.yaml", "part.yaml", "own.yaml"),
])  # fmt: skip
def test_the_map_takes_the_offsets_of_a_visited_part_if_it_has_none(
    tmp_path: Path, own: str | None, of_part: str | None, expected: str | None
) -> None:
    text = VALID_GAME + "place: [seed, lives, flag]\n"
    text += "" if own is None else f"place_offsets: {own}\n"
    offsets = "" if of_part is None else f", offsets: {of_part}"
    text += f"parts: {{last: {{actions: 1}}, seen: {{visited: {{radius: 3{offsets}}}}}}}\n"
    for number, name in enumerate(("part.yaml", "own.yaml")):
        (tmp_path / name).write_text(f"maps: {{7: [{number}, 2]}}\n", encoding="utf-8")
    path = write_game(tmp_path, text)
    number = ("part.yaml", "own.yaml").index(expected) if expected else None
    assert load_game(str(path)).map_offsets() == ({} if number is None else {7: (number, 2)})
    uploaded = set(game_files(str(path)).paths)
    assert {f"game/{name}" for name in (own, of_part) if name} <= uploaded


def test_names_of_maps_come_from_the_file_of_offsets_and_before_it_from_the_game(
    tmp_path: Path,
) -> None:
    text = VALID_GAME + "place: [seed, lives, flag]\nplace_offsets: maps.yaml\n"
    file = tmp_path / "maps.yaml"
    file.write_text("maps: {1: [0, 0]}\nnames: {1: shore, 2: cave}\n", encoding="utf-8")
    path = write_game(tmp_path, text)
    assert load_game(str(path)).map_names() == {1: "shore", 2: "cave"}
    path.write_text(text + "place_names: {2: hall, 3: attic}\n", encoding="utf-8")
    assert load_game(str(path)).map_names() == {1: "shore", 2: "hall", 3: "attic"}
    file.write_text("maps: {1: [0, 0]}\nnames: {1: ''}\n", encoding="utf-8")
    with pytest.raises(GameFileError, match=r"names\.1: found"):
        load_game(str(path))


def test_a_place_for_the_map_alone_is_no_difference_between_game_files() -> None:
    changes: dict[str, Any] = {"place": ["level", "x", "health"]}
    parts = {"seen": {"visited": {"radius": 2}}, "last": {"actions": 1}}
    stuck = {"stuck": {"all": [{"same_place_for": 9}, {"variable": "x", "at_most": 200}]}}
    games = {
        "nothing": fake_game(),
        "place": fake_game(**changes),
        "parts": fake_game(parts=parts, **changes),
        "stuck": fake_game(endings=stuck, **changes),
    }
    documents = {name: saved(game) for name, game in games.items()}
    assert "place" in unused_parts((), documents["nothing"], documents["place"])
    assert "place" in unused_parts(["last"], documents["place"], documents["parts"])
    assert "place" not in unused_parts(["seen"], documents["place"], documents["parts"])
    assert "place" not in unused_parts((), documents["stuck"], documents["nothing"])


def test_a_lake_fits_whether_or_not_its_game_had_a_place_that_no_part_shows() -> None:
    parts = {"seen": {"visited": {"radius": 2}}, "last": {"actions": 1}}
    place = ["level", "x", "health"]
    base = {"game": "duel", "total_timesteps": 100_000, "run_dir": "runs/x"}

    def origin(place: list[str], *chosen: str) -> Any:
        config = {"env": {"observation": {"parts": list(chosen)}}}
        return origin_of(
            RunConfig.model_validate(base | config), fake_game(parts=parts, place=place)
        )

    assert disagreement(origin(place), origin(place[1:])) is None
    assert disagreement(origin(place, "last"), origin(place[1:], "last")) is None
    assert "place" in str(disagreement(origin(place, "seen"), origin(place[1:], "seen")))
    assert "parts" in str(disagreement(origin(place, "last"), origin(place, "last", "seen")))


@pytest.mark.parametrize("name", ["beacon", "seasons"])
def test_the_place_of_a_bundled_game_is_where_the_player_is(name: str) -> None:
    game = load_game(name)
    env = make_env(EnvConfig(), game, trackers=[PlaceTally.of])
    offsets = game.map_offsets()
    first = env.reset(seed=3)[1]
    assert first["start_state"] in game.definition.start_states
    walked = set()
    for action in [1] * 30 + [4] * 30:
        if any(env.step(action)[2:4]):
            env.reset()
        values = env.get_wrapper_attr("read_variables")()
        assert game.definition.place is not None
        walked.add(tuple(values[part] for part in game.definition.place))
    env.close()
    assert len(walked) > 3
    assert not offsets or {place[0] for place in walked} <= offsets.keys()


def test_an_env_counts_places_only_if_it_is_asked_to() -> None:
    game = fake_game(place=["level", "x", "health"])
    config = EnvConfig()
    for trackers, expected in (([], None), ([PlaceTally.of], 5)):
        env = make_env(config, game, FakeEmulator(), trackers=trackers)
        env.reset(seed=0)
        own = []
        for _ in range(5):
            env.step(0)
            values = env.get_wrapper_attr("read_variables")()
            own.append(tuple(values[name] for name in ("level", "x", "health")))
        visits = take_visits(env)
        if expected is None:
            assert visits is None
            continue
        assert visits is not None
        counts = PlaceCounts(("level", "x", "health"), {})
        counts.add(visits)
        assert counts.timesteps == expected
        assert set(as_counter(counts)) == set(own)
        again = take_visits(env)
        assert again is not None
        assert not len(again.counts)


def test_timesteps_within_a_wrapper_that_repeats_actions_are_counted(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(
        "import gymnasium\n\n\nclass Twice(gymnasium.Wrapper):\n    def step(self, action):\n"
        "        self.env.step(action)\n        return self.env.step(action)\n",
        encoding="utf-8",
    )
    game = fake_game(place=["level", "x", "health"])
    config = EnvConfig(wrappers=("twice:Twice",))
    env = make_env(config, game, FakeEmulator(), folder=tmp_path, trackers=[PlaceTally.of])
    env.reset(seed=0)
    for _ in range(3):
        env.step(2)
    visits = env.call(take_visits)
    assert int(visits.counts.sum()) == 6
    assert len(visits.counts) == 6
