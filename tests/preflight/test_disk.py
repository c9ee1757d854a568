"""The run directory: against files that torch writes, and against filling it write by write."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticCnnPolicy

from game_rl.checkpoints import checkpoint_files
from game_rl.checkpoints.checkpoint_store import kept_checkpoints
from game_rl.checkpoints.evaluation_files import EpisodeLists, write_episodes
from game_rl.config.schema import RunConfig
from game_rl.config.upload import UploadConfig
from game_rl.preflight import calibration
from game_rl.preflight.disk import predicted_checkpoint_bytes, timestep_of_full_disk
from game_rl.preflight.estimate import estimate
from game_rl.preflight.memory import network_of
from game_rl.run_dir import RunDir
from tests.preflight.conftest import FACTS, make_config
from tests.preflight.test_memory import FIGHTER


def test_a_checkpoint_has_the_size_of_what_torch_writes(tmp_path: Path) -> None:
    space = spaces.Box(0, 255, (4, 72, 80), np.uint8)
    policy = ActorCriticCnnPolicy(space, spaces.Discrete(9), lambda _: 1e-3)
    for parameter in policy.parameters():
        parameter.grad = torch.zeros_like(parameter)
    policy.optimizer.step()
    torch.save(policy.state_dict(), tmp_path / "policy.pt")
    torch.save(policy.optimizer.state_dict(), tmp_path / "optimizer.pt")
    written = sum(file.stat().st_size for file in tmp_path.iterdir())
    one, many = (predicted_checkpoint_bytes(make_config(env__n_envs=n), FACTS) for n in (1, 9))
    env = 4 * 72 * 80 + checkpoint_files.EMULATOR_STATE_BYTES  # its last observation is saved, too
    assert many - one == 8 * env
    network = one - env - checkpoint_files.OVERHEAD_BYTES
    assert network == pytest.approx(written, rel=0.002)


def test_the_worked_example_keeps_four_checkpoints_of_90_megabytes() -> None:
    """Three and the best."""
    disk = estimate(FIGHTER, FACTS).disk
    assert disk.checkpoint_bytes == pytest.approx(89.9e6, rel=0.005)
    sizes = {part.name: part.bytes for part in disk.parts}
    assert sizes["4 checkpoints"] == 4 * disk.checkpoint_bytes
    assert disk.momentary_bytes == disk.checkpoint_bytes
    assert disk.bytes == sum(sizes.values())


@pytest.mark.parametrize("capacity", [3_000, 10_000, 100_000])
def test_each_checkpoint_has_the_replay_and_moments_of_its_own_moment(capacity: int) -> None:
    """As a run that ends there has; before learning starts there are no moments."""

    def saving(total_timesteps: int, learning_starts: int) -> RunConfig:
        return make_config(
            total_timesteps=total_timesteps,
            env={"n_envs": 4},
            algorithm={
                "name": "dqn", "replay": {"capacity": capacity}, "train_freq": 2,
                "learning_starts": learning_starts,
            },
            evaluation={"every_timesteps": 4_000},
            checkpoints={"every_timesteps": 2_000, "keep_last": 4, "save_replay_buffer": True},
        )  # fmt: skip

    moments = 2 * network_of(saving(10_000, 0), FACTS).weights_bytes
    alone = {
        n: estimate(saving(n, 0), FACTS).disk.checkpoint_bytes for n in range(2_000, 10_001, 2_000)
    }
    expected = sum(alone[n] for n in (2_000, 4_000, 6_000, 8_000, 10_000))
    for learning_starts, without in ((0, 0), (2_000, 1), (5_999, 2), (6_000, 3)):
        (part, *_) = estimate(saving(10_000, learning_starts), FACTS).disk.parts
        assert part.name == "5 checkpoints"
        assert part.bytes == expected - without * moments


def test_what_is_being_uploaded_stays_a_while_up_to_the_backlog() -> None:
    plain = estimate(FIGHTER, FACTS).disk
    for backlog_gb, held in ((5, 2 * plain.checkpoint_bytes), (0.1, 100_000_000)):
        upload = {"to": "s3://bucket/x", "backlog_gb": backlog_gb}
        config = FIGHTER.model_copy(update={"upload": UploadConfig(**upload)})
        found = estimate(config, FACTS).disk
        assert found.momentary_bytes == plain.momentary_bytes + held


def test_a_run_with_fewer_checkpoints_than_it_may_keep_counts_those_it_makes() -> None:
    config = make_config(total_timesteps=2048, checkpoints={"keep_last": 10})
    assert estimate(config, FACTS).disk.parts[0].name == "1 checkpoint"


def test_without_a_clip_there_is_no_clip() -> None:
    disk = estimate(make_config(recording={"episodes": 0}), FACTS).disk
    assert {part.name: part.bytes for part in disk.parts}["clip"] == 0


@pytest.mark.parametrize("keep_every", [None, 3 * 2048, 4 * 2048])
@pytest.mark.parametrize("evaluate_every", [2048, 3 * 2048, 5 * 2048])
@pytest.mark.parametrize("free_checkpoints", [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5])
def test_the_disk_is_full_when_a_dumb_replay_of_the_writes_says_so(
    free_checkpoints: float, evaluate_every: int, keep_every: int | None
) -> None:
    config = make_config(
        total_timesteps=12 * 2048,
        checkpoints={
            "every_timesteps": 2048, "keep_last": 3, "keep_every_timesteps": keep_every,
        },
        evaluation={"every_timesteps": evaluate_every},
        recording={"episodes": 0},
    )  # fmt: skip
    footprint = estimate(config, FACTS)
    one, log = footprint.disk.checkpoint_bytes, footprint.disk.log_bytes_per_update
    free = int(free_checkpoints * one)
    forecast = timestep_of_full_disk(config, FACTS, footprint, free)
    full_at = earliest_full_disk(free, one, log, evaluate_every, keep_every)
    if keep_every is None:
        assert forecast == full_at
    else:  # it may count one checkpoint too many
        earlier = earliest_full_disk(free - one, one, log, evaluate_every, keep_every)
        assert (earlier or math.inf) <= (forecast or math.inf) <= (full_at or math.inf)


def earliest_full_disk(
    free: float, one: int, log: float, evaluate_every: int, keep_every: int | None
) -> int | None:
    """Of twelve updates that are all saved, over every choice of evaluations that are the best."""
    evaluated = sorted({*range(evaluate_every, 12 * 2048 + 1, evaluate_every), 12 * 2048})
    earliest = math.inf
    for is_best in itertools.product((False, True), repeat=len(evaluated) - 1):
        bests = {evaluated[0], *itertools.compress(evaluated[1:], is_best)}
        folder: list[int] = []
        best = None
        for update in range(1, 13):
            timesteps = 2048 * update
            folder.append(timesteps)  # beside those that it will replace
            if len(folder) * one + update * log > free:
                earliest = min(earliest, timesteps)
                break
            best = timesteps if timesteps in bests else best
            kept = kept_checkpoints(folder, best=best, keep_last=3, keep_every=keep_every)
            folder = sorted(kept)
    return None if earliest == math.inf else int(earliest)


def test_logs_alone_can_fill_a_disk_late_in_a_long_run() -> None:
    config = make_config(total_timesteps=10**9)
    footprint = estimate(config, FACTS)
    free = 5 * footprint.disk.checkpoint_bytes + 10**8
    full_at = timestep_of_full_disk(config, FACTS, footprint, free)
    assert full_at is not None
    assert 10**7 < full_at < 10**9


def test_a_large_disk_is_never_full() -> None:
    assert timestep_of_full_disk(FIGHTER, FACTS, estimate(FIGHTER, FACTS), 10**12) is None


@pytest.mark.parametrize(("evaluations", "episodes"), [(1, 1), (7, 20), (300, 100)])
def test_a_file_of_evaluations_has_the_size_that_is_counted(
    tmp_path: Path, evaluations: int, episodes: int
) -> None:
    lists = EpisodeLists(
        timesteps=[1000 * i for i in range(evaluations)],
        results=[[np.float32(i)] * episodes for i in range(evaluations)],
        lengths=[[np.int32(i)] * episodes for i in range(evaluations)],
        successes=[[True] * episodes for _ in range(evaluations)],
    )
    write_episodes(RunDir(tmp_path), lists)
    one = episodes * calibration.EVALUATION_EPISODE_BYTES + calibration.EVALUATION_TIMESTEPS_BYTES
    counted = evaluations * one + calibration.EVALUATION_FILE_BYTES
    assert RunDir(tmp_path).evaluation_episodes.stat().st_size == counted


def test_more_episodes_of_evaluations_take_more_in_the_run_and_in_each_checkpoint() -> None:
    few, many = (
        estimate(make_config(evaluation={"episodes": n}, recording={"episodes": 0}), FACTS)
        for n in (10, 110)
    )
    kept = int(few.disk.parts[0].name.split()[0])
    file = few.training.evaluations * 100 * (4 + 4 + 1)
    assert many.disk.bytes - few.disk.bytes == pytest.approx(file * (1 + kept * 4 / 3), abs=2)


def test_a_second_way_takes_more_rows_events_and_curves() -> None:
    sizes = [
        estimate(make_config(evaluation={"deterministic": way}), FACTS).disk.bytes
        for way in (True, "auto")
    ]
    assert sizes[0] < sizes[1]
