"""A fork that changes nothing is its parent continued; its parent is left as it is."""

import errno
import itertools
import os
from collections.abc import Iterator

import pytest

from game_rl.algorithms.recurrent_ppo import LeanRecurrentPPO
from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.errors import CheckpointError, UsageError
from game_rl.events import Forked
from game_rl.events.event_log import read_events
from game_rl.events.lineage import manifest_sha256, read_lineage
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.training.forking import find_source, make_fork, plan_fork
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.examples import variants
from tests.tiny_run import MakeConfig, command
from tests.training.forks import (
    FILES,
    everything,
    fork_of,
    generators,
    learned,
    quiet,
    told,
    whole_run,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", variants("ppo", "dqn-lake", slow=["ppo-memory", "ppo-curiosity", "dqn", "pqn"])
)
def test_a_fork_that_changes_nothing_is_its_parent_continued_bit_for_bit(
    kind: str, make_config: MakeConfig
) -> None:
    """A fork of a fork, too, and one that was broken off."""
    parent = whole_run(make_config, kind)
    before = everything(parent.root)
    first = RunDir(parent.root.with_name("first"))
    output = quiet()
    train(fork_of(parent, 64, "first"), command(output, until=128))
    second_config = fork_of(first, 128, "second")
    train(second_config, command(output))
    resume(first.root, command(output))
    second = RunDir(second_config.run_dir)
    assert "bit for bit" not in told(output)
    assert "starts again" not in told(output)
    for fork in (first, second):
        assert learned(fork, 192) == learned(parent, 192)
        assert generators(fork, 192) == generators(parent, 192)
        assert fork.evaluations.read_bytes() == parent.evaluations.read_bytes()
        assert fork.evaluation_episodes.read_bytes() == parent.evaluation_episodes.read_bytes()
        states = [Checkpoint(run.checkpoint(192)).state for run in (fork, parent)]
        assert states[0].best == states[1].best
    assert everything(parent.root) == before


def test_files_that_are_the_same_are_linked_and_the_fork_names_its_parent(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "dqn")
    plan = plan_fork(fork_of(parent, 128, "fork"))
    make_fork(plan)
    fork = RunDir(plan.config.run_dir)
    for name in (*FILES, "play.json"):
        files = [run.checkpoint(128) / name for run in (parent, fork)]
        assert files[0].stat().st_ino == files[1].stat().st_ino
    sha256 = manifest_sha256(parent.checkpoint(128))
    named = fork.identity().parent
    assert named is not None
    assert (named.id, named.timesteps, named.sha256) == (parent.identity().id, 128, sha256)
    assert fork.identity().id != parent.identity().id
    (source,) = read_lineage(fork).sources
    assert (source.kind, source.run, source.frames) == ("fork", named.id, 128 * 8)
    assert "@128" in fork.config.read_text(encoding="utf-8")
    account = read_events(fork)
    assert isinstance(account[-1], Forked)
    assert [e for e in account[:-1] if e.timesteps > 128] == []
    assert [e.event for e in account].count("evaluated") == 2


def test_what_a_fork_changes_begins_anew_and_is_said(make_config: MakeConfig) -> None:
    parent = whole_run(make_config, "dqn")
    config = fork_of(parent, 128, "fork", seed=7, env__n_envs=4)
    output = quiet()
    train(config, command(output))
    printed = told(output)
    assert "changed: seed: 0 -> 7" in printed
    assert "starts again: the random numbers (another seed)" in printed
    assert "starts again: the episodes of the emulators (env.n_envs)" in printed
    assert "starts again: the replay (env.n_envs)" in printed
    assert "starts again: the best evaluation" in printed
    assert RunDir(config.run_dir).checkpoint(192).is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("kind", variants("ppo", slow=["dqn-lake", "dqn", "pqn"]))
def test_another_seed_draws_otherwise_and_the_same_one_the_same(
    kind: str, make_config: MakeConfig
) -> None:
    parent = whole_run(make_config, kind)
    forks = {}
    for name, seed in (("one", 7), ("again", 7), ("other", 8)):
        config = fork_of(parent, 64, name, seed=seed, total_timesteps=128)
        train(config, command(quiet()))
        forks[name] = RunDir(config.run_dir)
    assert learned(forks["one"], 128) == learned(forks["again"], 128)
    assert generators(forks["one"], 128) == generators(forks["again"], 128)
    for name, other in (("one", forks["other"]), ("one", parent)):
        assert learned(forks[name], 128) != learned(other, 128)


@pytest.mark.slow
def test_a_fork_with_other_envs_begins_with_empty_memories(make_config: MakeConfig) -> None:
    """One with the same envs has its parent's, which the test above finds bit for bit."""
    parent = whole_run(make_config, "ppo-memory")
    config = fork_of(parent, 64, "fork", env__n_envs=4, total_timesteps=128)
    make_fork(plan_fork(config))
    game = load_game(config.game)
    run_dir = RunDir(config.run_dir)
    with training_process(), TrainingSession(config, game, run_dir) as session:
        assert isinstance(session.model, LeanRecurrentPPO)
        assert session.model.memory.shape[0] == 4
        assert not session.model.memory.any()


def test_a_folder_in_use_and_a_fork_without_timesteps_are_refused(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "ppo")
    with pytest.raises(UsageError, match="ends at 192, which counts from its parent's beginning"):
        plan_fork(fork_of(parent, 192, "fork"))
    with pytest.raises(UsageError, match="is not empty"):
        plan_fork(fork_of(parent, 128, "parent"))
    with pytest.raises(CheckpointError, match="keeps no checkpoint of timestep 77; it has: 192"):
        fork_of(parent, 77, "fork")


@pytest.mark.slow
def test_a_fork_of_a_replay_keeps_the_lakes_compression_level(make_config: MakeConfig) -> None:
    parent = whole_run(make_config, "dqn-lake", "total_timesteps=256")
    other = fork_of(parent, 128, "fork", lake__compression_level=3)
    with pytest.raises(UsageError, match=r"found 3, but the Lake at .* made with level 9"):
        plan_fork(other)
    assert not other.run_dir.exists()
    plan_fork(fork_of(parent, 128, "fork", total_timesteps=512))


@pytest.mark.slow
def test_the_command_line_forks_and_the_fork_resumes_without_forking_again(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = whole_run(make_config, "ppo")
    fork = RunDir(parent.root.with_name("fork"))
    arguments = ["train", "--fork", f"{parent.root}@64"]
    assert main(arguments) == 2
    assert "name its folder with --set run_dir=" in capsys.readouterr().err
    arguments += ["--set", f"run_dir={fork.root}", "--set", "algorithm.learning_rate=1e-5"]
    assert main([*arguments, "--until", "128"]) == 0
    assert "changed: algorithm.learning_rate" in capsys.readouterr().out
    assert main(arguments) == 2
    assert "is not empty" in capsys.readouterr().err
    identity = fork.identity()
    assert main(["train", "--resume", str(fork.root)]) == 0
    assert fork.identity() == identity
    assert fork.checkpoint(192).is_dir()
    arguments = ["train", "--resume", str(fork.root), "--set", "fork.counters=new"]
    assert main(arguments) == 2
    assert "a run is forked once" in capsys.readouterr().err


def test_an_older_run_without_an_identity_is_told_how_to_get_one(make_config: MakeConfig) -> None:
    parent = whole_run(make_config, "ppo")
    parent.identity_file.unlink()
    before = everything(parent.root)
    with pytest.raises(UsageError, match=r"has no run.json.*--resume"):
        find_source(parent.root, None)
    assert everything(parent.root) == before


@pytest.mark.slow
def test_a_fork_that_fails_at_any_write_is_whole_or_not_there_and_can_be_made_again(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = whole_run(make_config, "dqn-lake")
    before = everything(parent.root)
    plan = plan_fork(fork_of(parent, 128, "fork"))
    root = plan.config.run_dir
    real, last = os.fsync, 0
    for fails_at in range(100):
        calls = itertools.count()

        def fsync(descriptor: int, at: int = fails_at, calls: Iterator[int] = calls) -> None:
            if next(calls) == at:
                raise OSError(errno.ENOSPC, "no space")
            real(descriptor)

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            try:
                make_fork(plan)
            except OSError:
                if root.exists():
                    break  # it is whole, and only its name could not be made durable
                last = fails_at
                assert [path for path in root.parent.iterdir() if path.name.startswith(".")] == []
                continue
        break
    assert last > 10
    assert everything(parent.root) == before
    resume(root, command(quiet()))
    assert learned(RunDir(root), 192) == learned(parent, 192)


@pytest.mark.slow
def test_on_another_file_system_files_are_copied(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = whole_run(make_config, "dqn-lake")

    def link(*_: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    plan = plan_fork(fork_of(parent, 128, "fork"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", link)
        make_fork(plan)
    fork = RunDir(plan.config.run_dir)
    assert {p.stat().st_nlink for p in fork.root.rglob("*") if p.is_file()} == {1}
    resume(fork.root, command(quiet()))
    assert learned(fork, 192) == learned(parent, 192)
