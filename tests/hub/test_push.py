"""What `game-rl push` sends, when it asks, and that nobody reads the token."""

import hashlib
import io
import json
import shutil
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.hub.hub_client import HubRepository
from game_rl.hub.pull import find_listing, pull_agent
from game_rl.hub.push import push_agent
from tests.hub.hub_server import HubServer
from tests.hub.packed import ADDRESS, packed_tiny

pytestmark = pytest.mark.slow  # an agent is trained and packed
NAME = ADDRESS.repo_id
TOKEN = "hf_only_in_the_header"  # noqa: S105 - of the fake Hub
LARGE_BYTES = 10_000_001
Output = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A terminal in which somebody has typed."""

    def isatty(self) -> bool:
        return True


def push(*words: str) -> int:
    run = packed_tiny()[0].parent / "run"
    return main(["push", str(run), str(ADDRESS), "--episodes", "1", *words])


@pytest.mark.parametrize("answer", ["n", ""])
def test_a_push_asks_and_without_a_yes_nothing_is_sent(
    answer: str, hub: HubServer, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    assert push() == 0
    printed = capsys.readouterr().out
    assert f"to {hub.url}/{NAME}? [y/N]" in printed
    assert "nothing was sent" in printed
    assert hub.requests == []


def test_a_push_that_is_answered_with_yes_is_sent(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert push() == 0
    assert PACKAGE_FILE in hub.files(NAME)


def test_a_push_without_a_terminal_to_ask_in_sends_nothing(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert push() == 2
    assert "add --yes" in capsys.readouterr().err
    assert hub.requests == []


def test_a_dry_run_sends_nothing(hub: HubServer, tmp_path: Path, capsys: Output) -> None:
    assert push("--dry-run", "--output", str(tmp_path / "agent")) == 0
    assert "nothing was sent" in capsys.readouterr().out
    assert (tmp_path / "agent" / PACKAGE_FILE).exists()
    assert hub.requests == []


def test_the_token_is_in_the_header_alone(
    hub: HubServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Output,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    hub.needs_token = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN + "_of_another")
    assert push("--yes") == 2
    assert NAME not in hub.repositories
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert push("--yes", "--output", str(tmp_path / "agent")) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["pull", str(ADDRESS)]) == 0
    assert hub.tokens == {TOKEN, TOKEN + "_of_another"}
    for received in hub.received:
        assert TOKEN.encode() not in received
    for content in hub.files(NAME).values():
        assert TOKEN.encode() not in content
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"README.md", "run.json", "results.json"} <= {path.name for path in files}
    for path in files:
        assert TOKEN.encode() not in path.read_bytes(), path
    printed = capsys.readouterr()
    assert TOKEN not in printed.out + printed.err + caplog.text


def test_a_large_file_is_sent_outside_of_git_and_comes_back(hub: HubServer, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    shutil.copytree(packed_tiny()[0], agent)
    content = b"timesteps\n".ljust(LARGE_BYTES, b"0")
    sha256 = hashlib.sha256(content).hexdigest()
    (agent / "eval.csv").write_bytes(content)
    manifest = json.loads((agent / PACKAGE_FILE).read_text(encoding="utf-8"))
    for file in manifest["files"]:
        if file["path"] == "eval.csv":
            file |= {"bytes": len(content), "sha256": sha256}
    (agent / PACKAGE_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    repository = HubRepository(ADDRESS, waits_s=(0.0, 0.0))
    push_agent(repository, agent, message="test")
    assert ("PUT", f"/lfs/{sha256}") in hub.requests
    listing = find_listing(repository)
    assert listing.files["eval.csv"].sha256 == sha256
    pull_agent(repository, listing, tmp_path / "pulled")
    assert (tmp_path / "pulled" / "eval.csv").read_bytes() == content
