"""Who may read the page: nobody but the person with the token, on a page of this server."""

from collections.abc import Iterator

import pytest

from game_rl.viewer.access import Access, is_host_name, is_loopback
from tests.viewer.live_run import TOKEN, Watching, make_run, watching


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watching]:
    root = tmp_path_factory.mktemp("access") / "run"
    make_run(root)
    with watching(root) as found:
        yield found


PRIVATE = ("/", "/page/app.js", "/api/state?run=", "/api/curves?run=", "/api/frames?run=")


def test_the_token_becomes_a_cookie_on_a_page_that_goes_on_without_it(server: Watching) -> None:
    """The page itself goes on, since a redirect of another site's link has no such cookie."""
    host = {"Host": f"127.0.0.1:{server.port}"}
    status, headers, body = server.get(f"/?token={TOKEN}", headers=host)
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'content="0;url=./"' in body
    assert TOKEN.encode() not in body
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert set(attributes) == {"HttpOnly", "SameSite=Strict"}  # for the folder of the address
    status, headers, body = server.get("/", headers=host | {"Cookie": cookie})
    assert status == 200
    assert b"<!doctype html>" in body
    assert b"/page/app.js" not in body.replace(b'"page/app.js"', b"")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_to_the_page_without_its_cookie_asks_once_more_from_the_page(
    server: Watching, site: str
) -> None:
    """A browser with the cookie sends it then; one without is refused, and no loop runs."""
    headers = {"Host": f"127.0.0.1:{server.port}", "Sec-Fetch-Site": site}
    status, answered, body = server.get("/", headers=headers)
    assert (status, "set-cookie" in answered) == (200, False)
    assert b'content="0;url=./?again"' in body
    assert b"app.js" not in body
    for own in ("same-origin", site):
        again = server.get("/?again", headers=headers | {"Sec-Fetch-Site": own})
        assert again[0] == 401
    assert server.get("/?again", headers=server.headers(Sec_Fetch_Site="same-origin"))[0] == 200
    for path in PRIVATE[1:]:
        assert server.get(path, headers=headers)[0] == 403


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "cookie", ["", "game_rl_watch_%d=", "game_rl_watch_%d=wrong", "x=%d", ";;="]
)
def test_without_the_token_nothing_is_shown(server: Watching, path: str, cookie: str) -> None:
    headers = server.headers(Cookie=cookie % server.port if "%d" in cookie else cookie)
    status, _, body = server.get(path, headers=headers)
    assert status == 401
    assert b"game-rl watch" in body
    assert TOKEN.encode() not in body


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "%C3%A9", "%00"])
def test_a_wrong_token_gives_no_cookie(server: Watching, token: str) -> None:
    headers = {"Host": f"localhost:{server.port}"}
    status, answered, _ = server.get(f"/?token={token}", headers=headers)
    assert status == 401
    assert "set-cookie" not in answered


def test_the_token_counts_in_the_address_of_the_page_alone(server: Watching) -> None:
    headers = {"Host": f"127.0.0.1:{server.port}"}
    assert server.get(f"/api/curves?run=&token={TOKEN}", headers=headers)[0] == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:%d", "127.0.0.1.evil.example:%d", "localhost.evil.example",
     "192.0.2.7:%d", "0.0.0.0:%d", "[2001:db8::1]:%d", "", "[", "a@evil.example:%d"],
)  # fmt: skip
def test_another_name_of_the_host_is_refused(server: Watching, host: str) -> None:
    """DNS rebinding: a page of `evil.example`, which points here, sends its own name."""
    headers = server.headers(Host=host % server.port if "%d" in host else host)
    assert server.get("/", headers=headers)[0] in (400, 403)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:%d", "localhost:%d", "127.0.0.1", "[::1]:%d", "localhost:9"]
)
def test_names_of_this_machine_are_allowed(server: Watching, host: str) -> None:
    """With another port too, as through `ssh -L`."""
    headers = server.headers(Host=host % server.port if "%d" in host else host)
    assert server.get("/", headers=headers)[0] == 200


def test_two_names_of_the_host_are_refused(server: Watching) -> None:
    cookie = server.cookie % server.port
    lines = ["GET / HTTP/1.1", "Host: 127.0.0.1", "Host: evil.example", f"Cookie: {cookie}", "", ""]
    answer = server.raw("\r\n".join(lines).encode())
    assert answer.split()[1] in (b"400", b"403")


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1:1", "null", "http://localhost:1"]
)
def test_a_page_of_another_origin_reads_nothing(server: Watching, path: str, origin: str) -> None:
    status, headers, _ = server.get(path, headers=server.headers(Origin=origin))
    assert status == 403
    assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", PRIVATE[1:])
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_browser_that_says_that_another_site_asks_is_refused(
    server: Watching, path: str, site: str
) -> None:
    assert server.get(path, headers=server.headers(Sec_Fetch_Site=site))[0] == 403


def test_its_own_page_is_answered(server: Watching) -> None:
    own = f"http://127.0.0.1:{server.port}"
    headers = server.headers(Origin=own, Sec_Fetch_Site="same-origin")
    assert server.get("/api/curves?run=", headers=headers)[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_only_get_is_allowed(server: Watching, method: str) -> None:
    assert server.get("/", method=method)[0] == 405


@pytest.mark.parametrize("path", [*PRIVATE[:2], "/api/curves?run=", "/nothing", "/?token=wrong"])
def test_every_answer_forbids_what_a_page_does_not_need(server: Watching, path: str) -> None:
    _, headers, _ = server.get(path)
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_a_refusal_of_a_host_names_the_option(server: Watching) -> None:
    status, _, body = server.get("/", headers=server.headers(Host="Box.Lan:8765"))
    assert status == 403
    assert b"--allow-host box.lan\n" in body
    status, _, body = server.get("/", headers=server.headers(Host="<script>"))
    assert status in (400, 403)
    assert b"script" not in body


def test_a_name_that_is_allowed_is_one_of_a_proxy_too() -> None:
    async def answer(*_: object) -> None: ...

    access = Access(answer, token=TOKEN, port=1, host="127.0.0.1", allowed=["Hub.example", "::7"])
    asked = ["hub.example", "HUB.example:443", "[::7]:1", "localhost:1", "127.0.0.1"]
    assert all(access.knows(host) for host in asked)
    refused = ["a.hub.example", "hub.example.evil", "192.0.2.7", "[::8]", "hub.example@evil"]
    assert not any(access.knows(host) for host in refused)


@pytest.mark.parametrize(
    ("text", "found"),
    [("hub.example.org", True), ("box", True), ("192.0.2.7", True), ("::1", True), ("a_b-c", True),
     ("http://hub", False), ("hub:80", False), ("hub/x", False), ("*.hub", False), ("", False),
     ("*", False), ("a b", False), ("x" * 254, False)],
)  # fmt: skip
def test_names_of_hosts(text: str, found: bool) -> None:
    assert is_host_name(text) is found


def test_the_names_of_a_server_for_others() -> None:
    """A name is still needed: `evil.example` may point to any address."""

    async def answer(*_: object) -> None: ...

    access = Access(answer, token=TOKEN, port=1, host="192.0.2.7")
    allowed = {"192.0.2.7:1", "198.51.100.9", "localhost", "127.0.0.1:1"}
    assert {
        host for host in (*allowed, "evil.example", "192.0.2.7.evil.example") if access.knows(host)
    } == allowed


@pytest.mark.parametrize(
    ("host", "found"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("192.0.2.1", False), ("192.0.2.7", False), ("::", False), ("box", False)],
)  # fmt: skip
def test_loopback_addresses(host: str, found: bool) -> None:
    assert is_loopback(host) is found
