"""A run that has won ends as at its total, wherever it was broken off, and goes on when told to."""

import json
import shlex
import shutil
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_state import StopCounters
from game_rl.cli.main import main
from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import RunConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.events import (
    ConfirmationPlayed,
    Ended,
    Evaluated,
    Evaluating,
    Event,
    StopConditionMet,
)
from game_rl.events.event_log import read_events
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.files.run_dir import RunDir
from game_rl.system.stop_request import StopRequest
from game_rl.training.forking import make_fork, plan_fork
from game_rl.training.train import TrainCommand, resume, train
from tests.tiny_run import TINY, MakeConfig, train_once

# every reward is above -100, so the second evaluation, at timestep 128, nominates
WINS = "stop_when={mean_reward: -100, evaluations: 2, confirm_episodes: 3}"  # and 6 new episodes


def command(
    listener: Callable[[Event], None] = lambda _: None, stop: StopRequest | None = None
) -> TrainCommand:
    return TrainCommand(stop=stop or StopRequest(), listeners=[listener])


def config_in(folder: Path, *overrides: str) -> RunConfig:
    folder.mkdir(exist_ok=True)
    path = folder / "run.yaml"
    path.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return load_config(path, ["checkpoints={every_timesteps: 32, keep_last: 20}", *overrides])


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDir, str]:
    """A run that has won at timestep 128 of 192, and what its command printed."""
    config = config_in(tmp_path_factory.mktemp("it has") / "won", WINS, "recording.episodes=1")
    path = config.run_dir.with_suffix(".yaml")
    path.write_text(dump_config(config), encoding="utf-8")
    with redirect_stdout(StringIO()) as printed:
        assert main(["train", "--config", str(path)]) == 0
    return RunDir(config.run_dir), printed.getvalue()


@pytest.fixture(scope="module")
def won(command_line: tuple[RunDir, str]) -> RunDir:
    """The run alone; the tests only read it."""
    return command_line[0]


@pytest.fixture
def copy(won: RunDir, tmp_path: Path) -> RunDir:
    shutil.copytree(won.root, tmp_path / "run")
    run_dir = RunDir(tmp_path / "run")
    run_dir.config.write_text(
        run_dir.config.read_text(encoding="utf-8").replace(str(won.root), str(run_dir.root)),
        encoding="utf-8",
    )
    return run_dir


def newest(run_dir: RunDir) -> Checkpoint:
    return Checkpoint(run_dir.checkpoints_newest_first()[0])


def assert_same_end(found: RunDir, expected: RunDir) -> None:
    ours, theirs = newest(found), newest(expected)
    assert ours.state.num_timesteps == theirs.state.num_timesteps
    assert ours.state.stop_counters == theirs.state.stop_counters
    assert ours.state.best == theirs.state.best
    weights = dict(ours.policy()), dict(theirs.policy())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert found.evaluations.read_text(encoding="utf-8") == expected.evaluations.read_text(
        encoding="utf-8"
    )
    played = [
        [
            event.model_dump(exclude={"time", "seconds", "timesteps_per_s"})
            for event in read_events(run_dir)
            if isinstance(event, Evaluated | ConfirmationPlayed | StopConditionMet | Ended)
        ]
        for run_dir in (found, expected)
    ]
    assert played[0] == played[1]


def test_a_run_that_has_won_ends_as_at_its_total(won: RunDir) -> None:
    state, events = newest(won).state, read_events(won)
    assert state.num_timesteps == 128
    assert state.schedule_timesteps == 192
    assert newest(won).has_envs
    (played,) = (e for e in events if isinstance(e, ConfirmationPlayed))
    (met,) = (e for e in events if isinstance(e, StopConditionMet))
    assert (played.episodes, played.timesteps, played.is_reached) == (6, 128, True)
    assert state.best is not None
    assert (state.best.timesteps, state.best.deterministic) == (128, played.deterministic)
    final, ended = (
        [e for e in events if isinstance(e, Evaluated)][-1],
        events[-1],
    )
    assert final.is_final
    assert final.policy_timesteps == 128
    assert isinstance(ended, Ended)
    assert (ended.reason, ended.exit_code, ended.text) == ("completed", 0, met.text)
    assert met.text.startswith("stop_when.mean_reward: ")
    assert (won.videos / "best.gif").is_file()
    assert state.training_s > 0


def test_the_command_says_why_it_ended_and_what_to_look_at_next(
    command_line: tuple[RunDir, str],
) -> None:
    run_dir, printed = command_line
    assert "the run may end early: a mean reward of -100 in 2 evaluations in a row" in printed
    assert "128   confirmation: mean reward" in printed
    assert "128   the run ends here: stop_when.mean_reward: " in printed
    assert "\nended early  stop_when.mean_reward: " in printed
    last = printed.partition("what to look at next:\n")[2].splitlines()
    words = {line.split()[0]: shlex.split(line)[1:] for line in last}
    assert words["clip"] == [str(run_dir.videos / "best.gif")]
    assert words["watch"][1:] == ["watch", str(run_dir.root), "--open"]
    assert words["curves"][1:] == ["--logdir", str(run_dir.root)]
    assert words["evaluate"][1:3] == ["evaluate", str(run_dir.root)]


def test_status_says_what_ended_it(won: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(won.root)]) == 0
    words = (line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    lines = dict(pair for pair in words if len(pair) == 2)
    assert lines["state"] == "complete"
    assert lines["ended"].startswith("early  stop_when.mean_reward: ")
    assert lines["timesteps"].startswith("128 of 192")


def test_status_says_what_may_end_it(copy: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    events = copy.events.read_text(encoding="utf-8").splitlines(keepends=True)
    copy.events.write_text(
        "".join(line for line in events if '"timesteps":128' not in line), encoding="utf-8"
    )
    assert main(["status", str(copy.root)]) == 0
    said = capsys.readouterr().out
    assert "of at most 192" in said
    assert (
        "ends early   after a mean reward of -100 in 2 evaluations in a row and in 3 to 12" in said
    )


def test_compare_counts_a_run_that_has_won(won: RunDir) -> None:
    found = read_folder(won.root)
    assert found.score is not None
    assert (found.score.episodes, found.timesteps, found.failure) == (2, 128, "")


@pytest.mark.slow
@pytest.mark.parametrize("timesteps", [64, 96])
def test_a_run_that_was_killed_between_evaluations_decides_the_same(
    copy: RunDir, won: RunDir, timesteps: int
) -> None:
    for path in copy.checkpoints_newest_first():
        if int(path.name) > timesteps:
            shutil.rmtree(path)
    resume(copy.root, command())
    assert_same_end(copy, won)


@pytest.mark.slow
def test_a_run_that_was_stopped_in_the_confirmation_plays_it_again(
    won: RunDir, tmp_path: Path
) -> None:
    stop, batches = StopRequest(), []

    def in_the_confirmation(event: Event) -> None:
        if isinstance(event, Evaluating) and event.episodes == 3:
            batches.append(event)
        if len(batches) == 2 and not stop.is_asked:
            stop.ask(Interrupted("stopped by SIGTERM", exit_code=143))

    with pytest.raises(Interrupted):
        train(config_in(tmp_path, WINS), command(in_the_confirmation, stop))
    run_dir = RunDir(tmp_path / "run")
    assert len(batches) == 2
    assert newest(run_dir).state.evaluation_due
    assert newest(run_dir).state.stop_counters.mean_reward == 1
    resume(run_dir.root, command())
    assert_same_end(run_dir, won)


def test_resuming_says_that_it_has_won_and_touches_nothing(
    copy: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p: p.stat().st_mtime_ns for p in copy.root.rglob("*") if p.is_file()}
    assert main(["train", "--resume", str(copy.root)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "has ended at timestep 128" in said
    assert "stop_when.mean_reward" in said
    assert f"with game-rl train --resume {copy.root} --set stop_when=null" in said
    assert {p: p.stat().st_mtime_ns for p in copy.root.rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_a_run_that_goes_on_is_the_run_that_never_had_a_condition(
    copy: RunDir, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = train_once(config_in(tmp_path_factory.mktemp("whole")))
    resume(copy.root, command(), overrides=["stop_when=null"])
    ours, theirs = newest(copy), newest(whole)
    assert (ours.state.num_timesteps, ours.state.stop_counters.met) == (192, "")
    weights = dict(ours.policy()), dict(theirs.policy())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert read_events(copy)[-1].model_dump()["text"] == ""
    assert ours.state.training_s > newest_at(copy, 128).state.training_s > 0


def test_a_fork_of_a_run_that_has_won_goes_on(won: RunDir, tmp_path: Path) -> None:
    fork = f"fork={{run: {json.dumps(str(won.root))}}}"
    config = load_config(won.config, [fork, f"run_dir={tmp_path / 'fork'}"], is_saved=True)
    make_fork(plan_fork(config))
    state = newest(RunDir(config.run_dir)).state
    assert config.stop_when is not None
    assert (state.num_timesteps, state.stop_counters, state.training_s) == (128, StopCounters(), 0)


def newest_at(run_dir: RunDir, timesteps: int) -> Checkpoint:
    return Checkpoint(run_dir.checkpoint(timesteps))


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    ["{n_steps: 16, batch_size: 16}", "{name: dqn, learning_starts: 9, replay: {capacity: 99}}"],
    ids=["ppo", "dqn"],
)
def test_hours_end_a_run_at_a_boundary_with_an_evaluation(
    make_config: MakeConfig, algorithm: str
) -> None:
    overrides = ("stop_when={hours: 1.0e-6}", "total_timesteps=100_000", "recording.episodes=0")
    config = make_config("run", f"algorithm={algorithm}", *overrides)
    result = train(config, command())
    assert result.evaluation is not None
    assert result.timesteps < 200
    run_dir = RunDir(config.run_dir)
    evaluated = [e.timesteps for e in read_events(run_dir) if isinstance(e, Evaluated)]
    assert set(evaluated) == {result.timesteps}
    ended = read_events(run_dir)[-1]
    assert isinstance(ended, Ended)
    assert ended.text == "stop_when.hours: the run has trained for 1e-06 h"


def test_a_success_rate_needs_a_game_that_knows_success(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    from game_rl.games.definition import load_game

    folder = tmp_path / "game"
    shutil.copytree(load_game("duel").folder, folder)
    lines = (folder / "game.yaml").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("success:")]
    assert len(kept) == len(lines) - 1
    (folder / "game.yaml").write_text("\n".join(kept), encoding="utf-8")
    config = make_config("run", f"game={folder / 'game.yaml'}", "stop_when={success_rate: 0.9}")
    with pytest.raises(UsageError, match=r"does not define success; write stop_when: \{mean_rew"):
        train(config, command())
