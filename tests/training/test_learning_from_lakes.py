"""Runs that learn from Lakes: broken off, resumed and compared with the run that was not."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.config.loader import dump_config
from game_rl.errors import CheckpointError, Interrupted, LakeError, UsageError
from game_rl.events import (
    CheckpointSaved,
    Evaluated,
    Event,
    LakesFollowed,
    OfflineProgress,
    RowsDrawn,
)
from game_rl.events.event_log import read_events
from game_rl.events.lineage import read_lineage
from game_rl.experiments.jobs.job_files import StretchRequest
from game_rl.experiments.jobs.member_jobs import run_stretch
from game_rl.files.durable_files import write_atomic
from game_rl.files.run_dir import RunDir
from game_rl.lake.lake import Lake
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.system.stop_request import StopRequest
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork
from game_rl.training.train import TrainCommand, resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.extensions.test_lake_extension import console, told
from tests.training.forks import whole_run

DQN = (
    "{name: dqn, replay: {capacity: 60}, learning_starts: 40, batch_size: 16, n_step: 2, "
    "learn_from: {lakes: [LAKE], own_share: {start: 0.3, end: 0.9, until: 150}, offline: OFFLINE}}"
)
OFFLINE = "{gradient_steps: 12, evaluate_every_gradient_steps: 5, save_every_gradient_steps: 4}"


@pytest.fixture
def lake(make_config: MakeConfig) -> Path:
    """Of a run of PQN."""
    return whole_run(make_config, "pqn", name="others").lake


def overrides(lake: Path, *, offline: str = "null") -> tuple[str, ...]:
    algorithm = DQN.replace("LAKE", str(lake)).replace("OFFLINE", offline)
    return (
        f"algorithm={algorithm}",
        "recording.episodes=0",
        "checkpoints.save_replay_buffer=true",
    )


def assert_same_end(one: Path, other: Path) -> None:
    ours, theirs = (Checkpoint(RunDir(root).checkpoint(192)) for root in (one, other))
    for name, weight in ours.policy().items():
        assert torch.equal(weight, theirs.policy()[name]), name
    assert ours.state.best == theirs.state.best
    assert RunDir(one).evaluations.read_text(encoding="utf-8") == RunDir(
        other
    ).evaluations.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_mixed_run_that_was_broken_off_is_the_run_that_was_not(
    make_config: MakeConfig, lake: Path
) -> None:
    whole, broken = (make_config(name, *overrides(lake)) for name in ("whole", "broken"))
    train(whole, command(console()))
    train(broken, command(console(), until=100))
    output = console()
    resume(broken.run_dir, command(output))
    assert_same_end(whole.run_dir, broken.run_dir)
    assert "warning" not in told(output)
    kept = {path.name for path in RunDir(broken.run_dir).checkpoints_newest_first()}
    stream = RunDir(broken.run_dir).identity().id
    pins = {path.stem.partition(".")[2] for path in lake.glob(f"pins/reads-{stream}.*.json")}
    assert pins == kept


def test_the_lineage_names_the_lake_s_run_and_what_it_had_played(
    make_config: MakeConfig, lake: Path
) -> None:
    config = make_config("run", *overrides(lake))
    train(config, command(console()))
    (source,) = read_lineage(RunDir(config.run_dir)).sources
    assert (source.kind, source.path) == ("lake", str(lake))
    assert source.run == RunDir(lake.parent).identity().id
    newest = RunDir(lake.parent).checkpoints_newest_first()[0]
    assert source.timesteps == int(newest.name)
    assert source.frame_skip == config.env.frame_skip


@pytest.mark.slow
def test_a_run_that_follows_sees_what_a_lake_gains_and_its_books_go_on(
    make_config: MakeConfig, lake: Path
) -> None:
    follows = "algorithm.learn_from.follow_every_s=0.1"
    config = make_config("run", *overrides(lake), follows)
    train(config, command(console(), until=100))
    pqn = "algorithm={name: pqn, n_steps: 16, batch_size: 16}"
    more = make_config("more", pqn, f"lake={{path: {lake}}}", "recording.episodes=0")
    train(more, command(console()))
    output = console()
    resume(config.run_dir, command(output))
    assert "warning" not in told(output)
    checkpoint = Checkpoint(RunDir(config.run_dir).checkpoint(192))
    books: Any = checkpoint.play().algorithm["learn_from"]
    streams = {RunDir(root).identity().id for root in (lake.parent, more.run_dir)}
    assert set(books["n_of_streams"]) == streams
    assert sum(books["n_of_streams"].values()) + books["n_own"] == 16 * checkpoint.state.n_updates
    assert books["followed"] == Lake.open(lake).view().sequences
    assert not list(lake.glob("pins/*.following.json"))
    (*_, followed) = (
        e for e in read_events(RunDir(config.run_dir)) if isinstance(e, LakesFollowed)
    )
    assert (followed.own_drawn, followed.rows) == (books["n_own"], len(Lake.open(lake).view()))
    (*_, drawn) = (e for e in read_events(RunDir(config.run_dir)) if isinstance(e, RowsDrawn))
    assert (drawn.own, drawn.streams) == (books["n_own"], books["n_of_streams"])


class StopAfter:
    """Asks for a stop once the phase is so far."""

    def __init__(self, gradient_steps: int, stop: StopRequest) -> None:
        self._gradient_steps, self._stop = gradient_steps, stop

    def __call__(self, event: Event) -> None:
        steps = getattr(event, "gradient_steps", None) or getattr(
            event, "offline_gradient_steps", None
        )
        if steps is not None and steps >= self._gradient_steps:
            self._stop.ask(Interrupted("stopped"))


@pytest.mark.slow
def test_learning_before_the_first_timestep_goes_on_where_it_was_stopped(
    make_config: MakeConfig, lake: Path
) -> None:
    whole, broken = (
        make_config(name, *overrides(lake, offline=OFFLINE)) for name in ("whole", "broken")
    )
    train(whole, command(console()))
    stop = StopRequest()
    with pytest.raises(
        Interrupted, match=r"saved up to gradient step \d before the first timestep"
    ):
        train(broken, TrainCommand(stop=stop, listeners=[StopAfter(5, stop)]))
    assert not RunDir(broken.run_dir).checkpoints_newest_first()
    with pytest.raises(UsageError, match="already holds a run at timestep 0"):
        train(broken, command(console()))
    resume(broken.run_dir, command(console(), until=0))
    assert [p.name for p in RunDir(broken.run_dir).checkpoints_newest_first()] == ["0" * 12]
    resume(broken.run_dir, command(console()))
    assert_same_end(whole.run_dir, broken.run_dir)


def test_a_run_that_is_in_the_phase_is_neither_forked_nor_set_back(
    make_config: MakeConfig, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fork of such a checkpoint would begin as if the phase had ended."""
    config = make_config("run", *overrides(lake, offline=OFFLINE))
    stop = StopRequest()
    with pytest.raises(Interrupted):
        train(config, TrainCommand(stop=stop, listeners=[StopAfter(5, stop)]))
    root, other = config.run_dir, tmp_path / "fork"
    with pytest.raises(UsageError, match=r"still learning before .* --until 0, then --fork .*@0"):
        find_source(root, None)
    steps = RunDir(root).offline.checkpoints_newest_first()
    with pytest.raises(CheckpointError, match=r"gradient steps \d, .*--until 0"):
        find_source(root, 0)
    with pytest.raises(CheckpointError, match="belong to the phase before the first timestep"):
        resume(root, command(console()), at=int(steps[0].name))
    for run in (f"{root}", f"{root}@0"):
        assert main(["train", "--fork", run, "--set", f"run_dir={other}"]) == 2
        assert "--until 0" in capsys.readouterr().err
    assert not other.exists()
    assert RunDir(root).offline.checkpoints_newest_first() == steps


@pytest.mark.slow
def test_a_fork_that_counts_anew_begins_with_the_phase_and_its_parent_s_weights(
    make_config: MakeConfig, lake: Path, tmp_path: Path
) -> None:
    parent = make_config("parent", *overrides(lake, offline=OFFLINE))
    train(parent, command(console()))
    source = find_source(parent.run_dir, None)
    config = forked_config(source, tmp_path / "fork", {}, fork={"counters": "new"})
    make_fork(plan_fork(config))
    fork = RunDir(config.run_dir)
    (first,) = fork.offline.checkpoints_newest_first()
    assert not fork.checkpoints_newest_first()
    assert Checkpoint(first).state.offline_gradient_steps == 0
    weights = "policy.safetensors"
    assert Checkpoint(first).files[weights] == source.checkpoint.files[weights]
    resume(fork.root, command(console(), until=0))
    assert Checkpoint(fork.checkpoint(0)).state.offline_gradient_steps == 12
    assert Checkpoint(fork.checkpoint(0)).files[weights] != source.checkpoint.files[weights]


@pytest.mark.slow
def test_a_fork_of_the_phase_s_end_is_the_run_that_went_on(
    make_config: MakeConfig, lake: Path, tmp_path: Path
) -> None:
    parent = make_config("parent", *overrides(lake, offline=OFFLINE))
    train(parent, command(console(), until=0))
    source = find_source(parent.run_dir, 0)
    forks = [
        forked_config(source, tmp_path / name, {("algorithm", "learn_from", "own_share"): share})
        for name, share in {"same": {"start": 0.3, "end": 0.9, "until": 150}, "own": 1.0}.items()
    ]
    for fork in forks:
        train(fork, command(console()))
    resume(parent.run_dir, command(console()))
    assert_same_end(parent.run_dir, forks[0].run_dir)
    ends = [Checkpoint(RunDir(fork.run_dir).checkpoint(192)).policy() for fork in forks]
    assert any(not torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    streams = {each.run for each in read_lineage(RunDir(forks[0].run_dir)).sources}
    assert streams == {RunDir(parent.run_dir).identity().id, RunDir(lake.parent).identity().id}


def test_the_phase_is_told_evaluated_and_saved(make_config: MakeConfig, lake: Path) -> None:
    config = make_config("run", *overrides(lake, offline=OFFLINE))
    seen: list[Event] = []
    train(config, TrainCommand(until=0, stop=StopRequest(), listeners=[seen.append]))
    events = read_events(RunDir(config.run_dir))
    evaluated = [e.offline_gradient_steps for e in events if isinstance(e, Evaluated)]
    saved = [e.offline_gradient_steps for e in events if isinstance(e, CheckpointSaved)]
    assert evaluated == [5, 10, 12]
    assert {4, 5, 8, 12} <= set(saved)
    assert all(event.timesteps == 0 for event in events)
    assert {e.total for e in seen if isinstance(e, OfflineProgress)} == {12}
    state = Checkpoint(RunDir(config.run_dir).checkpoint(0)).state
    assert (state.offline_gradient_steps, state.n_updates) == (12, 12)
    with np.load(RunDir(config.run_dir).evaluation_episodes) as arrays:
        assert arrays["timesteps"].tolist() == [0]
        assert arrays["results"].shape == arrays["ep_lengths"].shape == (1, 2)
        last = [e for e in events if isinstance(e, Evaluated)][-1]
        assert arrays["results"].mean() == pytest.approx(last.mean_reward)
    best = state.best
    assert best is not None
    left = [int(p.name) for p in RunDir(config.run_dir).offline.checkpoints_newest_first()]
    assert left == ([best.offline_gradient_steps] if best.offline_gradient_steps else [])


def test_rows_that_are_lost_and_lakes_that_are_gone_are_told(
    make_config: MakeConfig, lake: Path
) -> None:
    config = make_config("run", *overrides(lake))
    train(config, command(console(), until=100))
    Lake.open(lake).delete_stream(RunDir(lake.parent).identity().id)
    output = console()
    with pytest.raises(LakeError, match="no sealed transitions"):
        resume(config.run_dir, command(output))
    shutil.rmtree(lake)
    with pytest.raises(LakeError, match="is not a Lake"):
        resume(config.run_dir, command(output))


def test_another_frame_skip_is_refused_before_anything_starts(
    make_config: MakeConfig, lake: Path
) -> None:
    config = make_config("run", *overrides(lake), "env.frame_skip=4")
    with pytest.raises(LakeError, match=r"env\.frame_skip: 8 there, 4 in this run"):
        train(config, command(Console(quiet=True)))
    assert not RunDir(config.run_dir).exists()


@pytest.mark.slow
def test_a_member_that_learned_from_lakes_first_keeps_a_best_that_plays(
    make_config: MakeConfig, lake: Path, tmp_path: Path
) -> None:
    """Weights hardly change, so in the same games the phase would have reached as much."""
    changed = ("algorithm.learning_rate=1e-12", "evaluation.every_timesteps=192")
    config = make_config("member", *overrides(lake, offline=OFFLINE), *changed)
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    write_atomic(run_dir.config, dump_config(config))
    result = tmp_path / "result.json"
    stretch = run_stretch(
        StretchRequest(root=tmp_path, run=run_dir.root, until=192, seed=7, result=result),
        StopRequest(),
    )
    best = Checkpoint(run_dir.checkpoint(192)).state.best
    assert best is not None
    assert (best.timesteps, best.seed) == (192, 7)
    run = open_trained_run(run_dir.root, "best")
    assert stretch.played is not None
    assert evaluate_run(run, episodes=2, seed=7).rewards == stretch.played.rewards
