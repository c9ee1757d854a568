"""Which experiments can be uploaded; files as users write them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import dump_experiment, load_experiment
from game_rl.config.output_config import MonitoringConfig, UploadConfig
from game_rl.errors import ConfigError
from tests.faults.population_faults import WRITERS

_TO = "upload.to=s3://bucket/x"
Write = Callable[[Path, Path], Path]
_UPLOADED = {name: write for name, write in WRITERS.items() if name != "live"}


@pytest.mark.parametrize("write", _UPLOADED.values(), ids=_UPLOADED)
def test_the_section_is_a_runs_own_one_in_every_kind(tmp_path: Path, write: Write) -> None:
    file = write(tmp_path, tmp_path / "x")
    section = "upload={to: s3://bucket/x, limit_mb_s: 2, keep_remote_last: 3, backlog_gb: 1}"
    experiment = load_experiment(file, [section])
    assert experiment.config.upload == UploadConfig(
        to="s3://bucket/x", limit_mb_s=2, keep_remote_last=3, backlog_gb=1
    )
    file.write_text(dump_experiment(experiment), encoding="utf-8")
    saved = load_experiment(file, is_saved=True)
    assert (saved.config.upload, saved.run) == (experiment.config.upload, experiment.run)


@pytest.mark.parametrize("write", _UPLOADED.values(), ids=_UPLOADED)
def test_without_checkpoints_nothing_is_uploaded(tmp_path: Path, write: Write) -> None:
    file = write(tmp_path, tmp_path / "x")
    with pytest.raises(ConfigError, match=r"upload\.what.*\n?.*add checkpoints"):
        load_experiment(file, [_TO, "upload.what=[lake, videos]"])


@pytest.mark.parametrize("kind", ["mixture", "erl"])
def test_a_lake_of_all_is_never_left_out(tmp_path: Path, kind: str) -> None:
    file = WRITERS[kind](tmp_path, tmp_path / "x")
    with pytest.raises(ConfigError, match="add lake"):
        load_experiment(file, [_TO, "upload.what=[checkpoints]"])
    load_experiment(file, [_TO, "upload.what=[checkpoints, lake]"])


def test_members_lakes_are_sent_from_run_dir_or_refused(tmp_path: Path) -> None:
    file = WRITERS["population"](tmp_path, tmp_path / "x")
    load_experiment(file, [_TO, "upload.what=[checkpoints]", "member.lake=null"])
    load_experiment(file, [_TO, "member.lake={}"])
    with pytest.raises(ConfigError, match=r"add lake, or write member: \{lake: null\}"):
        load_experiment(file, [_TO, "member.lake={}", "upload.what=[checkpoints]"])
    with pytest.raises(ConfigError, match=f"elsewhere, at {tmp_path}/lake"):
        load_experiment(file, [_TO, f"member.lake={{path: {tmp_path}/lake}}"])


def test_what_has_no_breaks_is_refused_with_what_to_upload_instead(tmp_path: Path) -> None:
    file = WRITERS["live"](tmp_path, tmp_path / "x")
    with pytest.raises(ConfigError, match="into the sections member and learner"):
        load_experiment(file, [_TO])
    experiment = load_experiment(file, [f"member.{_TO}", f"learner.{_TO}"])
    assert experiment.run.upload == UploadConfig(to="s3://bucket/x")


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_thresholds_of_free_space_are_the_members_own(tmp_path: Path, write: Write) -> None:
    file = write(tmp_path, tmp_path / "x")
    assert load_experiment(file, ["member.monitoring.warn_disk_gb=20"]).run.monitoring == (
        MonitoringConfig(warn_disk_gb=20)
    )
