"""Ways to the page in a real browser: links on other sites, proxies, and many windows at once."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from game_rl.events import CurvesRecorded, Ended, Evaluated, RolloutEnded
from game_rl.files.run_dir import RunDir, locked
from tests.viewer.live_run import TOKEN, LiveGame, Watching, first_events, make_run, watching
from tests.viewer.prefix_proxy import linking_to, proxied
from tests.viewer.test_page_browser import Opened, chromium, training, wait_until

__all__ = ["chromium", "training"]  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_the_printed_address_works_from_a_link_of_another_site(
    chromium: Any,
    training: tuple[RunDir, LiveGame, Watching],
) -> None:
    """A redirect of such a link has no `SameSite=Strict` cookie, and a reload has none either."""
    port = training[2].port
    printed = f"http://127.0.0.1:{port}/?token={TOKEN}"
    with linking_to(printed) as other, linking_to(printed.partition("?")[0]) as later:
        context = chromium.new_context()
        try:
            page = context.new_page()
            page.goto(f"http://localhost:{other}/")
            page.click("#link")
            page.wait_for_selector("h1")
            assert page.url == f"http://127.0.0.1:{port}/"
            page.reload()
            page.wait_for_selector("h1")
            page.goto(f"http://localhost:{later}/")  # to a page whose cookie is there already
            page.click("#link")
            page.wait_for_selector("h1")
            stranger = chromium.new_context().new_page()
            stranger.goto(f"http://localhost:{later}/")
            stranger.click("#link")
            stranger.wait_for_url(f"http://127.0.0.1:{port}/?again")
            assert "a token is missing" in stranger.inner_text("body")
            stranger.context.close()
        finally:
            context.close()


def test_another_site_reads_nothing_although_the_browser_has_the_cookie(
    chromium: Any,
    training: tuple[RunDir, LiveGame, Watching],
) -> None:
    port = training[2].port
    with linking_to("#") as other:
        context = chromium.new_context()
        try:
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}")
            page.wait_for_selector("h1")
            page.goto(f"http://localhost:{other}/")
            for path in ("", "api/state?run=&after=", "api/curves?run=", "page/app.js"):
                got = page.evaluate(
                    """address => fetch(address, {credentials: "include", mode: "no-cors"})
                      .then((answer) => answer.text(), () => "refused")""",
                    f"http://127.0.0.1:{port}/{path}",
                )
                assert got in ("", "refused")
            framed = page.evaluate(
                """address => new Promise((done) => {
                  const frame = document.createElement("iframe");
                  frame.onload = () => {
                    try { done(frame.contentDocument ? "open" : "closed"); }
                    catch { done("closed"); }
                  };
                  frame.src = address;
                  document.body.append(frame);
                })""",
                f"http://127.0.0.1:{port}/",
            )
            assert framed == "closed"
        finally:
            context.close()


def test_the_page_works_below_a_path_of_a_proxy(chromium: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    game = LiveGame(run)
    game.step()
    run.videos.mkdir()
    (run.videos / "best.gif").write_bytes(GIF)
    prefix = "/user/me/proxy/8765/"
    with (
        locked(run.root / "lock", busy="busy"),
        watching(run.root) as server,
        proxied(server.port, prefix) as port,
    ):
        context = chromium.new_context()
        try:
            page = context.new_page()
            failed: list[str] = []

            def note(answer: Any) -> None:
                if answer.status >= 400:
                    failed.append(answer.url)

            page.on("response", note)
            page.goto(f"http://127.0.0.1:{port}{prefix}?token={TOKEN}")
            page.wait_for_url(f"http://127.0.0.1:{port}{prefix}")
            page.wait_for_selector(".happenings li")
            game.step()
            page.wait_for_selector(".screen.live")
            wait_until(
                page, "document.querySelectorAll('.charts figure:not([hidden])').length == 2"
            )
            page.locator("summary", has_text="Settings").click()
            wait_until(page, "document.querySelector('.settings').textContent.includes('duel')")
            wait_until(page, "document.querySelector('.clip img').naturalWidth === 1")
            cookie = context.cookies()[0]
            assert (cookie["path"], cookie["sameSite"]) == (prefix[:-1], "Strict")
            assert failed == []
        finally:
            context.close()
    game.close()


def test_any_number_of_windows_of_one_browser_is_shown(
    chromium: Any,
    training: tuple[RunDir, LiveGame, Watching],
) -> None:
    """A browser has six connections to a server, for all its windows together."""
    _, game, server = training
    with ExitStack() as stack:
        context = chromium.new_context()
        stack.callback(context.close)
        pages = []
        for _ in range(8):
            pages.append(page := context.new_page())
            page.goto(f"http://127.0.0.1:{server.port}/?token={TOKEN}")
            page.wait_for_selector(".charts figure:not([hidden])")
        with game.playing(4.0):
            for page in pages:
                page.wait_for_selector(".screen.live")
                assert not page.is_visible(".lost-note")


def test_another_run_at_the_same_place_begins_a_page_of_its_own(
    chromium: Any,
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path / "run")
    other = [
        first_events()[0].model_copy(update={"total_timesteps": 99_000}),
        *(RolloutEnded(timesteps=n, timesteps_per_s=1.0) for n in range(50, 5_000, 50)),
    ]
    with watching(run.root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".happenings li")
            assert page.locator(".happenings li").count() == 4
            shutil.rmtree(run.root)
            make_run(run.root, other, n_envs=1)
            wait_until(page, "document.querySelector('.under').textContent.includes('99,000')")
            assert page.locator(".happenings li").count() == 1
            assert "No evaluation was played" in page.inner_text(".result")
            shutil.rmtree(run.root)
            wait_until(page, "document.body.classList.contains('lost')")
            assert "no run here any more" in page.inner_text(".lost-note")
            assert "99,000" in page.inner_text(".under")
        finally:
            found.close()


def test_the_page_of_a_complete_run_leads_with_its_result_and_the_next_commands(
    chromium: Any,
    tmp_path: Path,
) -> None:
    final = Evaluated(timesteps=8_448, policy_timesteps=1_024, episodes=100, mean_length=50,
                      mean_reward=8.9e-16, std_reward=1, success_rate=0.74, seconds=5,
                      is_final=True)  # fmt: skip
    curves = [CurvesRecorded(timesteps=n, values={"game/ending/won": 1.0, "game/ending/lost": 1.0})
              for n in (1_024, 2_048)]  # fmt: skip
    ended = Ended(timesteps=8_448, reason="completed", exit_code=0)
    events = [*first_events(), *curves, RolloutEnded(timesteps=8_448, timesteps_per_s=500.0),
              final, ended]  # fmt: skip
    run = make_run(tmp_path / "my run", events)
    run.videos.mkdir()
    (run.videos / "best.gif").write_bytes(GIF)
    with watching(run.root) as server:
        found = Opened(chromium, server, reduced_motion="reduce")
        try:
            page = found.open()
            page.wait_for_selector(".result li")
            assert page.get_attribute(".progress", "aria-valuenow") == "100"
            assert page.title().startswith("100\u00a0%")
            assert page.inner_text(".under span").startswith("8,448 timesteps")
            assert (
                page.evaluate("document.querySelector('main').firstChild.className")
                == "card result"
            )
            result = [line for line in page.inner_text(".result").split("\n") if line]
            assert result[:2] == ["Final result", "74\u00a0% success"]
            assert "mean reward 0," in result[2]
            assert f"game-rl evaluate '{run.root}'" in page.inner_text(".result")
            assert page.locator(".clip img").count() == 0  # who wants less motion asks for it
            page.get_by_role("button", name="Play the clip").click()
            wait_until(page, "document.querySelector('.clip img').naturalWidth === 1")
            page.wait_for_selector(".groups summary")
            page.get_by_text("How episodes end").click()
            ticks = page.locator(".groups details[open] svg text").all_text_contents()
            assert "100\u00a0%" in ticks
            assert "150\u00a0%" not in ticks
            page.get_by_label("Find a curve").fill("nothing like it")
            assert "No curve has" in page.inner_text(".card p[role=status]")
            page.get_by_label("Find a curve").fill("")
            assert page.locator(".groups details:visible").count() == 1
            assert found.complaints == []
        finally:
            found.close()


GIF = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)
