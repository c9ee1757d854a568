"""What a terminal shows of a run's events."""

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console

from game_rl.cli.run_console import RunConsole
from game_rl.events import (
    BaselinePlayed,
    Begun,
    CheckpointSaved,
    ConfirmationPlayed,
    Evaluated,
    Event,
    HintGiven,
    MilestoneReached,
    PlanPassed,
    Progress,
    ResourceLow,
    RolloutEnded,
    StillWorking,
    StopConditionMet,
    Uploaded,
    UploadProgress,
    UploadQueued,
)


@pytest.mark.parametrize(
    ("deterministic", "is_best", "line"),
    [
        (True, False, "64   evaluation of 20: reward 1.50 ± 0.25, success 40%, length 30"),
        (
            False,
            True,
            "64   evaluation of 20, stochastic: reward 1.50 ± 0.25, success 40%, length 30, "
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


def test_a_checkpoint_is_told_with_its_size_and_little_space_as_a_warning() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    console(
        CheckpointSaved(
            timesteps=64,
            checkpoint="000000000064",
            n_bytes=13 << 20,
            seconds=0.2,
            contents=("policy", "optimiser", "replay"),
            compression_saved=0.954,
        )
    )
    console(
        ResourceLow(resource="disk", free_bytes=1, threshold_bytes=2, text="only 1 B [of the disk]")
    )
    assert output.getvalue().splitlines() == [
        "         64   checkpoint of 13.0 MiB saved in 0.2 s, "
        "its replay 95.4% smaller than whole frame stacks",
        "warning: only 1 B [of the disk]",
    ]


def _heard(stop_when: tuple[str, ...], n_updates: int) -> Iterator[Event]:
    """The events of a run up to now, with an update of 1,000 timesteps a minute."""
    now = datetime.now(UTC)
    yield Begun(
        run="x",
        algorithm="ppo",
        total_timesteps=400_000,
        device="cpu",
        precision="float32",
        stop_when=stop_when,
        time=now - timedelta(minutes=n_updates),
    )
    for n in range(1, n_updates + 1):
        time = now - timedelta(minutes=n_updates - n)
        yield RolloutEnded(timesteps=1_000 * n, timesteps_per_s=16.7, time=time)
    yield Progress(timesteps=1_000 * n_updates, timesteps_per_s=16.7, time=now)


def test_what_start_states_change_in_the_game_is_said_first() -> None:
    output = StringIO()
    begun = Begun(
        run="x",
        algorithm="ppo",
        total_timesteps=400_000,
        device="cpu",
        precision="float32",
        game_changes=("start state caves: repel is held at 255",),
    )
    RunConsole(Console(file=output, width=200))(begun)
    assert output.getvalue().splitlines()[-1] == (
        "the game is changed: start state caves: repel is held at 255"
    )


@pytest.mark.parametrize(
    ("stop_when", "n_updates", "words"),
    [((), 3, "about"), ((), 50, "about"), (("8 h of training",), 50, "at most")],
)
def test_the_time_left_is_about_until_several_updates_are_known(
    stop_when: tuple[str, ...], n_updates: int, words: str
) -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=120, force_terminal=True, color_system=None))
    for event in _heard(stop_when, n_updates):
        console(event)
    console.close()
    hours = (400 - n_updates) // 60
    shown = output.getvalue().splitlines()
    assert any(re.search(rf"timesteps .* 17/s  {words} {hours} h .* left", line) for line in shown)


def test_without_a_terminal_progress_is_some_twenty_lines() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    for event in _heard((), 200):
        console(event)
    lines = [line.strip() for line in output.getvalue().splitlines() if "/ 400,000" in line]
    assert lines[0] == "1,000 / 400,000 timesteps  17/s"
    assert len(lines) == 10


def test_a_win_is_told_in_two_lines() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    console(
        ConfirmationPlayed(
            timesteps=64,
            deterministic=False,
            episodes=100,
            mean_reward=1.5,
            std_reward=0.25,
            success_rate=0.97,
            mean_length=30,
            seconds=1,
            is_reached=True,
        )
    )
    console(StopConditionMet(timesteps=64, text="stop_when.success_rate: 0.97 in 100 new episodes"))
    assert [line.strip() for line in output.getvalue().splitlines()] == [
        "64   confirmation, stochastic: 97% of 100 new episodes, 95% interval 92 to 99%; reached",
        "64   the run ends here: stop_when.success_rate: 0.97 in 100 new episodes",
    ]


def test_what_takes_long_is_one_line_without_a_bar() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    for seconds in (2.0, 3.0):
        console(StillWorking(timesteps=8, text="saving checkpoint 8", seconds=seconds))
    console(StillWorking(text="opening the Lake", seconds=2.0))
    assert output.getvalue().splitlines() == ["saving checkpoint 8 …", "opening the Lake …"]


def test_milestones_and_hints_are_lines_when_they_happen() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    for at, name in ((8, "one"), (9, "two")):
        console(MilestoneReached(timesteps=at, kind="reward_term", name=name, text=name, hours=0.0))
        assert output.getvalue().splitlines()[-1].strip() == f"{at}   milestone: {name}"
    console(
        BaselinePlayed(
            timesteps=0, episodes=9, mean_reward=1, std_reward=0, mean_length=9, seconds=1
        )
    )
    told = "0   to compare with, random actions: reward 1.00 in 9 episodes"
    assert output.getvalue().splitlines()[-1].strip() == told
    console(HintGiven(timesteps=16, name="x", text="lower [gamma]", key="algorithm.gamma"))
    assert output.getvalue().splitlines()[-1].strip() == "16   hint: lower [gamma]"


def test_a_forecast_is_a_line_only_once_it_is_passed() -> None:
    output = StringIO()
    console = RunConsole(Console(file=output, width=200))
    for share in (0.8, 1.0):
        console(
            PlanPassed(
                timesteps=8,
                resource="ram",
                share=share,
                used_bytes=9,
                planned_bytes=10,
                text=f"{share}",
            )
        )
    assert output.getvalue().split() == ["8", "1.0"]


LONG = (
    Begun(
        run="x",
        algorithm="ppo",
        total_timesteps=60_000,
        device="cpu",
        precision="bf16",
        stop_when=("a success rate of 0.95 in 2 evaluations in a row and in 100 new episodes",),
    ),
    MilestoneReached(
        timesteps=32,
        kind="reward_term",
        name="damage_dealt",
        text="reward term damage_dealt earned for the first time",
        hours=0.0,
    ),
    Evaluated(
        timesteps=10_240,
        policy_timesteps=10_240,
        episodes=20,
        mean_reward=-0.99,
        std_reward=3.87,
        success_rate=0.35,
        mean_length=156,
        seconds=1,
        is_best=True,
    ),
)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_words_are_whole_on_a_terminal_of_any_width(width: int) -> None:
    def printed(console: Console) -> str:
        told = RunConsole(console)
        told.watch = "game-rl watch runs/duel --open"
        for event in LONG:
            told(event)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    whole = printed(Console(file=StringIO(), width=width))  # no terminal: a line each
    shown = printed(Console(file=StringIO(), width=width, force_terminal=True, color_system=None))
    assert shown.split() == whole.split()
    assert all(len(line) <= width for line in shown.splitlines())
    assert len(whole.splitlines()) == 5
    assert len(shown.splitlines()) == {60: 8, 80: 7, 200: 5}[width]
