"""A run in one stretch or in many is the same run."""

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import psutil
import pytest
import torch
from rich.console import Console

from game_rl.callbacks.evaluation import EvaluationInterrupted
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_folder import best_of
from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.events import Evaluated, Evaluating, Event
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.system.stop_request import StopRequest
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.examples import variants
from tests.tiny_run import TINY_GAME, MakeConfig, command, train_once

FALLING = "learning_rate: {start: 1e-2, end: 0}"
ALGORITHMS = {
    "ppo": f"{{n_steps: 16, batch_size: 16, n_epochs: 2, clip_range: 0.3, {FALLING}}}",
    "pqn": f"{{name: pqn, n_steps: 16, batch_size: 16, {FALLING}}}",
    "dqn": (
        "{name: dqn, replay: {capacity: 150}, learning_starts: 40, n_step: 2, train_freq: 8, "
        f"target_update_interval: 30, {FALLING}}}"
    ),
}
STRETCHES = [1, 40, 64, 65, 130, 170, 10**6]
COMPARED = (
    "policy.safetensors", "optimizer.safetensors", "arrays.safetensors", "replay.safetensors",
)  # fmt: skip

MakeRun = Callable[..., RunConfig]


def quiet() -> Console:
    return Console(file=StringIO())


@pytest.fixture
def make_run(make_config: MakeConfig) -> MakeRun:
    def make(name: str, algorithm: str, *more: str) -> RunConfig:
        overrides = [
            f"algorithm={ALGORITHMS[algorithm]}",
            "env={n_envs: 2, n_workers: 2, frame_skip: 8, max_episode_timesteps: 25}",
            "recording.episodes=0",
            *more,
        ]
        if algorithm == "dqn":
            overrides.append("checkpoints.save_replay_buffer=true")
        return make_config(name, *overrides)

    return make


def hashes(run_dir: Path) -> dict[str, str]:
    """Of what the last checkpoint holds."""
    newest = RunDir(run_dir).checkpoints_newest_first()[0]
    assert int(newest.name) == 192
    files = json.loads((newest / "manifest.json").read_text(encoding="utf-8"))["files"]
    return {name: files[name]["sha256"] for name in COMPARED if name in files}


def assert_same_run(found: Path, expected: Path) -> None:
    assert hashes(found) == hashes(expected)
    tables = [RunDir(root).evaluations.read_text(encoding="utf-8") for root in (found, expected)]
    assert tables[0] == tables[1]
    files = [RunDir(root).evaluation_episodes.read_bytes() for root in (found, expected)]
    assert files[0] == files[1]
    newest = [Checkpoint(RunDir(root).checkpoints_newest_first()[0]) for root in (found, expected)]
    assert newest[0].state.best == newest[1].state.best


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", variants("dqn", slow=["ppo", "pqn"]))
def test_seven_stretches_of_one_session_are_one_stretch(make_run: MakeRun, algorithm: str) -> None:
    whole, parts = make_run("whole", algorithm), make_run("parts", algorithm)
    train_once(whole)
    RunDir(parts.run_dir).root.mkdir()
    with (
        training_process(),
        TrainingSession(parts, load_game(str(TINY_GAME)), RunDir(parts.run_dir)) as session,
    ):
        for until in STRETCHES:
            before = session.num_timesteps
            session.learn_until(until)
            rollout = parts.rollout_timesteps
            reached = min(-(-until // rollout) * rollout, 192)
            assert session.num_timesteps == max(before, reached)
    assert_same_run(parts.run_dir, whole.run_dir)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "pqn"])
def test_seven_commands_with_until_are_one_command(make_run: MakeRun, algorithm: str) -> None:
    whole, parts = make_run("whole", algorithm), make_run("parts", algorithm)
    train_once(whole)
    first = train(parts, command(quiet(), until=STRETCHES[0]))
    assert (first.evaluation, first.video) == (None, None)
    for until in STRETCHES[1:]:
        result = resume(parts.run_dir, command(quiet(), until=until))
    assert result.evaluation is not None
    assert_same_run(parts.run_dir, whole.run_dir)


@pytest.mark.slow
def test_a_stretch_that_was_reached_changes_nothing(make_run: MakeRun) -> None:
    config = make_run("run", "ppo")
    train(config, command(quiet(), until=96))
    run_dir = RunDir(config.run_dir)
    before = {p: p.read_bytes() for p in run_dir.checkpoints.rglob("*") if p.is_file()}
    result = resume(config.run_dir, command(quiet(), until=50))
    assert result.timesteps == 96
    assert {p: p.read_bytes() for p in run_dir.checkpoints.rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_evaluating_between_two_stretches_is_not_noticed(make_run: MakeRun) -> None:
    more = ["evaluation.deterministic=false"]  # which draws random numbers
    whole, parts = make_run("whole", "ppo", *more), make_run("parts", "ppo", *more)
    train_once(whole)
    RunDir(parts.run_dir).root.mkdir()
    with (
        training_process(),
        TrainingSession(parts, load_game(str(TINY_GAME)), RunDir(parts.run_dir)) as session,
    ):
        session.learn_until(90)
        first = session.evaluate(2, seed=5)
        assert session.evaluate(2, seed=5) == first
        session.learn_until(192)
    assert_same_run(parts.run_dir, whole.run_dir)


class StopWhileEvaluating:
    """A Listener that asks to stop when the evaluation at some timestep begins."""

    def __init__(self, stop: StopRequest, timesteps: int, *, is_final: bool = False) -> None:
        self._stop, self._timesteps, self._is_final = stop, timesteps, is_final

    def __call__(self, event: Event) -> None:
        if (
            isinstance(event, Evaluating)
            and event.timesteps == self._timesteps
            and event.is_final == self._is_final
        ):
            self._stop.ask(Interrupted("stopped by SIGTERM", exit_code=143))


def train_until_stopped(config: RunConfig, timesteps: int, *, is_final: bool = False) -> str:
    """Start, or go on; what the interruption says."""
    stop = StopRequest()
    how = command(quiet(), stop=stop)
    asking = StopWhileEvaluating(stop, timesteps, is_final=is_final)
    how = type(how)(stop=stop, listeners=[asking])
    with pytest.raises(Interrupted) as stopped:
        train(config, how)
    assert stopped.value.exit_code == 143
    return str(stopped.value)


@pytest.mark.slow
@pytest.mark.parametrize("timesteps", variants(64, slow=[128, 192]))
@pytest.mark.parametrize("algorithm", variants("ppo", slow=["dqn"]))
def test_a_stop_does_not_wait_for_an_evaluation_and_the_resumed_run_plays_it(
    make_run: MakeRun, timesteps: int, algorithm: str
) -> None:
    more = ["evaluation.deterministic=false"] if algorithm == "ppo" else []
    whole, broken = make_run("whole", algorithm, *more), make_run("broken", algorithm, *more)
    train_once(whole)
    assert f"saved up to timestep {timesteps}" in train_until_stopped(broken, timesteps)
    run_dir = RunDir(broken.run_dir)
    newest = Checkpoint(run_dir.checkpoints_newest_first()[0])
    assert newest.state.num_timesteps == timesteps
    assert newest.state.evaluation_due
    resume(broken.run_dir, command(quiet()))
    assert hashes(broken.run_dir) == hashes(whole.run_dir)
    tables = [RunDir(c.run_dir).evaluations.read_text(encoding="utf-8") for c in (broken, whole)]
    assert tables[0] == tables[1]
    files = [RunDir(c.run_dir).evaluation_episodes.read_bytes() for c in (broken, whole)]
    assert files[0] == files[1]
    last = [Checkpoint(RunDir(c.run_dir).checkpoint(192)) for c in (broken, whole)]
    bests = [best_of(RunDir(c.run_dir), at) for c, at in zip((broken, whole), last, strict=True)]
    assert bests[0] is not None
    assert bests[1] is not None
    assert bests[0].timesteps == bests[1].timesteps


@pytest.mark.slow
def test_a_stop_in_the_final_evaluation_says_that_the_training_is_complete(
    make_run: MakeRun,
) -> None:
    config = make_run("run", "ppo")
    assert "the training is complete" in train_until_stopped(config, 192, is_final=True)
    result = resume(config.run_dir, command(quiet()))
    assert result.evaluation is not None


def test_a_session_whose_evaluation_is_stopped_raises_and_goes_on(make_run: MakeRun) -> None:
    config = make_run("run", "ppo")
    RunDir(config.run_dir).root.mkdir()
    stop = StopRequest()
    with (
        training_process(),
        TrainingSession(
            config, load_game(str(TINY_GAME)), RunDir(config.run_dir), stop=stop
        ) as session,
    ):
        stop.ask(Interrupted("enough"))
        with pytest.raises(EvaluationInterrupted):
            session.evaluate(2, seed=0)


@pytest.mark.slow
def test_the_account_of_a_resumed_run_is_that_of_a_run_without_a_break(make_run: MakeRun) -> None:
    whole, parts = make_run("whole", "ppo"), make_run("parts", "ppo")
    train_once(whole)
    train(parts, command(quiet(), until=96))
    resume(parts.run_dir, command(quiet()))

    def account(config: RunConfig) -> list[tuple[str, int]]:
        found = read_events(RunDir(config.run_dir))
        return [
            (event.event, event.timesteps)
            for event in found
            if event.event in ("begun", "rollout_ended", "evaluated")
        ]

    assert account(parts) == account(whole)
    with RunDir(parts.run_dir).evaluations.open(encoding="utf-8") as file:
        rows = [float(row["mean_reward"]) for row in csv.DictReader(file)]
    evaluated = [e for e in read_events(RunDir(parts.run_dir)) if isinstance(e, Evaluated)]
    assert [round(e.mean_reward, 4) for e in evaluated if not e.is_final] == rows


@pytest.mark.slow
def test_a_run_that_begins_again_keeps_its_identity(make_run: MakeRun) -> None:
    config = make_run(
        "run", "ppo", "checkpoints.every_timesteps=192", "evaluation.every_timesteps=192"
    )
    train(config, command(quiet(), until=32))
    run_dir = RunDir(config.run_dir)
    first = run_dir.identity()
    for path in run_dir.checkpoints_newest_first():
        path.rename(config.run_dir.parent / path.name)
    resume(config.run_dir, command(quiet(), until=32))
    assert run_dir.identity() == first
    begun = [event for event in read_events(run_dir) if event.event == "begun"]
    assert [event.run for event in begun] == [first.id]


def test_events_reach_listeners_and_what_is_not_kept_leaves_no_line(make_run: MakeRun) -> None:
    config = make_run("run", "ppo")
    told: list[Event] = []
    RunDir(config.run_dir).root.mkdir()
    with (
        training_process(),
        TrainingSession(
            config,
            load_game(str(TINY_GAME)),
            RunDir(config.run_dir),
            events=EventLog(listeners=[told.append]),
        ) as session,
    ):
        session.learn_until(64)
    assert {"rollout_ended", "evaluating", "evaluated"} <= {event.event for event in told}
    assert not RunDir(config.run_dir).events.exists()


def test_torch_has_as_many_threads_after_a_stretch_as_before(make_run: MakeRun) -> None:
    config = make_run("run", "ppo")
    RunDir(config.run_dir).root.mkdir()
    with (
        training_process(),
        TrainingSession(config, load_game(str(TINY_GAME)), RunDir(config.run_dir)) as session,
    ):
        before = torch.get_num_threads()
        session.learn_until(32)
        assert torch.get_num_threads() == before


def test_an_extension_that_cannot_be_built_leaves_no_file_open(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    section = json.dumps({"from": str(tmp_path / "gone")})
    config = make_config("run", f"env.pool={section}")
    config.run_dir.mkdir()
    game = load_game(config.game)
    with training_process(), pytest.raises(UsageError, match="does not exist"):
        TrainingSession(config, game, RunDir(config.run_dir))
    assert (config.run_dir / "monitor.csv").is_file()
    open_files = {Path(file.path).name for file in psutil.Process().open_files()}
    assert "monitor.csv" not in open_files
