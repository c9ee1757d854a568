"""A clip of a recorded episode, such as one that a person has played."""

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from game_rl.emulator.emulator import FRAMES_PER_SECOND, Emulator, RecordingEmulator, picture_frames
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.game_check.recorded_episode import (
    RecordedEpisode,
    episode_config,
    recorded_timesteps,
    replay_fault,
)
from game_rl.games.definition import Game
from game_rl.playback.clip import clip_writer, save_clip
from game_rl.playback.shown_episode import (
    OverlayItem,
    ShownEpisode,
    ShownTimestep,
    hold_pictures,
    in_a_row,
)


@dataclass
class PlayedClip:
    """A clip of a recorded episode that is played again; what follows its end is left out.

    Attributes:
        file: the clip.
        timesteps: timesteps that are shown.
        reward: what the game's reward terms have earned.
        ending: name of the ending; empty if the episode has not ended.
        success: None if it has not ended, or the game has no success.
        fault: how it differs from what the record says; empty if it does not.
    """

    file: Path
    timesteps: int = 0
    reward: float = 0.0
    ending: str = ""
    success: bool | None = None
    fault: str = ""


def record_played(
    episode: RecordedEpisode,
    game: Game,
    output: Path,
    *,
    label: str,
    overlay: Collection[OverlayItem] = (),
) -> PlayedClip:
    """Write a clip of a recorded episode.

    Args:
        label: stands below the screen with an overlay.
        overlay: what is written below the screen; nobody says the value.

    Raises:
        UsageError: the suffix is neither .gif nor .mp4.
    """
    clip_writer(output)
    frames = picture_frames(episode_config(game, episode).frame_skip)
    made = PlayedClip(output)
    shown = ShownEpisode(label, _timesteps(episode, game, frames, made))
    made.file = save_clip(in_a_row([shown], overlay), frames / FRAMES_PER_SECOND, output)
    return made


def _timesteps(
    episode: RecordedEpisode, game: Game, frames: int, made: PlayedClip
) -> Iterator[ShownTimestep]:
    """Play the episode, and say in `made` what has come of it."""
    config = episode_config(game, episode)
    watched = RecordingEmulator(make_emulator(game), picture_frames=frames)
    with closing(make_game_env(config, game, cast("Emulator", watched), draws=True)) as env:
        env.reset(seed=episode.seed, options=dict(episode.options))
        watched.take_pictures()  # discards those of the idle frames
        action = ""
        for timestep in recorded_timesteps(episode, game):
            action = timestep.action
            _, reward, terminated, truncated, info = timestep.play(env)
            made.timesteps += 1
            made.reward += reward
            yield ShownTimestep(watched.take_pictures(), action, made.reward)
            if terminated or truncated:
                made.ending = str(info.get("ending", "locked up"))
                if "is_success" in info:
                    made.success = bool(info["is_success"])
                break
        made.fault = replay_fault(
            episode,
            game,
            frame_skip=config.frame_skip,
            timesteps=made.timesteps,
            reward=sum(env.reward_terms.values()),
            success=made.success,
        )
        hold = hold_pictures(config.frame_skip)
        yield ShownTimestep([env.render()] * hold, action, made.reward)
