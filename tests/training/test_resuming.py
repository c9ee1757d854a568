"""A run that was broken off and resumed is the run that was not."""

import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.checkpoint_store import newest_valid_checkpoint
from game_rl.cli.main import main
from game_rl.config.algorithms import PPOConfig
from game_rl.config.loader import load_config
from game_rl.errors import CheckpointError, Interrupted, UsageError
from game_rl.events import Ended, Evaluated, Evaluating, Event, MilestoneReached, Resumed
from game_rl.events.event_log import final_evaluation, read_events
from game_rl.events.run_view import read_view
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.files.run_dir import RunDir
from game_rl.files.saved_forecast import measured_ram_peak_bytes
from game_rl.preflight.preflight import PreflightReport
from game_rl.system.packages import source_sha256
from game_rl.system.stop_request import StopRequest
from game_rl.training.resuming import begin_again
from game_rl.training.train import TrainCommand, resume, train
from tests.tiny_run import TINY, MakeConfig, command, train_once
from tests.training.forks import quiet

HANG_GUARD_S = 120
UPDATES = 6
ROLLOUT = 32
CHANGES = [
    "total_timesteps=192",
    "env.n_workers=2",
    "algorithm.clip_range={start: 0.3, end: 0.1}",
    "evaluation.every_timesteps=64",
    "evaluation.deterministic=false",  # draws random numbers between two rollouts
    "checkpoints.every_timesteps=32",
    "checkpoints.keep_last=20",
    "recording.episodes=0",
]


def console() -> Console:
    return Console(file=StringIO(), width=1000)


def told(by: Console) -> str:
    assert isinstance(by.file, StringIO)
    return by.file.getvalue()


def write_config(folder: Path, name: str, *changes: str) -> Path:
    from game_rl.config.loader import dump_config, load_config

    path = folder / f"{name}.yaml"
    path.write_text(TINY.format(run_dir=folder / name), encoding="utf-8")
    path.write_text(dump_config(load_config(path, [*CHANGES, *changes])), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a break; the tests only read it."""
    from game_rl.config.loader import load_config

    folder = tmp_path_factory.mktemp("whole")
    return train_once(load_config(write_config(folder, "run"))).root


@pytest.fixture
def broken(whole: Path, tmp_path: Path) -> Callable[..., RunDir]:
    """The run as a kill would leave it after `timesteps`, with all that it wrote later."""

    def make(timesteps: int) -> RunDir:
        run_dir = RunDir(tmp_path / "run")
        shutil.copytree(whole, run_dir.root)
        for path in run_dir.checkpoints_newest_first():
            if int(path.name) > timesteps:
                shutil.rmtree(path)
        text = run_dir.config.read_text(encoding="utf-8")
        run_dir.config.write_text(text.replace(str(whole), str(run_dir.root)), encoding="utf-8")
        return run_dir

    return make


def tensors(run_dir: Path, timesteps: int = 192) -> dict[str, torch.Tensor]:
    checkpoint = Checkpoint(RunDir(run_dir).checkpoint(timesteps))
    return dict(checkpoint.policy()) | dict(checkpoint._tensors("optimizer.safetensors"))


def curves(run_dir: Path) -> dict[str, list[tuple[int, float]]]:
    """Every point of every curve but those that measure the machine."""
    accumulator = EventAccumulator(str(RunDir(run_dir).tensorboard), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {
        tag: [(event.step, event.value) for event in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
        if not tag.startswith(("time/", "resources/"))
    }


def assert_same_run(found: Path, expected: Path) -> None:
    ours, theirs = tensors(found), tensors(expected)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert curves(found) == curves(expected)
    assert RunDir(found).evaluations.read_text(encoding="utf-8") == RunDir(
        expected
    ).evaluations.read_text(encoding="utf-8")
    states = [Checkpoint(RunDir(root).checkpoint(192)).state for root in (found, expected)]
    assert states[0].best == states[1].best
    assert milestones(found) == milestones(expected) != []


def milestones(root: Path) -> list[tuple[int, str]]:
    events = read_events(RunDir(root))
    return [(e.timesteps, e.name) for e in events if isinstance(e, MilestoneReached)]


def test_the_curves_of_the_whole_run_are_those_of_a_training(whole: Path) -> None:
    found = curves(whole)
    assert {"train/loss", "rollout/ep_rew_mean", "eval/mean_reward"} <= set(found)
    assert [step for step, _ in found["train/loss"]] == [64, 96, 128, 160, 192]
    assert found["train/clip_range"][0][1] > found["train/clip_range"][-1][1]


@pytest.mark.slow
@pytest.mark.parametrize("timesteps", [32, 64, 96, 160])
def test_a_run_resumed_from_any_checkpoint_is_the_same_run(
    broken: Callable[..., RunDir], whole: Path, timesteps: int
) -> None:
    run_dir = broken(timesteps)
    resume(run_dir.root, command(console()))
    assert_same_run(run_dir.root, whole)


@pytest.mark.slow
def test_a_clock_that_jumps_changes_nothing(
    broken: Callable[..., RunDir], whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(0)
    real, real_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real() + rng.choice([-86_400, 0, 86_400]))
    monkeypatch.setattr(
        time, "time_ns", lambda: real_ns() + rng.choice([-1, 0, 1]) * 86_400 * 10**9
    )
    run_dir = broken(96)
    resume(run_dir.root, command(console()))
    assert_same_run(run_dir.root, whole)


@pytest.mark.slow
def test_a_run_that_was_killed_before_its_first_checkpoint_begins_again(
    broken: Callable[..., RunDir], whole: Path
) -> None:
    run_dir = broken(0)
    resume(run_dir.root, command(console()))
    assert_same_run(run_dir.root, whole)


def test_a_run_that_was_only_laid_out_starts_without_a_warning(tmp_path: Path) -> None:
    """Experiments lay out their members' runs, which start later."""
    run_dir = RunDir(tmp_path)
    run_dir.config.touch()
    assert begin_again(run_dir) == []
    run_dir.events.touch()
    assert begin_again(run_dir) == ["there is no checkpoint yet: the run starts again"]


def test_a_run_keeps_what_auto_was_when_it_began(whole: Path) -> None:
    algorithm = load_config(RunDir(whole).config).algorithm
    assert isinstance(algorithm, PPOConfig)
    assert algorithm.precision in {"float32", "bf16"}
    assert algorithm.micro_batch_size == 16  # the whole batch, which is small
    state = Checkpoint(RunDir(whole).checkpoint(32)).state
    assert state.config["algorithm"] == algorithm.model_dump(mode="json")


@pytest.mark.slow
def test_a_run_of_other_caches_goes_on_with_the_parts_that_it_began_with(tmp_path: Path) -> None:
    parts = ["algorithm.micro_batch_size=6", "algorithm.precision=float32"]
    train(load_config(write_config(tmp_path, "run", *parts)), command(console(), until=64))
    run_dir, output = RunDir(tmp_path / "run"), console()
    before = run_dir.config.read_text(encoding="utf-8")
    resume(run_dir.root, command(output))
    assert run_dir.config.read_text(encoding="utf-8") == before
    assert "micro_batch_size: 6\n" in before
    assert "changed:" not in told(output)


@pytest.mark.slow
def test_a_run_from_before_auto_begins_again_as_it_was(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(0)
    lines = run_dir.config.read_text(encoding="utf-8").splitlines(keepends=True)
    older = [line for line in lines if "micro_batch_size" not in line and "precision" not in line]
    assert len(older) == len(lines) - 2
    run_dir.config.write_text("".join(older), encoding="utf-8")
    resume(run_dir.root, command(console(), until=32))
    algorithm = load_config(run_dir.config).algorithm
    assert isinstance(algorithm, PPOConfig)
    assert (algorithm.precision, algorithm.micro_batch_size) == ("float32", None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["policy.safetensors", "play.json", "manifest.json"])
def test_a_damaged_newest_checkpoint_is_told_set_aside_and_done_again(
    broken: Callable[..., RunDir], whole: Path, name: str
) -> None:
    run_dir = broken(128)
    file = run_dir.checkpoint(128) / name
    file.write_bytes(file.read_bytes()[:-1])
    output = console()
    resume(run_dir.root, command(output))
    assert f"{name} is damaged" in told(output)
    assert "resuming from timestep 96" in told(output)
    assert [path.name for path in run_dir.damaged.iterdir()] == ["000000000128"]
    assert_same_run(run_dir.root, whole)


@pytest.mark.slow
def test_a_lost_best_checkpoint_is_told_and_another_one_is_found(
    broken: Callable[..., RunDir],
) -> None:
    run_dir = broken(160)
    best = Checkpoint(run_dir.checkpoint(160)).state.best
    assert best is not None
    assert best.timesteps < 160
    shutil.rmtree(run_dir.checkpoint(best.timesteps))
    output = console()
    resume(run_dir.root, command(output))
    assert "the best policy so far, mean reward" in told(output)
    found = Checkpoint(run_dir.checkpoint(192)).state.best
    assert found is not None
    assert found.timesteps == 192  # the only evaluation since


def test_without_a_usable_checkpoint_nothing_is_touched(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(32)
    (run_dir.checkpoint(32) / "state.json").write_text("{}", encoding="utf-8")
    before = sorted(p.name for p in run_dir.root.rglob("*"))
    rows = run_dir.evaluations.read_text(encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"no usable checkpoint.*another dir.*or delete"):
        resume(run_dir.root, command(console()))
    assert sorted(p.name for p in run_dir.root.rglob("*")) == before
    assert run_dir.evaluations.read_text(encoding="utf-8") == rows


def test_a_state_of_an_env_without_its_rewards_is_named(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(32)
    file = run_dir.checkpoint(32) / "play.json"
    play = json.loads(file.read_text(encoding="utf-8"))
    del play["envs"][0]["trackers"]["reward"]
    file.write_text(json.dumps(play), encoding="utf-8")
    manifest_file = file.with_name("manifest.json")
    manifest = json.loads(manifest_file.read_text(encoding="utf-8"))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest["files"][file.name] = {"bytes": file.stat().st_size, "sha256": digest}
    manifest_file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"play.json: the saved .* lacks `reward`.*another"):
        resume(run_dir.root, command(console()))


def test_what_a_killed_process_left_behind_is_removed(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(192)
    for name in (".000000000224.tmp", ".000000000064.trash"):
        (run_dir.checkpoints / name).mkdir()
        (run_dir.checkpoints / name / "policy.safetensors").write_bytes(b"half")
    (run_dir.root / ".eval.csv.tmp").write_bytes(b"half")
    resume(run_dir.root, command(console()))
    assert not list(run_dir.root.rglob("*.tmp"))
    assert not list(run_dir.root.rglob("*.trash"))


@pytest.mark.slow
def test_total_timesteps_may_grow_and_schedules_are_not_stretched(
    broken: Callable[..., RunDir], whole: Path
) -> None:
    run_dir = broken(96)
    output = console()
    resume(run_dir.root, command(output), overrides=["total_timesteps=256"])
    assert "changed: total_timesteps: 192 -> 256" in told(output)
    assert newest_valid_checkpoint(run_dir)[0].state.num_timesteps == 256
    clip = dict(curves(run_dir.root)["train/clip_range"])
    expected = dict(curves(whole)["train/clip_range"])
    assert {step: clip[step] for step in expected} == pytest.approx(expected)
    assert [clip[step] for step in (224, 256)] == pytest.approx([0.1, 0.1])
    assert "total_timesteps: 256" in run_dir.config.read_text(encoding="utf-8")


@pytest.mark.parametrize("change", ["seed=1", "env.n_envs=4", "env.frame_skip=4"])
def test_what_cannot_change_in_a_run_is_refused_with_the_reason(
    broken: Callable[..., RunDir], change: str
) -> None:
    run_dir = broken(32)
    overrides = [change, "checkpoints.every_timesteps=64"]
    with pytest.raises(UsageError, match=f"cannot change {change.partition('=')[0]} .+: .+"):
        resume(run_dir.root, command(console()), overrides=overrides)


@pytest.mark.slow
def test_a_changed_game_file_is_told_and_other_actions_are_refused(
    broken: Callable[..., RunDir],
) -> None:
    run_dir = broken(160)
    state = run_dir.checkpoint(160) / "state.json"
    text = json.loads(state.read_text(encoding="utf-8"))
    text["game"]["rewards"]["damage"] = {"weight": 5.0}
    rewrite(state, run_dir.checkpoint(160) / "manifest.json", json.dumps(text))
    output = console()
    resume(run_dir.root, command(output))
    assert "changed: rewards.damage.weight: 5.0 -> " in told(output)
    state = run_dir.checkpoint(192) / "state.json"
    text["game"]["actions"]["fly"] = ["up"]
    rewrite(state, run_dir.checkpoint(192) / "manifest.json", json.dumps(text))
    with pytest.raises(UsageError, match=r"cannot change actions.fly .* each output"):
        resume(run_dir.root, command(console()))


def test_another_rom_is_named(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(32)
    state = run_dir.checkpoint(32) / "state.json"
    manifest = run_dir.checkpoint(32) / "manifest.json"
    text = json.loads(state.read_text(encoding="utf-8")) | {"rom_sha256": "00" * 32}
    rewrite(state, manifest, json.dumps(text))
    with pytest.raises(CheckpointError, match="trained on a ROM with sha256 0000"):
        resume(run_dir.root, command(console()))


@pytest.mark.slow
def test_other_versions_are_named_one_by_one(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(160)
    state = run_dir.checkpoint(160) / "state.json"
    text = json.loads(state.read_text(encoding="utf-8"))
    text["versions"] |= {"torch": "1.0", "numpy": "1.0"}
    rewrite(state, run_dir.checkpoint(160) / "manifest.json", json.dumps(text))
    output = console()
    resume(run_dir.root, command(output))
    assert told(output).count("not bit for bit") == 2
    assert "torch was 1.0, is" in told(output)


def resumed_event(run_dir: RunDir) -> Resumed:
    return next(e for e in read_events(run_dir) if isinstance(e, Resumed))


@pytest.mark.slow
def test_other_code_is_a_note_of_its_own_and_every_part_is_restored(
    broken: Callable[..., RunDir], whole: Path
) -> None:
    run_dir = broken(160)
    state = run_dir.checkpoint(160) / "state.json"
    text = json.loads(state.read_text(encoding="utf-8"))
    assert text["source_sha256"] == source_sha256()
    text["source_sha256"] = "ab" * 32
    text["versions"] |= {"game_rl": "0.0.1"}
    rewrite(state, run_dir.checkpoint(160) / "manifest.json", json.dumps(text))
    output = console()
    resume(run_dir.root, command(output))
    assert "note: the checkpoint was written by other code: game_rl was 0.0.1 (source abab" in told(
        output
    )
    assert "not bit for bit" not in told(output)
    event = resumed_event(run_dir)
    assert (event.not_restored, event.other_code[:18]) == ((), "game_rl was 0.0.1 ")
    assert event.source_sha256 == source_sha256()
    assert_same_run(run_dir.root, whole)


def test_a_checkpoint_without_a_digest_of_its_code_is_read(
    broken: Callable[..., RunDir], whole: Path
) -> None:
    run_dir = broken(160)
    state = run_dir.checkpoint(160) / "state.json"
    text = json.loads(state.read_text(encoding="utf-8"))
    del text["source_sha256"]
    rewrite(state, run_dir.checkpoint(160) / "manifest.json", json.dumps(text))
    output = console()
    resume(run_dir.root, command(output))
    assert "other code" not in told(output)
    assert_same_run(run_dir.root, whole)


def test_the_same_code_is_no_note(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(160)
    resume(run_dir.root, command(console()))
    assert resumed_event(run_dir).other_code == ""


def rewrite(file: Path, manifest: Path, text: str) -> None:
    """Change a file and what the manifest says of it."""
    import hashlib

    file.write_text(text, encoding="utf-8")
    content = json.loads(manifest.read_text(encoding="utf-8"))
    entry = {"bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    content["files"][file.name] = entry
    manifest.write_text(json.dumps(content), encoding="utf-8")


def test_two_trainings_never_share_a_directory(broken: Callable[..., RunDir]) -> None:
    run_dir = broken(32)
    with run_dir.locked(), pytest.raises(UsageError, match="another training is writing"):
        resume(run_dir.root, command(console()))


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        signal.SIGTERM,
        pytest.param(signal.SIGUSR1, marks=pytest.mark.soak),
    ],
)
def test_a_signal_saves_ends_with_its_code_and_the_run_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    config = write_config(tmp_path, "run", "total_timesteps=1_000_000")
    run_dir = RunDir(tmp_path / "run")
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "game_rl", "train", "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "evaluation of" in line:
            break
    os.killpg(process.pid, number)  # as a terminal or a batch system does: to the workers too
    output, errors = process.communicate(timeout=HANG_GUARD_S)
    assert process.returncode == 128 + number, errors
    assert number.name in output
    newest, damaged = newest_valid_checkpoint(run_dir)
    stopped_at = newest.state.num_timesteps
    assert not damaged
    assert errors.strip().splitlines()[-1] == (
        f"error: stopped by {number.name}; saved up to timestep {stopped_at:,}; "
        f"continue with game-rl train --resume {run_dir.root}"
    )
    assert run_dir.footprint.is_file()
    end = stopped_at + ROLLOUT
    change = f"total_timesteps={end}"
    resume(run_dir.root, command(console()), overrides=[change])
    with run_dir.evaluations.open(encoding="utf-8") as file:
        timesteps = [int(row["timesteps"]) for row in csv.DictReader(file)]
    assert timesteps == sorted({*range(64, end + 1, 64), end})


@pytest.fixture
def finished(make_config: MakeConfig) -> RunDir:
    return train_once(make_config("run", "recording.episodes=0"))


def contents(run_dir: RunDir) -> dict[Path, tuple[int, bytes]]:
    files = (path for path in run_dir.root.rglob("*") if path.is_file() and path.name != "lock")
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.parametrize("until", [None, 64, 100, 192, 500])
def test_a_finished_run_is_left_alone_and_the_command_says_so(
    finished: RunDir, until: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    before, figure = contents(finished), read_folder(finished.root).score
    arguments = ["train", "--resume", str(finished.root)]
    assert main(arguments + ([] if until is None else ["--until", str(until)])) == 0
    output = capsys.readouterr().out
    assert "192 (1,536 frames)" in output
    assert "nothing was trained and nothing was changed" in output
    assert "trained up to" not in output
    assert "total_timesteps" in output if until in (None, 192, 500) else "--at T" in output
    assert contents(finished) == before
    assert figure is not None
    assert read_folder(finished.root).score == figure
    evaluation, view = final_evaluation(read_events(finished)), read_view(finished)
    assert evaluation is not None
    assert view.state == "completed"
    newest = view.newest(Evaluated)
    assert newest is not None
    assert newest.is_final


def test_listeners_hear_how_it_ended_and_the_account_has_no_new_line(finished: RunDir) -> None:
    heard: list[Event] = []
    result = resume(
        finished.root, TrainCommand(until=100, stop=StopRequest(), listeners=[heard.append])
    )
    (ended,) = heard
    assert isinstance(ended, Ended)
    assert (ended.timesteps, ended.reason, ended.exit_code) == (192, "completed", 0)
    assert ended.text == result.left_alone


def test_a_run_beyond_until_goes_on_where_it_was(make_config: MakeConfig) -> None:
    run_dir = train_once(make_config("run", "recording.episodes=0"))
    for path in run_dir.checkpoints_newest_first()[:1]:
        path.rename(run_dir.root / "later")  # so that the run is at timestep 128, without its end
    before = contents(run_dir)
    result = resume(run_dir.root, command(quiet(), until=64))
    assert (result.timesteps, result.evaluation) == (128, None)
    assert f"continue with game-rl train --resume {run_dir.root}" in result.left_alone
    assert contents(run_dir) == before


@pytest.mark.slow
def test_a_run_whose_final_evaluation_was_stopped_plays_it(make_config: MakeConfig) -> None:
    config = make_config("run", "recording.episodes=0", "total_timesteps=64")
    run_dir, stop = train_once(config), StopRequest()

    def stop_there(event: Event) -> None:
        if isinstance(event, Evaluating) and event.is_final:
            stop.ask(Interrupted("stopped"))

    changed = ["evaluation.final_episodes=3"]  # a change of the config is carried out
    asked = TrainCommand(stop=stop, listeners=[stop_there])
    with pytest.raises(Interrupted, match="the training is complete"):
        resume(run_dir.root, asked, overrides=changed)
    result = resume(run_dir.root, command(quiet()))
    assert result.evaluation is not None
    assert len(result.evaluation.rewards) == 3
    assert not result.left_alone


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 10**12])
def test_the_peak_of_a_run_that_trains_on_is_the_larger_of_both_parts(
    finished: RunDir, before: int
) -> None:
    footprint = json.loads(finished.footprint.read_text(encoding="utf-8"))
    footprint["ram_peak_bytes"]["measured"] = before
    finished.footprint.write_text(json.dumps(footprint), encoding="utf-8")
    result = resume(finished.root, command(quiet(), until=200), overrides=["total_timesteps=256"])
    assert (result.timesteps, result.left_alone) == (224, "")
    found = json.loads(finished.footprint.read_text(encoding="utf-8"))["ram_peak_bytes"]
    assert (found["measured"] == before) == (before > 10**6)
    assert found["measured"] > 10**6
    assert found["error"] == round(found["predicted"] / found["measured"] - 1, 4)


@pytest.mark.parametrize("text", [None, "", "[]", '{"ram_peak_bytes": {}}', "{1: "])
def test_a_footprint_that_is_damaged_or_missing_has_no_peak(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "footprint.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert measured_ram_peak_bytes(path) == 0


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_the_files_that_a_run_has_already_need_no_more_room(
    finished: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[PreflightReport] = []
    asked = TrainCommand(until=200, stop=StopRequest(), show=shown.append)
    own = sum(path.stat().st_size for path in finished.root.rglob("*") if path.is_file())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, 10**10))
    resume(finished.root, asked, overrides=["total_timesteps=256"])
    assert [report.machine.disk_free_bytes for report in shown] == [10**10 + own]
