"""A run that has reached its end is safe from the commands that train it."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from game_rl.cli.main import main
from game_rl.errors import Interrupted
from game_rl.event_log import final_evaluation, read_events
from game_rl.events import Ended, Evaluating, Event
from game_rl.experiments.compare.compared_folders import read_folder
from game_rl.preflight.preflight_report import PreflightReport, measured_ram_peak_bytes
from game_rl.run_dir import RunDir
from game_rl.storage.run_status import run_status
from game_rl.system.stop_request import StopRequest
from game_rl.training.train import TrainCommand, resume
from tests.tiny_run import MakeConfig, command, train_once
from tests.training.forks import quiet


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
    evaluation, status = final_evaluation(read_events(finished)), run_status(finished)
    assert evaluation is not None
    assert status.ended == "completed"
    assert status.evaluation is not None
    assert status.evaluation["is_final"]


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
