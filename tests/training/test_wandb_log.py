"""A training with Weights & Biases: refused early, never stopped, exact over a resume."""

import json
import os
import signal
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.events import Begun, CheckpointSaved, Event, Recorded, Warned
from game_rl.events.event_log import EventLog, read_events
from game_rl.files.run_dir import EXPERIMENT_VARIABLE, RunDir
from game_rl.training.train import resume, train
from game_rl.training.wandb_log import WandbLog, wandb_settings
from tests.loggers.wandb_file import offline_files, read_wandb_file
from tests.tiny_run import TINY, MakeConfig, command

OFFLINE = "logging={wandb: {project: test, mode: offline}, tensorboard: false}"


def write_config(folder: Path) -> Path:
    path = folder / "run.yaml"
    path.write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return path


def config_of(folder: Path, *changes: str) -> RunConfig:
    return load_config(write_config(folder), [OFFLINE, *changes])


def test_a_missing_package_is_named_before_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    config = str(write_config(tmp_path))
    assert main(["train", "--config", config, "--set", OFFLINE]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "logging.wandb needs the package wandb, which is not installed" in said
    assert "pip install 'game_rl[wandb]'" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_missing_login_is_named_before_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wandb")
    for name in ("HOME", "XDG_CONFIG_HOME", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("WANDB_API_KEY", "NETRC", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    online = "logging.wandb={project: test}"
    assert main(["train", "--config", str(write_config(tmp_path)), "--set", online]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "nobody is logged in to Weights & Biases here; run `wandb login`" in said
    assert not (tmp_path / "run").exists()


def test_a_member_is_grouped_with_its_experiment(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config("03", OFFLINE)
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    alone = wandb_settings(config, run_dir, is_exact=True)
    assert alone is not None
    assert (alone.group, alone.name) == (None, "03")
    monkeypatch.setenv(EXPERIMENT_VARIABLE, "runs/duel_population")
    member = wandb_settings(config, run_dir, is_exact=True)
    assert member is not None
    assert (member.group, member.name) == ("duel_population", "duel_population 03")
    assert member.run == run_dir.identity().id


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_process_that_is_killed_is_replaced_and_at_the_end_a_warning(
    make_config: MakeConfig,
) -> None:
    config = make_config("run", OFFLINE)
    run_dir = RunDir(config.run_dir)
    run_dir.root.mkdir()
    heard: list[Event] = []
    log = WandbLog(config, run_dir, EventLog(listeners=[heard.append]))
    log.on_event(
        Begun(run="x", algorithm="ppo", total_timesteps=1, device="cpu", precision="float32")
    )
    first = killed(log)
    log.on_event(CheckpointSaved(checkpoint="1", n_bytes=1, seconds=1, contents=()))
    assert killed(log) != first
    log.on_event(Recorded(path="best.gif"))  # nobody hears it
    log.finish(5)
    told = [event.text for event in heard if isinstance(event, Warned)]
    assert told == [
        "the process of Weights & Biases was killed; a new one continues",
        "the process that sends to Weights & Biases has died; the curves are in wandb.jsonl",
    ]


def killed(log: WandbLog) -> int:
    """Kill the process as the kernel does when memory is short; return its id."""
    assert log._process is not None
    process = log._process._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return process.pid


@pytest.mark.slow
def test_a_resumed_run_has_each_point_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    # the process gives way to all others, and tests beside this one may leave it little
    monkeypatch.setattr("game_rl.training.wandb_log._WAIT_S", 900.0)
    runs = {}
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        config = config_of(tmp_path / name, "recording.episodes=1")
        quiet = command(Console(file=StringIO()), until=128 if name == "broken" else None)
        runs[name] = RunDir(config.run_dir)
        train(config, quiet)
    resume(runs["broken"].root, command(Console(file=StringIO())))
    whole, broken = (_rows(run) for run in runs.values())
    assert len(whole) == 6 + 3 + 1  # rollouts, evaluations, the clip
    assert whole == broken
    assert len(offline_files(runs["broken"].root)) == 2
    assert not [e for e in read_events(runs["broken"]) if isinstance(e, Warned) and "W&" in e.text]
    journal = runs["whole"].wandb_rows.read_text(encoding="utf-8").splitlines()
    assert len(journal) == 9
    assert json.loads(journal[-1])["timesteps"] == 192


def _rows(run_dir: RunDir) -> list[dict[str, object]]:
    """All rows in the order of their steps, without what depends on the machine."""
    rows = [row for path in offline_files(run_dir.root) for row in read_wandb_file(path).rows]
    assert len({step for step, _ in rows}) == len(rows)
    return [
        {k: v for k, v in values.items() if not k.startswith(("time/", "resources/", "clip"))}
        for _, values in sorted(rows, key=lambda row: row[0])
    ]
