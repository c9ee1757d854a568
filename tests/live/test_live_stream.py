"""Messages on screens, read by a decoder of a few lines."""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.live.live_file import LiveReader, LiveScreen
from game_rl.live.live_stream import HEARTBEAT, FrameEncoder
from tests.viewer.live_run import LiveGame, make_run

KeyedPixels = dict[tuple[str, int], np.ndarray]


def decoded(message: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(message[:4], "little")
    assert len(message) == 4 + size
    body = zlib.decompress(message[4:])
    n_text = int.from_bytes(body[:4], "little")
    return json.loads(body[4 : 4 + n_text]), body[4 + n_text :]


def draw(message: bytes, held: KeyedPixels) -> dict[str, Any]:
    """Bring a client's packed pixels up to date."""
    text, blocks = decoded(message)
    at = 0
    for screen in text["screens"]:
        block = np.frombuffer(blocks[at : at + screen["bytes"]], np.uint8)
        at += screen["bytes"]
        key = screen["run"], screen["env"]
        held[key] = block.copy() if screen["pixels"] == "key" else held[key] ^ block
        for part in screen["parts"]:
            at += int(np.prod(part["shape"])) * np.dtype(part["dtype"]).itemsize
    assert at == len(blocks)
    return text


def shades(packed: np.ndarray) -> np.ndarray:
    """Unpack as the page does: four stretches of the picture share the bytes."""
    return np.concatenate([(packed >> shift) & 3 for shift in (6, 4, 2, 0)]).reshape(144, 160)


@pytest.fixture
def game(tmp_path: Path) -> LiveGame:
    return LiveGame(make_run(tmp_path / "run"))


@pytest.fixture
def reader(game: LiveGame, tmp_path: Path) -> LiveReader:
    run = make_run(tmp_path / "other")
    game.file.path.rename(run.live_frames)
    found = LiveReader.open(run)
    assert found is not None
    return found


def keyed(reader: LiveReader, run: str = "") -> list[tuple[str, LiveScreen]]:
    return [(run, screen) for screen in reader.read()]


def test_a_client_that_misses_screens_has_the_right_pixels(
    game: LiveGame, reader: LiveReader
) -> None:
    encoder, held = FrameEncoder(), KeyedPixels()
    rng = np.random.default_rng(1)
    for _ in range(40):
        for _ in range(rng.integers(1, 4)):
            game.step(changed=float(rng.random()))
        if rng.random() < 0.3:
            reader.read()  # a look of which this client gets nothing
        message = encoder.message(keyed(reader), {"": reader.layout}, large=None)
        assert message is not None
        draw(message, held)
        for env in range(4):
            assert (shades(held["", env]) * 85 == game.screens[env]).all()


def test_only_what_has_changed_is_sent(game: LiveGame, reader: LiveReader) -> None:
    encoder, layouts = FrameEncoder(), {"": reader.layout}
    assert encoder.message([], {}, large=None) is None
    game.step()
    first = encoder.message(keyed(reader), layouts, large=None)
    assert first is not None
    text, _ = decoded(first)
    assert [each["run"] for each in text["layouts"]] == [""]
    assert {screen["pixels"] for screen in text["screens"]} == {"key"}
    assert encoder.message(keyed(reader), layouts, large=None) is None
    game.step(changed=0.0)
    second = encoder.message(keyed(reader), layouts, large=None)
    assert second is not None
    assert "layouts" not in decoded(second)[0]
    assert not any(decoded(second)[1])
    assert len(second) < len(first) / 10


def test_a_new_session_of_the_run_begins_with_whole_pictures(
    game: LiveGame, reader: LiveReader
) -> None:
    encoder, layouts = FrameEncoder(), {"": reader.layout}
    game.step()
    encoder.message(keyed(reader), layouts, large=None)
    game.step()
    again = reader.layout.model_copy()
    message = encoder.message(keyed(reader), {"": again}, large=None)
    assert message is not None
    assert {screen["pixels"] for screen in decoded(message)[0]["screens"]} == {"key"}


def test_numbers_and_parts_are_those_of_the_screen(game: LiveGame, reader: LiveReader) -> None:
    game.step()
    message = FrameEncoder().message(keyed(reader), {"": reader.layout}, large=("", 2))
    assert message is not None
    text, blocks = decoded(message)
    assert [bool(screen["parts"]) for screen in text["screens"]] == [False, False, True, False]
    screen, shown = text["screens"][2], reader.read()[2]
    assert screen["reward_terms"] == dict(shown.reward_terms)
    assert screen["variables"] == dict.fromkeys(shown.variables, 2.0)
    assert screen["value"] == 0.125
    assert screen["action_values"] == [0.125] * len(game.layout.actions)
    assert (screen["action"], screen["timestep"], screen["episode"]) == (2, 1, 0)
    at = sum(each["bytes"] for each in text["screens"][:3])
    for part in screen["parts"]:
        size = int(np.prod(part["shape"])) * np.dtype(part["dtype"]).itemsize
        sent = np.frombuffer(blocks[at : at + size], part["dtype"]).reshape(part["shape"])
        np.testing.assert_array_equal(sent, shown.parts[part["name"]])
        at += size


def test_a_screen_waits_one_look_for_what_the_policy_expects(
    game: LiveGame, reader: LiveReader
) -> None:
    game.step()
    encoder, layouts = FrameEncoder(), {"": reader.layout}
    encoder.message(keyed(reader), layouts, large=None)
    game.step()
    bare = [(run, _without_value(screen)) for run, screen in keyed(reader)]
    assert encoder.message(bare, layouts, large=None) is None
    message = encoder.message(bare, layouts, large=None)
    assert message is not None
    assert {screen["value"] for screen in decoded(message)[0]["screens"]} == {None}
    later = encoder.message(keyed(reader), layouts, large=None)
    assert later is not None
    assert {screen["value"] for screen in decoded(later)[0]["screens"]} == {0.125}


def _without_value(screen: LiveScreen) -> LiveScreen:
    fields = {name: getattr(screen, name) for name in screen.__dataclass_fields__}
    return LiveScreen(**fields | {"value": None, "action_values": None})


def test_what_the_network_learns_from_is_sent_once(game: LiveGame, reader: LiveReader) -> None:
    encoder = FrameEncoder()
    layouts = {"": reader.layout}

    def message(*, screens: bool = False) -> dict[str, Any] | None:
        found = keyed(reader) if screens else []
        learns_from = {"": reader.learns_from()}
        text = encoder.message(found, layouts, large=None, learns_from=learns_from)
        return None if text is None else decoded(text)[0]

    game.step()
    first = message(screens=True)
    assert first is not None
    assert "learns_from" not in first
    game.file.write_learns_from(4_096)
    assert message() == {"screens": [], "learns_from": {"": 4_096}}
    assert message() is None
    game.file.write_learns_from(0)
    game.step()
    last = message(screens=True)
    assert last is not None
    assert last["learns_from"] == {"": 0}
    assert len(last["screens"]) == 4


def test_numbers_that_json_lacks_are_left_out(game: LiveGame, reader: LiveReader) -> None:
    game.step()
    screens = keyed(reader)
    fields = {name: getattr(screens[0][1], name) for name in screens[0][1].__dataclass_fields__}
    odd = LiveScreen(**fields | {"episode_reward": float("nan"), "value": float("inf")})
    message = FrameEncoder().message([("", odd)], {"": reader.layout}, large=None)
    assert message is not None
    screen = decoded(message)[0]["screens"][0]
    assert (screen["episode_reward"], screen["value"]) == (None, None)


def test_a_heartbeat_has_no_screens() -> None:
    assert decoded(HEARTBEAT) == ({"screens": []}, b"")
