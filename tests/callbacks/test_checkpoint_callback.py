from collections.abc import Callable

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from game_rl.callbacks.boundary import StopCallback, StopTraining
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.errors import TrainingError
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from tests.callbacks.conftest import N_STEPS, make_checkpoints, make_stop, saved_timesteps

MakeModel = Callable[..., PPO]


class StopAfter(BaseCallback):
    def __init__(self, calls: int) -> None:
        super().__init__()
        self._calls = calls

    def _on_step(self) -> bool:
        return self.n_calls < self._calls


@pytest.mark.parametrize(("n_envs", "every"), [(1, 5), (2, 10), (3, 7), (2, 8), (2, 1)])
def test_saves_at_the_boundary_after_each_multiple_and_at_the_end(
    make_model: MakeModel, run_dir: RunDir, n_envs: int, every: int
) -> None:
    make_model(n_envs).learn(50, callback=make_checkpoints(run_dir, every))

    rollout = n_envs * N_STEPS
    boundaries = list(range(rollout, 50 + rollout, rollout))
    expected = {b for b in boundaries if any(m % every == 0 for m in range(b - rollout + 1, b + 1))}
    assert saved_timesteps(run_dir) == sorted(expected | {boundaries[-1]})


def test_only_the_newest_checkpoints_stay(make_model: MakeModel, run_dir: RunDir) -> None:
    make_model().learn(64, callback=make_checkpoints(run_dir, every=8, keep_last=3))
    assert saved_timesteps(run_dir) == [48, 56, 64]


def test_a_rollout_that_was_cut_short_is_not_counted(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    model = make_model()
    model.learn(64, callback=CallbackList([make_checkpoints(run_dir, every=1000), StopAfter(10)]))
    assert model.num_timesteps == 20
    assert saved_timesteps(run_dir) == [16]
    assert Checkpoint(run_dir.checkpoint(16)).state.num_timesteps == 16


def test_a_stop_that_is_asked_for_saves_at_the_next_boundary(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    stop = make_stop()

    class Ask(BaseCallback):
        def _on_step(self) -> bool:
            if self.n_calls == 6:  # the second of four steps of the second rollout
                stop.ask(TrainingError("enough"))
            return True

    checkpoints = make_checkpoints(run_dir, every=1000, stop=stop)
    watched = CallbackList([checkpoints, Ask(), StopCallback(stop, EventLog())])
    model = make_model()
    with pytest.raises(StopTraining):
        model.learn(64, callback=watched)
    assert model.num_timesteps == 16
    assert saved_timesteps(run_dir) == [16]


def test_boundaries_further_apart_than_a_stop_may_wait_are_all_saved(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    stop = make_stop(deadline_s=1e-9)
    make_model().learn(32, callback=make_checkpoints(run_dir, every=1000, stop=stop))
    assert saved_timesteps(run_dir) == [8, 16, 24, 32]


def test_the_predicted_size_is_that_of_the_files(make_model: MakeModel, run_dir: RunDir) -> None:
    checkpoints = make_checkpoints(run_dir, every=1000)
    make_model().learn(8, callback=checkpoints)
    size = Checkpoint(run_dir.checkpoint(8)).nbytes
    assert size <= checkpoints.expected_bytes <= size + 2**20
