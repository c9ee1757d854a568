"""The paragraphs with which a report begins, against what the events say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.events import BaselinePlayed, Begun, Ended, Evaluated, Event, StopConditionMet
from game_rl.games.definition import GameDefinition, load_game
from game_rl.viewer.run_story import run_story
from game_rl.viewer.shown_runs import ShownRun, read_run
from tests.experiments.compare.fake_runs import write_run

BEGUN = Begun(
    run="0" * 32, algorithm="ppo", total_timesteps=900, frame_skip=8, device="cpu", precision="f32"
)


@pytest.fixture
def run(tmp_path: Path) -> ShownRun:
    return read_run(write_run(tmp_path / "run", seed=0, final=None).root)


@pytest.fixture(scope="module")
def duel() -> GameDefinition:
    return load_game("duel").definition


def story(run: ShownRun, definition: GameDefinition | None, events: Sequence[Event]) -> str:
    """The paragraphs in a line each, with ordinary spaces."""
    found = run_story(replace(run, events=events, is_training=False), run.config, definition)
    return "\n".join(found).replace("\u00a0", " ")


def evaluated(
    timesteps: int, rate: float | None, *, is_best: bool = False, is_final: bool = False
) -> Evaluated:
    return Evaluated(
        timesteps=timesteps, policy_timesteps=timesteps, episodes=20, mean_reward=timesteps / 100,
        std_reward=1, success_rate=rate, mean_length=5, seconds=1, is_best=is_best,
        is_final=is_final,
    )  # fmt: skip


def test_it_says_what_the_game_is_and_what_success_means(
    run: ShownRun, duel: GameDefinition
) -> None:
    text = story(run, duel, [])
    for part in (
        "Duel is a game for the Game Boy.",
        "the screen at half size in shades of grey",
        "every 8 frames (0.13 s) it takes one of 9 actions: idle, left,",
        "It is rewarded for damage_dealt, round_won and fight_won, and penalised for damage_taken,",
        "An episode is a success when fight_result is 1.",
        "The training has not started.",
    ):
        assert part in text
    assert "defines no success" in story(run, duel.model_copy(update={"success": None}), [])
    assert "It plays " in story(run, None, [])


def test_it_says_how_the_training_went(run: ShownRun) -> None:
    events: list[Event] = [
        BEGUN,
        BaselinePlayed(
            episodes=5, mean_reward=-1.5, std_reward=0, success_rate=0.2, mean_length=1, seconds=1
        ),
        evaluated(100, 0.0),
        evaluated(200, 0.25),
        evaluated(300, 0.75, is_best=True),
        evaluated(400, 0.5),
        evaluated(300, 0.8, is_final=True),
        Ended(timesteps=400, reason="completed", exit_code=0),
    ]
    text = story(run, None, events)
    for part in (
        "PPO learned for 400 timesteps, 54 s of the game, in ",
        "Untrained policies get 20 % success and a mean reward of -1.50 (random actions).",
        "The first evaluation, at timestep 100, found 0 % success and a mean reward of 1.00; the "
        "best, at timestep 300, 75 % success and a mean reward of 3.00; the last 50 % success and "
        "a mean reward of 4.00. The first success came at timestep 200.",
        "It completed all of its 400 timesteps.",
        # Wilson's interval of 16 of 20
        "20 episodes that were held out, the best policy, that of timestep 300, took its most "
        "probable actions and had 80 % success (95 % interval 58–92 %) and a mean reward of 3.00.",
    ):
        assert part in text


def test_without_success_the_interval_is_that_of_the_reward(run: ShownRun) -> None:
    text = story(run, None, [BEGUN, evaluated(400, None, is_final=True)])
    assert "had a mean reward of 4.00 (95 % interval 3.55 to 4.45)." in text
    assert "success" not in text


def test_a_final_evaluation_with_sampled_actions_says_so(run: ShownRun) -> None:
    final = evaluated(400, None, is_final=True).model_copy(update={"deterministic": False})
    assert "took sampled actions and had a mean reward" in story(run, None, [BEGUN, final])


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (
            [StopConditionMet(timesteps=400, text="0.95 reached")],
            "because a condition of stop_when was met: 0.95 reached.",
        ),
        ([Ended(reason="until", exit_code=0)], "It is paused at timestep 400 of 900"),
        ([Ended(reason="stopped", exit_code=1, text="Ctrl-C")], "at timestep 400 of 900: Ctrl-C."),
        ([Ended(reason="failed", exit_code=1, text="no disk")], "It failed at timestep 400 of 900"),
        ([], "Its process was killed at timestep 400 of 900"),
    ],
)
def test_it_says_why_the_run_ended(run: ShownRun, events: list[Event], words: str) -> None:
    if isinstance(next(iter(events), None), StopConditionMet):
        events = [*events, Ended(reason="completed", exit_code=0)]
    assert words in story(run, None, [BEGUN, evaluated(400, 0.5), *events])
