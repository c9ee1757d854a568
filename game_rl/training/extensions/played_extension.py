"""Learning from played episodes: copied into the run, played again, imitated."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self, cast

from game_rl.algorithms.cloning import Cloning
from game_rl.algorithms.demonstrations import Demonstrations, Imitating
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.learn_from import PlayedConfig, QImitateConfig
from game_rl.config.schema import RunConfig
from game_rl.errors import TrainingError, UsageError
from game_rl.events import EpisodesReplayed
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.game_check.recorded_episode import replay_fault
from game_rl.games.definition import Game
from game_rl.played.played_files import (
    PlayedFile,
    copied_files,
    copy_files,
    forget_files,
    found_files,
    played_files,
)
from game_rl.played.replayed_episode import (
    EpisodePlay,
    ReplayedEpisode,
    env_to_replay,
    replayed_episode,
)
from game_rl.seeds import seed_for
from game_rl.training.clone_phase import ClonePhase
from game_rl.training.extension import Extension, FirstPhase, RunParts
from game_rl.training.fork_parts import ForkPlan
from game_rl.training.resuming import disk_fault

_PQN_N_STEP = 10  # of Hester et al. 2018
_USUAL_MARGIN = QImitateConfig().margin


class PlayedExtension(Extension):
    """The played episodes that a run learns from."""

    opening = "playing the recorded episodes again"

    def __init__(
        self, parts: RunParts, settings: PlayedConfig, demonstrations: Demonstrations
    ) -> None:
        self._settings = settings
        self._demonstrations = demonstrations
        self._events = parts.events
        self._margin = _USUAL_MARGIN

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Play the run's episodes again, and let its algorithm learn from them.

        Raises:
            UsageError: an episode is not of this game, or cannot be played again.
            TrainingError: the disk fails.
        """
        config = parts.config
        settings = config.algorithm.played
        if settings is None or (settings.imitate is None and not parts.is_offline):
            return None
        if copied_files(parts.run_dir) is None:
            try:
                copy_files(found_files(settings), parts.run_dir)
            except OSError as error:
                raise TrainingError(disk_fault(error, parts.run_dir)) from error
        files = played_files(config, parts.game, parts.run_dir)
        episodes = [_replayed(file, parts) for file in files]
        model = parts.model
        replay = getattr(model, "replay_buffer", None)
        demonstrations = Demonstrations(
            episodes,
            parts.observation_format,
            n_actions=len(parts.game.action_names),
            gamma=model.gamma,  # type: ignore[attr-defined]  # each algorithm has one
            n_step=_PQN_N_STEP if replay is None else replay.n_step,
            seed=seed_for(config.seed, "played"),
            learned=model.reward_scaling,
        )
        if parts.checkpoint is None:
            parts.events.emit(_event(episodes))
        extension = cls(parts, settings, demonstrations)
        if settings.imitate is not None:
            timesteps = parts.fixed.schedule_timesteps
            model.imitating = Imitating(settings.imitate, demonstrations, timesteps=timesteps)
            extension._margin = model.imitating.margin
        return extension

    @classmethod
    def check_new(cls, config: RunConfig, game: Game) -> None:
        played_files(config, game, None)

    @classmethod
    def begin_anew(cls, run_dir: RunDir) -> None:
        forget_files(run_dir)

    @classmethod
    def check_fork(cls, plan: ForkPlan) -> None:
        played_files(plan.config, plan.game, plan.source.run_dir if _is_taken_over(plan) else None)

    @classmethod
    def forked(cls, plan: ForkPlan, run_dir: RunDir) -> Mapping[FileName, Saved]:
        """Copy the parent's episodes, unless the fork names others."""
        settings = plan.config.algorithm.played
        if settings is not None:
            parents = copied_files(plan.source.run_dir) if _is_taken_over(plan) else None
            if parents is None:
                copy_files(found_files(settings), run_dir)
            else:
                shutil.copytree(plan.source.run_dir.played, run_dir.played)
        return {}

    def phase(self, parts: RunParts, extensions: Sequence[Extension]) -> FirstPhase | None:
        config = parts.config
        clone = self._settings.clone
        if clone is None or not parts.is_offline:
            return None
        vf_coef = config.algorithm.vf_coef
        value_weight = 1.0 if vf_coef is None else vf_coef
        if config.algorithm.reward.normalize:  # nobody knows yet by what
            value_weight = 0.0
        cloning = Cloning(
            parts.model,
            self._demonstrations,
            clone,
            margin=self._margin,
            value_weight=value_weight,
            seed=seed_for(config.seed, "clone"),
        )
        return ClonePhase(cloning, parts, extensions, most_epochs=clone.n_epochs)

    def begin(self) -> None:
        if self._demonstrations.was_other:
            self._events.warn(
                "the played episodes give other observations or rewards than before the "
                "interruption, so the run continues with these, and not bit for bit as without "
                "the interruption: the game file, game_rl or PyBoy has changed"
            )


def _is_taken_over(plan: ForkPlan) -> bool:
    """Whether the fork learns from the episodes that its parent has."""
    ours = plan.config.algorithm.played
    theirs = plan.source.config.algorithm.played
    has_some = copied_files(plan.source.run_dir) is not None
    return has_some and ours is not None and theirs is not None and ours.episodes == theirs.episodes


def _replayed(file: PlayedFile, parts: RunParts) -> ReplayedEpisode:
    """Play an episode in a process of the evaluations, as this one has no emulator.

    Raises:
        UsageError: it does not play as it was recorded.
    """
    play = EpisodePlay(env=env_to_replay(parts.config.env), folder=Path.cwd(), file=file)
    (found,) = parts.evaluation_env.env_method("call", replayed_episode, play, indices=[0])
    episode = cast("ReplayedEpisode", found)
    fault = replay_fault(
        file.episode,
        parts.game,
        frame_skip=parts.config.env.frame_skip,
        timesteps=episode.n_timesteps,
        reward=episode.reward,
        success=episode.success,
    )
    if fault and parts.checkpoint is None:
        raise UsageError(
            f"the episode of {file.path} does not replay as it was recorded: {fault}. The game "
            "file, game_rl or PyBoy has changed since then: record it again, or take it out of "
            "algorithm.learn_from.played.episodes"
        )
    return episode


def _event(episodes: Sequence[ReplayedEpisode]) -> EpisodesReplayed:
    known = [each.success for each in episodes if each.success is not None]
    return EpisodesReplayed(
        episodes=len(episodes),
        timesteps_played=sum(each.n_timesteps for each in episodes),
        mean_reward=sum(float(each.rewards.sum()) for each in episodes) / len(episodes),
        successes=sum(known) if known else None,
        unfinished=sum(not each.ending for each in episodes),
    )
