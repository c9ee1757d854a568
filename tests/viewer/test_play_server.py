"""The page of `game-rl play` behind its server: pictures, buttons, roles, and who gets in."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from game_rl.play.play_table import PlayTable
from tests.viewer.live_run import TOKEN, Watching
from tests.viewer.played_table import FakePage, duel_table, open_socket, served


@pytest.fixture
def play(tmp_path: Path) -> Iterator[tuple[PlayTable, Watching]]:
    with duel_table(tmp_path) as table, served(table) as server:
        yield table, server


def test_buttons_move_the_game_and_the_page_has_its_pixels(
    play: tuple[PlayTable, Watching],
) -> None:
    table, server = play
    with open_socket(server) as socket:
        page = FakePage(socket)
        game = page.until("game")
        assert game["title"] == "Duel"
        assert page.until("role") == "player"
        state = page.until("state")
        assert (state["paused"], state["begun"], state["seconds"]) == (True, False, 0.0)
        before = state["variables"]["player_x"]
        page.send(held=["right"], input=1)
        page.until_input(1)
        while page.until("state")["variables"]["player_x"] <= before:
            pass
        page.send(held=[], input=2)
        page.until_input(2)
        page.send(do="pause")
        page.until("state", paused=True)
        while page.frame < table.session.frames:
            page.read()
        np.testing.assert_array_equal(page.screen, table.session.screen[..., 0])
        assert [sorted(press.buttons) for press in table.session.all_presses][-2:] == [
            ["right"],
            [],
        ]


def test_the_first_page_plays_and_another_may_take_the_controls(
    play: tuple[PlayTable, Watching],
) -> None:
    table, server = play
    with open_socket(server) as first, open_socket(server) as second:
        player = FakePage(first)
        guest = FakePage(second)
        assert player.until("role") == "player"
        assert guest.until("role") == "guest"
        guest.send(held=["right"], input=9)
        guest.send(do="go")
        guest.send(do="take_controls")  # answered after the two before it
        assert guest.until("role") == "player"
        assert table.is_paused
        assert table.session.frames == 0
        assert player.until("role") == "guest"
        player.send(do="go")
        player.send(do="take_controls")
        assert player.until("role") == "player"
        assert table.is_paused
        player.send(do="go")
        player.until("state", paused=False)
        first.close()
        assert guest.until("role") == "guest"
        assert guest.until("role") == "free"
        assert guest.until("state", paused=True)


def test_ten_seconds_are_taken_back_and_a_new_episode_has_a_file_of_its_own(
    play: tuple[PlayTable, Watching],
) -> None:
    table, server = play
    with open_socket(server) as socket:
        page = FakePage(socket)
        page.send(do="go")
        while page.until("state")["seconds"] < 0.5:
            pass
        page.send(do="take_back")
        assert "taken back" in page.until("said")
        assert page.until("state", paused=True)["seconds"] == 0
        page.send(do="go")
        while page.until("state")["seconds"] < 0.5:
            pass
        first = table.files.recording
        page.send(do="again", name="level_3")
        state = page.until("state", start_state="level_3")
        assert (state["seconds"], state["begun"]) == (0, False)
        assert json.loads(first.read_text(encoding="utf-8"))["start_state"] == "level_1"
        assert table.files.recording == first.with_name("duel_2.json")
        page.send(do="again", name="level_9")
        page.send(do="start_state", name="here")
        assert "here: {file: here.state}" in page.until("said")
        assert first.with_name("here.state").stat().st_size > 1_000


NO_WAY_IN: list[dict[str, str | None]] = [
    {"Cookie": None},
    {"Cookie": "game_rl_play_%d=wrong"},
    {"Cookie": f"game_rl_watch_%d={TOKEN}"},
    {"Origin": None},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Host": "evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", NO_WAY_IN, ids=str)
def test_no_page_without_the_token_or_of_another_site_gets_a_socket(
    play: tuple[PlayTable, Watching], headers: dict[str, str | None]
) -> None:
    table, server = play
    cookie = headers.get("Cookie")
    if cookie and "%d" in cookie:
        headers = headers | {"Cookie": cookie % server.port}
    with pytest.raises(InvalidStatus) as refused:
        open_socket(server, **headers)
    assert refused.value.response.status_code in (400, 403)
    with pytest.raises(InvalidStatus):
        open_socket(server, f"/api/play?token={TOKEN}", Cookie=None)
    assert table.is_paused


def test_the_page_and_its_files_want_the_token_too(play: tuple[PlayTable, Watching]) -> None:
    _, server = play
    host = {"Host": f"127.0.0.1:{server.port}"}
    for path in ("/", "/page/play.js", "/api/play"):
        status, _, body = server.get(path, headers=host)
        assert status == 401
        assert b"game-rl play" in body
    status, headers, _ = server.get(f"/?token={TOKEN}", headers=host)
    assert status == 200
    assert headers["set-cookie"].startswith(f"game_rl_play_{server.port}=")
    status, headers, body = server.get("/")
    assert (status, b"page/play.js" in body) == (200, True)
    assert "unsafe" not in headers["content-security-policy"]
    assert server.get("/page/app.js", method="POST")[0] == 405
    assert server.get("/page/../play_app.py")[0] == 404
    with pytest.raises(InvalidStatus):
        open_socket(server, "/api/other")


def bad_message(rng: random.Random) -> str | bytes:
    """Return something that a page never sends."""
    words: list[str | bytes] = [
        "", "{", "[]", "null", "7", '"held"', "[" * 500, '{"held": 5, "input": 1}',
        '{"held": ["a"]}', '{"held": ["fire"], "input": 2}', '{"held": [["a"]], "input": 2}',
        '{"held": ["a", "a", "a", "a", "a", "a", "a", "a", "a"], "input": 3}',
        '{"held": ["a"], "input": "x"}', '{"held": ["a"], "input": 1.5}', '{"seen": -1}',
        '{"seen": 99999999999999999999}', '{"seen": "1"}', '{"do": "stop"}', '{"do": ["pause"]}',
        '{"do": "__class__"}', '{"do": "again", "name": "../../x"}', '{"do": "again", "name": [1]}',
        '{"do": "start_state", "name": "../../x"}', '{"do": "start_state", "name": "a/b"}',
        '{"NaN": NaN}', '{"do": "again", "name": "level_99"}', b"\x00\x01\x02", b"",
    ]  # fmt: skip
    choice = rng.choice([*words, None, None])
    if choice is not None:
        return choice
    return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))


def read_on(socket: ClientConnection) -> None:
    while True:
        socket.recv(timeout=20)


def test_a_thousand_bad_messages_change_nothing_of_the_play(
    play: tuple[PlayTable, Watching], tmp_path: Path
) -> None:
    table, server = play
    rng = random.Random(1)
    with open_socket(server) as socket:
        page = FakePage(socket)
        page.send(do="go")
        page.send(held=["right"], input=1)
        page.until_input(1)
        with open_socket(server) as stranger:
            for number in range(500):
                socket.send(bad_message(rng))
                stranger.send(bad_message(rng))
                if number % 25 == 0:
                    page.read()
            page.send(held=[], input=2)
            page.until_input(2)
            stranger.send("x" * 5_000)  # larger than any message of the page
            with pytest.raises(ConnectionClosed):
                read_on(stranger)
        page.send(do="pause")
        page.until("state", paused=True)
        assert table.session.start_state == "level_1"
        held = [sorted(press.buttons) for press in table.session.all_presses]
        assert held in ([[], ["right"], []], [["right"], []])
        assert table.session.frames == sum(press.frames for press in table.session.all_presses)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.suffix != ".json") == []
