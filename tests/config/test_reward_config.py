"""The section `algorithm.reward`: read, refused, left out as in configs of before."""

from pathlib import Path
from typing import Any

import pytest

from game_rl.config.algorithms import RAW, RewardConfig
from game_rl.config.loader import dump_config, load_config
from game_rl.config.migration import saved_config
from game_rl.config.schema import RunConfig
from game_rl.errors import ConfigError

RUN = "game: duel\ntotal_timesteps: 100_000\nrun_dir: runs/x\n"
OFFLINE = "learn_from: {lakes: [runs/a/lake], offline: {gradient_steps: 10}}"


def loaded(tmp_path: Path, text: str, *overrides: str) -> RunConfig:
    path = tmp_path / "run.yaml"
    path.write_text(RUN + text, encoding="utf-8")
    return load_config(path, list(overrides))


@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_every_algorithm_has_the_section(name: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, f"algorithm: {{name: {name}}}\n").algorithm.reward == RAW
    reward = "{normalize: true, scale: 0.5, clip: 10}"
    config = loaded(tmp_path, f"algorithm: {{name: {name}, reward: {reward}}}\n")
    assert config.algorithm.reward == RewardConfig(normalize=True, scale=0.5, clip=10)
    (tmp_path / "saved.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(tmp_path / "saved.yaml", []) == config


@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_a_config_of_before_learned_the_rewards_as_they_are(name: str) -> None:
    config = RunConfig.model_validate(
        {"game": "duel", "total_timesteps": 100_000, "run_dir": "x", "algorithm": {"name": name}}
    )
    document: dict[str, Any] = config.model_dump(mode="json")
    document["algorithm"].pop("reward")
    assert saved_config(document, source="it").model_dump() == config.model_dump()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("algorithm: {reward: {scale: 0}}", "algorithm.reward.scale"),
        ("algorithm: {reward: {clip: -1}}", "algorithm.reward.clip"),
        ("algorithm: {reward: {clip: .inf}}", "algorithm.reward.clip"),
        ("algorithm: {reward: {normalise: true}}", "did you mean normalize?"),
        ("env: {reward: {scale: 0.1}}", "env.reward: unknown key; did you mean algorithm.reward"),
        ("env: {VecNormalize: true}", "write algorithm: {reward: {normalize: true}}, with clip"),
        ("norm_reward: true", "norm_reward: unknown key; write algorithm: {reward: {normalize:"),
        ("algorithm: {clip_reward: 10}", "clip_reward: unknown key; did you mean algorithm.reward"),
        (
            f"algorithm: {{name: dqn, reward: {{normalize: true}}, {OFFLINE}}}",
            "algorithm.reward.normalize: true, but in the phase before its first timestep",
        ),
    ],
)
def test_what_cannot_be_is_located_with_the_way_out(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text + "\n")
    assert message in str(caught.value)
    assert "line 4" in str(caught.value)


def test_fixed_factors_are_for_the_phase_before_the_first_timestep_too(tmp_path: Path) -> None:
    reward = "reward: {scale: 0.1, clip: 1}"
    config = loaded(tmp_path, f"algorithm: {{name: dqn, {reward}, {OFFLINE}}}\n")
    assert config.algorithm.reward == RewardConfig(scale=0.1, clip=1)
    learn_from = "learn_from: {lakes: [runs/a/lake]}"
    normalized = "reward: {normalize: true, clip: 1}, n_step: 3"
    config = loaded(tmp_path, f"algorithm: {{name: dqn, {normalized}, {learn_from}}}\n")
    assert config.algorithm.reward.normalize
