"""Batches that are partly a run's own timesteps and partly rows of others' Lakes."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from game_rl.buffers.replay import PackedReplayBuffer
from game_rl.config.learn_from import LearnFromConfig, OwnShare
from game_rl.lake.lake_pool import Drawn, LakePool

SHOWN_CHARACTERS = 8  # of a stream's name
MOST_CURVES = 16  # of streams; more are no picture, and take time with every batch


class Curves(Protocol):
    """SB3's logger, as far as it is needed."""

    def record_mean(self, key: str, value: float | None) -> None: ...


class Mixture:
    """What a batch is made of.

    Of a batch of B timesteps, floor(B s) are own ones for a share of s, and with probability
    B s - floor(B s) one more, so that B s are expected; `rng` decides that, and which rows of the
    Lakes are drawn.

    Args:
        own_share: s, by the timesteps of all envs together.
        tell: gets what has changed in the Lakes since a checkpoint.
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
        self._n_step, self._gamma = n_step, gamma
        self._rng = rng
        self._tell = tell
        self._n_own = 0
        self._n_of_streams: dict[str, int] = {}
        self._n_offline: dict[str, int] = {}

    @property
    def n_own_drawn(self) -> int:
        """Own timesteps in all batches of the run since it plays."""
        return self._n_own

    @property
    def n_drawn(self) -> int:
        """Timesteps in these batches."""
        return self._n_own + sum(self._n_of_streams.values())

    @property
    def n_of_streams(self) -> Mapping[str, int]:
        """Rows of each stream in the batches of the run since it plays."""
        return dict(self._n_of_streams)

    @property
    def n_offline(self) -> Mapping[str, int]:
        """The same before it played."""
        return dict(self._n_offline)

    def is_ready(self) -> bool:
        """There is something to draw; see what is new, where Lakes are followed."""
        self.pool.follow()
        return self.pool.has_rows

    def n_own(self, batch_size: int, timestep: int) -> int:
        """How many of the next batch are own ones."""
        wanted = batch_size * self._own_share(timestep)
        whole = int(wanted)
        return whole + int(self._rng.random() < wanted - whole)

    def sample(
        self, replay: PackedReplayBuffer, batch_size: int, *, timestep: int, curves: Curves
    ) -> ReplayBufferSamples:
        """Own timesteps first."""
        n_own = self.n_own(batch_size, timestep)
        curves.record_mean("learn_from/own_share", n_own / batch_size)
        self._n_own += n_own
        parts = []
        if n_own:
            parts.append(replay.sample(n_own))
            curves.record_mean("learn_from/age_own", replay.pond.mean_age)
        if n_own < batch_size:
            n = batch_size - n_own
            drawn = self._drawn(n, curves, prefix="learn_from")
            self._count(drawn, self._n_of_streams)
            parts.append(self._samples(drawn, replay.device))
        return parts[0] if len(parts) == 1 else _joined(*parts)

    def sample_lakes(
        self, n: int, device: torch.device, curves: Curves, *, prefix: str
    ) -> ReplayBufferSamples:
        """Rows of the Lakes alone."""
        drawn = self._drawn(n, curves, prefix=prefix)
        self._count(drawn, self._n_offline)
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
        """Rows of each stream."""
        counts = np.bincount(drawn.batch.streams, minlength=len(self.pool.streams))
        return dict(zip(self.pool.streams, counts.tolist(), strict=True))

    def _samples(self, drawn: Drawn, device: torch.device) -> ReplayBufferSamples:
        """As PackedReplayBuffer gives them."""
        batch = drawn.batch
        discounts = self._gamma ** batch.steps.astype(np.float32)
        return ReplayBufferSamples(
            observations=torch.from_numpy(batch.stacks).to(device),
            actions=_column(batch.actions.astype(np.int64), device),
            next_observations=torch.from_numpy(batch.next_stacks).to(device),
            dones=_column(batch.terminated.astype(np.float32), device),
            rewards=_column(batch.rewards, device),
            discounts=_column(discounts, device) if self._n_step > 1 else None,
        )

    def state(self) -> dict[str, Any]:
        """What goes on from here; JSON holds it."""
        following = self.pool.following
        return {
            "rng": json.dumps(self._rng.bit_generator.state),
            "lakes": self.pool.state(),
            "n_own": self._n_own,
            "n_of_streams": dict(self._n_of_streams),
            "n_offline": dict(self._n_offline),
            "followed": {} if following is None else following.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Raise LakeError if the Lakes lack what it needs."""
        self._rng.bit_generator.state = json.loads(state["rng"])
        self._n_own = int(state.get("n_own", 0))
        self._n_of_streams = dict(state.get("n_of_streams", {}))
        self._n_offline = dict(state.get("n_offline", {}))
        if self.pool.following is not None:
            self.pool.following.load_state(state.get("followed", {}))
        self.pool.load_state(state["lakes"], self._tell)


def make_mixture(
    config: LearnFromConfig,
    pool: LakePool,
    *,
    n_step: int,
    gamma: float,
    seed: int,
    tell: Callable[[str], None],
) -> Mixture:
    """What a run of this config draws from `pool` and its own replay."""
    return Mixture(
        pool,
        _share_at(config.own_share),
        n_step=n_step,
        gamma=gamma,
        rng=np.random.default_rng(seed),
        tell=tell,
    )


def _share_at(config: float | OwnShare) -> Callable[[int], float]:
    """Start + (end - start) min(1, t / until) at timestep t."""

    def share(timestep: int) -> float:
        if not isinstance(config, OwnShare):
            return config
        return config.start + (config.end - config.start) * min(1.0, timestep / config.until)

    return share


def _joined(one: ReplayBufferSamples, other: ReplayBufferSamples) -> ReplayBufferSamples:
    pairs = zip(one, other, strict=True)
    return ReplayBufferSamples(
        *(a if a is None else torch.cat((a, b)) for a, b in pairs)  # type: ignore[arg-type]  # discounts
    )


def _column(values: NDArray[Any], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(values.reshape(-1, 1)).to(device)
