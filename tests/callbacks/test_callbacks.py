import os
from collections.abc import Callable
from contextlib import closing

import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import configure

from game_rl.algorithms.data_parallel import torch_threads
from game_rl.callbacks import resources
from game_rl.callbacks.boundary import Interval, StopCallback, StopTraining
from game_rl.callbacks.checkpoint_callback import NonFiniteCallback
from game_rl.callbacks.curves import GameMetricsCallback
from game_rl.callbacks.resource_watch import PlanWatch, ResourceWatch
from game_rl.callbacks.resources import CoresCallback, ResourceMonitorCallback
from game_rl.errors import TrainingError
from game_rl.events.event_log import EventLog
from game_rl.files.run_dir import RunDir
from game_rl.system.machine import own_cores
from game_rl.system.process_memory import PssSampler
from game_rl.system.units import format_bytes
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.callbacks.conftest import make_checkpoints, make_stop, saved_timesteps
from tests.tiny_env import TinyEnv
from tests.vec_env.envs import processes_of

MakeModel = Callable[..., PPO]


class At(BaseCallback):
    """Does something once, at the given call."""

    def __init__(self, call: int, act: Callable[[PPO], None]) -> None:
        super().__init__()
        self._call, self._act = call, act

    def _on_step(self) -> bool:
        if self.n_calls == self._call:
            assert isinstance(self.model, PPO)
            self._act(self.model)
        return True


def test_an_interval_fires_once_for_each_stretch_with_a_multiple() -> None:
    interval = Interval(10)
    assert [interval.crossed(t) for t in (4, 9, 10, 15, 39, 40, 41)] == [
        False, False, True, False, True, True, False,
    ]  # fmt: skip


def break_weight(model: PPO) -> None:
    with torch.no_grad():
        next(iter(model.policy.value_net.parameters())).fill_(float("nan"))


def test_non_finite_weights_stop_the_run_before_they_are_saved(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    watched = CallbackList([NonFiniteCallback(), make_checkpoints(run_dir, 8), At(9, break_weight)])
    with pytest.raises(TrainingError, match=r"before timestep 12 made weight .* non-finite"):
        make_model(n_envs=1).learn(64, callback=watched)
    assert saved_timesteps(run_dir) == [8]


def unwatched(run_dir: RunDir) -> ResourceWatch:
    return ResourceWatch(run_dir, EventLog(), warn_disk_gb=None, warn_ram_gb=None)


def test_a_disk_without_room_for_another_checkpoint_stops_the_run(
    make_model: MakeModel, run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir.root.mkdir(parents=True)
    stop = make_stop()
    checkpoints = make_checkpoints(run_dir, 1000, stop=stop)
    monitor = ResourceMonitorCallback(
        PssSampler(),
        stop,
        checkpoints,
        run_dir=run_dir.root,
        watch=unwatched(run_dir),
        plan=PlanWatch(run_dir, EventLog()),
    )
    monkeypatch.setattr(resources, "STOP_MARGIN_BYTES", 2**60)
    model = make_model()
    watched = CallbackList([monitor, checkpoints, StopCallback(stop, EventLog())])
    with pytest.raises(StopTraining):
        model.learn(64, callback=watched)
    assert isinstance(stop.reason, TrainingError)
    assert saved_timesteps(run_dir) == [8]
    needed = format_bytes(checkpoints.expected_bytes)
    reserve = format_bytes(2**60)
    text = f"one more checkpoint needs {needed}, and {reserve} must stay free for logs"
    assert text in str(stop.reason)
    assert f"free some space, then continue with game-rl train --resume {run_dir.root}" in str(
        stop.reason
    )
    assert model.num_timesteps == 8  # not a vec step further


def test_resources_reach_the_log(make_model: MakeModel, run_dir: RunDir) -> None:
    run_dir.root.mkdir(parents=True)
    checkpoints = make_checkpoints(run_dir, 1000)
    monitor = ResourceMonitorCallback(
        PssSampler(),
        make_stop(),
        checkpoints,
        run_dir=run_dir.root,
        watch=unwatched(run_dir),
        plan=PlanWatch(run_dir, EventLog()),
    )
    make_model().learn(24, callback=CallbackList([monitor, checkpoints]))
    header = (
        (run_dir.tensorboard / "progress.csv")
        .read_text(encoding="utf-8")
        .splitlines()[0]
        .split(",")
    )
    wanted = {"ram_gib", "ram_free_gib", "disk_free_gib", "cpu_percent"}
    assert {f"resources/{name}" for name in wanted} <= set(header)


class Threads(BaseCallback):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []

    def _on_rollout_start(self) -> None:
        self.seen.append(("start", torch.get_num_threads()))

    def _on_rollout_end(self) -> None:
        self.seen.append(("end", torch.get_num_threads()))

    def _on_step(self) -> bool:
        return True


def test_rollouts_have_one_torch_thread_and_updates_all(make_model: MakeModel) -> None:
    watch = Threads()
    with torch_threads(1):
        make_model().learn(16, callback=CallbackList([CoresCallback(2), watch]))
    assert watch.seen == [("start", 1), ("end", 2)] * 2


@pytest.mark.usefixtures("worker_processes")
def test_the_workers_of_a_halved_vec_env_are_moved_and_settle(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = own_cores()
    if len(cores) < 2:
        pytest.skip("needs two cores of its own")
    monkeypatch.setattr("game_rl.callbacks.resources._TRIAL_S", 1e-9)  # each vec step is a trial
    parts = (SharedMemoryVecEnv([TinyEnv], n_workers=1) for _ in range(2))
    callback = CoresCallback(1, trials_s=0.0)
    seen: list[list[int]] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            processes = processes_of(self.training_env)
            first, second = (sorted(os.sched_getaffinity(p.pid)) for p in processes)
            assert first == second
            seen.append(first)
            return True

    with closing(HalvedVecEnv(*parts)) as vec_env:
        model = PPO("CnnPolicy", vec_env, n_steps=16, batch_size=16, n_epochs=1, device="cpu")
        model.set_logger(configure(str(run_dir.tensorboard), ["csv"]))
        model.learn(64, callback=CallbackList([callback, Watch()]))
        model.logger.close()
    assert callback.is_settled
    assert {len(places) for places in seen} == {len(cores), len(cores) - 1}
    assert len({tuple(places) for places in seen[-16:]}) == 1
    assert own_cores() == cores  # this process itself stays where it was


def test_without_halves_no_worker_is_moved(make_model: MakeModel) -> None:
    callback = CoresCallback(1)
    with torch_threads(1):
        make_model().learn(16, callback=callback)
    assert callback.is_settled


def test_the_share_of_each_ending_is_a_curve(make_model: MakeModel, run_dir: RunDir) -> None:
    class Endings(BaseCallback):
        """Makes every second episode end by `won`."""

        n_ended = 0

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "reward_terms" in info:
                    self.n_ended += 1
                    if self.n_ended % 2:
                        info["ending"] = "won"
            return True

    model, endings = make_model(), Endings()
    model.learn(16, callback=CallbackList([endings, GameMetricsCallback(["won", "lost"])]))
    header, *lines = (run_dir.tensorboard / "progress.csv").read_text(encoding="utf-8").splitlines()
    row = dict(zip(header.split(","), lines[-1].split(","), strict=True))
    share = (endings.n_ended + 1) // 2 / endings.n_ended
    assert float(row["game/ending/won"]) == pytest.approx(share)
    assert float(row["game/ending/lost"]) == 0.0


def test_game_metrics_are_means_over_the_episodes_of_a_rollout(
    make_model: MakeModel, run_dir: RunDir
) -> None:
    endings: list[float] = []

    class Watch(BaseCallback):
        def _on_step(self) -> bool:
            done = [info for info in self.locals["infos"] if "reward_terms" in info]
            endings.extend(info["reward_terms"]["ones"] for info in done)
            return True

    model = make_model()
    model.learn(16, callback=CallbackList([GameMetricsCallback(), Watch()]))
    header, *lines = (run_dir.tensorboard / "progress.csv").read_text(encoding="utf-8").splitlines()
    row = dict(zip(header.split(","), lines[-1].split(","), strict=True))
    assert float(row["game/reward/ones"]) == pytest.approx(sum(endings) / len(endings))
    assert float(row["game/timestep"]) == 5
