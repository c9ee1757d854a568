"""What a signal does to a training that is underway."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from game_rl.callbacks.boundary import StopCallback, StopTraining
from game_rl.errors import Interrupted
from game_rl.events import Event
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.system import stop_request
from game_rl.system.processes import handled_signals
from game_rl.system.stop_request import StopRequest, stopping_on_signals
from tests.callbacks.conftest import make_checkpoints, make_model, saved_timesteps

__all__ = ["make_model"]  # a fixture

MakeModel = Callable[..., PPO]


class At(BaseCallback):
    """Does something once, at the given call."""

    def __init__(self, call: int, act: Callable[[], None]) -> None:
        super().__init__()
        self._call, self._act = call, act

    def _on_step(self) -> bool:
        if self.n_calls == self._call:
            self._act()
        return True


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


@pytest.fixture
def stop() -> Iterator[StopRequest]:
    stop = StopRequest()
    stop.deadline_s = 1000.0
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and so would the stop
    before = signal.getsignal(signal.SIGTERM)
    with stopping_on_signals(stop):
        yield stop
    signal.signal(signal.SIGHUP, hangup)
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def press(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def learn(
    model: PPO, stop: StopRequest, run_dir: RunDir, *events: BaseCallback, every: int = 1000
) -> list[Event]:
    told: list[Event] = []
    checkpoints = make_checkpoints(run_dir, every, stop=stop)
    last = StopCallback(stop, EventLog(listeners=[told.append]))
    with closing(model.get_env()):
        model.learn(64, callback=CallbackList([checkpoints, *events, last]))
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_ends_training_after_the_next_checkpoint(
    make_model: MakeModel, run_dir: RunDir, stop: StopRequest, number: signal.Signals
) -> None:
    told: list[Event] = []
    checkpoints = make_checkpoints(run_dir, 1000, stop=stop)
    last = StopCallback(stop, EventLog(listeners=[told.append]))
    with pytest.raises(StopTraining):
        make_model().learn(64, callback=CallbackList([checkpoints, At(6, press(number)), last]))
    assert isinstance(stop.reason, Interrupted)
    assert stop.reason.exit_code == 128 + number
    assert saved_timesteps(run_dir) == [16]
    assert [number.name in event.text for event in told] == [True]


def test_a_second_signal_ends_training_at_once(
    make_model: MakeModel, run_dir: RunDir, stop: StopRequest
) -> None:
    twice = [At(call, press(signal.SIGTERM)) for call in (5, 6)]
    with pytest.raises(KeyboardInterrupt):
        learn(make_model(), stop, run_dir, *twice)
    assert saved_timesteps(run_dir) == []


def test_a_terminal_that_hangs_up_twice_does_not_end_training_unsaved(
    make_model: MakeModel, run_dir: RunDir, stop: StopRequest
) -> None:
    twice = [At(call, press(signal.SIGHUP)) for call in (5, 6)]
    with pytest.raises(StopTraining):
        learn(make_model(), stop, run_dir, *twice)
    assert saved_timesteps(run_dir) == [16]


def test_a_hang_up_that_is_ignored_stays_so() -> None:
    stop = StopRequest()
    with handled_signals({signal.SIGHUP: signal.SIG_IGN}):  # as `nohup` does
        with stopping_on_signals(stop):
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert not stop.is_asked


def test_a_boundary_that_does_not_come_is_not_waited_for(
    make_model: MakeModel, run_dir: RunDir, stop: StopRequest
) -> None:
    stop.deadline_s = 0.01

    def press_and_hang() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    with pytest.raises(KeyboardInterrupt):
        learn(make_model(), stop, run_dir, At(6, press_and_hang), every=8)
    assert saved_timesteps(run_dir)[0] == 8


def test_a_timer_does_the_same_where_there_is_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_request, "_new_deadline", stop_request._Timer)
    hanging = StopRequest(deadline_s=0.01)
    with stopping_on_signals(hanging):
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.pause()
    assert isinstance(hanging.reason, Interrupted)
    assert hanging.reason.exit_code == 128 + signal.SIGTERM
    in_time = StopRequest(deadline_s=0.1)
    with stopping_on_signals(in_time):
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)  # nothing comes any more
    assert in_time.is_asked
