"""An agent that is pushed and pulled plays as it did, to the last episode."""

import json
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.files.pretrained import PACKAGE_FILE
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from tests.hub.hub_server import HubServer
from tests.hub.packed import EPISODES, own_game, train_tiny


def test_a_pulled_agent_has_the_score_of_its_card_to_the_last_episode(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train_tiny(tmp_path, str(own_game(tmp_path / "mine")))
    arguments = ["--episodes", str(EPISODES), "--yes"]
    assert main(["push", str(run), "hf:ada/ppo-tiny", *arguments]) == 0
    (_, first), _ = hub.repositories["ada/ppo-tiny"]  # two commits, the second with all files
    assert list(first) == [".gitattributes"]
    monkeypatch.chdir(tmp_path)
    assert main(["pull", "hf:ada/ppo-tiny"]) == 0
    pulled = tmp_path / "runs" / "ppo-tiny"
    there = json.loads(hub.files("ada/ppo-tiny")["results.json"])
    expected = evaluate_run(open_trained_run(run.root, "best"), episodes=EPISODES)
    found = evaluate_run(open_trained_run(pulled, "best"), episodes=EPISODES)
    assert found == expected
    assert there["rewards"] == list(expected.rewards)
    assert there["lengths"] == list(expected.lengths)
    assert (pulled / PACKAGE_FILE).read_bytes() == hub.files("ada/ppo-tiny")[PACKAGE_FILE]
