"""What the server answers, and how it bounds what one client can take."""

import json
import os
import re
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from game_rl import viewer
from game_rl.cli.parser import make_parser
from game_rl.events import Resumed, RolloutEnded, Warned
from game_rl.events.event_log import EventFile, read_events
from game_rl.files.run_dir import RunDir
from game_rl.viewer.watch_server import MOST_CONNECTIONS, BoundedProtocol
from tests.viewer.live_run import RUN_ID, LiveGame, Watching, first_events, make_run, watching

PAGE = Path(viewer.__file__).parent / "page"


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return make_run(tmp_path / "run")


@pytest.fixture
def server(run: RunDir) -> Iterator[Watching]:
    with watching(run.root) as found:
        yield found


def test_numbers_are_those_of_the_events(run: RunDir, server: Watching) -> None:
    state = server.news()["state"]
    events = [json.loads(line) for line in run.events.read_text(encoding="utf-8").splitlines()]
    rollout = [event for event in events if event["event"] == "rollout_ended"][-1]
    for name in ("timesteps", "timesteps_per_s", "mean_reward", "success_rate"):
        assert state[name] == rollout[name]
    evaluated = next(event for event in events if event["event"] == "evaluated")
    for name in ("mean_reward", "success_rate", "episodes", "policy_timesteps"):
        assert state["evaluation"][name] == evaluated[name]
    assert state["total_timesteps"] == events[0]["total_timesteps"]
    assert state["frames"] == 8 * state["timesteps"]
    assert (state["game"], state["n_envs"]) == ("duel", 4)


def test_curves_are_those_of_the_events(run: RunDir, server: Watching) -> None:
    rollouts = [event for event in read_events(run) if isinstance(event, RolloutEnded)]
    curves = server.json("/api/curves?run=")
    assert curves["training/success_rate"] == {
        "timesteps": [event.timesteps for event in rollouts],
        "values": [event.success_rate for event in rollouts],
    }
    half = 1.959963984540054 * 0.5 / 19**0.5  # a normal 95 % interval
    assert curves["evaluation/mean_reward"] == {
        "timesteps": [1_024],
        "values": [1.5],
        "intervals": [[pytest.approx(1.5 - half), pytest.approx(1.5 + half)]],
    }


def test_settings_are_the_text_of_the_config(run: RunDir, server: Watching) -> None:
    status, _, body = server.get("/api/settings?run=")
    assert (status, json.loads(body)) == (200, {"text": run.config.read_text(encoding="utf-8")})
    assert server.get("/api/settings?run=none")[0] == 404


def test_events_come_as_they_are_written_and_once(run: RunDir, server: Watching) -> None:
    found = server.news()
    titles = [line["title"] for line in found["history"]]
    assert titles == ["begun", "evaluation", "checkpoint", "warning"]
    assert found["history"][-1]["text"] == "a <b>warning</b> & more"
    again = server.news(after=found["id"])
    assert again.keys() == {"state", "id"}
    with EventFile(run.events) as file:
        file.add(Warned(timesteps=3_000, text="one more"))
    found = server.later_news("happened", found["id"])
    assert [line["text"] for line in found["happened"]] == ["one more"]


@pytest.mark.parametrize("last", ["", "x", "1", "-1.5", "9" * 50, "1.2.3", "99.0"])
def test_an_id_that_is_none_of_ours_brings_everything(server: Watching, last: str) -> None:
    assert len(server.news(after=last)["history"]) == 4


def test_a_resume_replaces_what_it_supersedes(run: RunDir, server: Watching) -> None:
    cut = run.events.read_bytes().index(b'{"time":"', run.events.read_bytes().index(b"512.0") - 120)
    first = server.news()["id"]
    with EventFile(run.events) as file:
        file.add(
            Resumed(run=RUN_ID, checkpoint="000000001024", total_timesteps=8_192, device="cpu",
                    precision="float32", superseded_from_bytes=cut, restored=(),
                    timesteps=1_024)
        )  # fmt: skip
    found = server.later_news("history", first)
    assert found["state"]["timesteps"] == max(event.timesteps for event in read_events(run))
    assert "warning" not in [line["title"] for line in found["history"]]


def test_a_run_that_takes_the_place_of_another_is_shown_alone(
    run: RunDir, server: Watching
) -> None:
    """Its file is longer than the old one, and its config another."""
    before = server.news()
    shutil.rmtree(run.root)
    server.json("/api/curves?run=")
    begun = first_events()[0].model_copy(update={"total_timesteps": 99_000})
    rollouts = [RolloutEnded(timesteps=n, timesteps_per_s=1.0) for n in range(50, 5_000, 50)]
    other = [begun, *rollouts]
    make_run(run.root, other, n_envs=7)
    after = server.later_news("history", before["id"])
    assert [line["title"] for line in after["history"]] == ["begun"]
    state = after["state"]
    assert (state["total_timesteps"], state["timesteps"], state["n_envs"]) == (99_000, 4_950, 7)
    assert state["replacements"] == before["state"]["replacements"] + 1
    assert (state["evaluation"], state["success_rate"]) == (None, None)


def test_a_run_that_is_deleted_is_gone(run: RunDir, server: Watching) -> None:
    assert "state" in server.news()
    shutil.rmtree(run.root)
    overview = server.later_news("overview", "")["overview"]
    assert (overview["is_there"], overview["members"]) == (False, [])


@pytest.mark.parametrize(
    "path",
    ["/..", "/../events.jsonl", "/page/../../run_dir.py", "/page/%2e%2e/%2e%2e/run_dir.py", "//",
     "/page/..%2f..%2frun_dir.py", "/page//etc/passwd", "/etc/passwd", "/page/app.py", "/page/",
     "/api/", "/api/clip?run=&name=../events.jsonl", "/api/clip?run=&name=/etc/passwd",
     "/api/clip?run=&name=..%2f..%2fconfig.yaml", "/api/curves?run=..", "/api/curves?run=/etc",
     "/api/curves?run=%2e%2e%2fother", "/page/%00", "/page/app.js/", "/index.html",
     "/api/frames?run=..", "/api/state?run=../run"],
)  # fmt: skip
def test_only_paths_of_the_table_are_answered(run: RunDir, server: Watching, path: str) -> None:
    make_run(run.root.parent / "other")
    status, _, body = server.get(path)
    assert status in (400, 404), (path, body[:200])


def test_clips_are_named_by_the_folder_of_clips(run: RunDir, server: Watching) -> None:
    run.videos.mkdir()
    (run.videos / "best.gif").write_bytes(b"GIF89a-and-more")
    (run.videos / "notes.txt").write_bytes(b"not a clip")
    (run.videos / "far.gif").symlink_to(run.config)
    status, headers, body = server.get("/api/clip?run=&name=best.gif")
    assert (status, headers["content-type"], body) == (200, "image/gif", b"GIF89a-and-more")
    assert server.get("/api/clip?run=&name=notes.txt")[0] == 404
    assert server.get("/api/clip?run=&name=far.gif")[0] == 404


@pytest.mark.parametrize("size", [20_000, 200_000, 2_000_000])
def test_huge_headers_are_refused(server: Watching, size: int) -> None:
    answer = b""
    with suppress(ConnectionError):  # it closes before all is sent
        answer = server.raw(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * size)
    assert answer == b"" or answer.split()[1] in (b"400", b"431")
    assert server.get("/")[0] == 200


def test_a_thousand_connections_are_bounded_and_leave_room_afterwards(server: Watching) -> None:
    with ExitStack() as stack:
        held = []
        for _ in range(1_000):
            connection = stack.enter_context(socket.socket())
            connection.settimeout(5)
            try:
                connection.connect(("127.0.0.1", server.port))
            except OSError:
                break  # the queue is full, which bounds it as well
            held.append(connection)
        open_still = 0
        for connection in held:
            try:
                connection.settimeout(0.001 if open_still > MOST_CONNECTIONS else 0.05)
                open_still += connection.recv(1) != b""
            except TimeoutError:
                open_still += 1
            except OSError:
                pass
        assert open_still <= MOST_CONNECTIONS
    for _ in range(50):
        try:
            assert server.get("/")[0] == 200
            break
        except OSError:
            time.sleep(0.1)
    else:
        pytest.fail("the server does not answer any more")


@pytest.mark.slow
def test_a_client_that_never_asks_is_dropped(
    server: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedProtocol, "request_within_s", 0.2)
    began = time.monotonic()
    with suppress(ConnectionError):
        assert server.raw(b"GET / HTTP/1.1\r\nHost: 127.0") == b""
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("query", "most"), [("", 8), ("&browser=1", 4)])
def test_streams_of_all_and_of_one_browser_are_bounded(
    server: Watching, query: str, most: int
) -> None:
    """A browser has six connections for all its windows; the others ask for single messages."""
    with ExitStack() as stack:
        for _ in range(most):
            stream = stack.enter_context(server.stream(f"/api/frames?run={query}"))
            assert stream.status == 200
        status, headers, body = server.get(f"/api/frames?run={query}")
        assert (status, headers["retry-after"]) == (503, "10")
        assert b"fewer screens a second" in body
        assert server.get(f"/api/frames?run={query}&once=1")[0] == 200
        assert server.news()["state"]["timesteps"] == 2_048
        if most < 8:
            with server.stream("/api/frames?run=&browser=2") as stream:
                assert stream.status == 200
    for _ in range(100):  # the places of those that have gone are free again
        with server.stream(f"/api/frames?run={query}") as stream:
            if stream.status == 200:
                return
        time.sleep(0.1)
    pytest.fail("no place was freed")


def test_the_screens_of_one_moment_end(run: RunDir, server: Watching) -> None:
    game = LiveGame(run)
    game.step()
    heads = []
    for _ in range(20):
        with server.stream("/api/frames?run=&env=1&once=1") as stream:
            heads.append(stream.message()[0])
            if not heads[-1]["screens"]:
                game.step()  # which is drawn once somebody watches
                heads.append(stream.message()[0])
            assert stream.answer.read() == b""
        if len(heads[-1]["screens"]) == 4:  # fewer are of a look amid a step
            break
    assert [screen["pixels"] for screen in heads[-1]["screens"]] == ["key"] * 4
    game.close()


def test_a_run_without_events_has_not_begun(tmp_path: Path) -> None:
    root = make_run(tmp_path / "empty", []).root
    with watching(root) as server:
        state = server.news()["state"]
    assert (state["state"], state["timesteps"], state["total_timesteps"]) == (
        "not begun",
        0,
        None,
    )


def test_a_folder_of_runs_has_a_tile_for_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_run(tmp_path / "runs" / name)
    with watching(tmp_path / "runs") as server:
        overview = server.news()["overview"]
        assert [member["folder"] for member in overview["members"]] == ["one", "two"]
        assert overview["members"][0]["timesteps"] == 2_048
        assert server.json("/api/curves?run=two")["training/success_rate"]["values"] == [0.25, 0.5]
        assert len(first_events()) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_names_that_are_no_text_are_shown_and_lead_to_their_run(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    for name in (odd, "h\u00fctte", "plain"):
        make_run(tmp_path / "runs" / name)
    with watching(tmp_path / "runs") as server:
        names = [member["folder"] for member in server.news()["overview"]["members"]]
        assert names == ["caf\\xe9", "h\u00fctte", "plain"]
        for name in names:
            assert server.news(quote(name))["state"]["timesteps"] == 2_048
    with watching(tmp_path / "runs" / odd) as server:
        assert server.news()["state"]["name"] == "caf\\xe9"


def test_a_run_of_an_experiment_is_known_as_one(run: RunDir, tmp_path: Path) -> None:
    member = tmp_path / "population" / "members" / "00"
    shutil.copytree(run.root, member)
    for root, is_of_experiment in ((run.root, False), (member, False), (member, True)):
        if is_of_experiment:
            (tmp_path / "population" / "experiment.yaml").touch()
        with watching(root) as server:
            state = server.news()["state"]
        assert state["experiment"] == (str(tmp_path / "population") if is_of_experiment else None)
        assert state["name"] == ("population, member 00" if is_of_experiment else root.name)


def test_a_folder_without_runs_but_experiments_has_their_tiles(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one")
    broken = tmp_path / "runs" / "broken"
    broken.mkdir()
    (broken / "experiment.yaml").write_text("kind: [", encoding="utf-8")
    with watching(tmp_path / "runs") as server:
        one, experiment = server.news()["overview"]["members"]
    assert (one["folder"], experiment["folder"]) == ("one", "broken")
    assert (experiment["is_experiment"], experiment["state"]) == (True, "unknown")


def test_each_command_that_the_page_names_can_be_called() -> None:
    named = []
    for file in sorted(PAGE.glob("*.js")):
        for text in re.findall(r"game-rl ([^`\"]+)", file.read_text(encoding="utf-8")):
            words = shlex.split(re.sub(r"\$\{quoted\(\w+\)\}", "'runs/a run'", text))
            assert not any("$" in word for word in words), text  # a path that nobody has quoted
            parser = make_parser(words[:1])[0]
            assert parser.parse_known_args(words)[0].command, text
            named.append(words[0])
    assert {"watch", "train", "evaluate", "record", "report"} <= set(named)
