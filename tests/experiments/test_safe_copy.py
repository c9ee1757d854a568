"""A population in storage, on paper: what is fetched elsewhere goes on to the same end."""

import shutil
from pathlib import Path

import pytest

from game_rl.config.experiments import Population, dump_population
from game_rl.config.safe_copy import PopulationUploadConfig
from game_rl.errors import UsageError
from game_rl.experiments.account import GenerationEnded
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.safe_copy import (
    SafeCopy,
    own_state,
    picture_of,
    push_settings,
    stored_state,
    take_picture,
    write_state,
)
from game_rl.storage.experiments import (
    damaged_blobs,
    fetch_experiment,
    push_experiment,
    stored_experiments,
)
from game_rl.storage.faults import SecondWriterError
from game_rl.storage.object_store import ObjectStore
from game_rl.storage.own_process import started
from tests.experiments.broken_off import Killed, account_of, killed_at
from tests.experiments.conftest import MakePopulation
from tests.experiments.test_population import carry_out
from tests.storage.conftest import address as address  # fixtures
from tests.storage.conftest import disk_address as disk_address
from tests.storage.conftest import s3_address as s3_address
from tests.storage.conftest import s3_endpoint as s3_endpoint
from tests.storage.runs import flip_a_bit

_SMALL = ("members=3", "generations=4", "selection.share=0.34", "champion.candidates=1")


def killed(population: Population, operation: int) -> ExperimentDir:
    with pytest.raises(Killed), killed_at(operation):
        carry_out(population)
    folder = ExperimentDir(population.config.run_dir)
    folder.config.write_text(dump_population(population))
    folder.identity()
    return folder


def push(folder: ExperimentDir, to: str, *, generation: int = 1, take_over: bool = False) -> int:
    upload = PopulationUploadConfig(to=to)
    take_picture(folder)
    state = own_state(folder, upload)
    write_state(folder, state)
    settings = push_settings(folder, upload, state, generation=generation)
    return push_experiment(settings.model_copy(update={"take_over": take_over}))


def moved(population: Population, root: Path) -> Population:
    config = population.config.model_copy(update={"run_dir": root})
    return Population(config, population.run)


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
    fetch_experiment(address, stored.experiment, there)
    assert account_of(carry_out(moved(population, there))) == whole
    with pytest.raises(UsageError, match="holds an experiment already"):
        fetch_experiment(address, stored.experiment, there)


def test_equal_content_goes_once_and_only_the_newest_is_kept(
    make_population: MakePopulation, tmp_path: Path, disk_address: str
) -> None:
    folder = killed(make_population("here", *_SMALL), 150)
    for path in folder.members.rglob("policy.safetensors"):
        assert path.exists()
    first = push(folder, disk_address)
    shutil.copytree(folder.member("00").root, folder.member("07").root)
    assert first > 0
    assert push(folder, disk_address, generation=2) == 0
    (stored,) = stored_experiments(ObjectStore(disk_address))
    assert stored.generation == 2
    blobs = [p for p in (tmp_path / "mounted disk").rglob("blobs/*/*") if p.is_file()]
    assert {p.name for p in blobs} == set(stored.tree.blobs())
    assert damaged_blobs(ObjectStore(disk_address), stored) == []
    flip_a_bit(max(blobs, key=lambda path: path.stat().st_size))
    assert "is damaged" in " ".join(damaged_blobs(ObjectStore(disk_address), stored))


def test_another_copy_is_refused_until_it_takes_over(
    make_population: MakePopulation, tmp_path: Path, disk_address: str
) -> None:
    folder = killed(make_population("here", *_SMALL), 150)
    push(folder, disk_address)
    other = ExperimentDir(tmp_path / "other")
    shutil.copytree(folder.root, other.root)
    (other.root / "upload.json").unlink()
    with pytest.raises(SecondWriterError):
        fetch_experiment(disk_address, folder.identity().id, tmp_path / "x", take_over=False)
    with pytest.raises(SecondWriterError):
        push(other, disk_address)
    push(other, disk_address, take_over=True)
    assert not (tmp_path / "x").exists()


def test_it_is_sent_beside_the_training_and_what_is_there_is_written_down(
    make_population: MakePopulation, disk_address: str
) -> None:
    folder = killed(make_population("here", *_SMALL), 150)
    said: list[str] = []
    upload = PopulationUploadConfig(to=disk_address)
    copy = SafeCopy(folder, upload, take_over=False, warn=said.append)
    copy.on_event(
        GenerationEnded(generation=1, record="", seconds=1, copies=0, checkpoints_bytes=0)
    )
    copy.close()
    assert said == []
    state = stored_state(folder)
    assert state is not None
    assert state.generation == 1
    assert not picture_of(folder).exists()


def test_storage_that_is_out_of_reach_is_named_and_tried_again(
    make_population: MakePopulation, tmp_path: Path
) -> None:
    folder = killed(make_population("here", *_SMALL), 150)
    upload = PopulationUploadConfig(to=f"file://{tmp_path}/unmounted")
    take_picture(folder)
    settings = push_settings(folder, upload, own_state(folder, upload), generation=1)
    process = started("game_rl.storage.experiment_process")
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
    folder = killed(make_population("here", *_SMALL), 150)
    said: list[str] = []
    upload = PopulationUploadConfig(to=f"file://{tmp_path}/unmounted", wait_s=0.0)
    SafeCopy(folder, upload, take_over=False, warn=said.append).close()
    assert f"`game-rl remote push {folder.root}` sends it" in said[-1]
