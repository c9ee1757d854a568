import csv
from collections.abc import Callable

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from game_rl.callbacks.curves import WorkerRestartsCallback
from game_rl.event_log import EventLog
from game_rl.run_dir import RunDir
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.callbacks.conftest import N_STEPS
from tests.tiny_env import TinyEnv


class KillAt(BaseCallback):
    def __init__(self, *calls: int, worker: int = 0) -> None:
        super().__init__()
        self._calls, self._worker = calls, worker

    def _on_step(self) -> bool:
        if self.n_calls in self._calls:
            process = self.training_env.unwrapped.processes[self._worker]
            process.kill()
            process.join()
        return True


def training(vec_env: VecEnv) -> PPO:
    return PPO(
        "CnnPolicy",
        vec_env,
        n_steps=N_STEPS,
        batch_size=N_STEPS,
        n_epochs=1,
        device="cpu",
        policy_kwargs={"features_extractor_kwargs": {"features_dim": 8}},
    )


def test_a_worker_that_dies_in_training_is_counted_and_told_once(run_dir: RunDir) -> None:
    warnings: list[str] = []
    vec_env = VecMonitor(SharedMemoryVecEnv([TinyEnv] * 2, n_workers=2))
    model = training(vec_env)
    model.set_logger(configure(str(run_dir.tensorboard), ["csv"]))
    rollout = 2 * N_STEPS
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    model.learn(4 * rollout, callback=[KillAt(6), WorkerRestartsCallback(events)])
    model.logger.close()
    vec_env.close()
    with (run_dir.tensorboard / "progress.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["resources/worker_restarts"] for row in rows] == ["", "0", "1", "1"]
    (warning,) = warnings
    assert warning.startswith("worker 0 (env 0) was killed (SIGKILL)")
    assert warning.endswith("it was restarted and its episodes were cut short")


def test_a_death_in_the_first_half_after_one_in_the_second_is_told() -> None:
    warnings: list[str] = []
    sizes = (1, 2)  # so that the halves' workers differ by their envs
    parts = (SharedMemoryVecEnv([TinyEnv] * n, n_workers=1) for n in sizes)
    vec_env = HalvedVecEnv(*parts)
    events = EventLog(listeners=[lambda event: warnings.append(event.text)])
    callbacks = [KillAt(2, worker=1), KillAt(N_STEPS + 2), WorkerRestartsCallback(events)]
    training(vec_env).learn(3 * 3 * N_STEPS, callback=callbacks)
    vec_env.close()
    told = [warning.partition(" was killed")[0] for warning in warnings]
    assert told == ["worker 0 (envs 0-1)", "worker 0 (env 0)"]


def test_a_vec_env_without_workers_has_no_restarts(
    make_model: Callable[..., PPO], run_dir: RunDir
) -> None:
    make_model().learn(16, callback=WorkerRestartsCallback(EventLog()))
    header = (run_dir.tensorboard / "progress.csv").read_text(encoding="utf-8").splitlines()[0]
    assert "resources/worker_restarts" in header
