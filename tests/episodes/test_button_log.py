"""What an env notes of its episodes is enough to play each again, wherever its notes came from."""

from contextlib import closing
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.episode_tracker import RunningEpisode
from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.episodes.button_log import (
    BEGAN_UNNOTED,
    EPISODE_LOG,
    EpisodeLog,
    EpisodeNotes,
    LoggedPlay,
)
from tests.emulator import fake_emulator as fake
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game

SETTINGS: dict[str, Any] = {"max_idle_frames": 7, "max_episode_timesteps": 12}
STATES = FAKE_GAME_YAML["start_states"]
CHANGED = {
    "write": {"health": 3},
    "hold_values": {"level": 2},
}
GAMES = (
    fake_game(),
    fake_game(start_states=STATES | {"level_1": STATES["level_1"] | CHANGED}),
    fake_game(step={"until": {"variable": "x", "at_least": 90}, "at_most_frames": 9}),
)
plays = st.lists(st.integers(0, 3), min_size=1, max_size=60)
settings = st.fixed_dictionaries({"sticky_actions": st.sampled_from([0.0, 0.3, 0.9])})


def logging_env(**made: Any) -> GameBoyEnv:
    return fake_env(**made, trackers=[EpisodeNotes.of])


def ended(
    env: GameBoyEnv, actions: list[int], seed: int, *, saved_at: int | None = None, **again: Any
) -> list[tuple[EpisodeLog, float, str, object, list[bytes]]]:
    """Each episode that ended: its log, and what an onlooker has seen of it."""
    found, seen, total = [], [env.reset(seed=seed)[0].tobytes()], np.float32(0)
    for number, action in enumerate(actions):
        if number == saved_at:
            state = env.save_state().model_dump_json()
            env.close()
            env = logging_env(**again)
            env.load_state(EnvState.model_validate_json(state))
        observation, reward, terminated, truncated, info = env.step(np.int64(action))
        seen.append(observation.tobytes())
        total += np.float32(reward)
        if terminated or truncated:
            ending = info.get("ending", "(limit)")
            found.append((info[EPISODE_LOG], float(total), ending, info.get("is_success"), seen))
            seen, total = [env.reset()[0].tobytes()], np.float32(0)
    env.close()
    return found


@given(
    plays,
    settings,
    st.sampled_from(GAMES),
    st.integers(0, 2**31 - 1),
    st.none() | st.integers(0, 59),
)
def test_an_episode_is_played_again_from_its_log_also_if_a_checkpoint_lay_in_it(
    actions: list[int], chosen: dict[str, Any], game: Any, seed: int, saved_at: int | None
) -> None:
    made = {"game": game, **SETTINGS, **chosen}
    for log, reward, ending, success, seen in ended(
        logging_env(**made), actions, seed, saved_at=saved_at, **made
    ):
        with closing(fake_env(**made)) as env:
            play = LoggedPlay(env, log)
            again = [play.begin().tobytes(), *(s.observation.tobytes() for s in play.steps())]
            assert again == seen
            assert (play.reward, play.ending, play.success) == (reward, ending, success)
            assert (play.game_reward, play.left) == (log.game_reward, 0)
            assert (log.fault, log.timesteps) == ("", len(seen) - 1)


@given(plays, st.integers(0, 2**31 - 1))
def test_an_env_that_logs_plays_as_one_that_does_not(actions: list[int], seed: int) -> None:
    def played(*, logs: bool) -> list[Any]:
        make = logging_env if logs else fake_env
        with closing(make(sticky_actions=0.4, **SETTINGS)) as env:
            seen: list[Any] = [env.reset(seed=seed)[0].tobytes()]
            for action in actions:
                observation, *rest, info = env.step(np.int64(action))
                info.pop(EPISODE_LOG, None)
                seen.append((observation.tobytes(), rest, info))
                if rest[1] or rest[2]:
                    seen.append(env.reset()[0].tobytes())
            state = env.save_state()
            state.trackers.pop("notes", None)
            return [*seen, state]

    assert played(logs=True) == played(logs=False)


def test_an_episode_that_began_before_a_checkpoint_without_notes_says_so() -> None:
    with closing(fake_env(**SETTINGS)) as env:
        env.reset(seed=0)
        env.step(0)
        state = env.save_state()
    assert "notes" not in state.model_dump_json()  # a checkpoint of such a run is as it was
    with closing(logging_env(**SETTINGS)) as env:
        env.load_state(state)
        infos = [env.step(0)[4] for _ in range(11)]
        assert infos[-1][EPISODE_LOG].fault == BEGAN_UNNOTED
        env.reset()
        infos = [env.step(0)[4] for _ in range(12)]
        assert infos[-1][EPISODE_LOG].fault == ""


def logged(notes: EpisodeNotes, episode: RunningEpisode) -> EpisodeLog:
    log: EpisodeLog = notes.summary(episode)[EPISODE_LOG]
    return log


def test_the_first_reason_why_an_episode_cannot_be_played_again_counts_until_the_next() -> None:
    notes = EpisodeNotes(4, sticky=False)
    episode = RunningEpisode("level_1", idle_frames=1, game_seed=2, reward_terms={"a": 0.5})
    notes.reset(episode)
    episode.played = 3
    episode.chosen = 3
    notes.step(episode)
    notes.spoil("a")
    notes.spoil("b")
    assert logged(notes, episode) == EpisodeLog("level_1", 1, 2, 1, b"\x03", b"", 0.5, "a")
    notes.reset(RunningEpisode())
    assert logged(notes, RunningEpisode("level_1")).fault == ""


def test_a_game_with_many_actions_has_two_bytes_for_each() -> None:
    notes = EpisodeNotes(300, sticky=True)
    notes.reset(RunningEpisode())
    notes.step(RunningEpisode(played=299, chosen=7))
    other = EpisodeNotes(300, sticky=True)
    other.load_state(notes.save_state(), RunningEpisode())
    other.step(RunningEpisode(played=1, chosen=256))
    log = logged(other, RunningEpisode("level_1"))
    assert np.frombuffer(log.played, np.uint16).tolist() == [299, 1]
    assert np.frombuffer(log.chosen, np.uint16).tolist() == [7, 256]


def test_the_seed_of_the_game_can_be_chosen() -> None:
    with closing(fake_env(**SETTINGS)) as env:
        options = {"start_state": "level_1", "idle_frames": 0, "game_seed": 77}
        env.reset(seed=0, options=options)
        assert env.read_variables()["seed"] == 77
        assert env.emulator.read(fake.SEED) == 77
