"""What a terminal shows of a run's events."""

from io import StringIO

import pytest
from rich.console import Console

from game_rl.cli.run_console import RunConsole
from game_rl.events import Evaluated, Uploaded, UploadProgress, UploadQueued


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


def test_uploads_are_told_in_two_lines_and_what_is_left_at_the_end_in_one() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    to, name = "s3://bucket/x", "000000250000"
    console(UploadQueued(timesteps=250_100, checkpoint=name, n_bytes=13 << 20, to=to))
    console(UploadProgress(waiting_checkpoints=1, waiting_bytes=9 << 20))
    console(Uploaded(timesteps=250_200, checkpoint=name, sent_bytes=5, seconds=2.1, to=to))
    for left in (4, 2, 0):
        waiting = UploadProgress(waiting_checkpoints=1, waiting_bytes=left << 20, is_ending=True)
        console(waiting)
    console.close()
    assert output.getvalue().splitlines() == [
        "    250,100   ⏳ queued checkpoint 250,000 (13.0 MiB) → s3://bucket/x",
        "    250,200   ✓ checkpoint 250,000 uploaded in 2.1 s, verified",
        "uploading the last 4.00 MiB",
    ]
