"""An executor whose runs come to their end on paper: what they reach follows from arm and seed."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import yaml

from game_rl.checkpoints.evaluation_files import EpisodeLists, write_episodes
from game_rl.config.experiments.experiment import load_experiment
from game_rl.events import Ended as RunEnded
from game_rl.events.event_log import EventFile, ExperimentEventLog
from game_rl.experiments.controller import ExperimentRun
from game_rl.experiments.executors.executor import CompletedJob, Job
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.jobs.job_files import FinishedRun, FinishRequest, Played, read_request
from game_rl.experiments.plans.plan import Plan
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from tests.experiments.compare.paper_accounts import write_accounts
from tests.experiments.paper_executor import PaperExecutor


class PaperFinisher:
    """Does what a `FinishRequest` asks for, of a run or an experiment, in an instant.

    Args:
        non_finite: names of run directories whose weights break.
        gain: of the arm that learns faster.
        host: where it is said to be.
        exit_codes: by a job's name: what its process ends with, doing nothing.
    """

    def __init__(
        self,
        slots: int = 2,
        *,
        non_finite: Sequence[str] = (),
        gain: float = 1.0,
        host: str = "a",
        exit_codes: Mapping[str, int] | None = None,
    ) -> None:
        self.slots = slots
        self.started: list[str] = []
        self._running: list[Job] = []
        self._non_finite = set(non_finite)
        self._gain, self._host = gain, host
        self._exit_codes = exit_codes or {}

    def start(self, job: Job) -> None:
        assert len(self._running) < self.slots
        self.started.append(job.name)
        self._running.append(job)

    def wait(self, timeout_s: float) -> list[CompletedJob]:  # noqa: ARG002
        if not self._running:
            return []
        job = self._running.pop(0)
        if job.name in self._exit_codes:
            return [CompletedJob(job, self._exit_codes[job.name], "paper", "what it printed")]
        request = read_request(job.request)
        assert isinstance(request, FinishRequest)
        modules = {
            "game_rl.experiments.jobs": self._finish,
            "game_rl.experiments": self._finish_experiment,
        }
        modules[job.module](request)
        return [CompletedJob(job, 0, "paper")]

    def ask_to_stop(self) -> None:
        pass

    def close(self) -> None:
        self._running.clear()

    def _finish_experiment(self, request: FinishRequest) -> None:
        folder = ExperimentDir(request.run)
        experiment = load_experiment(folder.config, is_saved=True)
        with EventFile(folder.events) as file:
            account = ExperimentEventLog(file)
            plan = Plan(folder, experiment)
            champion = ExperimentRun(plan, PaperExecutor(), account, StopRequest(math.inf)).run()
        write_accounts(folder)
        rng = np.random.default_rng([experiment.config.seed, request.seed])
        rewards = tuple(rng.normal(size=request.episodes).round(3).tolist())
        finished = FinishedRun(
            policy_timesteps=int(champion.checkpoint),
            weights_sha256="x",
            played=Played(seed=request.seed, deterministic=True, rewards=rewards, successes=()),
        )
        write_atomic(request.result, finished.model_dump_json())

    def _finish(self, request: FinishRequest) -> None:
        run_dir = RunDir(request.run)
        config = yaml.safe_load(run_dir.config.read_text(encoding="utf-8"))
        gain = self._gain if config["algorithm"]["learning_rate"] == 1e-2 else 0.0
        rng = np.random.default_rng([config["seed"], request.seed])
        rewards = (rng.normal(size=request.episodes) + gain).round(3).tolist()
        run_dir.identity()
        lists = EpisodeLists([64, 128], [rewards[:2], rewards[2:4]], [[1, 1], [1, 1]])
        write_episodes(run_dir, lists)
        if not run_dir.events.exists():
            with EventFile(run_dir.events) as events:
                events.add(RunEnded(timesteps=192, reason="until", exit_code=0))
        finished = FinishedRun(
            timesteps=192,
            policy_timesteps=128,
            weights_sha256="x",
            played=Played(
                seed=request.seed,
                deterministic=True,
                rewards=tuple(rewards),
                successes=tuple(reward > 0 for reward in rewards),
            ),
            host=self._host,
        )
        if run_dir.root.name in self._non_finite:
            finished = FinishedRun(failure="non_finite", text="a loss became NaN", host=self._host)
        write_atomic(request.result, finished.model_dump_json())
