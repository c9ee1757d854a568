"""The agents that come with game_rl: they are whole, play, and stay as they are."""

import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path, PurePosixPath
from types import ModuleType

import pytest

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.checkpoints.named import find_run
from game_rl.checkpoints.run_game import check_playable
from game_rl.cli.main import main
from game_rl.config.bundled_configs import bundled_configs
from game_rl.config.loader import load_config
from game_rl.config.values import run_at
from game_rl.envs.make_env import make_game_env
from game_rl.errors import ConfigError, UsageError
from game_rl.events import Cloned, EpisodesReplayed
from game_rl.events.event_log import read_events
from game_rl.files.pretrained import (
    PACKAGE_FILE,
    RECORDED_FOLDER,
    brought_episodes,
    pretrained_address,
    pretrained_agents,
)
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import file_sha256
from game_rl.game_check.recorded_episode import (
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
    replay_fault,
)
from game_rl.games.definition import load_game
from game_rl.hub.agent_folder import this_processor
from game_rl.hub.agent_package import parse_package
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.system.packages import installed_versions, source_sha256, version_differences
from game_rl.training.admission import refuse_existing_run
from game_rl.viewer.followed_run import FollowedRun
from game_rl.viewer.watched_place import WatchedPlace

ROOT = Path(__file__).parents[1]
AGENTS = sorted(pretrained_agents())
MOST_BYTES = 3_000_000
_HOME = re.compile(rb"[\"' ]/(home|root|work|tmp|Users)/")
Output = pytest.CaptureFixture[str]


def test_the_agents_are_those_of_the_games() -> None:
    assert set(AGENTS) == {"beacon", "courier", "duel", "seasons"}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_whole_small_and_names_no_place_of_its_author(name: str) -> None:
    folder = pretrained_agents()[name]
    package = parse_package((folder / PACKAGE_FILE).read_bytes(), name)
    for file in package.files:
        assert file_sha256(folder / file.path) == file.sha256, file.path
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    for path in files:
        assert _HOME.search(path.read_bytes()) is None, path
    assert "\npip install ." in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_plays_the_game_that_comes_with_it(name: str) -> None:
    folder = pretrained_agents()[name]
    assert check_playable(folder, "best").name == name
    Checkpoint(RunDir(folder).checkpoints_newest_first()[0]).verify()
    assert open_trained_run(folder, "best").game_notes() == [], "nothing that it learned from"


def test_an_address_stands_for_the_folder_with_and_without_a_timestep() -> None:
    folder = pretrained_agents()["duel"]
    assert run_at("pretrained:duel") == (folder, None)
    assert run_at("pretrained:duel@1000") == (folder, 1000)
    assert pretrained_address(folder) == "pretrained:duel"
    assert pretrained_address(folder.parent.parent) is None


def test_an_unknown_agent_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"there are pretrained:beacon, .*pretrained:duel"):
        find_run(run_at("pretrained:dule")[0])


def test_a_fork_names_an_agent_by_its_address(tmp_path: Path) -> None:
    config = load_config(
        bundled_configs()["duel_ppo"],
        ["fork={run: pretrained:duel}", f"run_dir={tmp_path / 'mine'}"],
    )
    assert config.fork is not None
    assert config.fork.run == str(pretrained_agents()["duel"])


def test_an_agent_is_forked_and_not_resumed(capsys: Output) -> None:
    before = {path: path.stat().st_mtime_ns for path in pretrained_agents()["duel"].rglob("*")}
    assert main(["train", "--resume", "pretrained:duel"]) == 2
    assert "train --fork pretrained:duel run_dir=" in capsys.readouterr().err
    after = {path: path.stat().st_mtime_ns for path in pretrained_agents()["duel"].rglob("*")}
    assert after == before


@pytest.mark.parametrize(
    "words",
    [
        ["train", "duel_ppo", "run_dir=pretrained:duel", "total_timesteps=1_024"],
        ["preflight", "duel_ppo", "run_dir=pretrained:duel"],
        ["train", "duel_population", "run_dir=pretrained:duel"],
        ["train", "duel_pqn", "lake.path=pretrained:duel", "run_dir=runs/mine"],
    ],
    ids=["train", "preflight", "population", "Lake"],
)
def test_nothing_is_trained_into_an_agent(words: list[str], capsys: Output) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "choose another place" in error
    assert "game-rl train --fork pretrained:duel run_dir=" in error
    assert "delete" not in error


def test_a_config_that_was_made_in_python_is_not_trained_into_an_agent() -> None:
    with pytest.raises(UsageError, match="game-rl train --fork pretrained:duel run_dir="):
        refuse_existing_run(RunDir(pretrained_agents()["duel"]))


@pytest.mark.parametrize(
    "key",
    [
        "fork={run: ADDRESS}",
        "env.pool={from: ADDRESS}",
        "algorithm.teacher={run: ADDRESS}",
        "algorithm.learn_from={lakes: [ADDRESS]}",
        "algorithm.learn_from={played: {episodes: ADDRESS}}",
        "env.rewards={progress: {potential: ADDRESS, weight: 1.0}}",
        "run_dir=ADDRESS",
    ],
)
def test_every_key_says_which_agents_there_are(key: str, tmp_path: Path) -> None:
    words = [f"run_dir={tmp_path}", key.replace("ADDRESS", "pretrained:dule")]
    with pytest.raises(ConfigError, match=r"pretrained:dule is not an agent .* there are .*:duel"):
        load_config(bundled_configs()["duel_dqn"], words)


def test_a_key_that_names_a_run_says_how_one_is_fetched(tmp_path: Path) -> None:
    words = [f"run_dir={tmp_path / 'mine'}", "fork={run: hf:ada/ppo-duel}"]
    with pytest.raises(ConfigError, match="game-rl pull hf:ada/ppo-duel"):
        load_config(bundled_configs()["duel_ppo"], words)


@pytest.mark.parametrize(
    ("name", "key", "way_out"),
    [
        ("duel_dqn", "algorithm.learn_from={lakes: [pretrained:duel]}", "or in fork.run"),
        ("duel_dqn", "algorithm.teacher={run: pretrained:duel}", "name a run of dqn or pqn"),
    ],
    ids=["Lake", "teacher"],
)
def test_a_key_that_needs_more_than_a_policy_says_what_to_do(
    name: str, key: str, way_out: str, tmp_path: Path, capsys: Output
) -> None:
    assert main(["preflight", name, key, f"run_dir={tmp_path / 'mine'}"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "pretrained:duel" in error
    assert way_out in error


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["places", "pretrained:beacon"], "train --fork pretrained:beacon"),
        (["episodes", "pretrained:beacon"], "game-rl record pretrained:beacon"),
        (["record", "pretrained:beacon", "--best"], "game-rl record pretrained:beacon"),
        (["remote", "push", "pretrained:beacon", "--to", "file:///x"], "stays as it is"),
    ],
    ids=["places", "episodes", "record", "push"],
)
def test_a_command_that_needs_more_than_a_policy_says_what_to_do(
    words: list[str], way_out: str, capsys: Output
) -> None:
    assert main(words) == 2
    assert way_out in capsys.readouterr().err


def test_a_preflight_counts_the_fork_of_an_agent(tmp_path: Path, capsys: Output) -> None:
    words = ["duel_variables_ppo", "fork={run: pretrained:duel}", f"run_dir={tmp_path / 'mine'}"]
    assert main(["preflight", *words, "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["verdict"] in ("fits", "tight")


@pytest.mark.parametrize("name", AGENTS)
def test_the_page_leads_with_the_agents_best_clip_whatever_the_times_of_files(
    name: str, tmp_path: Path
) -> None:
    place = WatchedPlace(pretrained_agents()[name])
    assert place.kind == "run"
    shown = FollowedRun(RunDir(place.root), name).clips()
    leads = "best.mp4" if (place.root / "best.mp4").exists() else "replay.mp4"
    assert shown[0] == place.root / leads
    assert {clip.name for clip in shown} == {clip.name for clip in place.root.glob("*.mp4")}
    copied = RunDir(tmp_path)
    copied.videos.mkdir()
    for clip in shown:
        shutil.copy(clip, copied.videos)
        os.utime(copied.videos / clip.name, (0, 0))
    assert [clip.name for clip in FollowedRun(copied, name).clips()] == [c.name for c in shown]


def test_a_clip_of_an_agent_goes_to_the_current_folder(tmp_path: Path) -> None:
    assert RunDir(pretrained_agents()["duel"]).clip("1.gif") == Path("duel_1.gif")
    assert RunDir(tmp_path).clip("1.gif") == tmp_path / "videos" / "1.gif"


@pytest.mark.slow  # an agent plays a hundred episodes
@pytest.mark.parametrize("name", AGENTS)
def test_the_score_is_that_of_the_card(name: str) -> None:
    folder = pretrained_agents()[name]
    expected = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    package = parse_package((folder / PACKAGE_FILE).read_bytes(), name)
    run = open_trained_run(folder, "best")
    found = evaluate_run(run, episodes=expected["n_eval_episodes"])
    assert found.success_interval is not None
    assert found.success_interval[0] <= expected["success_rate"] <= found.success_interval[1]
    is_same = not version_differences(package.versions, installed_versions())
    if is_same and package.processor == this_processor():
        assert list(found.rewards) == expected["rewards"]
        assert list(found.lengths) == expected["lengths"]
        assert list(found.successes) == expected["successes"]


@pytest.mark.slow  # ten episodes of each agent are played
@pytest.mark.parametrize("name", AGENTS)
def test_the_recorded_episodes_of_an_agent_play_as_they_were_recorded(name: str) -> None:
    game = load_game(name)
    files = brought_episodes(pretrained_agents()[name])
    assert len(files) == 10
    for file in files:
        episode = read_recorded_episode(file, game)
        config = episode_config(game, episode)
        success = None
        with closing(make_game_env(config, game)) as env:
            env.reset(seed=episode.seed, options=dict(episode.options))
            for timestep in recorded_timesteps(episode, game):
                _, _, terminated, _, info = timestep.play(env)
                success = info.get("is_success", success)
            reward = sum(env.reward_terms.values())
        assert terminated, file
        assert episode.success, file
        fault = replay_fault(
            episode,
            game,
            frame_skip=config.frame_skip,
            timesteps=len(episode.actions),
            reward=reward,
            success=success,
        )
        assert fault == "", file


@pytest.mark.slow  # a network imitates an agent
def test_a_training_imitates_an_agent(tmp_path: Path) -> None:
    words = [
        "algorithm.learn_from.played.episodes=pretrained:duel",
        "algorithm.learn_from.played.clone.n_epochs=20",
        "evaluation.episodes=4",
        f"run_dir={tmp_path / 'run'}",
    ]
    assert main(["train", "duel_variables_ppo", *words, "--until", "0"]) == 0
    events = read_events(RunDir(tmp_path / "run"))
    (replayed,) = (event for event in events if isinstance(event, EpisodesReplayed))
    (cloned,) = (event for event in events if isinstance(event, Cloned))
    assert replayed.episodes == replayed.successes == 10
    assert cloned.held_out_accuracy > cloned.usual_accuracy + 0.3


@pytest.mark.parametrize(
    "key",
    [
        "env.pool={from: AGENT}",
        "algorithm.learn_from={played: {episodes: AGENT}}",
    ],
)
def test_an_agent_with_recorded_episodes_is_needed_where_they_are_read(
    key: str, tmp_path: Path, capsys: Output
) -> None:
    agent = tmp_path / "agent"
    shutil.copytree(pretrained_agents()["duel"], agent)
    words = ["preflight", "duel_variables_ppo", f"run_dir={tmp_path / 'run'}"]
    assert main([*words, key.replace("AGENT", str(agent))]) in (0, 1)
    shutil.rmtree(agent / RECORDED_FOLDER)
    capsys.readouterr()
    assert main([*words, key.replace("AGENT", str(agent))]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "was packed without recorded episodes" in error


@pytest.mark.parametrize("name", AGENTS)
def test_the_version_on_the_card_names_the_source_that_made_it(name: str) -> None:
    package = parse_package((pretrained_agents()[name] / PACKAGE_FILE).read_bytes(), name)
    commit = package.versions["game_rl"].partition("+g")[2]
    assert commit
    command = ["git", "archive", commit, "game_rl"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        pytest.skip("there is no history of Git")
    digest = hashlib.sha256()
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        members = {member.name: member for member in archive if member.name.endswith(".py")}
        for path in sorted(map(PurePosixPath, members)):
            file = archive.extractfile(members[str(path)])
            assert file is not None
            digest.update(str(path.relative_to("game_rl")).encode() + b"\0" + file.read())
    assert digest.hexdigest() == package.source_sha256


@pytest.fixture
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_agent", ROOT / "pretrained" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # an agent is packed
def test_a_card_is_made_again_only_if_the_agent_plays_as_it_did(
    build: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / "duel"
    shutil.copytree(pretrained_agents()["duel"], folder)
    shutil.rmtree(folder / RECORDED_FOLDER)
    found = evaluate_run(open_trained_run(folder, "best"), episodes=2)
    results = folder / "results.json"
    results.write_text(json.dumps({"rewards": [*found.rewards[:1], 99.0]}), encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(SystemExit, match="it stays as it is"):
        build.build_card("duel", folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    results.write_text(json.dumps({"rewards": list(found.rewards)}), encoding="utf-8")
    build.build_card("duel", folder)
    assert len(brought_episodes(folder)) == 2
    package = parse_package((folder / PACKAGE_FILE).read_bytes(), "")
    assert package.source_sha256 == source_sha256()


def test_no_agent_is_built_by_an_installation_that_names_other_source(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "version", lambda _: "0.3.1.dev1+g000000000")
    with pytest.raises(SystemExit, match=r"0\.3\.1\.dev1\+g000000000 was installed: commit"):
        build.check_version()
