"""What a pull refuses of a stranger's repository, and what it says."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from game_rl.cli.main import main
from game_rl.errors import StorageError, UsageError
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.hub.agent_package import AgentPackage
from game_rl.hub.hub_client import HubRepository
from game_rl.hub.pull import find_listing, pull_agent
from game_rl.hub.push import packed_files
from tests.hub.hub_server import Files, HubServer
from tests.hub.packed import ADDRESS, packed_tiny

pytestmark = pytest.mark.slow  # an agent is trained and packed
NAME = ADDRESS.repo_id


@pytest.fixture(scope="module")
def agent() -> tuple[Path, AgentPackage]:
    return packed_tiny()


def changed(folder: Path, change: Callable[[Files], None]) -> Files:
    """The files of the agent after a change, with a manifest that has their hashes."""
    files = {name: path.read_bytes() for name, path in packed_files(folder).items()}
    change(files)
    manifest = json.loads(files[PACKAGE_FILE])
    manifest["files"] = [
        {"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
        if name not in (PACKAGE_FILE, "README.md")
    ]
    files[PACKAGE_FILE] = json.dumps(manifest).encode()
    return files


def with_key(files: Files, section: str | None, key: str, value: object) -> None:
    config = yaml.safe_load(files["config.yaml"])
    (config if section is None else config[section])[key] = value
    files["config.yaml"] = yaml.safe_dump(config).encode()


def pull(root: Path, *, with_code: bool = False) -> None:
    repository = HubRepository(ADDRESS, waits_s=())
    pull_agent(repository, find_listing(repository), root, with_code=with_code)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        (None, "upload", {"to": "s3://somebody/else"}),
        ("env", "pool", {"from": "/somewhere"}),
        ("algorithm", "learn_from", {"played": {"episodes": "/home/*.json"}}),
        ("logging", "wandb", {"project": "theirs"}),
    ],
)
def test_a_config_that_names_folders_or_services_is_refused(
    hub: HubServer,
    agent: tuple[Path, AgentPackage],
    tmp_path: Path,
    section: str | None,
    key: str,
    value: object,
) -> None:
    hub.add_commit(NAME, changed(agent[0], lambda files: with_key(files, section, key, value)))
    with pytest.raises(StorageError, match=f"has the key .*{key}, which names a folder"):
        pull(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_game_outside_the_folder_is_refused(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    hub.add_commit(
        NAME, changed(agent[0], lambda files: with_key(files, None, "game", "/etc/game.yaml"))
    )
    with pytest.raises(StorageError, match="neither in the repository nor comes with game_rl"):
        pull(tmp_path / "mine")


def test_a_game_file_that_names_files_outside_is_refused(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    def outside(files: Files) -> None:
        files["game/game.yaml"] = files["game/game.yaml"].replace(b"mine.sym", b"../mine.sym")

    hub.add_commit(NAME, changed(agent[0], outside))
    with pytest.raises(StorageError, match=re.escape("names ../mine.sym, which is outside")):
        pull(tmp_path / "mine")


def evil(files: Files) -> None:
    """Add code that would leave a mark if anything ran it."""
    files["game/evil.py"] = b"""
from pathlib import Path
Path(__file__).with_name("ran").touch()
class Evil:
    def step(self, before, after):
        return {}
"""
    files["game/game.yaml"] += b"\nreward: evil:Evil\n"
    with_key(files, "algorithm", "network", "antigravity:Net")


def test_code_is_named_with_what_it_would_run_and_fetched_with_the_flag_alone(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    commit = hub.add_commit(NAME, changed(agent[0], evil))
    with pytest.raises(UsageError) as refused:
        pull(tmp_path / "mine")
    text = str(refused.value)
    assert "algorithm.network runs antigravity:Net" in text
    assert "the reward of game/game.yaml runs evil:Evil" in text
    assert f"/{NAME}/blob/{commit}/game/evil.py" in text
    assert "add --with-code" in text
    assert not any(path.endswith(".py") for _, path in hub.requests)
    assert list(tmp_path.iterdir()) == []

    pull(tmp_path / "mine", with_code=True)
    assert (tmp_path / "mine" / "game" / "evil.py").exists()
    assert not (tmp_path / "mine" / "game" / "ran").exists()


def test_a_manifest_made_to_fill_the_memory_is_not_fetched(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    files = changed(agent[0], lambda _: None)
    files[PACKAGE_FILE] += b" " * 2**20
    hub.add_commit(NAME, files)
    with pytest.raises(StorageError, match="far more than a manifest needs"):
        pull(tmp_path / "mine")
    assert not any("/resolve/" in path for _, path in hub.requests)


def test_a_pull_over_another_agents_rest_fetches_its_own(
    hub: HubServer, agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    rest = tmp_path / ".mine.pull"
    (rest / "checkpoints" / "000000000001").mkdir(parents=True)
    (rest / PACKAGE_FILE).write_text("{}", encoding="utf-8")
    (rest / "eval.csv").write_text("wrong", encoding="utf-8")
    hub.add_commit(NAME, changed(agent[0], lambda _: None))
    pull(tmp_path / "mine")
    assert len(list((tmp_path / "mine" / "checkpoints").iterdir())) == 1
    assert (tmp_path / "mine" / "videos" / "best.mp4").exists()


def test_a_zip_of_stable_baselines3_begins_a_run_of_the_config(
    hub: HubServer,
    agent: tuple[Path, AgentPackage],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, package = agent
    hub.add_commit("bob/ppo-tiny", {"ppo-tiny.zip": (folder / "ppo-mine.zip").read_bytes()})
    monkeypatch.chdir(tmp_path)
    assert main(["pull", "hf:bob/ppo-tiny"]) == 2
    assert "name the config of a run whose network it fits" in capsys.readouterr().err
    assert main(["pull", "hf:bob/ppo-tiny", str(folder / "config.yaml")]) == 0
    assert f"starts at timestep {package.timesteps}" in capsys.readouterr().out
    assert (tmp_path / "runs" / "ppo-tiny" / "config.yaml").exists()
    assert main(["pull", "hf:bob/ppo-tiny", "duel_ppo", "--folder", "other"]) == 1
    assert "another network" in capsys.readouterr().err
