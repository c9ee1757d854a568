"""An executor whose members train on paper: a checkpoint is a hash of all that led to it.

It does what the requests of jobs ask for, in a millisecond each,
so that a controller can be broken off at every single step.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from game_rl.experiments.executors.executor import CompletedJob, Job
from game_rl.experiments.jobs.job_files import (
    ActionDifferences,
    CompareActionsRequest,
    CopyRequest,
    JobRequest,
    Played,
    PlayRequest,
    StretchRequest,
    StretchResult,
    read_request,
)
from game_rl.files.durable_files import new_directory, write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from tests.lake.plays import SCHEMA


class PaperExecutor:
    """Carries jobs out when they are asked after, in the order in which they began.

    Args:
        non_finite: (run directory's name, timestep) of stretches that break the weights.
        exit_codes: by a part of a job's name: what its first processes end with, doing nothing.
    """

    def __init__(
        self,
        slots: int = 2,
        *,
        non_finite: Sequence[tuple[str, int]] = (),
        exit_codes: dict[str, list[int]] | None = None,
    ) -> None:
        self.slots = slots
        self.started: list[Job] = []
        self.requests: list[JobRequest] = []
        self._running: list[Job] = []
        self._non_finite = set(non_finite)
        self._exit_codes = exit_codes or {}

    def start(self, job: Job) -> None:
        assert len(self._running) < self.slots
        self.started.append(job)
        self.requests.append(read_request(job.request))
        self._running.append(job)

    def wait(self, timeout_s: float) -> list[CompletedJob]:  # noqa: ARG002
        if not self._running:
            return []
        job = self._running.pop(0)
        for part, codes in self._exit_codes.items():
            if part in job.name and codes:
                return [CompletedJob(job, codes.pop(0), "paper", "what it printed")]
        match read_request(job.request):
            case StretchRequest() as request:
                self._train(request)
            case CopyRequest() as request:
                self._copy(request)
            case PlayRequest() as request:
                path = RunDir(request.run).checkpoint(request.checkpoint)
                self._leave(request.result, _played(path, request.seed, request.episodes))
            case CompareActionsRequest() as request:
                self._compare_actions(request)
        return [CompletedJob(job, 0, "paper")]

    def trained(self) -> list[str]:
        """The names of the stretches that were started."""
        pairs = zip(self.started, self.requests, strict=True)
        return [job.name for job, request in pairs if request.job == "stretch"]

    def ask_to_stop(self) -> None:
        pass

    def close(self) -> None:
        self._running.clear()

    def _train(self, request: StretchRequest) -> None:
        root, until, result = request.run, request.until, request.result
        _make_lake(RunDir(root))
        if (root.name, until) in self._non_finite:
            self._leave(result, StretchResult(timesteps=until, failure="non_finite", text="NaN"))
            return
        run_dir = RunDir(root)
        run_dir.identity()
        path = run_dir.checkpoint(until)
        if not path.exists():
            before = run_dir.checkpoints_newest_first()
            assert all(int(p.name) < until for p in before)
            weights = [_weights(before[0])] if before else []
            config = yaml.safe_load(run_dir.config.read_text(encoding="utf-8"))
            algorithm = config["algorithm"]
            learned = [algorithm["learning_rate"], config["seed"], until, *weights]
            learned += _lake_of(config, root.parent)
            run_dir.checkpoints.mkdir(exist_ok=True)
            if before and not algorithm.get("n_epochs", 1):
                shutil.copytree(before[0], path)  # it plays only
            else:
                write_checkpoint(path, json.dumps(learned, sort_keys=True).encode())
        played = _played(path, request.seed, episodes=8)
        self._leave(
            result,
            StretchResult(
                timesteps=until,
                checkpoint=path.name,
                weights_sha256=_weights(path),
                played=played,
            ),
        )

    def _copy(self, request: CopyRequest) -> None:
        source, at, fork = RunDir(request.run), request.at, request.fork
        config = yaml.safe_load(source.config.read_text(encoding="utf-8"))
        for key, value in request.values.items():
            *sections, last = key.split(".")
            section = config
            for name in sections:
                section = section[name]
            section[last] = value
        begins_at = 0 if fork.get("counters") == "new" else at
        with new_directory(request.to) as folder:
            new = RunDir(folder)
            if fork.get("weight_noise"):
                noise = [fork["weight_noise"], config["seed"], _weights(source.checkpoint(at))]
                new.checkpoints.mkdir()
                write_checkpoint(new.checkpoint(begins_at), json.dumps(noise).encode())
            else:
                shutil.copytree(source.checkpoint(at), new.checkpoint(begins_at))
            new.identity(run_id=request.run_id)
            new.config.write_text(yaml.safe_dump(config), encoding="utf-8")

    def _compare_actions(self, request: CompareActionsRequest) -> None:
        """On paper, a policy's actions are draws from its weights and the observations' seed."""
        seed, n = request.seed, request.observations
        actions = []
        for name, timesteps in request.checkpoints.items():
            weights = _weights(RunDir(request.members / name).checkpoint(timesteps))
            actions.append(np.random.default_rng([seed, int(weights[:12], 16)]).integers(4, size=n))
        shares = tuple(tuple(float((a != b).mean()) for b in actions) for a in actions)
        runs = tuple(request.checkpoints)
        found = ActionDifferences(seed=seed, observations=n, runs=runs, shares=shares)
        self._leave(request.result, found)

    def _leave(self, path: Path, made: StretchResult | Played | ActionDifferences) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, made.model_dump_json())


def _make_lake(run_dir: RunDir) -> None:
    """As a run does that writes one."""
    lake = (yaml.safe_load(run_dir.config.read_text(encoding="utf-8")).get("lake") or {}).get(
        "path"
    )
    if lake is not None:
        Lake.create(Path(lake), SCHEMA)


def _lake_of(config: dict[str, Any], members: Path) -> list[str]:
    """What a learner learns from: the newest weights of all runs that write the Lake, by their ids,
    and up to where they have played.

    Runs that were cloned over have written to it, too, but may keep no checkpoint.
    """
    if config["algorithm"].get("learn_from") is None:
        return []
    writers = [RunDir(p) for p in members.iterdir() if p.name[0].isdigit()]
    writers = [w for w in writers if w.checkpoints_newest_first()]
    writers.sort(key=lambda run_dir: run_dir.identity().id)
    newest = [run_dir.checkpoints_newest_first()[0] for run_dir in writers]
    return [f"{_weights(path)} at {path.name}" for path in newest]


def write_checkpoint(path: Path, content: bytes) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    entry = {"bytes": len(content), "sha256": sha256}
    with new_directory(path) as folder:
        (folder / "policy.safetensors").write_bytes(content)
        files = {"format": 2, "files": {"policy.safetensors": entry}}
        (folder / "manifest.json").write_text(json.dumps(files), encoding="utf-8")


def _weights(path: Path) -> str:
    return hashlib.sha256((path / "policy.safetensors").read_bytes()).hexdigest()


def _played(path: Path, seed: int, episodes: int) -> Played:
    rng = np.random.default_rng([seed, int(_weights(path)[:12], 16)])
    rewards = tuple(rng.normal(size=episodes).round(3).tolist())
    return Played(
        seed=seed,
        deterministic=True,
        rewards=rewards,
        successes=tuple(reward > 0 for reward in rewards),
    )
