"""Trainings of a game whose timesteps play on: its frames, counted by a second, plain sum."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.config.schema import ForkConfig, RunConfig
from game_rl.events import CheckpointSaved, Evaluated, Event, RolloutEnded
from game_rl.events.event_log import EventLog, read_events
from game_rl.events.lineage import played_by, read_lineage
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.lake.origin import disagreement, origin_of
from game_rl.training.fork_parts import Differences, new_parts
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.tiny_run import TINY_GAME, MakeConfig, command
from tests.training.forks import FILES, quiet

FRAME_SKIP = 8


@pytest.fixture
def game(tmp_path: Path) -> Path:
    """The path of the tiny game, which plays on until the fighters are near each other."""
    text = TINY_GAME.read_text(encoding="utf-8")
    folder = (TINY_GAME.parent / "../../game_rl/games/duel").resolve()
    text = text.replace("../../game_rl/games/duel", str(folder))
    variable = load_game(str(TINY_GAME)).number_names[0]
    text += f"\nstep: {{until: {{variable: {variable}, changes: true}}, at_most_frames: 7}}\n"
    path = tmp_path / "game.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def settings(game: Path) -> tuple[str, ...]:
    return (f"game={game}", "checkpoints={every_timesteps: 32, keep_last: 20}", "lake={}")


class Sum(BaseCallback):
    """Adds up what the envs report, apart from the run's own counter."""

    def __init__(self) -> None:
        super().__init__()
        self.by_timesteps = {0: 0}

    def _on_step(self) -> bool:
        waited = [info.get("waited_frames", 0) for info in self.locals["infos"]]
        before = max(self.by_timesteps)
        self.by_timesteps[self.num_timesteps] = self.by_timesteps[before] + sum(waited)
        return True


@pytest.mark.slow
def test_events_and_checkpoints_say_what_was_waited(make_config: MakeConfig, game: Path) -> None:
    config = make_config("run", *settings(game))
    config.run_dir.mkdir()
    counted = Sum()
    events = EventLog()
    heard: list[Event] = []
    events.add_listener(heard.append)
    run_dir = RunDir(config.run_dir)
    with (
        training_process(),
        TrainingSession(
            config, load_game(str(game)), run_dir, events=events, more=[counted]
        ) as session,
    ):
        session.learn_until(config.total_timesteps)
    assert len(set(counted.by_timesteps.values())) > 2
    kinds = CheckpointSaved, RolloutEnded, Evaluated
    told = {(e.timesteps, e.waited_frames) for e in heard if isinstance(e, kinds)}
    assert told == {(t, counted.by_timesteps[t]) for t, _ in told}
    for path in run_dir.checkpoints_newest_first():
        state = Checkpoint(path).state
        assert state.waited_frames == counted.by_timesteps[state.num_timesteps]


@pytest.mark.slow
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(
    make_config: MakeConfig, game: Path
) -> None:
    runs = {}
    for name, until in (("whole", None), ("cut", 96)):
        config = make_config(name, *settings(game))
        train(config, command(quiet(), until=until))
        runs[name] = RunDir(config.run_dir)
    whole, cut = runs["whole"], runs["cut"]
    resume(cut.root, command(quiet()))
    for timesteps in (128, 192):
        for name in FILES:
            ours, theirs = (run.checkpoint(timesteps) / name for run in (cut, whole))
            assert ours.exists() == theirs.exists()
            assert not ours.exists() or ours.read_bytes() == theirs.read_bytes()
        states = [Checkpoint(run.checkpoint(timesteps)).state for run in (cut, whole)]
        assert states[0].waited_frames == states[1].waited_frames > 0
    assert next(event.waited_frames for event in read_events(cut)) == 0
    waited = [e.waited_frames for e in read_events(cut) if e.waited_frames is not None]
    assert all(one <= other for one, other in pairwise(waited))


@pytest.mark.slow
def test_every_report_and_a_fork_count_the_frames_that_were_played(
    make_config: MakeConfig, game: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make_config("run", *settings(game))
    train(config, command(quiet()))
    run_dir = RunDir(config.run_dir)
    newest = Checkpoint(run_dir.checkpoints_newest_first()[0]).state
    frames = newest.num_timesteps * FRAME_SKIP + newest.waited_frames
    shown = {}
    for name in ("status", "checkpoints", "lineage"):
        capsys.readouterr()
        assert main([name, str(run_dir.root)]) == 0
        assert f"{frames:,}" in capsys.readouterr().out
        assert main([name, str(run_dir.root), "--json"]) == 0
        shown[name] = json.loads(capsys.readouterr().out)
    assert shown["status"]["frames"] == frames
    assert shown["checkpoints"][0]["frames"] == frames
    assert shown["lineage"]["total_frames"] == frames
    found = read_folder(run_dir.root)
    assert found.total_frames == frames
    states = {int(p.name): Checkpoint(p).state for p in run_dir.checkpoints_newest_first()}
    for point in found.curve:
        waited = states[point.timesteps].waited_frames
        assert point.total_frames == point.timesteps * FRAME_SKIP + waited
    check_fork(make_config("keep", *settings(game), f"fork={{run: {run_dir.root}@64}}"), 64)
    new = f"fork={{run: {run_dir.root}@64, counters: new}}"
    check_fork(make_config("new", *settings(game), new), 0)


def check_fork(config: RunConfig, began: int) -> None:
    """Train a fork; it counts its own frames, and its parent's once."""
    train(config, command(quiet(), until=began + 32))
    run_dir = RunDir(config.run_dir)
    newest = Checkpoint(run_dir.checkpoints_newest_first()[0]).state
    own = played_by(run_dir, FRAME_SKIP)
    (source,) = own.sources
    before = source.waited_frames if began else 0
    assert read_lineage(run_dir).began_waited_frames == before
    assert own.waited_frames == newest.waited_frames - before > 0
    assert own.frames == 32 * FRAME_SKIP + own.waited_frames
    assert source.waited_frames > 0
    assert source.frames == 64 * FRAME_SKIP + source.waited_frames


def test_a_game_without_a_step_writes_nothing_of_it(make_config: MakeConfig, game: Path) -> None:
    config = make_config("run")
    train(config, command(quiet(), until=32))
    run_dir = RunDir(config.run_dir)
    texts = [run_dir.events.read_text(encoding="utf-8")]
    texts += [path.read_text(encoding="utf-8") for path in run_dir.root.rglob("*.json")]
    assert not any("waited" in text or '"step"' in text for text in texts)
    plain, waiting = (load_game(str(path)) for path in (TINY_GAME, game))
    ours, theirs = origin_of(config, plain), origin_of(config, waiting)
    assert "the game's step" not in ours
    assert disagreement(ours, ours) is None
    assert "the game's step" in str(disagreement(ours, theirs))
    assert "the game's step" in str(disagreement(theirs, ours))


def test_another_step_makes_the_replay_of_a_fork_begin_anew() -> None:
    for key, is_new in (("step.at_most_frames", True), ("rewards.hit.weight", False)):
        assert new_parts(Differences({}, {key: (None, 7)}), ForkConfig(run="run")).replay == is_new
