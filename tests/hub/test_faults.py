"""Whatever the Hub and the network do, there is no half of an agent, here or there."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from game_rl.checkpoints.checkpoint_folder import CheckpointFolder
from game_rl.errors import StorageError, UsageError
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.hub.agent_package import AgentPackage, parse_package
from game_rl.hub.hub_client import HubRepository
from game_rl.hub.pull import find_listing, pull_agent
from game_rl.hub.push import packed_files, push_agent
from tests.hub.hub_server import FAULTS, Fault, Files, HubServer
from tests.hub.packed import ADDRESS, packed_tiny

pytestmark = pytest.mark.slow  # an agent is trained and packed
NAME = ADDRESS.repo_id
N_FAULTS = 200


def repository() -> HubRepository:
    return HubRepository(ADDRESS, waits_s=(0.0, 0.0))


def contents(folder: Path) -> Files:
    return {name: path.read_bytes() for name, path in packed_files(folder).items()}


@pytest.fixture(scope="module")
def agent() -> tuple[Path, AgentPackage]:
    return packed_tiny()


def with_other_results(folder: Path, target: Path, number: int) -> Path:
    """A copy of the agent whose results differ, with a manifest that says so."""
    shutil.copytree(folder, target)
    results = target / "results.json"
    results.write_text(f"{number}", encoding="utf-8")
    manifest = json.loads((target / PACKAGE_FILE).read_text(encoding="utf-8"))
    for file in manifest["files"]:
        if file["path"] == "results.json":
            content = results.read_bytes()
            file |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (target / PACKAGE_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    return target


def is_whole(folder: Path) -> bool:
    """Whether every file is what the manifest says, found without the code that pulls."""
    package = parse_package((folder / PACKAGE_FILE).read_bytes(), "")
    return all(
        hashlib.sha256((folder / file.path).read_bytes()).hexdigest() == file.sha256
        for file in package.files
    )


class Strikes:
    """A plan of faults: one kind, at some requests in a row."""

    def __init__(self, fault: Fault, first: int, count: int) -> None:
        self.fault = fault
        self.struck = 0
        self._first = first
        self._count = count
        self._seen = 0

    def __call__(self, _method: str, path: str) -> Fault | None:
        if path == "/api/agent-harnesses":  # of huggingface_hub itself
            return None
        self._seen += 1
        if not self._first < self._seen <= self._first + self._count:
            return None
        self.struck += 1
        return self.fault


def test_two_hundred_faults_leave_nothing_half(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    versions = [with_other_results(agent[0], tmp_path / f"{n}", n) for n in range(2)]
    empty = {".gitattributes": b"*.zip filter=lfs\n"}  # as the Hub makes a repository
    states = [{**empty, **contents(each)} for each in versions]
    struck: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    target = tmp_path / "pulled"
    while struck.total() < N_FAULTS:
        version = int(rng.integers(2))
        count = int(rng.choice([1, 3, 1_000]))  # once, for a moment, or for good
        plan = Strikes(FAULTS[int(rng.integers(len(FAULTS)))], int(rng.integers(24)), count)
        before = hub.repositories[NAME][-1][1] if NAME in hub.repositories else None
        is_push = before is None or rng.random() < 0.4
        hub.plan = plan
        is_done = True
        try:
            if is_push:
                push_agent(repository(), versions[version], message="test")
            else:
                found = repository()
                pull_agent(found, find_listing(found), target)
        except (StorageError, UsageError):
            is_done = False
        hub.plan = lambda *_: None
        after = hub.repositories[NAME][-1][1] if NAME in hub.repositories else None
        if is_push:
            assert after in ([states[version]] if is_done else [before, empty, states[version]])
        else:
            assert after == before
            assert target.exists() == is_done
        if target.exists():
            assert is_whole(target)
            CheckpointFolder(next((target / "checkpoints").iterdir())).verify()
            shutil.rmtree(target)
        struck[plan.fault] += plan.struck > 0
        outcomes[f"{'push' if is_push else 'pull'}, done: {is_done}"] += plan.struck > 0
    print(dict(struck), dict(outcomes))  # noqa: T201 - shown with -s
    assert min(struck[fault] for fault in FAULTS) > 10
    assert len(outcomes) == 4 and min(outcomes.values()) > 5  # noqa: PT018 - both ways, both ends
    found = repository()
    push_agent(found, versions[0], message="test")
    pull_agent(found, find_listing(found), target)
    assert contents(target).items() >= contents(versions[0]).items()


def test_a_pull_that_is_cut_keeps_whole_files_and_goes_on(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    hub.add_commit(NAME, contents(agent[0]))
    hub.plan = lambda _, path: "cut" if path.endswith("/run.json") else None
    found = repository()
    with pytest.raises(StorageError, match="run the command again"):
        pull_agent(found, find_listing(found), tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
    hub.plan = lambda *_: None
    hub.requests.clear()
    pull_agent(found, find_listing(found), tmp_path / "mine")
    fetched = {path.rpartition("/")[2] for _, path in hub.requests if "/resolve/" in path}
    assert fetched == {PACKAGE_FILE, "run.json", "worst.mp4", "README.md"}  # worst.mp4 follows
    assert is_whole(tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("path", ["policy.safetensors", "state.json", "config.yaml", "replay.mp4"])
def test_a_file_that_was_changed_on_the_hub_is_refused(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path, path: str
) -> None:
    files = contents(agent[0])
    name = next(name for name in files if name.endswith(path))
    files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])
    hub.add_commit(NAME, files)
    found = repository()
    with pytest.raises(StorageError, match=f"{path} .*is not what agent.json says"):
        pull_agent(found, find_listing(found), tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_file_that_is_longer_than_the_manifest_says_is_not_fetched(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    files = contents(agent[0])
    files["eval.csv"] += b"\n"
    hub.add_commit(NAME, files)
    found = repository()
    with pytest.raises(StorageError, match=r"eval.csv .*agent.json says"):
        pull_agent(found, find_listing(found), tmp_path / "mine")
    assert not any("eval.csv" in path for _, path in hub.requests)


def test_a_commit_whose_answer_is_lost_is_found_and_not_made_twice(
    hub: HubServer, agent: tuple[Path, AgentPackage]
) -> None:
    hub.plan = lambda _, path: "lost answer" if "/commit/" in path else None
    push_agent(repository(), agent[0], message="test")
    assert len(hub.repositories[NAME]) == 2
    assert hub.files(NAME).items() >= contents(agent[0]).items()


def test_a_commit_of_somebody_else_in_the_meantime_is_not_overwritten(
    hub: HubServer, agent: tuple[Path, AgentPackage]
) -> None:
    hub.add_commit(NAME, {"notes.md": b"mine"})

    def plan(_method: str, path: str) -> None:
        if path.endswith("/batch"):
            hub.add_commit(NAME, {"notes.md": b"changed"})

    hub.plan = plan
    with pytest.raises(StorageError, match="has changed in the meantime"):
        push_agent(repository(), agent[0], message="test")
    assert hub.files(NAME) == {"notes.md": b"changed"}


def test_a_second_push_deletes_what_the_first_one_had_alone_and_nothing_else(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    hub.add_commit(NAME, {"notes.md": b"mine", ".gitattributes": b""} | contents(agent[0]))
    smaller = tmp_path / "smaller"
    shutil.copytree(agent[0], smaller)
    (smaller / "curves.png").unlink()
    push_agent(repository(), smaller, message="test")
    files = hub.files(NAME)
    assert "curves.png" not in files
    assert files["notes.md"] == b"mine"
