"""What leaves the machine, and what does not."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.envs.episode_tracker import POOL
from game_rl.envs.make_env import make_emulator, make_game_env
from game_rl.episodes.logged_episodes import read_logged_episodes
from game_rl.errors import UsageError
from game_rl.events import EpisodesReplayed, Evaluated
from game_rl.events.event_log import read_events
from game_rl.files.durable_files import write_saved
from game_rl.files.pretrained import PACKAGE_FILE, brought_episodes
from game_rl.files.run_dir import RunDir
from game_rl.game_check.recorded_episode import (
    episode_config,
    read_recorded_episode,
    recorded_timesteps,
)
from game_rl.games.definition import load_game
from game_rl.hub.agent_folder import pack_agent
from game_rl.hub.agent_package import AgentPackage
from game_rl.hub.push import packed_files, personal_places
from game_rl.playback.teacher_copy import read_teacher
from game_rl.playback.trained_run import evaluate_run, open_trained_run
from game_rl.viewer.run_story import learned_game, run_story
from game_rl.viewer.shown_runs import read_run
from tests.hub.packed import ADDRESS, EPISODES, ROM, own_game, packed_tiny, train_tiny

pytestmark = pytest.mark.slow  # an agent is trained and packed

LOAD = """
import sys
sys.modules["game_rl"] = None  # as where it is not installed
from stable_baselines3 import PPO
print(PPO.load(sys.argv[1], device="cpu").num_timesteps)
"""


@pytest.fixture(scope="module")
def agent() -> tuple[Path, AgentPackage]:
    return packed_tiny()


def test_the_files_are_those_of_the_convention_and_of_a_run(
    agent: tuple[Path, AgentPackage],
) -> None:
    folder, package = agent
    checkpoint = f"checkpoints/{package.timesteps:012d}"
    expected = {
        *("README.md", "config.json", "results.json", "replay.mp4", "curves.png", "ppo-mine.zip"),
        *("early.mp4", "best.mp4", "worst.mp4"),
        *("config.yaml", "run.json", "events.jsonl", "eval.csv", PACKAGE_FILE),
        *(f"recorded/{number:02}.json" for number in range(EPISODES)),
        *("game/game.yaml", "game/mine.sym"),
        *(f"{checkpoint}/{name}.json" for name in ("manifest", "state", "play")),
        *(f"{checkpoint}/{name}.safetensors" for name in ("arrays", "policy", "optimizer")),
    }
    assert set(packed_files(folder)) == expected
    assert {file.path for file in package.files} == expected - {"README.md", PACKAGE_FILE}
    assert (folder / "replay.mp4").read_bytes()[4:8] == b"ftyp"


def test_no_path_and_no_emulator_of_the_one_who_packs_is_in_any_file(
    agent: tuple[Path, AgentPackage],
) -> None:
    folder, package = agent
    for path in packed_files(folder).values():
        assert str(folder.parent).encode() not in path.read_bytes(), path
    assert personal_places(folder) == []
    play = Checkpoint(folder / f"checkpoints/{package.timesteps:012d}").play()
    assert play.envs is None
    assert play.random is None


def test_the_card_has_the_hubs_metadata_and_the_score_with_its_interval(
    agent: tuple[Path, AgentPackage],
) -> None:
    folder, package = agent
    text = (folder / "README.md").read_text(encoding="utf-8")
    facts = yaml.safe_load(text.split("---\n")[1])
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert facts["library_name"] == "stable-baselines3"
    assert {"reinforcement-learning", "stable-baselines3"} <= set(facts["tags"])
    (result,) = facts["model-index"][0]["results"]
    reward, success = result["metrics"]
    assert reward["value"] == f"{results['mean_reward']:.2f} +/- {results['std_reward']:.2f}"
    low, high = results["success_interval"]
    assert success["name"] == f"success_rate, 95 % interval {low:.2f} to {high:.2f}"
    assert f"game-rl evaluate runs/ppo-tiny --episodes {EPISODES}" in text
    assert package.rom.sha1 in text
    assert "pip install 'game_rl[hub] @ git+ADDRESS'" in text  # game_rl is in no package index
    assert f"The processor: {package.processor}" in text
    assert results["n_eval_episodes"] == EPISODES == len(results["rewards"])


def test_the_card_tells_what_the_report_tells(agent: tuple[Path, AgentPackage]) -> None:
    folder, _ = agent
    text = (folder / "README.md").read_text(encoding="utf-8")
    shown = read_run(folder)
    paragraphs = run_story(shown, shown.config, learned_game(shown.checkpoint_state))
    assert len(paragraphs) == 3
    for paragraph in paragraphs:
        assert paragraph in text


def test_the_card_has_the_first_episode_beside_the_best_and_the_worst(
    agent: tuple[Path, AgentPackage],
) -> None:
    folder, package = agent
    logged = list(read_logged_episodes(RunDir(folder.parent / "run")))
    first = next(episode for episode in logged if episode.kind == "training")
    rewards = json.loads((folder / "results.json").read_text(encoding="utf-8"))["rewards"]
    shown = {"early": first.reward, "best": max(rewards), "worst": min(rewards)}
    text = (folder / "README.md").read_text(encoding="utf-8")
    (table,) = re.findall("<table>.*</table>", text, re.DOTALL)
    _, clips, words = (re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in table.split("</tr>")[:3])
    for clip, about, (name, reward) in zip(clips, words, shown.items(), strict=True):
        assert f"/resolve/main/{name}.mp4" in clip
        assert f"reward {reward:.2f}." in about
        assert 0 < package.file(f"{name}.mp4").bytes <= 2_000_000


def test_the_best_and_the_worst_are_of_the_evaluation_on_the_card(tmp_path: Path) -> None:
    run = train_tiny(tmp_path, str(own_game(tmp_path / "mine")), "episodes=null")
    final = next(e for e in reversed(read_events(run)) if isinstance(e, Evaluated) and e.is_final)
    other = next(
        int(path.name)
        for path in run.checkpoints_newest_first()
        if int(path.name) != final.policy_timesteps
    )
    agent = tmp_path / "agent"
    agent.mkdir()
    package = pack_agent(open_trained_run(run.root, f"{other}"), ADDRESS, agent, episodes=3)
    text = (agent / "README.md").read_text(encoding="utf-8")
    rewards = json.loads((agent / "results.json").read_text(encoding="utf-8"))["rewards"]
    for name, reward in (("highest", max(rewards)), ("lowest", min(rewards))):
        assert re.search(rf"The {name} reward of 3 episodes of .*reward {reward:.2f}\.", text)
    assert (agent / "worst.mp4").exists()
    assert not (agent / "early.mp4").exists()  # no episode of the training was logged
    assert package.early == ""


def test_recorded_episodes_play_again_as_they_were_evaluated(
    agent: tuple[Path, AgentPackage],
) -> None:
    folder, _ = agent
    game = load_game(str(folder / "game"))
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    found = []
    for file in brought_episodes(folder):
        episode = read_recorded_episode(file, game)
        with closing(make_game_env(episode_config(game, episode), game)) as env:
            env.reset(seed=episode.seed, options=dict(episode.options))
            for timestep in recorded_timesteps(episode, game):
                timestep.play(env)
            found.append((len(episode.actions), sum(env.reward_terms.values())))
        assert episode.reward == pytest.approx(found[-1][1])
    # successes come first, the others after them
    order = np.argsort(np.logical_not(results["successes"]), kind="stable")
    assert [length for length, _ in found] == [results["lengths"][index] for index in order]
    rewards = [results["rewards"][index] for index in order]
    assert [reward for _, reward in found] == pytest.approx(rewards)


def test_an_agent_is_packed_again_with_all_that_it_had(
    agent: tuple[Path, AgentPackage], tmp_path: Path
) -> None:
    folder, package = agent
    other = package.model_copy(update={"keys_left_out": ("env.pool",)})
    before = tmp_path / "before"
    shutil.copytree(folder, before)
    write_saved(before / PACKAGE_FILE, other)
    (tmp_path / "again").mkdir()
    run = open_trained_run(before, "best")
    again = pack_agent(run, ADDRESS, tmp_path / "again", episodes=EPISODES)
    assert again.early == package.early != ""
    assert again.keys_left_out == ("env.pool",)
    assert again.file("early.mp4") == package.file("early.mp4")
    parts = ("checkpoints/", "recorded/", "game/", "config", "run.", "events.", "eval.")
    same = [file for file in package.files if file.path.startswith(parts)]
    assert len(same) == 6 + EPISODES + 2 + 5
    assert set(same) <= set(again.files)


def test_another_run_learns_from_the_recorded_episodes_and_starts_along_them(
    tmp_path: Path,
) -> None:
    game = str(own_game(tmp_path / "mine"))
    agent = tmp_path / "agent"
    agent.mkdir()
    run = train_tiny(tmp_path, game)
    pack_agent(open_trained_run(run.root, "best"), ADDRESS, agent, episodes=2)
    (tmp_path / "other").mkdir()
    learns = f"algorithm.learn_from={{played: {{episodes: {agent}, clone: {{n_epochs: 1}}}}}}"
    starts = f"env.pool={{from: {agent}, choose: uniform}}"
    taught = train_tiny(tmp_path / "other", game, learns, starts)
    played = [e for e in read_events(taught) if isinstance(e, EpisodesReplayed)]
    assert [event.episodes for event in played] == [2]
    assert [path.name for path in sorted(taught.played.iterdir())] == [
        "0000_00.json",
        "0001_01.json",
    ]
    logged = read_logged_episodes(taught)
    assert POOL in {episode.start_state for episode in logged if episode.kind == "training"}


def test_a_clip_that_is_too_large_for_a_card_or_that_plays_otherwise_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train_tiny(tmp_path, str(own_game(tmp_path / "mine")))
    opened = open_trained_run(run.root, "best")
    told: list[str] = []
    monkeypatch.setattr("game_rl.hub.agent_episodes._MOST_LOGGED_BYTES", 100)
    agent = tmp_path / "agent"
    agent.mkdir()
    pack_agent(opened, ADDRESS, agent, episodes=2, tell=told.append)
    assert sum(text.startswith("without ") for text in told) == 3
    text = (agent / "README.md").read_text(encoding="utf-8")
    assert "<table>" not in text
    assert "/resolve/main/replay.mp4" in text
    assert not (agent / "early.mp4").exists()


def test_plain_stable_baselines3_loads_the_zip(agent: tuple[Path, AgentPackage]) -> None:
    folder, package = agent
    found = subprocess.run(
        [sys.executable, "-c", LOAD, str(folder / "ppo-mine.zip")],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert found.stdout.split() == [str(package.timesteps)]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["num_timesteps"] == package.timesteps
    assert ":serialized:" not in json.dumps(config)


def test_neither_the_rom_nor_a_state_of_somebody_elses_rom_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game_file = own_game(tmp_path / "mine", is_foreign=True)
    state = tmp_path / "mine" / "states" / "fight.state"
    text = game_file.read_text(encoding="utf-8")
    text = text.replace("start_states:\n", "start_states:\n  made:\n    file: states/fight.state\n")
    run = train_tiny(tmp_path, str(game_file))
    state.parent.mkdir()
    state.write_bytes(_state_of(game_file))
    game_file.write_text(text, encoding="utf-8")
    agent = tmp_path / "agent"
    agent.mkdir()
    package = pack_agent(open_trained_run(run.root, "best"), ADDRESS, agent, episodes=2)

    memory = state.read_bytes()
    rom = (tmp_path / "mine" / "mine.gb").read_bytes()
    for path in packed_files(agent).values():
        content = path.read_bytes()
        assert memory[:64] not in content
        assert rom[0x200:0x260] not in content
    assert package.states_left_out == ("states/fight.state",)
    assert not package.rom.is_bundled
    card = (agent / "README.md").read_text(encoding="utf-8")
    assert package.rom.sha1 in card
    assert "game/states/fight.state" in card

    # whoever has the ROM and the state plays the same episodes
    monkeypatch.setenv("GAME_RL_ROMS", str(tmp_path / "mine"))
    (agent / "game" / "states").mkdir()
    (agent / "game" / "states" / "fight.state").write_bytes(memory)
    found = evaluate_run(open_trained_run(agent, "best"), episodes=2)
    results = json.loads((agent / "results.json").read_text(encoding="utf-8"))
    assert list(found.rewards) == results["rewards"]


def _state_of(game_file: Path) -> bytes:
    emulator = make_emulator(load_game(str(game_file)))
    try:
        emulator.tick(100, render=True)
        return emulator.save_state()
    finally:
        emulator.close()


def test_a_game_file_keeps_its_comments_and_names_its_rom_by_hash(
    agent: tuple[Path, AgentPackage],
) -> None:
    folder, package = agent
    before = (folder.parent / "mine" / "game.yaml").read_text(encoding="utf-8")
    after = (folder / "game" / "game.yaml").read_text(encoding="utf-8")
    rom = f"{{sha256: {package.rom.sha256}, sha1: {package.rom.sha1}}}"
    assert after == before.replace("{path: mine.gb}", rom)
    assert load_game(str(folder / "game")).rom.data == ROM.read_bytes()  # that of the bundled game


def test_a_game_file_that_names_files_elsewhere_is_refused(tmp_path: Path) -> None:
    game_file = own_game(tmp_path / "mine")
    (tmp_path / "mine" / "mine.sym").rename(tmp_path / "mine.sym")
    text = game_file.read_text(encoding="utf-8").replace("mine.sym", "../mine.sym")
    game_file.write_text(text, encoding="utf-8")
    run = train_tiny(tmp_path, str(game_file))
    (tmp_path / "agent").mkdir()
    with pytest.raises(UsageError, match=r"names \.\./mine\.sym, which is not in its folder"):
        pack_agent(open_trained_run(run.root, "best"), ADDRESS, tmp_path / "agent", episodes=2)


@pytest.mark.parametrize(
    ("algorithm", "zip_name"),
    [
        ("{name: dqn, learning_starts: 32, batch_size: 16, replay: {capacity: 500}}", "dqn-mine"),
        ("{name: pqn, n_steps: 16, batch_size: 16}", None),
        (
            "{n_steps: 16, batch_size: 16, n_epochs: 1, memory: {kind: lstm, size: 16, "
            "sequence: 8}}",
            "ppo-mine",
        ),
    ],
    ids=["dqn", "pqn", "memory"],
)
def test_a_packed_agent_of_each_algorithm_plays_as_its_run(
    tmp_path: Path, algorithm: str, zip_name: str | None
) -> None:
    run = train_tiny(tmp_path, str(own_game(tmp_path / "mine")), f"algorithm={algorithm}")
    agent = tmp_path / "agent"
    agent.mkdir()
    original = open_trained_run(run.root, "best")
    pack_agent(original, ADDRESS, agent, episodes=2)
    packed = evaluate_run(open_trained_run(agent, "best"), episodes=3)
    assert packed == evaluate_run(original, episodes=3)
    assert [path.stem for path in agent.glob("*.zip")] == ([] if zip_name is None else [zip_name])
    card = (agent / "README.md").read_text(encoding="utf-8")
    assert ("library_name: game_rl" in card) == (zip_name is None)
    assert ("and remembers with an LSTM of 16 units" in card) == ("memory" in algorithm)


def test_a_packed_agent_teaches_a_run(tmp_path: Path) -> None:
    game = str(own_game(tmp_path / "mine"))
    learner = "name: dqn, learning_starts: 32, batch_size: 16, replay: {capacity: 500}"
    run = train_tiny(tmp_path, game, f"algorithm={{{learner}}}")
    agent = tmp_path / "agent"
    agent.mkdir()
    package = pack_agent(open_trained_run(run.root, "best"), ADDRESS, agent, episodes=2)
    student = tmp_path / "student"
    student.mkdir()
    taught = train_tiny(student, game, f"algorithm={{{learner}, teacher: {{run: {agent}}}}}")
    record, _ = read_teacher(taught)
    assert (record.path, record.timesteps) == (str(agent), package.timesteps)
