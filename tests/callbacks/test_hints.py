"""Hints while a run trains: when they come, and how often."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from game_rl.callbacks.hints import HintsCallback, hint_settings, truncating_condition
from game_rl.config.loader import load_config
from game_rl.events import CurvesRecorded, Event, HintGiven
from game_rl.events.event_log import EventFile, EventLog, read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from tests.callbacks.test_milestones import play, resumed
from tests.envs.example import fake_game
from tests.episodes.test_episode_logging import add, make_logger
from tests.events.test_training_hints import SETTINGS as LONG

SETTINGS = replace(LONG, total_timesteps=1_000)

STUCK = {"game/stuck/episodes": 0.5, "game/stuck/timesteps": 300.0}


def train(
    log: EventLog,
    run_dir: RunDir,
    values: dict[str, float],
    *,
    since: int = 0,
    showing: Callable[[str], int | None] = lambda _: None,
) -> Any:
    """Train from a timestep to 1,000, with a curve point after each 20 timesteps."""
    callback = HintsCallback(log, run_dir, SETTINGS, showing=showing)
    with log.heard_by(callback.hear):
        model = play(callback, [], first_timesteps=since)
        for timesteps in range(since + 20, 1_001, 20):
            model.num_timesteps = callback.num_timesteps = timesteps
            callback.on_rollout_end()
            log.emit(CurvesRecorded(timesteps=timesteps, values=values))
            callback.on_rollout_start()
        callback.on_training_end()
    return callback


def hints(events: list[Event]) -> list[tuple[int, str]]:
    return [(event.timesteps, event.name) for event in events if isinstance(event, HintGiven)]


def test_a_hint_is_given_once_and_once_more_half_a_run_later(run_dir: RunDir) -> None:
    heard: list[Event] = []
    train(EventLog(listeners=[heard.append]), run_dir, STUCK)
    assert hints(heard) == [(100, "episodes_stuck"), (600, "episodes_stuck")]


def test_a_run_without_anything_to_say_is_silent(run_dir: RunDir) -> None:
    heard: list[Event] = []
    train(EventLog(listeners=[heard.append]), run_dir, {"game/stuck/episodes": 0.0})
    assert not hints(heard)


@pytest.mark.parametrize(
    ("values", "curve"),
    [
        (STUCK, "game/stuck/timesteps"),
        ({"game/looped/heal": 0.9, "game/reward/heal": 1.0}, "game/looped/heal"),
    ],
)
def test_a_hint_of_single_episodes_names_one(
    tmp_path: Path, values: dict[str, float], curve: str
) -> None:
    heard: list[Event] = []
    run_dir, logger = RunDir(tmp_path / "my run"), make_logger(tmp_path / "episodes")
    for value in (0.0, 3.0, 1.0):
        add(logger, {curve: value})
    train(EventLog(listeners=[heard.append]), run_dir, values, showing=logger.showing)
    given = [event for event in heard if isinstance(event, HintGiven)]
    assert [event.episode for event in given] == [2, 2]
    command = f"game-rl record '{run_dir.root}' --logged 2"
    assert given[0].text.endswith(f"; to see one of these episodes: {command}")
    logger.close()


def test_a_hint_of_the_whole_run_names_no_episode(tmp_path: Path, run_dir: RunDir) -> None:
    heard: list[Event] = []
    logger = make_logger(tmp_path / "episodes")
    add(logger, {"game/stuck/timesteps": 300.0, "train/approx_kl": 99.0})
    train(
        EventLog(listeners=[heard.append]),
        run_dir,
        {"train/approx_kl": 99.0},
        showing=logger.showing,
    )
    given = [event for event in heard if isinstance(event, HintGiven)]
    assert [(event.name, event.episode) for event in given] == [("updates_too_large", None)] * 2
    assert "--logged" not in given[0].text
    logger.close()


@pytest.mark.parametrize("resumed_at", [80, 300, 700])
def test_a_resumed_run_gets_the_hints_of_one_without_a_break(
    run_dir: RunDir, resumed_at: int
) -> None:
    run_dir.root.mkdir(parents=True)
    with EventFile(run_dir.events) as file:
        log = EventLog(file)
        callback = HintsCallback(log, run_dir, SETTINGS)
        log.add_listener(callback.hear)
        model = play(callback, [])
        for timesteps in range(20, resumed_at + 1, 20):
            model.num_timesteps = callback.num_timesteps = timesteps
            callback.on_rollout_end()
            log.emit(CurvesRecorded(timesteps=timesteps, values=STUCK))
            callback.on_rollout_start()
        n_bytes = log.n_bytes()
        log.emit(HintGiven(timesteps=990, name="lost", text="by a kill", key="gamma"))
        log.emit(resumed(resumed_at, n_bytes))
        train(EventLog(file), run_dir, STUCK, since=resumed_at)
    assert hints(read_events(run_dir)) == [(100, "episodes_stuck"), (600, "episodes_stuck")]


def test_the_settings_are_those_of_the_run() -> None:
    config = load_config("configs/duel_ppo.yaml", ["algorithm.reward.clip=1"])
    settings = hint_settings(config, load_game(config.game))
    assert settings.total_timesteps == config.total_timesteps
    assert (settings.n_actions, settings.value_weight) == (9, 0.5)
    assert settings.scales_rewards
    assert settings.has_endings
    pqn = load_config("configs/duel_pqn.yaml")
    assert hint_settings(pqn, load_game(pqn.game)).value_weight is None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "`stuck: {no_reward_for: 256}` in `endings`"),
        ({"place": ["x"]}, "`stuck: {same_place_for: 256}` in `endings`"),
        (
            {
                "endings": {
                    "over": {"variable": "result", "equals": 1},
                    "idle": {"no_reward_for": 900},
                }
            },
            "a lower `no_reward_for` in `endings: idle`, which is 900 now",
        ),
    ],
)
def test_the_condition_that_would_truncate_is_the_games_own(
    changes: dict[str, Any], text: str
) -> None:
    assert truncating_condition(fake_game(**changes).definition) == text
