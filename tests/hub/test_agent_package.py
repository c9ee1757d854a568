"""Addresses and manifests, which strangers write."""

import json
from typing import Any

import pytest

from game_rl.errors import StorageError, UsageError
from game_rl.hub.agent_package import LARGEST_AGENT_BYTES, parse_address, parse_package

MANIFEST: dict[str, Any] = {
    "format": 1,
    "agent": "ppo-duel",
    "timesteps": 7,
    "packed": "2026-01-01T00:00:00Z",
    "rom": {
        "title": "Duel",
        "header": "DUEL",
        "sha1": "a" * 40,
        "sha256": "b" * 64,
        "is_bundled": True,
    },
    "repeat": "game-rl evaluate runs/ppo-duel",
    "versions": {},
    "source_sha256": "c" * 64,
    "files": [],
}


def file(path: str, n_bytes: int = 1) -> dict[str, object]:
    return {"path": path, "bytes": n_bytes, "sha256": "d" * 64}


def parsed(*files: dict[str, object]) -> list[str]:
    content = json.dumps(MANIFEST | {"files": files}).encode()
    return [each.path for each in parse_package(content, "agent.json").files]


def test_an_address_has_a_user_a_name_and_perhaps_a_revision() -> None:
    assert parse_address("hf:ada/ppo-duel").repo_id == "ada/ppo-duel"
    assert parse_address("hf:ada/ppo-duel@v1.0").revision == "v1.0"
    assert str(parse_address("hf:ada/ppo-duel@v1.0")) == "hf:ada/ppo-duel@v1.0"


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("ada/ppo-duel", "write hf:ada/ppo-duel"),
        ("hf:ppo-duel", "the user or organisation is missing"),
        ("https://huggingface.co/ada/ppo-duel", "the last two words of the page's address"),
        ("hf:ada/../etc", "write hf:USER/NAME"),
        ("hf:ada/ppo duel", "write hf:USER/NAME"),
        ("s3://bucket/x", "write hf:USER/NAME"),
    ],
)
def test_another_address_is_refused_with_the_right_one(text: str, way_out: str) -> None:
    with pytest.raises(UsageError, match=way_out):
        parse_address(text)


def test_the_files_of_an_agent_are_accepted() -> None:
    names = ["config.yaml", "ppo-duel.zip", "game/game.yaml", "game/maps/a.yaml", "code/net.py"]
    names += ["checkpoints/000000000064/policy.safetensors", "replay.mp4"]
    assert parsed(*map(file, names)) == names


@pytest.mark.parametrize(
    "path",
    [
        *("../config.yaml", "/etc/passwd", "game/../../x", "game//x", "game/.hidden", "./x.zip"),
        *("lock", "upload.jsonl", "live.frames", "game\\x", "C:/x", "game/con:x", "game/a\nb"),
        *("checkpoints/1/policy.safetensors", "checkpoints/000000000064/../x.json"),
        *("code/net.so", "net.py", ".pull/x", "videos/best.mp4", ""),
    ],
)
def test_a_file_with_another_name_is_refused(path: str) -> None:
    with pytest.raises(StorageError, match=r"files\.0\.path"):
        parsed(file(path))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([file("config.yaml"), file("config.yaml")], "named twice"),
        ([file("game/A.yaml"), file("game/a.yaml")], "named twice"),
        ([file("game/a", LARGEST_AGENT_BYTES), file("game/b", 1)], "more than the limit of"),
        ([file("game/a", LARGEST_AGENT_BYTES + 1)], "less than or equal"),
        ([file(f"game/{n}") for n in range(1_001)], "at most 1000"),
    ],
)
def test_files_that_are_too_many_too_large_or_twice_are_refused(
    files: list[dict[str, object]], reason: str
) -> None:
    with pytest.raises(StorageError, match=reason):
        parsed(*files)


@pytest.mark.parametrize("content", [b"", b"[]", b"{" * 100_000, b'{"format": 2}', b"\xff"])
def test_what_is_no_manifest_is_refused_with_a_way_out(content: bytes) -> None:
    with pytest.raises(StorageError, match="install the newest game_rl"):
        parse_package(content, "agent.json")
