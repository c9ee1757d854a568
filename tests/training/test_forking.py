"""A fork that changes nothing is its parent continued; its parent is left as it is."""

import errno
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.cli.main import main
from game_rl.config.changed_values import with_changed
from game_rl.config.schema import RunConfig
from game_rl.errors import CheckpointError, UsageError
from game_rl.event_log import read_events
from game_rl.events import Forked
from game_rl.lake.lake import Lake
from game_rl.lineage import manifest_sha256, read_lineage
from game_rl.run_dir import RunDir
from game_rl.training.forking import find_source, forked_config, make_fork, plan_fork
from game_rl.training.train import resume, train
from tests.tiny_run import MakeConfig, command
from tests.training.test_run_lake import timesteps

_DQN = (
    "algorithm={name: dqn, replay: {capacity: 60}, learning_starts: 40, batch_size: 16, "
    "n_step: 2, layer_norm: channels}"
)
KINDS = {
    "ppo": ["algorithm={n_steps: 16, batch_size: 16, n_epochs: 1}"],
    "dqn": [_DQN, "checkpoints.save_replay_buffer=true"],
    "dqn-lake": [_DQN, "lake={}"],
    "pqn": ["algorithm={name: pqn, n_steps: 16, batch_size: 16}", "lake={}"],
}
FILES = ("policy.safetensors", "optimizer.safetensors", "arrays.safetensors", "replay.safetensors")


def quiet() -> Console:
    return Console(file=StringIO(), width=1000)


def told(by: Console) -> str:
    assert isinstance(by.file, StringIO)
    return by.file.getvalue()


def whole_run(make_config: MakeConfig, kind: str, *overrides: str) -> RunDir:
    config = make_config(
        "parent", *KINDS[kind], "recording.episodes=0", "checkpoints.keep_last=9", *overrides
    )
    train(config, command(quiet()))
    return RunDir(config.run_dir)


def fork_of(parent: RunDir, at: int, name: str, **changed: object) -> RunConfig:
    """Keys with `__` for the dots; those of the section `fork` among them."""
    fork = {key.removeprefix("fork__"): v for key, v in changed.items() if key.startswith("fork__")}
    rest = {tuple(k.split("__")): v for k, v in changed.items() if not k.startswith("fork__")}
    source = find_source(parent.root, at)
    return forked_config(source, parent.root.with_name(name), rest, fork=fork)


def everything(root: Path) -> dict[str, tuple[int, str]]:
    """Of each file and folder its time of change and, of a file, its content."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in (root, *root.rglob("*"))
    }


def learned(run_dir: RunDir, name: int) -> dict[str, str]:
    files = Checkpoint(run_dir.checkpoint(name)).files
    return {file: files[file].sha256 for file in FILES if file in files}


def generators(run_dir: RunDir, name: int) -> object:
    play = Checkpoint(run_dir.checkpoint(name)).play()
    return play.random, play.algorithm, play.envs, play.seeds


@pytest.mark.parametrize("kind", KINDS)
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
    assert "begins anew" not in told(output)
    for fork in (first, second):
        assert learned(fork, 192) == learned(parent, 192)
        assert generators(fork, 192) == generators(parent, 192)
        assert fork.evaluations.read_bytes() == parent.evaluations.read_bytes()
        assert fork.evaluation_episodes.read_bytes() == parent.evaluation_episodes.read_bytes()
        states = [Checkpoint(run.checkpoint(192)).state for run in (fork, parent)]
        assert states[0].best == states[1].best
    assert everything(parent.root) == before


@pytest.mark.parametrize("kind", ["dqn-lake", "pqn"])
def test_a_forks_lake_has_rows_of_its_own_under_its_own_name(
    kind: str, make_config: MakeConfig
) -> None:
    parent = whole_run(make_config, kind)
    whole = timesteps(parent.lake)
    config = fork_of(parent, 128, "fork")
    train(config, command(quiet()))
    fork = RunDir(config.run_dir)
    ids = [run.identity().id for run in (parent, fork)]
    own = timesteps(fork.lake, ids[1])
    assert {env: len(rows) for env, rows in own.items()} == {0: 32, 1: 32}
    values = {env: [row[1:] for row in rows] for env, rows in own.items()}
    assert values == {env: [row[1:] for row in rows[64:]] for env, rows in whole.items()}
    if kind == "dqn-lake":  # whose replay needs its parent's rows
        assert {env: [row[0] for row in rows] for env, rows in own.items()} == {
            env: list(range(64, 96)) for env in (0, 1)
        }
        assert timesteps(fork.lake, ids[0]) == {e: rows[:64] for e, rows in whole.items()}
        shared = [p for p in fork.lake.glob("*.segment") if p.stat().st_nlink > 1]
        assert shared
        assert all(path.name.startswith(ids[0]) for path in shared)
        origins = [(run.lake / "origins" / f"{ids[0]}.json").read_text() for run in (parent, fork)]
        assert origins[0] == origins[1]
    else:
        assert Lake.open(fork.lake).view().streams == [ids[1]]


def test_a_fork_lets_go_of_its_parents_rows_when_its_replay_has_none_of_them(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "dqn-lake")
    config = fork_of(parent, 64, "fork", total_timesteps=320, checkpoints__keep_last=1)
    train(config, command(quiet()))
    lake = Checkpoint(RunDir(config.run_dir).checkpoint(320)).lake()
    assert lake is not None
    assert lake.ancestors == ()


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
    assert "@128" in fork.config.read_text()
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
    assert "begins anew: the random numbers (another seed)" in printed
    assert "begins anew: the episodes of the emulators (env.n_envs)" in printed
    assert "begins anew: the replay (env.n_envs)" in printed
    assert "begins anew: the best evaluation" in printed
    assert RunDir(config.run_dir).checkpoint(192).is_dir()


@pytest.mark.parametrize("kind", ["ppo", "dqn", "dqn-lake", "pqn"])
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


def test_new_counters_begin_at_zero_with_the_parents_weights(make_config: MakeConfig) -> None:
    parent = whole_run(make_config, "pqn")
    plan = plan_fork(fork_of(parent, 192, "fork", fork__counters="new", total_timesteps=64))
    make_fork(plan)
    fork = RunDir(plan.config.run_dir)
    first = Checkpoint(fork.checkpoint(0))
    assert learned(fork, 0) == learned(parent, 192)
    assert (first.state.num_timesteps, first.state.best) == (0, None)
    assert not fork.evaluations.exists()
    resume(fork.root, command(quiet()))
    rows = fork.evaluations.read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["64"]


@pytest.mark.parametrize(("kind", "other"), [("pqn", "dqn"), ("dqn", "pqn")])
def test_another_algorithm_takes_the_weights_that_fit(
    kind: str, other: str, make_config: MakeConfig
) -> None:
    parent = whole_run(make_config, kind)
    config = make_config("fork", *KINDS[other], "recording.episodes=0")
    section = {"run": str(parent.root), "counters": "new"}
    with pytest.raises(UsageError, match=f"{other} cannot go on with the optimiser of {kind}"):
        plan_fork(with_changed(config, {("fork",): section}))
    section["optimiser"] = "new"
    train(with_changed(config, {("fork",): section}), command(quiet(), until=64))
    first, theirs = (
        Checkpoint(RunDir(r).checkpoint(n)).policy()
        for r, n in ((config.run_dir, 0), (parent.root, 192))
    )
    names = [name for name in first if name.startswith("q_net.")]
    assert names
    assert all(torch.equal(first[name], theirs[name]) for name in names)
    assert RunDir(config.run_dir).checkpoint(64).is_dir()


def test_weights_that_do_not_fit_are_refused_by_the_name_of_a_tensor(
    make_config: MakeConfig,
) -> None:
    parent = whole_run(make_config, "pqn")
    for changed in ({"algorithm__layer_norm": "none"}, {"env__frame_stack": 2}):
        with pytest.raises(CheckpointError, match=r"q_net\.features_extractor"):
            plan_fork(fork_of(parent, 192, "fork", total_timesteps=256, **changed))
    assert not parent.root.with_name("fork").exists()


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


@pytest.mark.parametrize("kind", ["ppo", "dqn-lake"])
def test_a_run_taken_back_sets_later_checkpoints_aside_and_is_the_same_run(
    kind: str, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    run = whole_run(make_config, kind)
    expected, rows = learned(run, 192), run.evaluations.read_text()
    later = {n: everything(run.checkpoint(n)) for n in (128, 192)}
    assert main(["train", "--resume", str(run.root), "--at", "64"]) == 0
    assert f"moved to {run.set_aside / '000000000192'}" in capsys.readouterr().out
    assert learned(run, 192) == expected
    assert run.evaluations.read_text() == rows
    for name, files in later.items():
        assert everything(run.set_aside / f"{name:012d}") == files
    resumed = next(
        line
        for line in map(json.loads, run.events.read_text().splitlines()[::-1])
        if line["event"] == "resumed"
    )
    assert resumed["timesteps"] == 64
    assert resumed["set_aside"] == [f"set_aside/{name:012d}" for name in (192, 128)]
    if kind == "dqn-lake":  # what was set aside can be put back: the Lake still has its rows
        shutil.rmtree(run.checkpoints)
        run.checkpoints.mkdir()
        (run.set_aside / "000000000128").rename(run.checkpoint(128))
        resume(run.root, command(quiet()))
        assert learned(run, 192) == expected


def test_a_checkpoint_that_is_not_kept_is_not_gone_back_to(make_config: MakeConfig) -> None:
    run = whole_run(make_config, "ppo")
    before = everything(run.checkpoints)
    with pytest.raises(CheckpointError, match="keeps no checkpoint of timestep 70"):
        resume(run.root, command(quiet()), at=70)
    assert everything(run.checkpoints) == before


def test_lineage_adds_up_what_a_fork_of_a_fork_comes_from(
    make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = whole_run(make_config, "pqn")
    train(fork_of(parent, 64, "first"), command(quiet(), until=128))
    first = RunDir(parent.root.with_name("first"))
    config = fork_of(first, 128, "second", fork__counters="new", env__frame_skip=4)
    train(with_changed(config, {("total_timesteps",): 64}), command(quiet()))
    shutil.rmtree(parent.root)  # what is known of it stays
    assert main(["lineage", str(config.run_dir), "--json"]) == 0
    account = json.loads(capsys.readouterr().out)
    assert account["total_timesteps"] == 64 + 64 + 64
    assert account["total_frames"] == 64 * 4 + (64 + 64) * 8
    assert account["run"]["sources"][0]["sources"][0]["timesteps"] == 64
    assert main(["lineage", str(config.run_dir)]) == 0
    printed = capsys.readouterr().out
    assert "fork of" in printed
    assert "1,280" in printed


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


def test_forks_of_one_shared_lake_write_streams_of_their_own(
    make_config: MakeConfig, tmp_path: Path
) -> None:
    """And the parent goes on beside its fork, whose replay still has the parent's rows."""
    shared = tmp_path / "shared"
    parent = whole_run(make_config, "dqn-lake", f"lake.path={shared}", "total_timesteps=256")
    expected = learned(parent, 256)
    shutil.rmtree(parent.checkpoint(256))
    config = fork_of(parent, 64, "fork")
    train(config, command(quiet(), until=128))
    resume(parent.root, command(quiet()))
    resume(config.run_dir, command(quiet()))
    fork = RunDir(config.run_dir)
    assert learned(parent, 256) == learned(fork, 256) == expected
    streams = {run.identity().id for run in (parent, fork)}
    assert set(Lake.open(shared).view().streams) == streams
