"""The page in a real browser: what it shows is what the run's files hold.

Marker `browser`: skipped without Chromium, or without playwright to drive it. Where the variable
CHROMIUM names the program, as CI does, they fail instead.
"""

import base64
import importlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageColor

from game_rl.events import (
    CurvesRecorded,
    Ended,
    Evaluated,
    HintGiven,
    MilestoneReached,
    PoolCounted,
    PoolLevel,
    StartStateResult,
)
from game_rl.files.pretrained import pretrained_agents
from game_rl.files.run_dir import RunDir, locked
from game_rl.live.live_file import LiveReader
from game_rl.look import AGENT, FLAG, LIGHT, SHOWN_AGENT, TRAINING, VISITS, rgb
from game_rl.statistics import percentage, wilson_interval
from tests.viewer.live_run import (
    TOKEN,
    LiveGame,
    Watching,
    first_events,
    make_run,
    watching,
)

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_NAMED = os.environ.get("CHROMIUM")
_PROGRAM = next(filter(None, map(shutil.which, (_NAMED,) if _NAMED else BROWSERS)), None)
_ROLES = Path(__file__).with_name("page_faults.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if not _NAMED:
        pytest.importorskip("playwright", reason="it needs playwright: pip install 'game_rl[dev]'")
        if _PROGRAM is None:
            pytest.skip("it needs Chromium; on Debian: apt install chromium")
    assert _PROGRAM is not None, f"CHROMIUM={_NAMED} names no program"
    sync_api = importlib.import_module("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=_PROGRAM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        )
        yield browser
        browser.close()


class Opened:
    """A page, with all that it complains about and asks for."""

    def __init__(self, browser: Any, server: Watching, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | context)
        self.context.set_default_timeout(60_000)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", lambda message: self._note(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self.server = server

    def _note(self, text: str) -> None:
        if "willReadFrequently" not in text:  # said of what a test reads, not of the page
            self.complaints.append(text)

    def open(self, place: str = "") -> Any:
        address = f"http://127.0.0.1:{self.server.port}/"
        self.page.goto(f"{address}?token={TOKEN}")
        self.page.wait_for_url(address)
        if place:
            self.page.goto(f"{address}#{place}")
        self.page.wait_for_selector("h1")
        return self.page

    def close(self) -> None:
        self.context.close()


@pytest.fixture(scope="module")
def training(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunDir, LiveGame, Watching]]:
    run = make_run(tmp_path_factory.mktemp("browser") / "run")
    game = LiveGame(run)
    with locked(run.root / "lock", busy="busy"), watching(run.root) as server:
        yield run, game, server
    game.close()


@pytest.fixture
def opened(chromium: Any, training: tuple[RunDir, LiveGame, Watching]) -> Iterator[Opened]:
    found = Opened(chromium, training[2])
    yield found
    found.close()


PIXELS = """selector => {
  const canvas = document.querySelector(selector);
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return btoa(Array.from(data, (value) => String.fromCharCode(value)).join(""));
}"""


def pixels_of(page: Any, selector: str) -> np.ndarray:
    """Return the grey pixels of a canvas, [height, width]."""
    flat = np.frombuffer(base64.b64decode(page.evaluate(PIXELS, selector)), np.uint8)
    shown = flat.reshape(144, 160, 4)
    assert (shown[..., 3] == 255).all()
    assert (shown[..., :1] == shown[..., :3]).all()
    return shown[..., 0]


def wait_until(page: Any, expression: str) -> None:
    """Poll from here: the page's policy forbids what playwright would run in it."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"it never holds: {expression}")


_TIMESTEPS = """() => {
  const shown = () => Number(document.querySelectorAll(".facts dd")[1].textContent);
  window.timesteps = [shown()];
  new MutationObserver(() => {
    if (shown() !== window.timesteps.at(-1)) window.timesteps.push(shown());
  }).observe(
    document.querySelector(".facts"), {subtree: true, childList: true, characterData: true});
}"""


def test_canvases_show_the_emulators_pixels(
    opened: Opened, training: tuple[RunDir, LiveGame, Watching]
) -> None:
    _, game, _ = training
    page = opened.open("agent=3")
    for _ in range(3):
        game.step(changed=0.4)
        wait_until(
            page,
            f"document.querySelector('.facts').textContent.includes('Timestep{game.timestep}')",
        )
        page.get_by_role("button", name="Pause the screens").click()
        for env in range(4):
            shown = pixels_of(page, f'button[data-key="/{env}"] canvas')
            np.testing.assert_array_equal(shown, game.screens[env])
        np.testing.assert_array_equal(pixels_of(page, ".stage canvas"), game.screens[2])
        page.get_by_role("button", name="Resume the screens").click()
    assert opened.complaints == []
    assert opened.hosts == {f"127.0.0.1:{training[2].port}"}


def test_numbers_are_those_of_the_event_log(
    opened: Opened, training: tuple[RunDir, LiveGame, Watching]
) -> None:
    run, _, _ = training
    events = [json.loads(line) for line in run.events.read_text(encoding="utf-8").splitlines()]
    rollout = [event for event in events if event["event"] == "rollout_ended"][-1]
    evaluated = [event for event in events if event["event"] == "evaluated"][-1]
    page = opened.open()
    page.wait_for_selector(".figures dt")
    shown = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.figure-tile:not([hidden])')].map("
        "tile => [tile.querySelector('dt').textContent, tile.querySelector('b').textContent]))"
    )
    assert shown["Success in training"] == f"{rollout['success_rate']:.0%}".replace("%", "\u00a0%")
    assert shown["Reward in training"] == f"{rollout['mean_reward']:g}"
    assert shown["Newest evaluation"] == f"{evaluated['success_rate']:.0%}".replace("%", "\u00a0%")
    assert shown["Speed"] == f"{rollout['timesteps_per_s']:.0f}/s"
    under = page.inner_text(".under")
    assert f"{rollout['timesteps']:,} of {events[0]['total_timesteps']:,} timesteps" in under
    bar = page.get_attribute(".progress", "aria-valuenow")
    assert bar == str(round(100 * rollout["timesteps"] / events[0]["total_timesteps"]))
    assert opened.complaints == []


def test_texts_of_a_run_never_become_html(opened: Opened) -> None:
    page = opened.open()
    page.wait_for_selector(".happenings li")
    assert "a <b>warning</b> & more" in page.inner_text(".happenings")
    assert page.evaluate("[...document.querySelectorAll('.happenings p b')].length") == 4


@pytest.mark.parametrize("width", [400, 1_280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_fault_of_accessibility(
    chromium: Any, training: tuple[RunDir, LiveGame, Watching], width: int, scheme: str
) -> None:
    training[1].step()
    found = Opened(
        chromium, training[2], viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    try:
        page = found.open()
        page.wait_for_selector(".screen.live")
        page.wait_for_selector(".happenings li")
        page.evaluate("document.querySelectorAll('details').forEach(box => box.open = true)")
        page.wait_for_timeout(1_500)
        assert page.evaluate(_ROLES) == []
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        found.close()


def finished_events(*, success: float) -> list[Any]:
    final = Evaluated(
        timesteps=2_048, policy_timesteps=1_024, episodes=100, mean_reward=2.5, std_reward=0.5,
        success_rate=success, mean_length=60, seconds=2, is_final=True,
    )  # fmt: skip
    return [
        *first_events(),
        final,
        Ended(timesteps=2_048, reason="completed", exit_code=0, text=""),
    ]


def make_clip(run: RunDir) -> None:
    run.videos.mkdir()
    frames = [Image.new("L", (160, 144), shade) for shade in (60, 200)]
    frames[0].save(run.videos / "best.gif", save_all=True, append_images=frames[1:])


def test_a_finished_run_leads_with_its_result_and_has_its_clip_beside_the_curves(
    chromium: Any, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "done", finished_events(success=0.96))
    make_clip(run)
    with watching(run.root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".ended .clip img")
            page.wait_for_selector(".ended .plot")
            first = page.locator("main > *:visible").first.inner_text().replace("\u00a0", " ")
            for words in (
                "Final result",
                "96 % success",
                "in 100 episodes (95 % interval 90 % to 98 %); mean reward 2.5",
                "It has played all its timesteps.",
                "game-rl evaluate",
                "game-rl report",
                f"{datetime.now(UTC):%Y}",
            ):
                assert words in first
            assert page.locator(".figure-tile:visible", has_text="evaluation").count() == 0
            assert page.evaluate(_ROLES) == []
            assert found.complaints == []
        finally:
            found.close()


def test_keys_walk_along_a_curve_whose_points_can_be_saved(chromium: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path / "done", finished_events(success=0.96))
    with watching(run.root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            plot = page.locator(".figure", has_text="Success").locator(".plot").first
            plot.focus()
            said = []
            for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "End"):
                page.keyboard.press(key)
                said.append(plot.get_attribute("aria-valuetext").replace("\u00a0", " "))
            assert said[0] == (
                "timestep 2,048: training 50 %, evaluation 40 % (22 % to 61 %), "
                "final evaluation 96 % (90 % to 98 %)"
            )
            assert [text.split(":")[0] for text in said[1:]] == [
                "timestep 1,024",
                "timestep 1,024",
                "timestep 2,048",
            ]
            saved = {}
            for kind in ("a table", "a picture"):
                with page.expect_download() as download:
                    page.get_by_label(f"Save “Success” as {kind}").click()
                saved[kind] = download.value
            assert saved["a table"].suggested_filename == "success.csv"
            lines = Path(saved["a table"].path()).read_text(encoding="utf-8").splitlines()
            assert lines[:3] == [
                "curve,timestep,value,low,high",
                "training,1024,0.25,,",
                "training,2048,0.5,,",
            ]
            curve, *numbers = lines[-1].split(",")
            assert curve == "final evaluation"
            low, high = wilson_interval(96, 100)
            assert [float(n) for n in numbers] == [
                1_024,
                0.96,
                pytest.approx(low),
                pytest.approx(high),
            ]
            with Image.open(saved["a picture"].path()) as picture:
                assert picture.format == "PNG"
                colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20)}
            assert ImageColor.getrgb(LIGHT.series[TRAINING]) in colours
            assert found.complaints == []
        finally:
            found.close()


def test_a_folder_is_a_table_that_sorts_with_curves_of_the_chosen_runs(
    chromium: Any, tmp_path: Path
) -> None:
    for name, success in (("middle", 0.5), ("worst", 0.1), ("best", 0.9)):
        make_clip(make_run(tmp_path / "runs" / name, finished_events(success=success)))
    experiment = tmp_path / "runs" / "experiment"
    experiment.mkdir()
    (experiment / "experiment.yaml").write_text("kind: [", encoding="utf-8")
    with watching(tmp_path / "runs") as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".runs canvas.drawn")
            names = page.locator("tr.member th")
            for directions in (["best", "middle", "worst"], ["worst", "middle", "best"]):
                page.get_by_role("button", name="Success", exact=True).click()
                shown = [text.split("\n")[0] for text in names.all_inner_texts()]
                assert shown == [*directions, "experiment"]  # which has no result
            assert page.get_attribute("th[aria-sort]", "aria-sort") == "ascending"
            wait_until(page, "document.querySelectorAll('.charts .legend li').length === 6")
            page.get_by_label("Draw the curves of best").uncheck()
            legend = page.locator(".charts .legend").first.inner_text()
            assert "best" not in legend
            assert "worst 40" in legend
            assert page.evaluate(_ROLES) == []
            page.get_by_role("link", name="best", exact=True).click()
            page.wait_for_selector(".laid-over summary")
            page.locator(".laid-over summary").click()
            page.get_by_label("worst").check()
            wait_until(
                page, "document.querySelector('.charts .legend').textContent.includes('worst')"
            )
            assert found.complaints == []
        finally:
            found.close()


def test_the_page_of_several_runs_has_no_fault_either(chromium: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_run(tmp_path / "runs" / name)
    with watching(tmp_path / "runs") as server:
        found = Opened(chromium, server, viewport={"width": 400, "height": 900})
        try:
            page = found.open()
            page.wait_for_selector(".member")
            assert page.evaluate(_ROLES) == []
            page.get_by_role("link", name="two").click()
            page.wait_for_selector(".happenings li")
            assert page.inner_text("h1") == "two"
            page.get_by_role("link", name="all").click()
            page.wait_for_selector(".member")
            assert found.complaints == []
        finally:
            found.close()


@pytest.mark.slow
def test_keys_reach_every_agent_and_the_focus_stays_visible(
    opened: Opened, training: tuple[RunDir, LiveGame, Watching]
) -> None:
    training[1].step()
    page = opened.open()
    page.wait_for_selector(".screen.live")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.locator('button[data-key="/0"]').focus()
    for key, env in (("ArrowRight", 1), ("End", 3), ("ArrowLeft", 2), ("Home", 0)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.dataset.key") == f"/{env}"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_until(page, "document.querySelector('.beside h3').textContent === 'Agent 2'")
    assert page.url.endswith("#agent=2")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_who_wants_less_motion_gets_one_picture_until_they_ask(
    chromium: Any, training: tuple[RunDir, LiveGame, Watching]
) -> None:
    game = training[1]
    game.step(changed=1.0)
    found = Opened(chromium, training[2], reduced_motion="reduce")
    try:
        page = found.open()
        page.wait_for_selector(".screen.live")
        page.wait_for_timeout(1_500)
        before = pixels_of(page, ".stage canvas")
        game.step(changed=1.0)
        page.wait_for_timeout(1_500)
        np.testing.assert_array_equal(pixels_of(page, ".stage canvas"), before)
        page.get_by_role("button", name="Resume the screens").click()
        wait_until(
            page,
            f"document.querySelector('.facts').textContent.includes('Timestep{game.timestep}')",
        )
        np.testing.assert_array_equal(pixels_of(page, ".stage canvas"), game.screens[0])
    finally:
        found.close()


_PLAY_AGAIN = """async ({every, count}) => {
  const {Replay} = await import("/page/replay.js");
  const shown = [];
  let now = 0;
  performance.now = () => now;
  const timesteps = (screens) => [0, 1].map((at) => screens.find(({env}) => env === at).timestep);
  const replay = new Replay((screens) => shown.push([...timesteps(screens), now]));
  const take = (timestep) => {
    const [one, other] = [0, 1].map((env) => [{env, timestep, packed: []}]);
    for (const each of timestep % 2 ? [one, other] : [other, one]) replay.take(each);
  };
  for (; now <= every * count + 5000; now += 50) {
    const taken = now / every;
    if (Number.isInteger(taken) && taken <= count) take(taken);
    replay.look();
  }
  take(count + 1);
  replay.look();
  return shown;
}"""


@pytest.mark.parametrize(("every", "still"), [(100, 350), (250, 350), (1_000, 1_400)])
def test_pictures_play_again_once_none_has_come_for_a_third_of_a_second(
    opened: Opened, every: int, still: int
) -> None:
    """Those of agents that always take longer than that play again after a longer wait.

    Of each agent there is a picture each time, also where messages bring some agents alone.
    """
    shown = opened.open().evaluate(_PLAY_AGAIN, {"every": every, "count": 10})
    timesteps, other_timesteps, times = zip(*shown, strict=True)
    assert timesteps == other_timesteps
    assert timesteps[:14] == (*range(11), 0, 1, 2)
    assert times == tuple(range(10 * every + still, 10 * every + 5_001, 250))


def test_the_page_plays_on_while_no_new_picture_comes(chromium: Any, tmp_path: Path) -> None:
    """It waits for nobody to say why: the page hears of an evaluation seconds after it begins."""
    run = make_run(tmp_path / "run")
    game = LiveGame(run)
    with locked(run.root / "lock", busy="busy"), watching(run.root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            game.step()
            page.wait_for_selector(".screen.live")
            page.evaluate(_TIMESTEPS)
            for _ in range(5):
                game.step()
                wait_until(page, f"window.timesteps.includes({game.timestep})")
            n_shown = page.evaluate("window.timesteps.length")
            wait_until(page, f"window.timesteps.length > {n_shown + 12}")
            again = page.evaluate(f"window.timesteps.slice({n_shown})")
            for before, after in itertools.pairwise(again):
                assert after == before % 6 + 1
            assert page.inner_text(".doing") == "replaying the last screens"
            game.file.write_learns_from(1_024)
            wait_until(page, "document.querySelector('.doing').textContent.startsWith('learn')")
            doing = page.inner_text(".doing")
            assert doing == "learning from 1,024 timesteps … replaying the last screens"
            game.file.write_learns_from(0)
            game.step()
            wait_until(page, "window.timesteps.at(-1) === 7")
            page.get_by_role("button", name="Pause the screens").click()
            assert page.inner_text(".doing") == ""
            np.testing.assert_array_equal(pixels_of(page, ".stage canvas"), game.screens[0])
            assert found.complaints == []
        finally:
            found.close()
            game.close()


def test_a_finished_run_says_that_nothing_is_live(chromium: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path / "old")
    assert LiveReader.open(run) is None
    with watching(run.root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".live-note")
            assert "not training" in page.inner_text(".live-note")
            assert found.complaints == []
        finally:
            found.close()


def learned_events() -> list[Any]:
    """Events of a run whose curves are known, with a hint, a milestone and two start states."""
    values = {"game/reward/hit": 1.0, "game/reward/fall": -0.5, "train/loss": 0.25, "game/lives": 3}
    stuck = {"game/stuck/episodes": 0.4, "game/looped/hit": 0.0, "own/thing": 7.0}
    pool = {"pool/states": 12, "pool/passed": 0.25, "pool/share": 0.6, "pool/success_rate": 0.31}
    by_state = {
        "level_1": StartStateResult(episodes=10, successes=9, mean_reward=2.0),
        "level_2": StartStateResult(episodes=10, successes=1, mean_reward=-2.0),
    }
    return [
        *first_events(),
        *(
            CurvesRecorded(timesteps=n, values=values | stuck | pool | {"train/loss": 1.0 / n})
            for n in (1_024, 2_048, 4_096)
        ),
        PoolCounted(timesteps=4_096, levels=(
            PoolLevel(least_reward=0, most_reward=0, states=5, episodes=0, successes=0),
            PoolLevel(least_reward=1.5, most_reward=2, states=7, episodes=30, successes=12,
                      mean_reward=0.6),
        )),
        MilestoneReached(timesteps=90, kind="reward_term", name="hit", text="hit", hours=0.5),
        HintGiven(timesteps=4_096, name="episodes_stuck", text="They go round", key="truncation"),
        Evaluated(timesteps=4_096, policy_timesteps=4_096, episodes=20, mean_reward=0.0,
                  std_reward=2.0, success_rate=0.5, mean_length=60, seconds=2, is_best=True,
                  by_start_state=by_state),
    ]  # fmt: skip


@pytest.mark.slow
def test_hints_milestones_start_states_and_curves_are_shown(chromium: Any, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", learned_events())
    with watching(run.root) as server:
        found = Opened(chromium, server)
        try:
            page = found.open()
            page.wait_for_selector(".groups summary")
            assert "They go round" in page.inner_text(".hints")
            assert "after 30 min" in page.inner_text(".milestones")
            lines = [line for line in page.inner_text(".states").split("\n") if line]
            assert lines[1:4] == [
                "level 1",
                "9 of 10",
                "successful; reward 2",
            ]
            lines = [line for line in page.inner_text(".card.pool").split("\n") if line]
            assert lines[1:] == [
                "reward 0",
                "0 of 0",
                "goal met, from 5 states",
                "reward 1.5 to 2",
                "12 of 30",
                "goal met, from 7 states; mean reward 0.6",
            ]
            assert "40\u00a0%" in page.inner_text(".figures")
            tile = page.locator(".figure-tile", has_text="Goal met from the pool").inner_text()
            assert "31\u00a0%" in tile
            assert "60\u00a0% of the episodes start in it; 12 states, 3 passed" in tile
            groups = page.locator(".groups summary").all_inner_texts()
            assert groups == [
                "Reward terms (2)",
                "Going in circles (2)",
                "Evaluation by start state (2)",
                "Episodes from the pool (4)",
                "Learning (1)",
                "Variables at the end of an episode (1)",
                "Others (1)",
            ]
            page.get_by_text("Reward terms").click()
            legend = page.locator(".groups details[open] .legend").all_inner_texts()
            assert [line.split() for line in legend] == [["fall", "-0.5", "hit", "1"]]
            page.get_by_label("Find a curve").fill("LOSS")
            assert page.locator(".groups figure:visible").count() == 1
            assert page.locator(".groups details:visible").count() == 1
            page.get_by_label("Find a curve").fill("")
            assert page.locator(".groups details:visible").count() == len(groups)
            page.locator("summary", has_text="Settings").click()
            wait_until(page, "document.querySelector('.settings').textContent.includes('duel')")
            assert found.complaints == []
        finally:
            found.close()


def test_the_page_rounds_shares_as_the_terminal_does(opened: Opened) -> None:
    page = opened.open()
    shares = [part / whole for whole in (8, 40, 96, 200) for part in range(-whole, whole + 1)]
    for digits in (0, 1):
        shown = page.evaluate(
            """async ([shares, digits]) => {
              const {percentage} = await import("/page/words.js");
              return shares.map((share) => percentage(share, digits));
            }""",
            [shares, digits],
        )
        assert shown == [percentage(share, digits) for share in shares]


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_video_plays_by_itself_and_without_sound_unless_less_motion_is_wanted(
    chromium: Any, motion: str
) -> None:
    with watching(pretrained_agents()["duel"]) as server:
        found = Opened(chromium, server, reduced_motion=motion)
        try:
            page = found.open()
            page.wait_for_selector(".ended .clip video")
            wait_until(page, "document.querySelector('video').readyState >= 3")
            if motion == "no-preference":
                wait_until(page, "document.querySelector('video').currentTime > 0.5")
            else:
                assert not page.evaluate("document.querySelector('video').autoplay")
                assert page.evaluate("document.querySelector('video').paused")
            assert page.evaluate("document.querySelector('video').muted")
            label = page.get_attribute("video", "aria-label")
            shown = pretrained_agents()["duel"] / "best.mp4"
            assert label == f"Clip {shown.name}: the best policy at play"
            assert shown.exists()
            assert found.complaints == []
        finally:
            found.close()


_DRAW_A_MAP = """async () => {
  const {PlacesMap} = await import("/page/places.js");
  const map = new PlacesMap("");
  document.querySelector("#page").append(map.element);
  map.flags = [{place: [0, 0, 2]}];
  map.large = 1;
  map.places.set(0, [0, 1, 0]).set(1, [0, 2, 0]);
  const [levels, strengths] = [[1, 52, 255, 0, 0, 0, 0, 0, 0], Array(9).fill(255)].map((each) => btoa(String.fromCharCode(...each)));
  await map.show({n_places: 3, offsets: {}, layers: [{name: "0", map_id: 0, x0: 0, y0: 0, width: 3, height: 3, cell_side: 1, most: 9, levels, strengths}]});
  const coloursOf = (canvas) => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) found.add([...data.slice(i, i + 3)].join());
    return [...found];
  };
  return [coloursOf(map.maps[0].visits), coloursOf(map.maps[0].marks)];
}"""  # noqa: E501


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_map_has_the_colours_of_its_meanings(
    chromium: Any, training: tuple[RunDir, LiveGame, Watching], scheme: str
) -> None:
    found = Opened(chromium, training[2], color_scheme=scheme)
    try:
        visits, marks = found.open().evaluate(_DRAW_A_MAP)
    finally:
        found.close()
    first, second, *_, last = (",".join(map(str, rgb(colour))) for colour in VISITS)
    assert visits == [first, second, last]
    wanted = {",".join(map(str, rgb(colour))) for colour in (FLAG, AGENT, SHOWN_AGENT)}
    assert wanted <= set(marks)
