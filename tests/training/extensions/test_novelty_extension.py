"""Trainings with a reward for what the run has rarely visited."""

import json
from collections import Counter
from pathlib import Path

import pytest
from stable_baselines3.common.callbacks import BaseCallback

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.episodes.logged_episodes import read_logged_episodes
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.places.novelty import NOVELTY_FILE
from game_rl.playback.episode_replay import replayed
from game_rl.training.session import TrainingSession, training_process
from game_rl.training.train import resume, train
from tests.tiny_run import command
from tests.training.test_resumed_rewards import write_game
from tests.training.test_resuming import assert_same_run, console, write_config

TERM = {"variables": ["player_x", "player_height"], "on": "first_visit", "weight": 0.1,
        "per_run": True}  # fmt: skip
DQN = (
    "algorithm={name: dqn, replay: {capacity: 128}, learning_starts: 16, train_freq: 8, "
    "batch_size: 16}",
    "checkpoints.save_replay_buffer=true",
    "evaluation.deterministic=true",
)
Visits = Counter[tuple[int | float, ...]]


def config_of(folder: Path, name: str, *changes: str) -> RunConfig:
    write_game(folder, novelty=TERM)
    return load_config(write_config(folder, name, f"game={folder / 'game.yaml'}", *changes))


def visits_of(run_dir: RunDir, timesteps: int) -> Visits:
    saved = Checkpoint(run_dir.checkpoint(timesteps)).read(NOVELTY_FILE)
    assert saved is not None
    found = saved.terms["novelty"].visits()
    return Visits({place: found.count(place) for place in found})


class OwnVisits(BaseCallback):
    """Counts, for each env, the places that each of its episodes was at."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Visits()
        self._seen: list[set[tuple[int | float, ...]]] = []

    def _on_training_start(self) -> None:
        self._seen = [set() for _ in range(self.training_env.num_envs)]
        for number in range(self.training_env.num_envs):
            self._look(number)

    def _on_step(self) -> bool:
        for number, info in enumerate(self.locals["infos"]):
            if "game" in info:
                self._note(number, info["game"])
                self._seen[number] = set()
            self._look(number)
        return True

    def _look(self, number: int) -> None:
        (values,) = self.training_env.env_method("read_variables", indices=[number])
        self._note(number, values)

    def _note(self, number: int, values: dict[str, int]) -> None:
        place = (values["player_x"], values["player_height"])
        if place not in self._seen[number]:
            self._seen[number].add(place)
            self.counts[place] += 1


def test_a_checkpoint_has_what_all_episodes_have_visited(tmp_path: Path) -> None:
    config = config_of(tmp_path, "run", "env.n_workers=1")  # two would be ahead of the callback
    config.run_dir.mkdir()
    own = OwnVisits()
    game = load_game(config.game)
    run_dir = RunDir(config.run_dir)
    with training_process(), TrainingSession(config, game, run_dir, more=[own]) as session:
        session.learn_until(config.total_timesteps)
    assert max(own.counts.values()) > 1
    assert visits_of(run_dir, 192) == own.counts


@pytest.mark.slow
def test_logged_episodes_are_played_again_although_nobody_knows_the_counts(tmp_path: Path) -> None:
    config = config_of(tmp_path, "run", "env.n_workers=1")
    train(config, command(console()))
    game = load_game(config.game)
    found = read_logged_episodes(RunDir(config.run_dir))
    lengths = set()
    for index, episode in enumerate(found):
        *_, last = replayed(found, index, game, hold=1).timesteps
        lengths.add((episode.kind, episode.reward == last.reward))
    assert ("training", False) in lengths  # the run had been there before
    assert lengths >= {("evaluation", True), ("final", True)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [(), DQN], ids=["ppo", "dqn"])
def test_a_resumed_run_is_the_same_and_so_is_one_with_other_workers(
    tmp_path: Path, kind: tuple[str, ...]
) -> None:
    whole = config_of(tmp_path, "whole", *kind)
    train(whole, command(console()))
    part = config_of(tmp_path, "part", *kind)
    train(part, command(console(), until=96))
    resume(part.run_dir, command(console()))
    assert_same_run(part.run_dir, whole.run_dir)
    others = config_of(tmp_path, "others", *kind, "env.n_workers=1")
    train(others, command(console()))
    assert visits_of(RunDir(others.run_dir), 192) == visits_of(RunDir(whole.run_dir), 192)
    policies = [
        json.loads((RunDir(c.run_dir).checkpoint(192) / "manifest.json").read_text("utf-8"))
        for c in (whole, others)
    ]
    name = "policy.safetensors"
    assert policies[0]["files"][name] == policies[1]["files"][name]
