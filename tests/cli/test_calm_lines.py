"""Hints and milestones in the terminal: at most a line a minute."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from game_rl.cli.calm_lines import CalmLines
from game_rl.events import HintGiven, MilestoneReached


def milestone(name: str, timesteps: int = 8) -> MilestoneReached:
    return MilestoneReached(
        timesteps=timesteps, kind="reward_term", name=name, text=f"{name} earned", hours=0.0
    )


def hint(name: str) -> HintGiven:
    return HintGiven(timesteps=8, name=name, text=f"{name}!", key="gamma")


@given(st.lists(st.tuples(st.floats(0, 50), st.booleans()), max_size=40))
def test_lines_are_a_minute_apart_and_nothing_is_lost(given_: list[tuple[float, bool]]) -> None:
    now, lines = [0.0], list[tuple[float, str]]()
    calm = CalmLines(lambda _, text: lines.append((now[0], text)), clock=lambda: now[0])
    for index, (pause_s, is_hint) in enumerate(given_):
        now[0] += pause_s
        calm.add(hint(f"<{index}>") if is_hint else milestone(f"<{index}>"))
        calm.show_due()
    assert all(later - earlier >= 60 for (earlier, _), (later, _) in pairwise(lines))
    calm.show_all()
    text = " ".join(text for _, text in lines)
    hints = [index for index, (_, is_hint) in enumerate(given_) if is_hint]
    assert all(f"<{index}>!" in text for index in hints)


def test_milestones_between_two_lines_are_one_line_and_many_are_shortened() -> None:
    lines: list[str] = []
    calm = CalmLines(lambda _, text: lines.append(text), clock=lambda: 0.0)
    calm.add(milestone("first"))
    calm.show_due()
    for n in range(7):
        calm.add(milestone(f"m{n}", 16 + n))
    calm.show_due()
    assert lines == ["milestone: first earned"]
    calm.show_all()
    named = "; ".join(f"m{n} earned (timestep {16 + n})" for n in range(5))
    assert lines[1:] == [f"milestone: {named}; and 2 more, which `game-rl status` lists"]
