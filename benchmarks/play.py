"""How `game-rl play` keeps time, and from a key to its picture, in headless Chromium.

    python -m benchmarks.play [--game beacon] [--minutes 5] [--presses 300]

It needs Chromium and playwright. The command runs in a process of its own, as for a person. A key
is pressed again and again at random moments. Measured is, by the clock of the page, from the key's
event to the picture of the first frame that knows the key, once it is on the canvas, and to the
browser's next painting. The frames of each second are those that the game has played. A dropped
clock is a moment at which the game was a quarter of a second late.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from game_rl.emulator.emulator import FRAMES_PER_SECOND

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_WATCH = """() => {
  const canvas = document.querySelector("canvas");
  window.found = {input: 0, due: [], drawn: [], painted: [], frames: []};
  const {found} = window;
  const pressed = ({timeStamp, repeat}) => {
    if (!repeat) found.due.push([(found.input += 1), timeStamp]);
  };
  window.addEventListener("keydown", pressed, true);
  window.addEventListener("keyup", pressed, true);
  new MutationObserver(() => {
    const now = performance.now();
    while (found.due.length && found.due[0][0] <= Number(canvas.dataset.input)) {
      const [, since] = found.due.shift();
      found.drawn.push(now - since);
      requestAnimationFrame((painted) => { found.painted.push(Math.max(painted, now) - since); });
    }
  }).observe(canvas, {attributes: true, attributeFilter: ["data-input"]});
  setInterval(() => found.frames.push([performance.now(), Number(canvas.dataset.frame)]), 1000);
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="beacon")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--presses", type=int, default=300)
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)))
    words = ["-m", "game_rl", "play", str(arguments.game), "--port", "0"]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", *words],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        try:
            with sync_playwright() as driver:
                browser = driver.chromium.launch(
                    executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
                )
                page = browser.new_page()
                page.goto(_address(process))
                page.wait_for_selector(".veil b")
                found = play(page, arguments.minutes * 60, arguments.presses)
                browser.close()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    report(found)


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(r"http://\S+", line)
        if found is not None:
            return found[0]
    raise SystemExit("game-rl play has printed no address")


def play(page: Any, seconds: float, presses: int) -> dict[str, Any]:  # noqa: ANN401 - playwright may be missing
    """Press a key again and again; an episode that is over is begun anew."""
    rng = random.Random(0)
    page.evaluate(_WATCH)
    end = time.monotonic() + seconds
    every_s = seconds / presses / 2
    while time.monotonic() < end:
        for turn in (page.keyboard.down, page.keyboard.up):
            turn("a")
            page.wait_for_timeout(1000 * every_s * rng.uniform(0.5, 1.5))
        doing = page.inner_text(".state")
        if doing in ("over", "paused"):
            page.keyboard.press("r" if doing == "over" else "p")
            page.wait_for_timeout(500)
    dropped = page.evaluate("document.querySelector('canvas').dataset.dropped")
    text = page.evaluate("JSON.stringify(window.found)")
    return {**json.loads(text), "dropped": dropped}


def report(found: dict[str, Any]) -> None:
    rates = [
        1000 * (after - before) / (end - start)
        for (start, before), (end, after) in zip(found["frames"], found["frames"][1:], strict=False)
    ]
    print(f"{len(found['drawn']):,} keys, {len(rates):,} seconds")
    print(f"the game's own rate is {FRAMES_PER_SECOND:.2f} frames a second")
    for name, values, unit in (
        ("key to canvas", found["drawn"], "ms"),
        ("key to painting", found["painted"], "ms"),
        ("frames a second", rates, ""),
    ):
        print(f"{name:16} {spread(values)} {unit}".rstrip())
    print(f"dropped clocks   {found['dropped']}")


def spread(values: Sequence[float]) -> str:
    """Return the median, the 5th and 95th percentile, and the extremes, in words."""
    cuts = quantiles(values, n=20)
    return (
        f"median {median(values):6.1f}, 5 to 95 %: {cuts[0]:6.1f} to {cuts[-1]:6.1f}, "
        f"{min(values):6.1f} to {max(values):6.1f} in all"
    )


if __name__ == "__main__":
    main()
