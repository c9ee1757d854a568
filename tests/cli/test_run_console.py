"""What a terminal shows of a run's events."""

from io import StringIO

import pytest
from rich.console import Console

from game_rl.cli.run_console import RunConsole
from game_rl.events import Evaluated


@pytest.mark.parametrize(
    ("deterministic", "is_best", "line"),
    [
        (True, False, "64   evaluation of 20: reward 1.50 ± 0.25, success 40%, length 30"),
        (
            False,
            True,
            "64   evaluation of 20, actions drawn: reward 1.50 ± 0.25, success 40%, length 30, "
            "the best so far",
        ),
    ],
)
def test_a_line_says_when_actions_were_drawn(deterministic: bool, is_best: bool, line: str) -> None:
    output = StringIO()
    RunConsole(Console(file=output, width=200))(
        Evaluated(
            timesteps=64,
            policy_timesteps=64,
            deterministic=deterministic,
            episodes=20,
            mean_reward=1.5,
            std_reward=0.25,
            success_rate=0.4,
            mean_length=30,
            seconds=1,
            is_best=is_best,
        )
    )
    assert output.getvalue().strip() == line
