"""onnxruntime chooses what torch chooses."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from gymnasium import spaces

from game_rl.cli.main import main
from game_rl.config.loader import load_config
from game_rl.interchange.onnx_export import export_onnx
from game_rl.playback.trained_run import open_trained_run
from game_rl.vec_env.make_vec_env import SpacesVecEnv
from tests.tiny_run import TINY, TINY_GAME, train_once

N_OBSERVATIONS = 1_000
DQN = (
    "algorithm={name: dqn, learning_starts: 32, batch_size: 16, replay: {capacity: 500}, "
    "layer_norm: channels}"
)
PQN = "algorithm={name: pqn, n_steps: 16, batch_size: 16}"
IMPALA = (
    "algorithm={name: dqn, learning_starts: 32, batch_size: 16, replay: {capacity: 500}, "
    "network: {screen: impala}}"
)
PARTS = """
parts:
  status: {vector: [{variable: player_x, scale: 0.01}, {variable: opponent_x, scale: 0.01}]}
  phase: {categories: player_phase, of: 4}
  ground: {tiles: {area: {x: 0, y: 0, width: 8, height: 8}, classes: {one: [1], two: [2, 3]}}}
"""
ALL_PARTS = "env.observation.parts=[status, phase, ground]"


def trained(folder: Path, *overrides: str) -> Path:
    (folder / "run.yaml").write_text(TINY.format(run_dir=folder / "run"), encoding="utf-8")
    return train_once(load_config(folder / "run.yaml", ["total_timesteps=96", *overrides])).root


def drawn(space: spaces.Space, rng: np.random.Generator) -> np.ndarray:
    """Observations that differ much: screens of large squares, from dark to light."""
    assert isinstance(space, spaces.Box)
    shape = (N_OBSERVATIONS, *space.shape)
    if space.dtype == np.uint8 and space.high.max() == 255:
        squares = rng.integers(0, 256, (*shape[:2], 4, 4), np.uint8)
        squares >>= rng.integers(0, 5, (N_OBSERVATIONS, 1, 1, 1), np.uint8)
        return np.kron(squares, np.ones((1, 1, shape[2] // 4, shape[3] // 4), np.uint8))
    if np.issubdtype(space.dtype, np.integer):
        return rng.integers(0, space.high.max(), shape, endpoint=True).astype(space.dtype)
    return rng.normal(0, 3, shape).astype(space.dtype)


def game_with_parts(folder: Path) -> str:
    text = TINY_GAME.read_text(encoding="utf-8").replace(
        "../../game_rl/games/duel", str(TINY_GAME.parents[2] / "game_rl" / "games" / "duel")
    )
    (folder / "game.yaml").write_text(f"{text}{PARTS}", encoding="utf-8")
    return str(folder / "game.yaml")


@pytest.mark.slow  # it trains, and torch takes seconds to trace a network
@pytest.mark.parametrize(
    ("overrides", "output"),
    [
        pytest.param([], "probabilities", id="ppo"),
        pytest.param([IMPALA], "q_values", id="impala"),
        pytest.param([DQN], "q_values", id="dqn with layer norm"),
        pytest.param([PQN], "q_values", id="pqn"),
        pytest.param(
            ["env.observation.parts=[status, phase, ground]"], "probabilities", id="parts"
        ),
        pytest.param(
            ["env.observation.parts=[status]", "env.observation.screen=false"],
            "probabilities",
            id="no screen",
        ),
    ],
)
def test_onnxruntime_chooses_the_same_action_for_each_of_a_thousand_observations(
    tmp_path: Path, overrides: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    values = [f"game={game_with_parts(tmp_path)}", *overrides]
    run = trained(tmp_path, *values)
    file = tmp_path / "policy.onnx"
    arguments = ["--format", "onnx", "--checkpoint", "latest", "--output", str(file)]
    assert main(["export", str(run), *arguments]) == 0
    assert f"to {output} float32" in capsys.readouterr().out
    played = open_trained_run(run, "latest")
    env = SpacesVecEnv(played.config.env, played.game, n_envs=1)
    space = env.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"screen": space}
    rng = np.random.default_rng(0)
    seen = {name: drawn(part, rng) for name, part in parts.items()}
    observation = seen if isinstance(space, spaces.Dict) else seen["screen"]
    policy = played.policy(space, env.action_space)
    expected, _ = policy.predict(observation, deterministic=True)

    session = onnxruntime.InferenceSession(file)
    assert [each.name for each in session.get_inputs()] == list(parts)
    assert [each.name for each in session.get_outputs()] == [output]
    (found,) = session.run(None, seen)
    np.testing.assert_array_equal(found.argmax(axis=1), expected)
    assert len(set(expected)) > 1
    one = session.run(None, {name: array[:1] for name, array in seen.items()})[0]
    np.testing.assert_allclose(one, found[:1], atol=1e-5)
    if output == "probabilities":
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


@pytest.mark.slow  # it trains, and torch takes seconds to trace a network
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_memory_goes_from_call_to_call(tmp_path: Path, kind: str) -> None:
    memory = f"{{kind: {kind}, size: 16, layers: 2, sequence: 8}}"
    algorithm = f"{{n_steps: 16, batch_size: 16, n_epochs: 1, memory: {memory}}}"
    run = trained(tmp_path, f"algorithm={algorithm}")
    file = tmp_path / "policy.onnx"
    played = open_trained_run(run, "best")
    written = export_onnx(played, file)
    env = SpacesVecEnv(played.config.env, played.game, n_envs=1)
    policy = played.policy(env.observation_space, env.action_space)
    session = onnxruntime.InferenceSession(file)
    rng = np.random.default_rng(0)
    screens = drawn(env.observation_space, rng)[:60].reshape(20, 3, *env.observation_space.shape)
    state = None
    kept = np.zeros((3, *written.inputs["memory"].shape), np.float32)
    for screen in screens:
        expected, state = policy.predict(screen, state=state, deterministic=True)
        found, kept = session.run(None, {"screen": screen, "memory": kept})
        np.testing.assert_array_equal(found.argmax(axis=1), expected)
    # the last state of the policy is the first half of the memory, the value function's the other
    for number, tensor in enumerate(state[: kept.shape[1] // 2]):
        np.testing.assert_allclose(kept[:, number].swapaxes(0, 1), tensor, atol=1e-5)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("policy.zip", "does not end in .onnx, as files of ONNX must"),
        ("run.yaml", "the file's name must end in .zip or .onnx"),
    ],
)
def test_a_file_of_another_kind_is_refused(
    tmp_path: Path, output: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--format", "onnx", "--output", str(tmp_path / output)]
    assert main(["export", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err
