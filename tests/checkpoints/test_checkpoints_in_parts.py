"""A game whose observations have parts: saved and restored, in rollouts and in evaluations."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from game_rl.algorithms.rollout import Decision, vec_steps
from game_rl.callbacks.evaluation import Values, evaluate
from game_rl.checkpoints.checkpoint import Checkpoint, save_checkpoint
from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_env, make_observation_format
from game_rl.envs.observation import ObservationFormat, rows_of
from game_rl.errors import CheckpointError
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.vec_env.halved_vec_env import HalvedVecEnv
from game_rl.vec_env.make_vec_env import restore_vec_env, save_vec_env
from game_rl.vec_env.vec_env import SharedMemoryVecEnv
from tests.callbacks.conftest import FIXED_STATE
from tests.vec_env.part_envs import PartsOfGame, of_game

CONFIG = EnvConfig(frame_skip=8, max_episode_timesteps=7)
STACK = 3
Maker = Callable[..., HalvedVecEnv]


def duel_format(*, parts: slice = slice(None)) -> ObservationFormat:
    screen = make_observation_format(CONFIG, load_game("duel")).screen
    whole = of_game(screen, STACK)
    return ObservationFormat(screen, STACK, whole.parts[parts])


def some_parts(form: ObservationFormat) -> Any:
    return PartsOfGame(make_env(CONFIG, load_game("duel")), form)


@pytest.fixture
def make() -> Iterator[Maker]:
    made: list[HalvedVecEnv] = []

    def _make(*, packs: bool = True) -> HalvedVecEnv:
        form = duel_format()
        parts = [
            SharedMemoryVecEnv(
                [functools.partial(some_parts, form)] * n,
                frame_stack=form.stacks,
                packing=form if packs else None,
            )
            for n in (2, 1)
        ]
        made.append(HalvedVecEnv(*parts))
        made[-1].seed(1)
        return made[-1]

    yield _make
    for vec_env in made:
        vec_env.close()


def played(vec_env: VecEnv, n_steps: int) -> list[Any]:
    rng, seen = np.random.default_rng(3), []
    for _ in range(n_steps):
        outcome = vec_env.step(rng.integers(3, size=3))
        for info in outcome[3]:
            info.get("episode", {}).pop("t", None)  # wall time
        seen.append(outcome)
    return seen


def test_restored_envs_go_on(make: Maker) -> None:
    one, other = make(), make()
    one.reset()
    observations = played(one, 5)[-1][0]
    state = save_vec_env(one, observations)
    assert state is not None
    expected = played(one, 20)
    restore_vec_env(other, state)
    for part, monitor in zip(other.halves, one.halves, strict=True):
        assert part.observation_space == monitor.observation_space
    np.testing.assert_equal(played(other, 20), expected)


def test_a_saved_state_does_not_change_with_what_is_returned_later(make: Maker) -> None:
    vec_env = make()
    observations: Any = vec_env.reset()
    state = save_vec_env(vec_env, observations)
    assert state is not None
    before = {name: array.copy() for name, array in observations.items()}
    observations["status"][:] = 9
    np.testing.assert_equal(state.observations, before)


# ---------------------------------------------------------------------- rollouts


def decide(observations: Any, *_: object) -> Decision:
    n = len(observations["status"])
    return Decision(np.ones(n, np.int64), torch.zeros(n), torch.zeros(n))


def packed(form: ObservationFormat, observation: Any) -> Any:
    """One observation's newest frame, packed alone."""
    channels = {name: part.shape[0] for name, part in form.frame_space.items()}
    return form.pack({name: array[-channels[name] :] for name, array in observation.items()})


@pytest.mark.parametrize("kind", ["halves that pack", "halves", "dummy"])
def test_a_rollout_has_the_packed_newest_frames_and_the_true_last_ones(
    make: Maker, kind: str
) -> None:
    form = duel_format()
    if kind == "dummy":
        single = ObservationFormat(form.screen, 1, form.parts)
        env: VecEnv = DummyVecEnv([functools.partial(some_parts, single)] * 3)
        form = single
    else:
        env = make(packs=kind == "halves that pack")
    observations: Any = env.reset()
    n_ended = 0
    for n_steps in (10, 1, 6):
        begins = np.ones(3, np.bool_)
        steps = vec_steps(
            env, observations, decide, n_steps, begins=begins, observation_format=form
        )
        for step in steps:
            after, _, dones, infos = step.outcome
            for i in range(3):
                last = infos[i]["terminal_observation"] if dones[i] else rows_of(after, i)
                np.testing.assert_array_equal(
                    step.frames[i], packed(form, rows_of(observations, i))
                )
                np.testing.assert_array_equal(step.next_frames[i], packed(form, last))
            observations = after
            n_ended += int(np.count_nonzero(dones))
    assert n_ended > 3


# ---------------------------------------------------------------------- checkpoints


def model_on(vec_env: VecEnv) -> PPO:
    model = PPO("MultiInputPolicy", vec_env, n_steps=4, batch_size=4, device="cpu", seed=0)
    model.set_logger(configure(None, []))
    return model


@pytest.fixture
def saved(make: Maker, tmp_path: Path) -> tuple[PPO, Path]:
    model = model_on(make())
    model.learn(12)
    envs = save_vec_env(model.env, model._last_obs)
    save_checkpoint(tmp_path / "checkpoint", model, FIXED_STATE, envs, RunDir(tmp_path))
    return model, tmp_path / "checkpoint"


def test_a_run_goes_on_from_a_checkpoint_with_each_part(
    saved: tuple[PPO, Path], make: Maker
) -> None:
    model, path = saved
    restored = model_on(make())
    assert Checkpoint(path).restore(restored)
    assert isinstance(restored._last_obs, dict)
    assert list(restored._last_obs) == ["grid", "recent", "screen", "status"]
    np.testing.assert_equal(restored._last_obs, model._last_obs)
    assert model.env is not None
    assert restored.env is not None
    np.testing.assert_equal(played(restored.env, 12), played(model.env, 12))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "said"),
    [
        ({"grid": None}, "has observations.grid, but the run does not"),
        ({"level": "status"}, "has no observations of part 'level', but the run does"),
        (
            {"grid": "status"},
            r"of part 'grid' with shape \(1, 3, 3\) in uint8, but",
        ),
    ],
)
def test_observations_of_other_parts_are_refused(
    saved: tuple[PPO, Path], space: dict[str, str | None], said: str
) -> None:
    model, path = saved
    assert isinstance(model.observation_space, spaces.Dict)
    parts = dict(model.observation_space.spaces)
    for name, other in space.items():
        if other is None:
            del parts[name]
        else:
            parts[name] = parts[other]
    checkpoint = Checkpoint(path)
    with pytest.raises(CheckpointError, match=said):
        checkpoint._observations(spaces.Dict(parts), checkpoint._arrays())


# ---------------------------------------------------------------------- evaluations


def test_an_evaluation_hands_the_parts_to_the_policy_and_to_its_values(make: Maker) -> None:
    vec_env, asked = make().halves[0], []

    def nothing(observations: Any) -> Any:
        asked.append({name: array.shape for name, array in observations.items()})
        return np.zeros(len(observations["status"]), np.float32)

    found = evaluate(
        model_on(vec_env).policy,
        vec_env,
        episodes=3,
        deterministic=True,
        seed=3,
        values=Values(nothing, 1.0),
    )
    assert found.episodes == 3
    assert found.q_minus_return == pytest.approx(-found.mean_reward)
    assert isinstance(vec_env.observation_space, spaces.Dict)
    shapes = {name: (1, *part.shape) for name, part in vec_env.observation_space.items()}
    assert asked
    assert all(each == shapes for each in asked)
