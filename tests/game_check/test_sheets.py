"""What check-game draws of the parts is what an env sees, looked up pixel by pixel."""

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from game_rl.cli.main import main
from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.make_env import make_game_env
from game_rl.errors import GameFileError, UsageError
from game_rl.game_check.game_check import check_game
from game_rl.game_check.recorded_episode import RecordedEpisode
from game_rl.game_check.sheets import Moment, class_colour, write_parts_sheet
from game_rl.games.definition import Game, load_game
from tests.envs.example import fake_game
from tests.game_check.test_game_check import changed_duel
from tests.tiny_run import TINY_GAME

PARTS: dict[str, Any] = {
    "status": {"vector": ["health", {"variable": "x", "scale": -0.25}, "party", "events"]},
    "flags": {"vector": [{"variable": "health", "bits": 5}, "events", "many"]},
    "waves": {"vector": [{"variable": "x", "scale": 0.1, "fourier": 16}]},
    "species": {"categories": "party", "of": 60_000, "stack": True},
    "tiles": {
        "tiles": {
            "area": {"width": 7, "height": 5},
            "classes": {f"class_{n}": [n] for n in range(12)},
        }
    },
    "around": {"visited": {"radius": 3, "size": 12}},
    "recent": {"actions": 9},
}
VARIABLES = {
    "health": {"address": 0xC000},
    "x": {"address": 0xC001},
    "party": {"addresses": [0xC002, 0xC003, 0xC004]},
    "events": {"address": 0xC010, "type": "bits", "bytes": 1},
    "many": {"address": 0xC020, "type": "bits", "bytes": 311},
    "seed": {"address": 0xC005},
}
CELL_OF_A_TILE, CELL_OF_A_PLACE = 8, 12


def game_with(parts: dict[str, Any]) -> Game:
    return fake_game(
        variables=VARIABLES,
        parts=parts,
        place=["x", "health"],
        random_seed="seed",
        rewards={"hit": {"variable": "health", "on": "decrease"}},
        endings={},
        success=None,
    )


def values_for(game: Game, seed: int) -> dict[str, NDArray[Any]]:
    """Any values that the forms of the parts allow."""
    random, found = np.random.default_rng(seed), {}
    for name, form in game.definition.part_formats().items():
        if form.kind == "vector":
            stretches = [
                random.integers(0, 2, s.size) if s.bits == 1 else random.normal(0, 9, s.size)
                for s in form.stretches
            ]
            found[name] = np.concatenate(stretches).astype(np.float32)
        else:
            found[name] = random.integers(0, form.n_values, form.shape).astype(form.dtype)
    return found


def drawn(folder: Path, game: Game, moments: Sequence[Moment]) -> NDArray[np.uint8]:
    path = folder / "new" / "parts.png"
    write_parts_sheet(moments, game, path)
    with Image.open(path) as sheet:
        assert (sheet.format, sheet.mode) == ("PNG", "RGB")
        return np.array(sheet)


def count(sheet: NDArray[np.uint8], picture: NDArray[np.uint8]) -> int:
    """How often the picture is in the sheet."""
    height, width, _ = picture.shape
    rows, columns = len(sheet) - height + 1, sheet.shape[1] - width + 1
    first = (sheet[:rows, :columns] == picture[0, 0]).all(axis=2)
    return sum(
        np.array_equal(sheet[y : y + height, x : x + width], picture)
        for y, x in np.argwhere(first).tolist()
    )


def grid_by_hand(classes: list[list[int]], cell: int) -> NDArray[np.uint8]:
    picture = np.zeros((cell * len(classes), cell * len(classes[0]), 3), np.uint8)
    for y in range(len(picture)):
        for x in range(picture.shape[1]):
            picture[y, x] = class_colour(classes[y // cell][x // cell])
    return picture


def noise(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (144, 160, 3), np.uint8)


@pytest.mark.slow
def test_grids_are_cells_in_the_colours_of_their_classes_beside_the_screen(tmp_path: Path) -> None:
    game = game_with(PARTS)
    moments = [Moment(f"moment {n}", noise(n), values_for(game, n)) for n in range(3)]
    sheet = drawn(tmp_path, game, moments)
    for moment in moments:
        tiles, around = moment.parts["tiles"][0].tolist(), moment.parts["around"][0].tolist()
        assert count(sheet, moment.screen) == 1
        assert count(sheet, grid_by_hand(tiles, CELL_OF_A_TILE)) == 1
        assert count(sheet, grid_by_hand(around, CELL_OF_A_PLACE)) == 1


def test_the_classes_of_a_grid_have_different_colours() -> None:
    assert len({class_colour(number) for number in range(256)}) == 256


def test_a_bit_is_a_square_and_a_number_a_bar(tmp_path: Path) -> None:
    game = game_with({"flags": {"vector": ["health", "x", {"variable": "health", "bits": 5}]}})
    plain = drawn(tmp_path, game, [of_flags(0, 0, [0] * 5)])
    for value, second, bits in ((0.5, 0, [0] * 5), (7, -0.25, [0] * 5), (0, 0, [1, 0, 1, 1, 0])):
        sheet = drawn(tmp_path, game, [of_flags(value, second, bits)])
        length = round(72 * min(1, value)) + round(72 * abs(second))
        assert coloured(sheet) - coloured(plain) == 7 * length + 8 * 8 * sum(bits)


def of_flags(first: float, second: float, bits: list[int]) -> Moment:
    numbers = np.array([first, second, *bits], np.float32)
    return Moment("", np.zeros((144, 160, 3), np.uint8), {"flags": numbers})


def coloured(sheet: NDArray[np.uint8]) -> int:
    """The number of pixels that are neither grey nor nearly so."""
    return int((np.ptp(sheet.astype(int), axis=2) > 60).sum())


@settings(max_examples=15, deadline=None)
@given(st.sets(st.sampled_from(sorted(PARTS)), min_size=1), st.integers(0, 2**31))
def test_whatever_the_parts_are_they_are_drawn(names: set[str], seed: int) -> None:
    game = game_with({name: PARTS[name] for name in names})
    with tempfile.TemporaryDirectory() as folder:
        sheets = [
            drawn(Path(folder), game, [Moment("now", noise(1), values_for(game, seed + n))])
            for n in range(2)
        ]
    assert not np.array_equal(sheets[0], sheets[1])
    assert sheets[0].shape[1] < 1_100


def test_at_most_four_moments_are_drawn_and_only_the_named_parts(tmp_path: Path) -> None:
    game = game_with(PARTS)
    moments = [Moment("", noise(n), values_for(game, n)) for n in range(9)]
    sheet = drawn(tmp_path, game, moments)
    assert [count(sheet, moment.screen) for moment in moments] == [1, 0, 1, 0, 1, 0, 1, 0, 0]
    path = tmp_path / "some.png"
    write_parts_sheet(moments, game, path, names=["tiles"])
    some = np.array(Image.open(path))
    grids = [grid_by_hand(moments[0].parts[name][0].tolist(), 8) for name in ("tiles", "around")]
    assert [count(some, grid) for grid in grids] == [1, 0]


@pytest.mark.slow
def test_the_moments_are_what_the_env_sees() -> None:
    game = load_game("seasons")
    actions = ("right", "jump_right", "right") * 10
    recorded = RecordedEpisode(start_state="summer", seed=5, actions=actions)
    check = check_game(game, seed=0, timesteps=1, recorded=recorded)
    config = EnvConfig(observation=ObservationConfig(parts=tuple(game.definition.parts)))
    seen = {}
    with closing(make_game_env(config, game)) as env:
        env.reset(seed=5, options={"start_state": "summer", "idle_frames": 0})
        for timestep, action in enumerate(actions, 2):  # the first one is the random play's
            observation = env.step(game.action_names.index(action))[0]
            seen[f"summer, timestep {timestep}"] = (env.render(), observation)
    assert len(check.moments) >= 5
    for moment in check.moments:
        screen, observation = seen[moment.label]
        np.testing.assert_array_equal(moment.screen, screen)
        assert isinstance(observation, dict)
        assert sorted(moment.parts) == ["status", "tiles"]
        for name, values in moment.parts.items():
            np.testing.assert_array_equal(values, observation[name])


@pytest.mark.slow
def test_the_parts_are_listed_with_their_forms() -> None:
    found = {
        part.name: part for part in check_game(load_game("seasons"), seed=0, timesteps=4).parts
    }
    tiles = found["tiles"]
    assert (tiles.kind, tiles.shape, tiles.dtype) == ("tiles", (1, 16, 20), "uint8")
    assert tiles.stored_bytes == 16 * 20 // 2  # eight classes take four bits
    assert found["status"].stored_bytes == 4 + 1 + 4


def test_a_value_that_cannot_be_stored_ends_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = "parts:\n  kind: {categories: player_state, of: 2}\n"
    game = changed_duel(tmp_path, {"parts:\n": parts})
    with pytest.raises(GameFileError, match=r"parts\.kind\.of: player_state is \d+, and `of: 2`"):
        check_game(game, seed=0, timesteps=300)
    arguments = ["--timesteps", "300", "--sheet", str(tmp_path / "sheet.png")]
    assert main(["check-game", str(tmp_path / "game.yaml"), *arguments]) == 2
    assert "parts.kind.of: player_state is" in capsys.readouterr().err
    assert not (tmp_path / "sheet.png").exists()


@pytest.mark.slow
def test_a_sheet_of_parts_that_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    game = game_with(PARTS)
    with pytest.raises(UsageError, match=r"the sheet of the parts .* cannot be written"):
        write_parts_sheet([Moment("", noise(0), values_for(game, 0))], game, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["check-game", str(TINY_GAME), "--parts-sheet", str(tmp_path / "parts.png")]) == 2
    assert "has no parts to draw; define some" in capsys.readouterr().err
