"""The log of a run's episodes: opened, kept up to each checkpoint, closed."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.curves import repetition_curves
from game_rl.callbacks.evaluation import Evaluation
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_files import FileName
from game_rl.config.allowed_changes import EPISODES
from game_rl.config.output_config import EpisodesConfig
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import differences
from game_rl.envs.episode_tracker import TrackerMaker
from game_rl.episodes.button_log import EpisodeNotes, spoil_notes
from game_rl.episodes.episode_files import Cut, EpisodeWriter, played_under
from game_rl.episodes.episode_logging import EpisodeLogger, ended_episode, is_logged
from game_rl.episodes.logged_episodes import read_episodes_of
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import Saved
from game_rl.games.definition import Game
from game_rl.playback.trained_run import TrainedRun
from game_rl.training.extension import Extension, RunParts

_CHANGED = "the game or the env's settings changed in the middle of it, at a resume"
_MB = 10**6


class EpisodeLogCallback(BaseCallback):
    """Logs the episodes of the training; an ordinary vec step costs it one look at the dones."""

    def __init__(self, logger: EpisodeLogger) -> None:
        super().__init__()
        self._log = logger

    def _on_step(self) -> bool:
        dones = self.locals["dones"]
        if dones.any():
            infos = self.locals["infos"]
            for env in np.flatnonzero(dones).tolist():
                if is_logged(infos[env]):
                    self._log.add(
                        ended_episode(env, infos[env]),
                        timesteps=self.num_timesteps,
                        kind="training",
                        deterministic=False,
                        values=repetition_curves(infos[env]),
                    )
        return True

    def _on_rollout_end(self) -> None:
        self._log.write_if_due()


class EpisodesExtension(Extension):
    """Logs the episodes of the training and of the evaluations during it, also for hints."""

    def __init__(self, parts: RunParts, logger: EpisodeLogger) -> None:
        self._parts = parts
        self._logger = logger

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Make the log's extension; None if the run logs no episodes, or plays none yet."""
        settings = parts.config.episodes
        checkpoint = parts.checkpoint
        if settings is None or parts.is_offline:
            return None
        cut = Cut(timesteps=-1)
        if checkpoint is not None:
            state = checkpoint.state
            cut = Cut(timesteps=state.num_timesteps, evaluation_due=state.evaluation_due)
        logger = episode_logger(
            parts.run_dir, settings, parts.config, parts.game, parts.events, cut=cut
        )
        return cls(parts, logger)

    @classmethod
    def trackers(cls, config: RunConfig, *, is_training: bool) -> Sequence[TrackerMaker]:  # noqa: ARG003
        return () if config.episodes is None else (EpisodeNotes.of,)

    def callbacks(self, parts: RunParts, checkpoints: CheckpointCallback) -> Sequence[BaseCallback]:  # noqa: ARG002
        return [EpisodeLogCallback(self._logger)]

    def restored(self, *, plays_on: bool) -> None:
        checkpoint = self._parts.checkpoint
        model = self._parts.model
        if plays_on and checkpoint is not None and self._is_changed(checkpoint):
            assert model.env is not None
            model.env.env_method("call", spoil_notes, _CHANGED)

    def begin(self) -> None:
        self._logger.begin()

    def showing(self, curve: str) -> int | None:
        return self._logger.showing(curve)

    def on_played(self, played: Sequence[Evaluation], timesteps: int) -> None:
        for each in played:
            self._logger.add_evaluation(
                each.ended,
                timesteps=timesteps,
                kind="evaluation",
                deterministic=each.deterministic,
            )

    def keep(self, model: BaseAlgorithm, name: str) -> Mapping[FileName, Saved]:  # noqa: ARG002
        self._logger.sync()
        return {}

    def close(self) -> None:
        self._logger.close()

    @classmethod
    def log_final(
        cls, best: TrainedRun, config: RunConfig, evaluation: Evaluation, events: EventLog
    ) -> None:
        if config.episodes is None:
            return
        logger = episode_logger(best.run_dir, config.episodes, config, best.game, events, cut=None)
        logger.begin()
        logger.add_evaluation(
            evaluation.ended,
            timesteps=events.timesteps,
            kind="final",
            deterministic=evaluation.deterministic,
        )
        logger.sync()
        logger.close()

    def _is_changed(self, checkpoint: Checkpoint) -> bool:
        """Whether what the envs play by is another than when the checkpoint was saved."""
        parts = self._parts
        then = checkpoint.config.model_dump(mode="json")
        changed = differences(then, parts.config.model_dump(mode="json"))
        return bool(EPISODES.bound_of(changed)) or checkpoint.state.game != parts.fixed.game


def episode_logger(
    run_dir: RunDir,
    settings: EpisodesConfig,
    config: RunConfig,
    game: Game,
    events: EventLog,
    *,
    cut: Cut | None,
) -> EpisodeLogger:
    """Return a log of the run's episodes.

    Args:
        cut: what the session supersedes; None: nothing.
    """

    def open_writer() -> EpisodeWriter:
        kept = read_episodes_of(run_dir.episodes, cut=cut)
        writer = EpisodeWriter(
            run_dir.episodes,
            limit_bytes=settings.limit_mb * _MB,
            under=played_under(config, game, cut),
            next_number=1 + max(kept.rows["number"].tolist(), default=0),
        )
        writer.begin()
        return writer

    return EpisodeLogger(open_writer, events.warn)
