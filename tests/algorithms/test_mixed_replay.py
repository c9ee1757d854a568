"""Batches that are partly own timesteps and partly rows of Lakes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

from game_rl.algorithms.mixed_replay import MixedReplay, make_mixed_replay
from game_rl.buffers.replay_buffer import PackedReplayBuffer
from game_rl.config.learn_from import LearnFromConfig, OwnShare
from game_rl.envs.observation import ObservationFormat
from game_rl.lake.lake import Lake
from game_rl.lake.lake_pool import LakePool
from game_rl.lake.lake_reader import LakeReader
from game_rl.lake.writer import LakeWriter
from game_rl.returns import LearnedRewards
from tests.lake.plays import SCHEMA, Play, Transition
from tests.lake.test_sampler import chi_square

_GAMMA = 0.93


class Means:
    """What was recorded."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}

    def record_mean(self, key: str, value: float | None) -> None:
        assert value is not None
        self.values.setdefault(key, []).append(value)


def mixture_of(
    path: Path,
    own_share: float | OwnShare,
    *,
    n_step: int = 3,
    agents: dict[str, float] | None = None,
    learned: LearnedRewards | None = None,
) -> MixedReplay:
    reader = LakeReader(
        path,
        table_folder=path.parent,
        pins="reads",
        n_step=n_step,
        gamma=_GAMMA,
        cache_bytes=10_000,
        learned=learned,
        tell=print,
    )
    pool = LakePool([reader], agents=agents)
    pool.begin([])
    return make_mixed_replay(
        LearnFromConfig(lakes=(path,), own_share=own_share),
        pool,
        n_step=n_step,
        gamma=_GAMMA,
        seed=1,
        tell=print,
    )


def played(path: Path, n: int) -> list[Transition]:
    play = Play(SCHEMA, np.random.default_rng(0))
    with LakeWriter(Lake.create(path, SCHEMA), "a", n_envs=1) as writer:
        play.steps(writer, n)
    return play.stored[0]


def replay_of(rows: Sequence[Transition], *, n_step: int) -> PackedReplayBuffer:
    """A replay that was given the same play."""
    replay = PackedReplayBuffer(
        1_000,
        spaces.Box(0, 255, SCHEMA.observation_shape, np.uint8),
        spaces.Discrete(256),
        "cpu",
        observation_format=ObservationFormat(SCHEMA.packing, SCHEMA.frame_stack),
        n_step=n_step,
        gamma=_GAMMA,
    )
    for row in rows:
        replay.add(
            row.stack[None],
            row.next_stack[None],
            np.array([row.action]),
            np.array([row.reward], np.float32),
            np.array([row.terminated or row.truncated]),
            [{"TimeLimit.truncated": row.truncated and not row.terminated}],
        )
    return replay


@pytest.mark.parametrize("n_step", [1, 3])
def test_rows_of_a_lake_are_what_a_replay_of_the_same_play_gives_bit_for_bit(
    tmp_path: Path, n_step: int
) -> None:
    rows = played(tmp_path, 120)
    mixture, replay = mixture_of(tmp_path, 0.0, n_step=n_step), replay_of(rows, n_step=n_step)
    drawn = mixture.pool.draw(np.random.default_rng(3), 500)
    ours = mixture._samples(drawn, torch.device("cpu"))
    store: Any = replay.store
    _, slots = store.held()  # of each timestep in order, its slot
    numbers = slots[drawn.batch.numbers]
    theirs = store.batch(np.zeros_like(numbers), numbers, n_step=n_step, gamma=_GAMMA, device="cpu")
    assert isinstance(theirs.observations, torch.Tensor)
    assert isinstance(theirs.next_observations, torch.Tensor)
    assert torch.equal(ours.observations, theirs.observations)
    assert torch.equal(ours.next_observations, theirs.next_observations)
    assert torch.equal(ours.actions, theirs.actions)
    assert torch.equal(ours.rewards, theirs.rewards)
    assert torch.equal(ours.dones, theirs.terminated)
    assert (ours.discounts is None) == (n_step == 1)
    if ours.discounts is not None:
        assert torch.equal(ours.discounts, theirs.discounts)


def test_the_shares_of_a_batch_are_those_asked_and_never_off_by_one(tmp_path: Path) -> None:
    played(tmp_path, 20)
    mixture = mixture_of(tmp_path, 0.3)
    counts = [mixture.n_own(32, 0) for _ in range(4_000)]  # 9.6 are wanted
    assert set(counts) == {9, 10}
    observed = np.array([counts.count(9), counts.count(10)])
    assert abs(chi_square(observed, np.array([0.4, 0.6]))) < 5


def test_the_share_moves_in_a_straight_line(tmp_path: Path) -> None:
    played(tmp_path, 20)
    mixture = mixture_of(tmp_path, OwnShare(start=0.5, end=1.0, until=1_000))
    assert [mixture.n_own(32, t) for t in (0, 250, 500, 1_000, 5_000)] == [16, 20, 24, 32, 32]


def test_own_timesteps_come_first_and_curves_say_what_was_drawn(tmp_path: Path) -> None:
    rows = played(tmp_path, 60)
    mixture, curves = mixture_of(tmp_path, 0.25), Means()
    samples = mixture.sample(replay_of(rows, n_step=3), 16, timestep=0, curves=curves)
    assert all(len(tensor) == 16 for tensor in samples if tensor is not None)
    assert curves.values["learn_from/own_share"] == [0.25]
    assert curves.values["learn_from/share_a"] == [1.0]
    assert 0 < curves.values["learn_from/age_lakes"][0] <= 60
    assert 0 < curves.values["learn_from/age_own"][0] <= 80


def test_a_mixture_goes_on_from_its_state(tmp_path: Path) -> None:
    replay = replay_of(played(tmp_path, 60), n_step=3)
    one, other = mixture_of(tmp_path, 0.3), mixture_of(tmp_path, 0.3)
    one.sample(replay, 16, timestep=0, curves=Means())
    other.load_state(one.state())
    device = torch.device("cpu")
    drawn = [m.sample_lakes(40, device, Means(), prefix="x") for m in (one, other)]
    for a, b in zip(*drawn, strict=True):
        assert a is not None
        assert b is not None
        assert torch.equal(a, b)


def test_the_books_count_every_row_of_every_batch_and_go_on_after_a_break(tmp_path: Path) -> None:
    rows = played(tmp_path / "lake", 40)
    replay = replay_of(rows, n_step=3)
    mixture = mixture_of(tmp_path / "lake", 0.3)
    sizes = [mixture.n_own_drawn]
    for timestep in range(20):
        samples = mixture.sample(replay, 8, timestep=timestep, curves=Means())
        assert len(samples.actions) == 8
        sizes.append(mixture.n_own_drawn)
    assert mixture.n_drawn == 20 * 8
    assert set(np.diff(sizes).tolist()) == {2, 3}  # of 8 x 0.3
    again = mixture_of(tmp_path / "lake", 0.3)
    again.load_state(mixture.state())
    assert (again.n_own_drawn, again.n_drawn) == (mixture.n_own_drawn, 160)


def test_a_state_of_the_last_release_has_no_books(tmp_path: Path) -> None:
    played(tmp_path / "lake", 40)
    mixture = mixture_of(tmp_path / "lake", 0.3)
    state = {key: mixture.state()[key] for key in ("rng", "lakes")}
    mixture.load_state(state)
    assert mixture.n_drawn == 0


@pytest.mark.parametrize("agents", [None, {"a": 1.0, "b": 3.0, "c": 0.5}])
def test_rows_are_counted_by_stream_and_their_shares_are_those_asked(
    tmp_path: Path, agents: dict[str, float] | None
) -> None:
    lengths = {"a": 30, "b": 60, "c": 90}
    for number, (stream, length) in enumerate(lengths.items()):
        play = Play(SCHEMA, np.random.default_rng(number))
        with LakeWriter(Lake.create(tmp_path / "lake", SCHEMA), stream, n_envs=1) as writer:
            play.steps(writer, length)
    replay = replay_of(played(tmp_path / "own", 40), n_step=3)
    mixture, drawn = mixture_of(tmp_path / "lake", 0.25, agents=agents), np.zeros(3, np.int64)
    device = torch.device("cpu")
    for timestep in range(150):
        before = dict(mixture.n_of_streams)
        mixture.sample(replay, 32, timestep=timestep, curves=Means())
        gained = {name: n - before.get(name, 0) for name, n in mixture.n_of_streams.items()}
        assert sum(gained.values()) == 24
        drawn += [gained[name] for name in lengths]
        if timestep == 70:  # a break
            state = mixture.state()
            mixture = mixture_of(tmp_path / "lake", 0.25, agents=agents)
            mixture.load_state(json.loads(json.dumps(state)))
    assert mixture.n_own_drawn == 150 * 8
    assert [mixture.n_of_streams[name] for name in lengths] == drawn.tolist()
    asked = np.array(list((agents or lengths).values()), float)
    assert chi_square(drawn, asked) < 5
    assert mixture.n_offline == {}
    mixture.sample_lakes(600, device, Means(), prefix="offline")
    offline = np.array([mixture.n_offline[name] for name in lengths])
    assert offline.sum() == 600
    assert chi_square(offline, asked) < 5
    assert mixture.n_drawn == 150 * 32  # those before the first timestep are no part of it
