"""The live file of a run: made for a session, written while somebody watches, removed."""

from collections.abc import Sequence
from typing import Self

from stable_baselines3.common.callbacks import BaseCallback

from game_rl.callbacks.checkpoint_callback import CheckpointCallback
from game_rl.callbacks.live_callback import LiveCallback
from game_rl.live.live_slots import make_live_layout
from game_rl.live.live_writer import LiveFile
from game_rl.training.extensions import Extension, RunParts
from game_rl.vec_env.live_parts import LiveParts


class LiveExtension(Extension):
    """Shows what the training's agents do; see `envs.live_file`."""

    def __init__(self, live: LiveFile, envs: LiveParts) -> None:
        self._live, self._envs = live, envs

    @classmethod
    def of(cls, parts: RunParts) -> Self | None:
        """Make the live file; None if nobody can watch, or if the folder refuses the file."""
        path, config = parts.run_dir.live_frames, parts.config
        try:
            path.unlink(missing_ok=True)  # of a session that was killed
            if not config.live.fps or parts.is_offline:
                return None
            identity = parts.run_dir.identity_file
            layout = make_live_layout(
                parts.game,
                parts.observation_format,
                run_id=parts.run_dir.identity().id if identity.exists() else "",
                n_envs=config.env.n_envs,
                fps=config.live.fps,
                has_probabilities=config.algorithm.draws_actions,
            )
            live = LiveFile(path, layout)
        except OSError as error:
            parts.events.warn(f"the training cannot be watched: {path}: {error.strerror}")
            return None
        assert parts.model.env is not None
        return cls(live, LiveParts(parts.model.env))

    def callbacks(
        self,
        parts: RunParts,  # noqa: ARG002
        checkpoints: CheckpointCallback,  # noqa: ARG002
    ) -> Sequence[BaseCallback]:
        return (LiveCallback(self._live, self._envs),)

    def begin(self) -> None:
        self._envs.show_in(self._live.path, self._live.layout)

    def close(self) -> None:
        self._live.close()
