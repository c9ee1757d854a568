"""The line of a training's progress: what a person reads in any width."""

import re
from io import StringIO

import pytest
from rich.console import Console

from game_rl.cli.progress_line import ProgressLine, Standing
from game_rl.events.time_left import TimeLeft

STANDING = Standing(
    done=12_848,
    total=60_000,
    speed=319.2,
    mean_reward=-4.11,
    success_rate=0.15,
)
LARGE = Standing(
    done=12_848_000,
    total=60_000_000,
    speed=3_190.0,
    mean_reward=-1_004.11,
    success_rate=1.0,
)
SOON = TimeLeft(148.0, is_about=False, is_at_most=True)
LATE = TimeLeft(59 * 3_600 + 59 * 60, is_about=True, is_at_most=False)


def rendered(line: ProgressLine, width: int) -> str:
    output = StringIO()
    Console(file=output, width=width, color_system=None).print(line)
    (text,) = output.getvalue().splitlines()
    assert len(text) <= width
    return text


def shown(standing: Standing, width: int, left: TimeLeft = SOON) -> str:
    line = ProgressLine(lambda: left)
    line.show(standing)
    return rendered(line, width)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize(
    ("standing", "left"), [(STANDING, SOON), (LARGE, LATE)], ids=["small", "large"]
)
def test_success_and_the_time_left_are_whole_in_any_width(
    standing: Standing, left: TimeLeft, width: int
) -> None:
    text = shown(standing, width, left)
    assert f"success {standing.success_rate:.0%}" in text
    assert re.search(r"(2 min 28 s|2 d 12 h) left$", text)
    assert "…" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_without_success_the_reward_is_the_result(width: int) -> None:
    standing = Standing(done=1, total=2, speed=3.0, mean_reward=-4.11)
    assert "reward -4.11" in shown(standing, width)


def test_the_bar_goes_first_and_then_the_speed() -> None:
    assert shown(STANDING, 200) == (
        "12,848 / 60,000 timesteps  ━━━━━━━━━───────────────────────────────  319/s  "
        "reward -4.11  success 15%  at most 2 min 28 s left"
    )
    whole = "12,848 / 60,000 timesteps  319/s  reward -4.11  success 15%  at most 2 min 28 s left"
    assert shown(STANDING, 90) == whole
    assert shown(STANDING, 80) == whole.replace("  319/s", "")
    assert shown(STANDING, 60) == "12,848 / 60,000  success 15%  at most 2 min 28 s left"
    assert shown(STANDING, 40) == "21%  success 15%  2 min 28 s left"


def test_an_evaluation_leaves_result_and_time_left_where_they_are() -> None:
    line = ProgressLine(lambda: SOON)
    line.show(STANDING)
    line.show_doing("evaluating, 20 episodes")
    assert rendered(line, 80).split("  ")[0] == "evaluating, 20 episodes"
    assert rendered(line, 80).endswith("reward -4.11  success 15%  at most 2 min 28 s left")
    assert rendered(line, 50) == "evaluating  success 15%  at most 2 min 28 s left"


def test_the_time_left_is_that_of_the_moment_of_drawing() -> None:
    seconds = [148.0, 120.0, 9.0]
    line = ProgressLine(lambda: TimeLeft(seconds.pop(0), is_about=True, is_at_most=True))
    line.show(STANDING)
    ends = [rendered(line, 80).split("  ")[-1] for _ in range(3)]
    assert ends == ["about 2 min 28 s left", "about 2 min left", "a few seconds left"]
