"""A population in storage, on paper: what is fetched elsewhere goes on to the same end."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.config.experiments.experiment import Experiment, dump_experiment, load_experiment
from game_rl.config.output_config import UploadConfig
from game_rl.errors import Interrupted, UsageError
from game_rl.events import ExperimentEvent, ExperimentWarned, GenerationEnded
from game_rl.events.event_log import ExperimentEventLog
from game_rl.experiments.backup import (
    Backup,
    backing_up,
    own_state,
    push_settings,
    remove_snapshot,
    snapshot_bytes,
    snapshot_folder,
    stored_state,
    take_snapshot,
    uploaded_to,
    write_state,
)
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.files.run_dir import upload_lock
from game_rl.storage.faults import SecondWriterError
from game_rl.storage.fetch import fetch_experiment
from game_rl.storage.inventory import (
    ExperimentAddress,
    damaged_blobs,
    needed_blobs,
    stored_experiments,
)
from game_rl.storage.manifest import blobs_of
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.uploader import push_experiment
from game_rl.system.child_process import started
from tests.experiments.broken_off import Killed, account_of, killed_at
from tests.experiments.conftest import MakeMixture, MakePopulation
from tests.experiments.plans.test_population_plan import carry_out
from tests.storage.conftest import address as address  # fixtures
from tests.storage.conftest import disk_address as disk_address
from tests.storage.conftest import s3_address as s3_address
from tests.storage.conftest import s3_endpoint as s3_endpoint
from tests.storage.runs import flip_a_bit

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
    "generations/0001/00.request.json",
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
    "generations/0001/00.request.json",
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


_HANG_S = 600.0  # longer than the busiest machine takes
_SMALL = ("members=3", "generations=4", "selection.share=0.34", "champion.candidates=1")


def killed(population: Experiment, operation: int) -> ExperimentDir:
    with pytest.raises(Killed), killed_at(operation):
        carry_out(population)
    folder = ExperimentDir(population.config.run_dir)
    folder.config.write_text(dump_experiment(population), encoding="utf-8")
    folder.identity()
    return folder


def push(
    folder: ExperimentDir,
    to: str,
    *,
    generation: int = 1,
    take_over: bool = False,
    keep_remote_last: int | None = None,
) -> int:
    upload = UploadConfig(to=to, keep_remote_last=keep_remote_last)
    experiment = with_upload(load_experiment(folder.config, is_saved=True), upload)
    take_snapshot(folder, upload.what)
    state = own_state(folder, upload)
    write_state(folder, state)
    settings = push_settings(folder, experiment, state, generation=generation)
    return push_experiment(settings.model_copy(update={"take_over": take_over}))


def with_upload(experiment: Experiment, upload: UploadConfig) -> Experiment:
    config = experiment.config.model_copy(update={"upload": upload})
    return replace(experiment, config=config)


def moved(population: Experiment, root: Path) -> Experiment:
    config = population.config.model_copy(update={"run_dir": root})
    return Experiment(config, population.run)


def test_what_is_fetched_elsewhere_goes_on_to_the_same(
    make_population: MakePopulation, tmp_path: Path, address: str
) -> None:
    whole = account_of(carry_out(make_population("whole", *_SMALL)))
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    push(folder, address)
    shutil.rmtree(folder.root)
    there = tmp_path / "there"
    (stored,) = stored_experiments(ObjectStore(address))
    place = ExperimentAddress(address, stored.experiment)
    fetch_experiment(place, there)
    assert account_of(carry_out(moved(population, there))) == whole
    with pytest.raises(UsageError, match="already holds an experiment"):
        fetch_experiment(place, there)


def test_equal_content_goes_once_and_only_as_many_as_asked_for_are_kept(
    make_population: MakePopulation, tmp_path: Path, disk_address: str
) -> None:
    folder = killed(make_population("here", *_SMALL), 150)
    for path in folder.members.rglob("policy.safetensors"):
        assert path.exists()
    first = push(folder, disk_address)
    shutil.copytree(folder.member("00").root, folder.member("07").root)
    assert first > 0
    assert push(folder, disk_address, generation=3, keep_remote_last=1) == 0
    store = ObjectStore(disk_address)
    (stored,) = stored_experiments(store)
    assert stored.generations == (3,)
    blobs = [p for p in (tmp_path / "mounted disk").rglob("blobs/*/*") if p.is_file()]
    assert {p.name for p in blobs} == set(blobs_of(stored.tree.files))
    needed = needed_blobs(store, stored)
    assert damaged_blobs(store, stored, needed) == []
    flip_a_bit(max(blobs, key=lambda path: path.stat().st_size))
    assert "is damaged" in " ".join(damaged_blobs(store, stored, needed))


def test_another_copy_is_refused_until_it_takes_over(
    make_population: MakePopulation, tmp_path: Path, disk_address: str
) -> None:
    folder = killed(make_population("here", *_SMALL), 150)
    push(folder, disk_address)
    other = ExperimentDir(tmp_path / "other")
    shutil.copytree(folder.root, other.root)
    (other.root / "upload.json").unlink()
    place = ExperimentAddress(disk_address, folder.identity().id)
    with pytest.raises(SecondWriterError):
        fetch_experiment(place, tmp_path / "x", take_over=False)
    with pytest.raises(SecondWriterError):
        push(other, disk_address)
    push(other, disk_address, take_over=True)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_it_is_sent_beside_the_training_and_what_is_there_is_written_down(
    make_population: MakePopulation, disk_address: str
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    said: list[str] = []
    uploaded = with_upload(population, UploadConfig(to=disk_address))
    copy = Backup(folder, uploaded, take_over=False, warn=said.append)
    copy.on_event(ended(1))
    copy.close(_HANG_S)
    assert said == []
    assert copy.nothing_stored() == ""
    state = stored_state(folder)
    assert state is not None
    assert state.generation == 1
    assert not snapshot_folder(folder).exists()


def test_storage_that_is_out_of_reach_is_named_and_tried_again(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    upload = UploadConfig(to=f"file://{tmp_path}/unmounted")
    take_snapshot(folder, upload.what)
    state = own_state(folder, upload)
    settings = push_settings(folder, with_upload(population, upload), state, generation=1)
    process = started("game_rl.storage.upload_process", "experiment")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(settings.model_dump_json() + "\n")
    process.stdin.flush()
    assert "create the bucket or the folder, or mount the disk" in process.stdout.readline()
    (tmp_path / "unmounted").mkdir()
    assert process.wait(60) == 0
    process.communicate()
    (stored,) = stored_experiments(ObjectStore(upload.to))
    assert stored.generation == 1


def test_what_could_not_be_sent_is_said_and_ends_nothing(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    said: list[str] = []
    upload = UploadConfig(to=f"file://{tmp_path}/unmounted")
    copy = Backup(folder, with_upload(population, upload), take_over=False, warn=said.append)
    copy.close(0)
    assert f"nothing of it is at {upload.to}" in copy.nothing_stored()
    assert f"upload it with `game-rl remote push {folder.root}`" in said[-1]


@pytest.mark.slow
def test_what_would_hold_more_than_the_backlog_is_given_up_for_what_is_newer(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    said: list[str] = []
    upload = UploadConfig(to=f"file://{tmp_path}/unmounted", backlog_gb=0)
    copy = Backup(folder, with_upload(population, upload), take_over=False, warn=said.append)
    for number in (1, 2, 3):
        copy.on_event(ended(number))
    over = [text for text in said if "upload.backlog_gb" in text]
    (tmp_path / "unmounted").mkdir()
    copy.close(_HANG_S)
    assert len(over) == 1
    assert "generation 1" in over[0]
    (stored,) = stored_experiments(ObjectStore(upload.to))
    assert stored.generations == (3,)


@pytest.mark.slow
def test_below_the_backlog_a_generation_that_is_being_sent_goes_on(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    upload = UploadConfig(to=f"file://{tmp_path}/unmounted")
    copy = Backup(folder, with_upload(population, upload), take_over=False, warn=lambda _: None)
    for number in (1, 2, 3):
        copy.on_event(ended(number))
    (tmp_path / "unmounted").mkdir()
    copy.close(_HANG_S)
    (stored,) = stored_experiments(ObjectStore(upload.to))
    assert stored.generations == (1, 3)  # the one that was underway, and the newest


@pytest.mark.slow
@pytest.mark.parametrize("wait_s", [20.0, 0.0])
def test_the_process_of_an_experiment_that_was_killed_finishes_or_leaves_in_time(
    make_population: MakePopulation, tmp_path: Path, wait_s: float
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    upload = UploadConfig(to=f"file://{tmp_path}/unmounted", wait_s=wait_s)
    take_snapshot(folder, upload.what)
    state = own_state(folder, upload)
    settings = push_settings(folder, with_upload(population, upload), state, generation=1)
    process = started("game_rl.storage.upload_process", "experiment")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(settings.model_dump_json() + "\n")
    process.stdin.flush()
    assert "mount the disk" in process.stdout.readline()
    process.stdin.close()  # as when the experiment's process dies
    if not wait_s:
        assert process.wait(60) == 1
    (tmp_path / "unmounted").mkdir()
    if wait_s:
        assert process.wait(60) == 0
    process.stdout.close()
    assert len(stored_experiments(ObjectStore(upload.to))) == bool(wait_s)


def test_a_process_waits_for_the_one_before(
    make_population: MakePopulation, disk_address: str
) -> None:
    population = make_population("here", *_SMALL)
    folder = killed(population, 150)
    said: list[str] = []
    uploaded = with_upload(population, UploadConfig(to=disk_address))
    copy = Backup(folder, uploaded, take_over=False, warn=said.append)
    with upload_lock(folder.root, wait_s=0):
        copy.on_event(ended(1))
        copy.close(0.5)
    assert "remote push" in said[-1]
    assert stored_experiments(ObjectStore(disk_address)) == []


def test_who_stops_the_experiment_waits_no_longer_than_its_runs(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    population = make_population("here", *_SMALL, "member.checkpoints.deadline_s=0.1")
    folder = killed(population, 150)
    uploaded = with_upload(population, UploadConfig(to=f"file://{tmp_path}/unmounted", wait_s=9e3))
    said: list[ExperimentEvent] = []
    events = ExperimentEventLog(listeners=[said.append])
    with pytest.raises(Interrupted), backing_up(folder, uploaded, events, take_over=False):
        raise Interrupted("stopped", exit_code=143)
    assert isinstance(said[-1], ExperimentWarned)
    assert "remote push" in said[-1].text


def test_another_address_takes_the_rest_of_the_section_and_its_checks(
    make_population: MakePopulation, make_mixture: MakeMixture, tmp_path: Path
) -> None:
    there = UploadConfig(to="s3://there")
    population = with_upload(make_population(), UploadConfig(to="s3://here", keep_remote_last=3))
    expected = UploadConfig(to="s3://there", keep_remote_last=3)
    assert uploaded_to(population, there).config.upload == expected
    assert uploaded_to(make_mixture(), there).config.upload == there
    elsewhere = make_population("x", f"member.lake={{path: {tmp_path}/lake}}")
    with pytest.raises(UsageError, match="members have their Lake elsewhere"):
        uploaded_to(elsewhere, there)


def ended(number: int) -> GenerationEnded:
    return GenerationEnded(generation=number, record="", seconds=1, copies=0, checkpoints_bytes=0)
