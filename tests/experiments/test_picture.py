from pathlib import Path

import pytest

from game_rl.experiments.backup import (
    remove_snapshot,
    snapshot_bytes,
    snapshot_folder,
    take_snapshot,
)
from game_rl.experiments.experiment_dir import ExperimentDir

_FILES = (
    "experiment.yaml",
    "events.jsonl",
    "lock",
    "upload.json",
    "upload.lock",
    "errands/x",
    "superseded/000/x",
    "lake/lake.json",
    "lake/s.segment",
    "lake/.lake-lock",
    "members/00/claim",
    "members/00/config.yaml",
    "members/00/checkpoints/000064/policy",
    "members/00/lake/s.segment",
    "members/00/videos/clip.gif",
    "champion/videos/clip.gif",
    "generations/0001/record.json",
    "generations/0001/00/policy",
)
_OF_THE_MACHINE = {
    "lock",
    "upload.json",
    "upload.lock",
    "errands/x",
    "superseded/000/x",
    "lake/.lake-lock",
    "members/00/claim",
}


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentDir:
    for name in _FILES:
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return ExperimentDir(tmp_path / "here")


def shown(folder: ExperimentDir) -> set[str]:
    picture = snapshot_folder(folder)
    return {p.relative_to(picture).as_posix() for p in picture.rglob("*") if p.is_file()}


@pytest.mark.parametrize("lake", [True, False])
@pytest.mark.parametrize("videos", [True, False])
def test_what_is_wanted_is_there_and_nothing_of_this_machine_alone(
    folder: ExperimentDir, lake: bool, videos: bool
) -> None:
    what = ["checkpoints"] + ["lake"] * lake + ["videos"] * videos
    take_snapshot(folder, what)
    left_out = {n for n in _FILES if ("lake/" in n and not lake) or ("videos/" in n and not videos)}
    assert shown(folder) == set(_FILES) - _OF_THE_MACHINE - left_out
    remove_snapshot(folder)
    assert not snapshot_folder(folder).exists()


def test_it_stays_as_it_was(folder: ExperimentDir) -> None:
    take_snapshot(folder, ("checkpoints", "lake"))
    before = {name: (snapshot_folder(folder) / name).read_bytes() for name in shown(folder)}
    with (folder.root / "events.jsonl").open("ab") as file:
        file.write(b"more")
    for name in ("members/00/checkpoints/000064/policy", "lake/s.segment"):
        (folder.root / name).unlink()
    assert {name: (snapshot_folder(folder) / name).read_bytes() for name in shown(folder)} == before


def test_held_is_what_the_folder_does_not_have(folder: ExperimentDir) -> None:
    assert snapshot_bytes(folder) == 0
    take_snapshot(folder, ("checkpoints", "lake"))
    copies = ("experiment.yaml", "events.jsonl", "members/00/config.yaml")
    held = sum(len(name) for name in copies)
    assert snapshot_bytes(folder) == held
    gone = "members/00/checkpoints/000064/policy"
    (folder.root / gone).unlink()
    assert snapshot_bytes(folder) == held + len(gone)
