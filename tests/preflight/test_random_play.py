from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.errors import GameFileError
from game_rl.games.actions import StepWait
from game_rl.games.definition import load_game
from game_rl.preflight.facts import EpisodeLengths
from game_rl.preflight.random_play import probe_episodes
from tests.preflight.conftest import make_config

CONFIG = make_config(env={"max_episode_timesteps": 40})


def test_the_probe_plays_whole_episodes_and_repeats_itself() -> None:
    game = load_game("duel")
    first = probe_episodes(CONFIG, game, episodes=3)
    assert len(first.timesteps) == 3
    assert 1 <= min(first.timesteps) <= first.median <= max(first.timesteps) <= 40
    assert probe_episodes(CONFIG, game, episodes=3) == first


def test_another_seed_plays_other_episodes() -> None:
    game = load_game("duel")
    config = make_config(env={"max_episode_timesteps": 1000})
    other = config.model_copy(update={"seed": 1})
    assert probe_episodes(config, game, episodes=2) != probe_episodes(other, game, episodes=2)


@pytest.mark.slow
def test_a_probe_ends_where_episodes_do_not() -> None:
    game = load_game("duel")
    config = make_config(env={"max_episode_timesteps": 10**9, "frame_skip": 4})
    whole = probe_episodes(config, game, episodes=3).timesteps
    assert probe_episodes(config, game, episodes=3, most_frames=4 * sum(whole)).timesteps == whole
    one_less = 4 * sum(whole) - 4
    assert probe_episodes(config, game, episodes=3, most_frames=one_less).timesteps == whole[:2]
    cut = probe_episodes(config, game, most_frames=12)
    assert cut == EpisodeLengths(timesteps=(3,))


def test_lengths_have_an_exact_middle_and_mean() -> None:
    lengths = EpisodeLengths(timesteps=(9, 1, 2))
    assert (lengths.median, lengths.mean) == (2, 4)


def test_frames_that_a_step_adds_count_for_the_limit() -> None:
    game = load_game("duel")
    name = game.number_names[0]
    until = {"all": [{"variable": name, "equals": 1}, {"variable": name, "equals": 2}]}
    step = StepWait.model_validate({"until": until, "at_most_frames": 12})
    game = replace(game, definition=game.definition.model_copy(update={"step": step}))
    config = make_config(env={"max_episode_timesteps": 10**9, "frame_skip": 4})
    cut = probe_episodes(config, game, most_frames=160)
    assert cut == EpisodeLengths(timesteps=(160 // 16,))


def test_a_reward_class_that_cannot_be_saved_after_a_timestep_is_found(tmp_path: Path) -> None:
    (tmp_path / "rewards.py").write_text(
        "class Reward:\n"
        "    def reset(self, variables): self.seen = {}\n"
        "    def step(self, variables):\n"
        "        self.seen[len(self.seen)] = object()\n"
        "        return 0\n",
        encoding="utf-8",
    )
    game = load_game("duel")
    definition = game.definition.model_copy(update={"reward": "rewards:Reward"})
    with pytest.raises(GameFileError, match="cannot be saved in a checkpoint"):
        probe_episodes(CONFIG, replace(game, folder=tmp_path, definition=definition))
