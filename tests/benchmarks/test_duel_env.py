"""The peers play what we play: their environment against ours, timestep by timestep."""

import warnings
from contextlib import closing
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from game_rl.config.schema import EnvConfig, ObservationConfig
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.make_env import make_env, make_game_env
from game_rl.games.definition import load_game

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Using SDL2 binaries")
    from benchmarks.trainings.duel_env import ACTIONS, DuelEnv

TIMESTEPS = 1_500
RNG_SEED = 0xC19F


def test_the_actions_are_those_of_the_game() -> None:
    assert tuple(tuple(b) for b in load_game("duel").definition.actions.values()) == ACTIONS


@pytest.mark.parametrize("size", ["half", "full"])
@pytest.mark.parametrize("colour", ["grey", "rgb"])
def test_the_peers_env_has_the_same_spaces_but_for_the_place_of_the_channels(
    size: Literal["half", "full"], colour: Literal["grey", "rgb"]
) -> None:
    game = load_game("duel")
    config = EnvConfig(observation=ObservationConfig(size=size, colour=colour))
    with (
        closing(make_env(config, game)) as ours,
        closing(DuelEnv(size, colour, frame_skip=4, max_idle_frames=0)) as peer,
    ):
        channels, height, width = ours.observation_space.shape
        assert peer.observation_space.shape == (height, width, channels)
        assert peer.reset()[0].shape == (height, width, channels)
        assert peer.observation_space.contains(peer.step(np.int64(0))[0])
        assert peer.action_space == ours.action_space


def test_the_peers_env_plays_the_same_fights_for_the_same_rewards() -> None:
    config = EnvConfig(
        frame_skip=4,
        start_states=("level_1",),
        max_idle_frames=0,
        observation=ObservationConfig(size="full"),
    )
    rng = np.random.default_rng(0)
    endings = 0
    with (
        closing(make_game_env(config, load_game("duel"))) as ours,
        closing(DuelEnv("full", "grey", frame_skip=4, max_idle_frames=0)) as peer,
    ):
        _reset_alike(ours, peer)
        for action in rng.integers(len(ACTIONS), size=TIMESTEPS):
            frame, reward, terminated, _, _ = ours.step(action)
            peer_frame, peer_reward, peer_terminated, _, _ = peer.step(action)
            assert (peer_reward, peer_terminated) == (pytest.approx(reward), terminated)
            np.testing.assert_array_equal(_our_shades(peer_frame[:, :, 0]), frame[0])
            if terminated:
                endings += 1
                _reset_alike(ours, peer)
    assert endings >= 2


def test_half_size_is_the_mean_of_four_pixels() -> None:
    with closing(DuelEnv("half", "grey", frame_skip=4, max_idle_frames=0)) as env:
        half = env.reset()[0]
        whole = env.pyboy.screen.ndarray[:, :, 0].astype(float)
    blocks = whole.reshape(72, 2, 80, 2).mean(axis=(1, 3))
    np.testing.assert_array_equal(half[:, :, 0], np.floor(blocks))


def _reset_alike(ours: GameBoyEnv, peer: DuelEnv) -> None:
    """Ours writes a random number into the game at each reset; the peer gets the same."""
    ours.reset(seed=0)
    peer.reset()
    drawn = ours.read_variables()["rng_seed"]
    peer.pyboy.memory[RNG_SEED : RNG_SEED + 2] = [drawn & 0xFF, drawn >> 8]


def _our_shades(screen: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """PyBoy's own palette has one other grey."""
    return np.where(screen == 153, 170, screen)
