"""Milestones in the terminal: at once and in their order, but at most ten a minute."""

from hypothesis import given
from hypothesis import strategies as st

from game_rl.cli.run_console import CalmLines
from game_rl.events import MilestoneReached


def milestone(name: str, timesteps: int = 8) -> MilestoneReached:
    return MilestoneReached(
        timesteps=timesteps, kind="reward_term", name=name, text=f"{name} earned", hours=0.0
    )


def test_a_milestone_is_a_line_at_once() -> None:
    lines: list[tuple[int, str]] = []
    calm = CalmLines(lambda event, text: lines.append((event.timesteps, text)))
    for n in range(3):
        calm.add(milestone(f"m{n}", 16 + n))
        assert lines[-1] == (16 + n, f"milestone: m{n} earned")
    calm.show_all()
    assert len(lines) == 3


@given(st.lists(st.floats(0, 20), max_size=80))
def test_lines_are_in_order_and_every_milestone_is_shown_or_counted(pauses_s: list[float]) -> None:
    now, lines = [0.0], list[tuple[float, int, str]]()
    calm = CalmLines(
        lambda event, text: lines.append((now[0], event.timesteps, text)), clock=lambda: now[0]
    )
    for number, pause_s in enumerate(pauses_s):
        now[0] += pause_s
        calm.add(milestone("x", number))
        calm.show_due()
    calm.show_all()
    numbers = [number for _, number, _ in lines]
    assert numbers == sorted(numbers)
    counted = [int(text.split()[0]) if "more" in text else 1 for *_, text in lines]
    assert sum(counted) == len(pauses_s)
    times = [time for time, *_ in lines]
    assert all(later - earlier >= 60 for earlier, later in zip(times, times[22:], strict=False))
