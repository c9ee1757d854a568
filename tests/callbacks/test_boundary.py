"""DQN has a boundary every few vec steps: what happens at it, and what need not."""

import pytest
import torch
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger

from game_rl.algorithms.dqn import LeanDQN, make_dqn
from game_rl.callbacks.boundary import BoundaryCallback
from game_rl.callbacks.checkpoint_callback import NonFiniteCallback
from game_rl.config.algorithms import DQNConfig
from game_rl.errors import Interrupted, TrainingError
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from tests.callbacks.conftest import make_checkpoints, saved_timesteps, tiny_vec_env
from tests.tiny_context import tiny_context


class Note(BoundaryCallback):
    """When it was called."""

    def __init__(self, *every: int) -> None:
        super().__init__(every_timesteps=every)
        self.seen: list[int] = []

    def on_boundary(self, *, is_last: bool) -> None:
        self.seen.append(-self.num_timesteps if is_last else self.num_timesteps)


def dqn() -> LeanDQN:
    """A rollout is 2 vec steps of 2 envs, 4 timesteps."""
    config = DQNConfig.model_validate(
        {"name": "dqn", "replay": {"capacity": 100}, "learning_starts": 10, "train_freq": 2}
    )
    model = make_dqn(config, tiny_context(tiny_vec_env(), schedule_timesteps=100))
    model.set_logger(Logger(None, []))
    return model


def test_without_a_rhythm_each_boundary_counts() -> None:
    note = Note()
    dqn().learn(16, callback=note)
    assert note.seen == [4, 8, 12, -16]


def test_with_rhythms_those_count_where_a_multiple_of_one_was_reached() -> None:
    note = Note(10, 14)
    dqn().learn(48, callback=note)
    assert note.seen == [12, 16, 20, 28, 32, 40, 44, -48]
    dumb = [t for t in range(4, 48, 4) if any(t // every > (t - 4) // every for every in (10, 14))]
    assert note.seen[:-1] == dumb


def test_what_is_broken_is_found_before_dqn_saves_it(run_dir: RunDir) -> None:
    class Break(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps == 22:
                with torch.no_grad():
                    next(self.model.policy.parameters()).fill_(float("nan"))
            return True

    run_dir.root.mkdir(parents=True)
    checkpoints = make_checkpoints(run_dir, 10)
    watched = CallbackList([NonFiniteCallback(every_timesteps=(1_000,)), checkpoints, Break()])
    with pytest.raises(TrainingError, match="non-finite"):
        dqn().learn(64, callback=watched)
    assert saved_timesteps(run_dir) == [12, 20]


def test_the_first_reason_counts() -> None:
    stop, first = StopRequest(), Interrupted("first", exit_code=143)
    stop.ask(first)
    stop.ask(Interrupted("second", exit_code=130))
    assert stop.reason is first


def test_a_request_without_a_notice_leaves_the_one_that_nobody_has_seen() -> None:
    stop = StopRequest()
    stop.ask(Interrupted("a signal"), notice="stopping after this update")
    stop.ask(Interrupted("a full disk"))
    assert stop.take_notice() == "stopping after this update"
    assert stop.take_notice() is None
