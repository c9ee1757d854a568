"""Playing a logged episode again, and whether it ends as it was logged."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.random import Generator

from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import differences
from game_rl.emulator.emulator import Emulator, RecordingEmulator, picture_frames
from game_rl.envs.button_log import EpisodeLog
from game_rl.envs.episode_files import BY_WRAPPER, LIMIT, LOCKED_UP, PlayedUnder
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.logged_episodes import LoggedEpisode, LoggedEpisodes
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.envs.observation import Observation
from game_rl.errors import GameRLError, ReplayError, UsageError
from game_rl.games.definition import Game
from game_rl.playback.shown_episode import ShownEpisode, ShownTimestep
from game_rl.system.versions import code_difference, installed_versions, version_differences

_T = TypeVar("_T")
_NAMED = 5  # differences of the game file that a message names
_SHOWN = 12  # characters of a digest


class Watcher(Protocol):
    """Sees the observations of an episode and says what they are worth."""

    def begin(self, observation: Observation) -> None: ...

    def value(self) -> float:
        """Return the value of the newest observation."""

    def see(self, observation: Observation) -> None: ...


def config_of(episode: LoggedEpisode) -> RunConfig:
    """Return the config under which an episode was played."""
    return saved_config(episode.under.config, source="the log of the episodes")


def replayed(
    episodes: LoggedEpisodes,
    index: int,
    game: Game,
    *,
    hold: int,
    watcher: Watcher | None = None,
) -> ShownEpisode:
    """Return an episode that is played again while it is shown.

    Going through it raises ReplayError if it does not give the logged length, rewards and ending.

    Args:
        hold: pictures for which its end stays visible.

    Raises:
        UsageError: it cannot be played again.
    """
    episode, log = episodes[index], episodes.log(index)
    if log.fault:
        raise UsageError(
            f"episode {episode.number:,} cannot be played again: {log.fault}; game-rl episodes "
            "lists those that can"
        )
    replay = _Replay(episode, log, game, hold, watcher)
    return ShownEpisode(f"#{episode.number} {episode.start_state}", replay.timesteps())


class _LoggedDraws:
    """Takes the place of the env's generator, which decides when an action is repeated."""

    repeats = False

    def random(self) -> float:
        return 0.0 if self.repeats else 1.0


class _Replay:
    def __init__(
        self,
        episode: LoggedEpisode,
        log: EpisodeLog,
        game: Game,
        hold: int,
        watcher: Watcher | None,
    ) -> None:
        self._episode, self._log, self._game = episode, log, game
        self._hold, self._watcher = hold, watcher
        self._config = config_of(episode)
        code = np.uint8 if len(log.played) == log.timesteps else np.dtype("<u2")
        self._played = np.frombuffer(log.played, code).tolist()
        chosen = np.frombuffer(log.chosen, code).tolist()
        self._chosen: list[int] = chosen or self._played
        self._reward = np.float32(0)

    def timesteps(self) -> Iterator[ShownTimestep]:
        config = self._config.env
        frames = picture_frames(config.frame_skip)
        watched = RecordingEmulator(make_emulator(self._game), picture_frames=frames)
        emulator = cast("Emulator", watched)
        with closing(self._failing_as_other(lambda: self._env(emulator))) as env:
            yield from self._play(env, watched)

    def _env(self, emulator: Emulator) -> GameBoyEnv:
        try:
            return make_game_env(self._config.env, self._game, emulator, draws=True)
        except BaseException:
            emulator.close()
            raise

    def _play(self, env: GameBoyEnv, watched: RecordingEmulator) -> Iterator[ShownTimestep]:
        log, watcher, draws = self._log, self._watcher, _LoggedDraws()
        options = {
            "start_state": log.start_state,
            "idle_frames": log.idle_frames,
            "game_seed": log.game_seed,
        }
        observation, _ = self._failing_as_other(lambda: env.reset(seed=0, options=options))
        env.np_random = cast("Generator", draws)
        watched.take_pictures()  # discards those of the idle frames
        if watcher is not None:
            watcher.begin(observation)
        names, info, terminated, is_over = tuple(self._game.action_names), {}, False, False
        value = None
        for number, (played, chosen) in enumerate(zip(self._played, self._chosen, strict=True)):
            if is_over:
                raise self._differs(f"it ends after {number:,} timesteps of the game")
            value = None if watcher is None else watcher.value()
            draws.repeats = played != chosen
            step = self._failing_as_other(lambda action=chosen: env.step(action))  # type: ignore[misc]
            observation, reward, terminated, truncated, info = step
            is_over = terminated or truncated
            self._reward += np.float32(reward)
            if watcher is not None:
                watcher.see(observation)
            total = float(self._reward)
            yield ShownTimestep(watched.take_pictures(), names[played], total, value)
        self._check(env, info, terminated=terminated, is_over=is_over)
        end = [env.render()] * self._hold
        yield ShownTimestep(end, names[self._played[-1]], float(self._reward), value)

    def _check(
        self, env: GameBoyEnv, info: dict[str, object], *, terminated: bool, is_over: bool
    ) -> None:
        """Raise ReplayError if the episode has not ended as it was logged."""
        episode = self._episode
        found: dict[str, tuple[object, object]] = {}
        is_wrapped = bool(self._config.env.wrappers)
        game_reward = sum(env.reward_terms.values())
        found["reward of the game"] = (episode.game_reward, game_reward)
        if not is_wrapped:
            found["reward"] = (episode.reward, float(self._reward))
            found["length"] = (episode.length, len(self._played))
        if is_over or not is_wrapped:
            found["ending"] = (episode.ending, _ending(info, terminated, is_over=is_over))
            if not (is_wrapped and episode.ending in (BY_WRAPPER, LIMIT)):
                found["success"] = (episode.success, info.get("is_success"))
        for name, (logged, now) in found.items():
            if logged != now:
                raise self._differs(f"its {name} is {now}, and {logged} was logged")

    def _failing_as_other(self, act: Callable[[], _T]) -> _T:
        """Turn what is a mistake elsewhere into what it is here: another game than then."""
        try:
            return act()
        except GameRLError as error:
            raise self._differs(str(error)) from error

    def _differs(self, how: str) -> ReplayError:
        found = replay_differences(self._episode.under, self._game)
        since = "since then " + "; ".join(found)
        if not found:
            since = "versions, ROM and game file are those of then: has the reward class changed?"
        return ReplayError(
            f"episode {self._episode.number:,} does not play as it was logged: {how}; {since}; "
            "nothing was written. Play it with what it was logged with"
        )


def _ending(info: dict[str, object], terminated: bool, *, is_over: bool) -> str:
    if "lock_up" in info:
        return LOCKED_UP
    if "ending" in info:
        return str(info["ending"])
    return LIMIT if is_over and not terminated else "none"


def replay_differences(under: PlayedUnder, game: Game) -> list[str]:
    """Name what differs from when episodes were logged, as far as that can make another play."""
    found = list(version_differences(under.versions, installed_versions()))
    if under.rom_sha256 != game.rom.sha256:
        found.append(
            f"the ROM had sha256 {under.rom_sha256[:_SHOWN]}…, {game.rom.path} has "
            f"{game.rom.sha256[:_SHOWN]}…"
        )
    now = game.definition.model_dump(mode="json", by_alias=True)
    changed = differences(under.game, now, "rom.path")
    found += [
        f"game.yaml's {key}: {old} -> {new}" for key, (old, new) in list(changed.items())[:_NAMED]
    ]
    if len(changed) > _NAMED:
        found.append(f"{len(changed) - _NAMED} more changes of game.yaml")
    code = code_difference(under.versions, under.source_sha256)
    return [*found, *([code] if code else [])]
