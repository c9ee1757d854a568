"""The work of every peer, and its command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

FRAME_SKIP = 4
FRAME_STACK = 4
MAX_EPISODE_TIMESTEPS = 1_000
MAX_IDLE_FRAMES = 30


@dataclass(frozen=True, kw_only=True)
class Work:
    """A training of `updates` updates; the names are those of SB3.

    Attributes:
        size: "full" (144 x 160) or "half".
        colour: "grey" or "rgb".
        device: "cpu", "cuda" or "auto".
    """

    n_envs: int = 8
    n_steps: int = 128
    batch_size: int = 256
    n_epochs: int = 4
    size: str = "half"
    colour: str = "grey"
    device: str = "cpu"
    updates: int = 8

    @property
    def rollout_timesteps(self) -> int:
        return self.n_envs * self.n_steps

    @property
    def total_timesteps(self) -> int:
        return self.updates * self.rollout_timesteps

    def arguments(self) -> list[str]:
        """Return the command line for `parse`."""
        return [
            word
            for field in fields(self)
            for word in (_option(field.name), str(getattr(self, field.name)))
        ]

    @classmethod
    def parse(cls, parser: argparse.ArgumentParser) -> tuple[Self, argparse.Namespace]:
        """Parse this process's command line: the work, and the other options of `parser`."""
        for field in fields(cls):
            assert field.default is not None
            parser.add_argument(
                _option(field.name), type=type(field.default), default=field.default
            )
        found = parser.parse_args()
        return cls(**{field.name: getattr(found, field.name) for field in fields(cls)}), found

    def env_kwargs(self) -> dict[str, str | int]:
        """Return the arguments of `make_duel`, the environment of the peers."""
        return {
            "size": self.size,
            "colour": self.colour,
            "frame_skip": FRAME_SKIP,
            "max_idle_frames": MAX_IDLE_FRAMES,
            "max_episode_timesteps": MAX_EPISODE_TIMESTEPS,
        }

    def overrides(self) -> list[str]:
        """Return the values for our `game-rl train --set`."""
        values = {
            "device": self.device,
            "total_timesteps": self.total_timesteps,
            "env.n_envs": self.n_envs,
            "env.frame_skip": FRAME_SKIP,
            "env.frame_stack": FRAME_STACK,
            "env.max_episode_timesteps": MAX_EPISODE_TIMESTEPS,
            "env.max_idle_frames": MAX_IDLE_FRAMES,
            "env.observation.size": self.size,
            "env.observation.colour": self.colour,
            "algorithm.n_steps": self.n_steps,
            "algorithm.batch_size": self.batch_size,
            "algorithm.n_epochs": self.n_epochs,
        }
        return [f"{key}={value}" for key, value in values.items()]


def set_words(overrides: Sequence[str]) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
