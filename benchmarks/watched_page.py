"""How long the page of a watched training stands still, in headless Chromium.

    python -m benchmarks.watched_page [--config FILE] [--seconds 60] [--set KEY=VALUE]

It needs Chromium and playwright. The training and `game-rl watch` run in sessions of their own, as
in a person's terminals. It is evaluated as its config says; `--set evaluation.every_timesteps=N`
changes that. Measured is, by the clock of the page, the time between two pictures of the large
agent, once the first update is over; the same without the pictures that the page replays, which is
how long the agents themselves stood still; and the time between two calls of a timer of 50 ms,
which is how long the browser itself could not run. The load is the number of programs that wanted
to run, those of this benchmark included.
"""

import argparse
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.way import ROOT

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_BAR_MS = 500
_LOOK = """() => {
  window.found = {changes: [], doing: [], timer: []};
  setInterval(() => window.found.timer.push(performance.now()), 50);
  const canvas = document.querySelector(".stage canvas");
  const {putImageData} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.putImageData = function (...words) {
    putImageData.apply(this, words);
    if (this.canvas !== canvas) return;
    window.found.changes.push(performance.now());
    window.found.doing.push(document.querySelector(".doing").textContent);
  };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", default=str(ROOT / "configs/duel_ppo.yaml"))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    if find_spec("playwright") is None:
        raise SystemExit("playwright is not installed: pip install playwright")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        words = ["train", options.config, f"run_dir={run}", "total_timesteps=10_000_000"]
        training = _command(*words, "stop_when=null", *options.set)
        try:
            found = _watch(run, training, options.seconds)
        finally:
            _end(training)
    report(found)
    print(f"load of the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def _command(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "game_rl", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )


def _end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    process.communicate()


def _watch(run: Path, training: "subprocess.Popen[str]", seconds: float) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    assert training.stdout is not None
    if not any("timestep" in line for line in training.stdout if (run / "live.frames").exists()):
        raise SystemExit("the training has ended before it could be watched")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)))
    watch = _command("watch", str(run), "--port", "0")
    assert watch.stdout is not None
    try:
        address = next(re.search(r"http://\S+", line) for line in watch.stdout if "http" in line)
        assert address is not None
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(120_000)
            page.goto(address[0])
            page.wait_for_selector(".screen.live")
            while "learning" not in page.inner_text(".doing"):
                page.wait_for_timeout(50)
            page.evaluate(_LOOK)
            page.wait_for_timeout(1_000 * seconds)
            text = page.evaluate("JSON.stringify(window.found)")
            browser.close()
    finally:
        _end(watch)
    found: dict[str, Any] = json.loads(text)
    return found


def report(found: dict[str, Any]) -> None:
    pictures = list(zip(found["changes"], found["doing"], strict=True))
    played = [each for each in pictures if "replaying" not in each[1]]
    gaps = list(itertools.pairwise(pictures))
    rows = {
        "page": gaps,
        "while the network learns": [(a, b) for a, b in gaps if "learning" in a[1] + b[1]],
        "while an evaluation is played": [(a, b) for a, b in gaps if "evaluation" in a[1] + b[1]],
        "while the agents play": [(a, b) for a, b in gaps if not a[1] + b[1]],
        "without replayed pictures": list(itertools.pairwise(played)),
    }
    print(f"{'longest, median, over 500 ms':>60}")
    stills = {
        name: [after[0] - before[0] for before, after in pairs]
        for name, pairs in rows.items()
        if pairs
    }
    timer = itertools.pairwise(found["timer"])
    stills["a timer of 50 ms"] = [after - before for before, after in timer]
    for name, stood in stills.items():
        over = sum(gap > _BAR_MS for gap in stood)
        print(f"{name:<34} {max(stood):6,.0f} ms {median(stood):5,.0f} ms {over:3} of {len(stood)}")
    print("the page has said:", *sorted({words for _, words in pictures} - {""}), sep="\n  ")


if __name__ == "__main__":
    main()
