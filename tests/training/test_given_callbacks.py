"""Callbacks that Python code gives to a training as objects: called, saved, restored, missed."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

import game_rl
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.errors import GameRLError
from game_rl.events import Resumed
from game_rl.files.run_dir import RunDir
from game_rl.training.extension import given_callbacks
from tests.tiny_run import MakeConfig


class Total(BaseCallback):
    """Sums up rewards, and pulls the weights by the sum, so that a run depends on its state."""

    def __init__(self) -> None:
        super().__init__()
        self.total = np.zeros(2)

    def _on_step(self) -> bool:
        self.total = self.total + self.locals["rewards"]
        if self.n_calls % 3 == 0:
            pull = 1 - 1e-3 * abs(float(self.total.sum()) % 1)
            next(self.model.policy.parameters()).data.mul_(pull)
        return True

    def state_dict(self) -> dict[str, Any]:
        return {"total": self.total}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total = state["total"]


class Stateless(BaseCallback):
    def _on_step(self) -> bool:
        return True


class Stopping(BaseCallback):
    def _on_step(self) -> bool:
        return self.num_timesteps < 64


class Pickled(Stateless):
    def state_dict(self) -> object:
        return {"itself": self}

    def load_state_dict(self, state: object) -> None:
        raise AssertionError(state)


class Failing(BaseCallback):
    def _on_step(self) -> bool:
        raise ZeroDivisionError("of the test")


NAME = f"{__name__}:"


def resumed(run: game_rl.TrainingResult | Path) -> list[Resumed]:
    return [event for event in game_rl.read_events(run) if isinstance(event, Resumed)]


def files(run_dir: Path) -> dict[str, bytes]:
    folder = RunDir(run_dir).checkpoint(192)
    return {name: (folder / name).read_bytes() for name in ("policy.safetensors", "callbacks.json")}


@pytest.mark.slow
def test_a_run_that_is_resumed_with_the_same_callbacks_is_the_run_that_was_not_stopped(
    make_config: MakeConfig,
) -> None:
    whole, parts = make_config("whole"), make_config("parts")
    end = Total()
    game_rl.train(whole, callbacks=[end, Stateless()], progress=False)
    game_rl.train(parts, callbacks=[Total(), Stateless()], progress=False, until=64)
    other = Total()
    result = game_rl.resume(parts, callbacks=[other, Stateless()], progress=False)
    assert files(parts.run_dir) == files(whole.run_dir)
    np.testing.assert_array_equal(other.total, end.total)
    assert other.n_calls == end.n_calls == 96
    (event,) = resumed(result)
    found = [text for text in event.not_restored if "callbacks" in text]
    assert found == [f"callbacks[1], {NAME}Stateless: it has no state_dict and load_state_dict"]


@pytest.mark.slow
def test_a_resume_without_them_says_which_are_missing_and_how_to_give_them(
    make_config: MakeConfig,
) -> None:
    config = make_config("run")
    game_rl.train(config, callbacks=Total(), progress=False, until=64)
    state = Checkpoint(RunDir(config.run_dir).checkpoint(64)).state
    assert state.given_callbacks == (f"{NAME}Total",)
    result = game_rl.resume(config.run_dir, progress=False, until=128)
    (text,) = [text for text in resumed(result)[0].not_restored if "callback" in text]
    assert text.startswith(f"the callback {NAME}Total, which Python code gave to this run: ")
    assert "game_rl.resume(run, callbacks=[...])" in text
    game_rl.resume(config.run_dir, progress=False)
    assert not [t for t in resumed(config.run_dir)[1].not_restored if "callback" in t]


@pytest.mark.slow
def test_a_run_that_a_callback_has_ended_trains_on_without_it(make_config: MakeConfig) -> None:
    config = make_config("run")
    ended = game_rl.train(config, callbacks=[Stopping()], progress=False)
    assert ended.timesteps == 64
    assert ended.ended_by == f"callbacks[0], {NAME}Stopping, returned False"
    assert ended.evaluation is not None
    again = game_rl.resume(config, callbacks=[Stopping()], progress=False)
    assert "which is without that callback" in again.left_alone
    assert game_rl.resume(config, progress=False).timesteps == 192


def test_a_function_is_called_with_locals_and_globals_and_may_end_the_run(
    make_config: MakeConfig,
) -> None:
    seen = list[bool]()

    def watch(local: dict[str, Any], _: dict[str, Any]) -> bool:
        seen.append("rewards" in local)
        return len(seen) < 20

    result = game_rl.train(make_config("run"), callbacks=watch, progress=False)
    assert result.timesteps == 64  # at the update after the 20th call
    assert all(seen)
    assert result.ended_by.startswith(f"callbacks[0], {NAME}test_a_function")


@pytest.mark.parametrize(
    ("callback", "message"),
    [
        (Pickled(), f"callbacks[0]: {NAME}Pickled cannot be saved in a checkpoint: its state"),
        (Failing(), "failed in _on_step with ZeroDivisionError: of the test in "),
        (Stateless, "callbacks[0] is the class Stateless, not an object of it; write Stateless()"),
        ("mine:Own", "callbacks[0] is 'mine:Own'; give an object of BaseCallback"),
    ],
)
def test_what_cannot_be_used_is_our_error(
    make_config: MakeConfig, callback: Any, message: str
) -> None:
    with pytest.raises(GameRLError, match=re.escape(message)):
        game_rl.train(make_config("run"), callbacks=[callback], progress=False)


def test_callbacks_of_a_list_are_taken_one_by_one() -> None:
    total, other = Total(), Stateless()
    found = given_callbacks([CallbackList([total, other]), Stateless()])
    assert [each.own for each in found[:2]] == [total, other]
    assert [each.name for each in found] == [
        f"callbacks[0], {NAME}Total",
        f"callbacks[1], {NAME}Stateless",
        f"callbacks[2], {NAME}Stateless",
    ]
    assert given_callbacks(None) == ()
