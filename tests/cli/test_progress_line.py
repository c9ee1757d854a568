"""The line of a training's progress: what a person reads in any width."""

import re
from io import StringIO

import pytest
from rich.console import Console

from game_rl.cli.progress_line import ProgressLine, Standing

STANDING = Standing(
    done=12_848,
    total=60_000,
    speed=319.2,
    mean_reward=-4.11,
    success_rate=0.15,
    seconds_left=148.0,
    left="at most",
)
LARGE = Standing(
    done=12_848_000,
    total=60_000_000,
    speed=3_190.0,
    mean_reward=-1_004.11,
    success_rate=1.0,
    seconds_left=59 * 3_600 + 59 * 60,
)


def rendered(line: ProgressLine, width: int) -> str:
    output = StringIO()
    Console(file=output, width=width, color_system=None).print(line)
    (text,) = output.getvalue().splitlines()
    assert len(text) <= width
    return text


def shown(standing: Standing, width: int) -> str:
    line = ProgressLine(clock=lambda: 0.0)
    line.show(standing)
    return rendered(line, width)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("standing", [STANDING, LARGE], ids=["small", "large"])
def test_success_and_the_time_left_are_whole_in_any_width(standing: Standing, width: int) -> None:
    text = shown(standing, width)
    assert f"success {standing.success_rate:.0%}" in text
    assert re.search(r"(2 min 28 s|2 d 12 h) left$", text)
    assert "…" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_without_success_the_reward_is_the_result(width: int) -> None:
    standing = Standing(done=1, total=2, speed=3.0, mean_reward=-4.11, seconds_left=148.0)
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
    line = ProgressLine(clock=lambda: 0.0)
    line.show(STANDING)
    line.show_doing("evaluating, 20 episodes")
    assert rendered(line, 80).split("  ")[0] == "evaluating, 20 episodes"
    assert rendered(line, 80).endswith("reward -4.11  success 15%  at most 2 min 28 s left")
    assert rendered(line, 50) == "evaluating  success 15%  at most 2 min 28 s left"


def test_the_time_left_falls_while_nothing_is_heard() -> None:
    now = [0.0]
    line = ProgressLine(clock=lambda: now[0])
    line.show(STANDING)
    now[0] = 28.0
    assert rendered(line, 80).endswith("at most 2 min left")
    now[0] = 1_000.0
    assert rendered(line, 80).endswith("success 15%  nearly done")
