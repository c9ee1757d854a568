"""Playing logged episodes again, also for a clip, and whether they end as they were logged."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar, cast

from game_rl.checkpoints.run_game import changed_game_keys
from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.emulator.emulator import FRAMES_PER_SECOND, Emulator, RecordingEmulator, picture_frames
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.envs.observation import Observation
from game_rl.episodes.button_log import BY_WRAPPER, LIMIT, EpisodeLog, LoggedPlay, PlayedAgain
from game_rl.episodes.episode_files import PlayedUnder
from game_rl.episodes.logged_episodes import LoggedEpisode, LoggedEpisodes
from game_rl.errors import GameRLError, ReplayError, UsageError
from game_rl.games.definition import Game
from game_rl.playback.clip import clip_writer, save_clip
from game_rl.playback.shown_episode import (
    OverlayItem,
    ShownEpisode,
    ShownTimestep,
    hold_pictures,
    in_a_row,
    side_by_side,
)
from game_rl.system.packages import code_difference, installed_versions, version_differences

_T = TypeVar("_T")
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
    Rewards of a training that depended on what the run had visited are not compared.

    Args:
        hold: pictures for which its end stays visible.

    Raises:
        UsageError: it cannot be played again.
    """
    episode = episodes[index]
    log = episodes.log(index)
    if log.fault:
        raise UsageError(
            f"episode {episode.number:,} cannot be played again: {log.fault}; game-rl episodes "
            "lists those that can"
        )
    replay = _Replay(episode, log, game, hold, watcher)
    return ShownEpisode(f"#{episode.number} {episode.start_state}", replay.timesteps())


def play_again(
    episodes: LoggedEpisodes, index: int, game: Game, *, trackers: Sequence[TrackerMaker] = ()
) -> Iterator[PlayedAgain]:
    """Play an episode again for what follows it, and yield each timestep.

    Each timestep draws its last frame.

    Raises:
        ReplayError: it does not give the logged length, rewards and ending.
    """
    return _Replay(episodes[index], episodes.log(index), game, 0, None, trackers).steps()


class _Replay:
    def __init__(
        self,
        episode: LoggedEpisode,
        log: EpisodeLog,
        game: Game,
        hold: int,
        watcher: Watcher | None,
        trackers: Sequence[TrackerMaker] = (),
    ) -> None:
        self._episode = episode
        self._log = log
        self._game = game
        self._hold = hold
        self._watcher = watcher
        self._trackers = trackers
        self._config = config_of(episode).env

    def timesteps(self) -> Iterator[ShownTimestep]:
        frames = picture_frames(self._config.frame_skip)
        watched = RecordingEmulator(make_emulator(self._game), picture_frames=frames)
        emulator = cast("Emulator", watched)
        with closing(self._failing_as_other(lambda: self._env(emulator))) as env:
            yield from self._play(env, watched)

    def steps(self) -> Iterator[PlayedAgain]:
        with closing(self._failing_as_other(lambda: self._env(make_emulator(self._game)))) as env:
            play = LoggedPlay(env, self._log)
            self._failing_as_other(play.begin)
            steps = play.steps()
            while (step := self._failing_as_other(lambda: next(steps, None))) is not None:
                yield step
            self._check(play)

    def _env(self, emulator: Emulator) -> GameBoyEnv:
        try:
            return make_game_env(
                self._config, self._game, emulator, draws=True, trackers=self._trackers
            )
        except BaseException:
            emulator.close()
            raise

    def _play(self, env: GameBoyEnv, watched: RecordingEmulator) -> Iterator[ShownTimestep]:
        play = LoggedPlay(env, self._log)
        watcher = self._watcher
        value = None
        observation = self._failing_as_other(play.begin)
        watched.take_pictures()  # discards those of the idle frames
        if watcher is not None:
            watcher.begin(observation)
        names = tuple(self._game.action_names)
        steps = play.steps()
        action = ""
        while True:
            value = None if watcher is None else watcher.value()
            step = self._failing_as_other(lambda: next(steps, None))
            if step is None:
                break
            action = names[step.action]
            if watcher is not None:
                watcher.see(step.observation)
            yield ShownTimestep(watched.take_pictures(), action, step.reward, value)
        self._check(play)
        yield ShownTimestep([env.render()] * self._hold, action, play.reward, value)

    def _check(self, play: LoggedPlay) -> None:
        """Raise ReplayError if the episode has not ended as it was logged."""
        episode = self._episode
        is_wrapped = bool(self._config.wrappers)
        found: dict[str, tuple[object, object]] = {
            "length": (self._log.timesteps, self._log.timesteps - play.left)
        }
        terms = self._game.rewards_of(self._config).values()
        has_counted = episode.kind == "training" and any(term.per_run for term in terms)
        if not has_counted:  # nobody knows what the run had visited by then
            found["reward of the game"] = (episode.game_reward, play.game_reward)
        by_wrapper = is_wrapped and not play.is_over and episode.ending in (BY_WRAPPER, LIMIT)
        if not by_wrapper:
            found |= {
                "ending": (episode.ending, play.ending or "none"),
                "success": (episode.success, play.success),
            }
        if not (is_wrapped or has_counted):
            found["reward"] = (episode.reward, play.reward)
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
        found = replay_differences(self._episode.under, self._game, self._config.observation.parts)
        since = "since then " + "; ".join(found)
        if not found:
            since = "versions, ROM and game file are unchanged: has the reward class changed?"
        return ReplayError(
            f"episode {self._episode.number:,} does not replay as it was logged: {how}; {since}; "
            "nothing was written. Use the versions and files that it was logged with"
        )


def replay_differences(under: PlayedUnder, game: Game, parts: Collection[str]) -> list[str]:
    """Name what differs from when episodes were logged, as far as that can make another play.

    Args:
        parts: names of the parts that observations have.
    """
    found = list(version_differences(under.versions, installed_versions()))
    if under.rom_sha256 != game.rom.sha256:
        found.append(
            f"the ROM had sha256 {under.rom_sha256[:_SHOWN]}…, {game.rom.path} has "
            f"{game.rom.sha256[:_SHOWN]}…"
        )
    found += changed_game_keys(under.game, game, parts)
    code = code_difference(under.versions, under.source_sha256)
    return [*found, *([code] if code else [])]


def record_logged(
    episodes: LoggedEpisodes,
    game: Game,
    output: Path,
    *,
    overlay: Collection[OverlayItem] = (),
    grid: bool = False,
    make_watcher: Callable[[], Watcher] | None = None,
) -> Path:
    """Write a clip of these episodes, which are played again, and return its path.

    Args:
        overlay: what is written below the screen.
        grid: whether the episodes are side by side.
        make_watcher: makes what says the values; None if nothing does.

    Raises:
        UsageError: an episode cannot be played again, or the suffix is neither .gif nor .mp4.
        ReplayError: an episode does not play as it was logged. Nothing is written.
    """
    clip_writer(output)
    skips = {config_of(episode).env.frame_skip for episode in episodes}
    if len(skips) > 1:
        raise UsageError(
            "these episodes have timesteps of different lengths "
            f"({', '.join(map(str, sorted(skips)))} frames); record them in clips of their own"
        )
    frame_skip = skips.pop()
    watcher = None if make_watcher is None else make_watcher()
    hold = hold_pictures(frame_skip)

    def shown() -> Iterator[ShownEpisode]:
        for index in range(len(episodes)):
            yield replayed(episodes, index, game, hold=hold, watcher=watcher)

    pictures = (side_by_side if grid else in_a_row)(shown(), overlay)
    return save_clip(pictures, picture_frames(frame_skip) / FRAMES_PER_SECOND, output)
