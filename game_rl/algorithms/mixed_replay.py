"""Batches that mix a run's own timesteps with rows of other runs' Lakes."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from game_rl.buffers.pond import column
from game_rl.buffers.replay_buffer import PackedReplayBuffer, replay_samples
from game_rl.buffers.unpacking import observation_tensors
from game_rl.config.learn_from import LearnFromConfig, OwnShare
from game_rl.events import RowsDrawn
from game_rl.lake.lake_pool import Drawn, LakePool
from game_rl.vec_env.frame_stacks import each_part

SHOWN_CHARACTERS = 8  # of a stream's name, in the name of its curve
MOST_CURVES = 16  # of streams: more are unreadable, and each costs time with every batch


class Curves(Protocol):
    """The part of SB3's logger that it uses."""

    def record_mean(self, key: str, value: float | None) -> None: ...


class MixedReplay:
    """Draws batches from a run's own replay and from the Lakes of a pool.

    For an own share of s, a batch of B timesteps has floor(B s) of the run's own, and one more with
    probability B s - floor(B s), so that B s are expected.

    Args:
        own_share: returns s at a timestep, counted over all envs.
        rng: draws the number of own timesteps, and the rows of the Lakes.
        tell: called by `load_state` with a sentence for each Lake that the state does not have.

    Attributes:
        n_own_drawn: own timesteps in all batches since the run's first timestep.
        n_of_streams: rows of each stream in all batches since the run's first timestep.
        n_offline: rows of each stream in all batches before the run's first timestep.
    """

    def __init__(
        self,
        pool: LakePool,
        own_share: Callable[[int], float],
        *,
        n_step: int,
        gamma: float,
        rng: np.random.Generator,
        tell: Callable[[str], None],
    ) -> None:
        self.pool = pool
        self._own_share = own_share
        self._n_step = n_step
        self._gamma = gamma
        self._rng = rng
        self._tell = tell
        self.n_own_drawn = 0
        self.n_of_streams: dict[str, int] = {}
        self.n_offline: dict[str, int] = {}

    @property
    def n_drawn(self) -> int:
        """Timesteps in all batches since the run's first timestep."""
        return self.n_own_drawn + sum(self.n_of_streams.values())

    def is_ready(self) -> bool:
        """Whether the Lakes have rows to draw; looks for new rows first if Lakes are followed."""
        self.pool.follow()
        return self.pool.has_rows

    def n_own(self, batch_size: int, timestep: int) -> int:
        """Draw the number of own timesteps in the next batch."""
        wanted = batch_size * self._own_share(timestep)
        whole = int(wanted)
        return whole + int(self._rng.random() < wanted - whole)

    def sample(
        self, replay: PackedReplayBuffer, batch_size: int, *, timestep: int, curves: Curves
    ) -> ReplayBufferSamples:
        """Draw a batch; the own timesteps come first."""
        n_own = self.n_own(batch_size, timestep)
        curves.record_mean("learn_from/own_share", n_own / batch_size)
        self.n_own_drawn += n_own
        parts = []
        if n_own:
            parts.append(replay.sample(n_own))
            curves.record_mean("learn_from/age_own", replay.store.mean_age)
        if n_own < batch_size:
            n = batch_size - n_own
            drawn = self._drawn(n, curves, prefix="learn_from")
            self._count(drawn, self.n_of_streams)
            parts.append(self._samples(drawn, replay.device))
        return parts[0] if len(parts) == 1 else joined_samples(*parts)

    def sample_lakes(
        self, n: int, device: torch.device, curves: Curves, *, prefix: str
    ) -> ReplayBufferSamples:
        """Draw a batch from the Lakes alone."""
        drawn = self._drawn(n, curves, prefix=prefix)
        self._count(drawn, self.n_offline)
        return self._samples(drawn, device)

    def _drawn(self, n: int, curves: Curves, *, prefix: str) -> Drawn:
        drawn = self.pool.draw(self._rng, n)
        curves.record_mean(f"{prefix}/age_lakes", float(drawn.ages.mean()))
        if len(self.pool.streams) <= MOST_CURVES:
            for stream, count in self._counts(drawn).items():
                curves.record_mean(f"{prefix}/share_{stream[:SHOWN_CHARACTERS]}", count / n)
        return drawn

    def _count(self, drawn: Drawn, books: dict[str, int]) -> None:
        for stream, count in self._counts(drawn).items():
            books[stream] = books.get(stream, 0) + count

    def _counts(self, drawn: Drawn) -> dict[str, int]:
        """Return the number of rows of each stream."""
        counts = np.bincount(drawn.batch.streams, minlength=len(self.pool.streams))
        return dict(zip(self.pool.streams, counts.tolist(), strict=True))

    def _samples(self, drawn: Drawn, device: torch.device) -> ReplayBufferSamples:
        """Return the rows as PackedReplayBuffer returns its samples."""
        batch = drawn.batch
        discounts = self._gamma ** batch.steps.astype(np.float32)
        return replay_samples(
            observations=observation_tensors(batch.stacks, device),
            actions=column(batch.actions.astype(np.int64), device),
            next_observations=observation_tensors(batch.next_stacks, device),
            dones=column(batch.terminated.astype(np.float32), device),
            rewards=column(batch.rewards, device),
            discounts=column(discounts, device) if self._n_step > 1 else None,
        )

    def rows_drawn(self, timesteps: int) -> RowsDrawn:
        """Return an event with the present numbers."""
        return RowsDrawn(
            timesteps=timesteps,
            own=self.n_own_drawn,
            streams=dict(self.n_of_streams),
            offline_streams=dict(self.n_offline),
        )

    def state(self) -> dict[str, Any]:
        """Return the state for `load_state`; it is JSON-serialisable."""
        following = self.pool.following
        return {
            "rng": json.dumps(self._rng.bit_generator.state),
            "lakes": self.pool.state(),
            "n_own": self.n_own_drawn,
            "n_of_streams": dict(self.n_of_streams),
            "n_offline": dict(self.n_offline),
            "followed": {} if following is None else following.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state.

        Raises:
            LakeError: the Lakes lack rows that the state needs.
        """
        self._rng.bit_generator.state = json.loads(state["rng"])
        self.n_own_drawn = int(state.get("n_own", 0))
        self.n_of_streams = dict(state.get("n_of_streams", {}))
        self.n_offline = dict(state.get("n_offline", {}))
        if self.pool.following is not None:
            self.pool.following.load_state(state.get("followed", {}))
        self.pool.load_state(state["lakes"], self._tell)


def make_mixed_replay(
    config: LearnFromConfig,
    pool: LakePool,
    *,
    n_step: int,
    gamma: float,
    seed: int,
    tell: Callable[[str], None],
) -> MixedReplay:
    """Return the MixedReplay with which a run of this config draws from `pool` and its replay."""
    return MixedReplay(
        pool,
        _share_at(config.own_share),
        n_step=n_step,
        gamma=gamma,
        rng=np.random.default_rng(seed),
        tell=tell,
    )


def _share_at(config: float | OwnShare) -> Callable[[int], float]:
    """Return a function of timestep t: start + (end - start) min(1, t / until)."""

    def share(timestep: int) -> float:
        if not isinstance(config, OwnShare):
            return config
        return config.start + (config.end - config.start) * min(1.0, timestep / config.until)

    return share


def joined_samples(one: ReplayBufferSamples, other: ReplayBufferSamples) -> ReplayBufferSamples:
    """Return the timesteps of both, the first ones first."""
    fields: dict[str, Any] = dict.fromkeys(one._fields)
    for name, first, second in zip(one._fields, one, other, strict=True):
        if first is not None:  # as discounts may be
            fields[name] = each_part(lambda *both: torch.cat(both), first, second)
    return replay_samples(**fields)
