"""Configs that the last release saved, and what is made of them."""

import json
from pathlib import Path

import pytest

from game_rl.config.algorithms import PPOConfig
from game_rl.config.loader import dump_config, load_config
from game_rl.config.migration import saved_config
from game_rl.config.schema import LakeConfig, RunConfig
from game_rl.errors import ConfigError

HEAD = "game: duel\ntotal_timesteps: 400000\nrun_dir: runs/x\n"
# As `dump_config` of the last release wrote them, but for keys that are the same today.
SAVED = {
    "algorithm:\n  name: pqn\n  n_steps: 32\n  feed: null\n": None,
    "algorithm:\n  name: pqn\n  feed:\n    lake: true\n    capacity_transitions: null\n"
    "    capacity_gb: 5.0\n    on_full: evict\n": LakeConfig(capacity_gb=5, on_full="evict"),
    "algorithm:\n  name: pqn\n  feed:\n    lake: /data/lake\n    capacity_transitions: 5000\n"
    "    capacity_gb: null\n    on_full: pause\n": LakeConfig(
        path=Path("/data/lake"), capacity_transitions=5_000
    ),
    "algorithm:\n  name: dqn\n  replay:\n    capacity: 60\n    device: cpu\n    lake: false\n"
    "    lake_capacity_transitions: null\n    lake_capacity_gb: null\n"
    "    lake_on_full: pause\n": None,
    "algorithm:\n  name: dqn\n  replay:\n    capacity: 60\n    device: cpu\n    lake: true\n"
    "    lake_capacity_transitions: 1000\n    lake_capacity_gb: null\n"
    "    lake_on_full: pause\n": LakeConfig(capacity_transitions=1_000),
    "algorithm:\n  name: ppo\n  n_steps: 16\n  batch_size: 32\n": None,
}


@pytest.mark.parametrize(("text", "lake"), SAVED.items())
def test_a_run_of_the_last_release_reads_as_one_of_today(
    text: str, lake: LakeConfig | None, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    config = load_config(path, ["env.n_envs=4"], is_saved=True)
    assert config.lake == lake
    path.write_text(dump_config(config), encoding="utf-8")
    assert load_config(path, is_saved=True) == load_config(path) == config


@pytest.mark.parametrize("name", ["ppo", "dqn", "pqn"])
def test_a_run_from_before_a_key_goes_on_without_what_the_key_brings(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + f"algorithm: {{name: {name}}}\n", encoding="utf-8")
    today, saved = load_config(path), load_config(path, is_saved=True)
    assert today.algorithm.precision == "auto"
    assert saved.algorithm.precision == "float32"
    if isinstance(today.algorithm, PPOConfig):
        assert isinstance(saved.algorithm, PPOConfig)
        assert today.algorithm.micro_batch_size == "auto"
        assert saved.algorithm.micro_batch_size is None
    document = json.loads(today.model_dump_json(exclude={"algorithm"}))
    was = PPOConfig(precision="float32", micro_batch_size=None)
    assert saved_config(document, source="it").algorithm == was


@pytest.mark.parametrize("precision", ["auto", "float32", "bf16"])
@pytest.mark.parametrize("micro_batch_size", ["null", "auto", "64"])
def test_what_a_run_saved_of_its_precision_and_its_parts_is_read_as_it_stands(
    precision: str, micro_batch_size: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    values = f"precision: {precision}, micro_batch_size: {micro_batch_size}"
    path.write_text(HEAD + f"algorithm: {{{values}}}\n", encoding="utf-8")
    assert load_config(path, is_saved=True) == load_config(path)


@pytest.mark.parametrize("text", [text for text in SAVED if "lake" in text or "feed" in text])
def test_a_config_that_a_user_writes_so_is_refused_with_the_new_spelling(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"unknown key; (write a section|it belongs to the)"):
        load_config(path)


def test_overrides_of_a_saved_config_are_spelled_as_today(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "algorithm: {name: pqn, feed: {lake: true}}\n", encoding="utf-8")
    assert load_config(path, ["lake=null"], is_saved=True).lake is None
    with pytest.raises(ConfigError, match=r"algorithm\.feed: unknown key; write a section lake"):
        load_config(path, ["algorithm.feed=null"], is_saved=True)


def test_a_checkpoint_of_the_last_release_has_defaults_for_keys_that_are_new() -> None:
    config = RunConfig.model_validate(
        {"game": "a\U0001f600", "total_timesteps": 400_000, "run_dir": "x", "lake": {}}
    )
    document = config.model_dump(mode="json")
    older = {**document, "algorithm": {"name": "dqn", "replay": {"lake": True, "capacity": 9_000}}}
    del older["lake"], older["monitoring"]
    found = saved_config(older, source="it").model_dump(mode="json")
    assert found["lake"] == document["lake"]
    assert found["algorithm"]["replay"] == {"capacity": 9_000, "device": "cpu"}
    assert {**found, "algorithm": document["algorithm"]} == document


def test_a_checkpoint_of_an_unknown_version_is_told() -> None:
    with pytest.raises(ConfigError, match=r"it has a config that .*: algorithm.*use the"):
        saved_config(
            {"game": "x", "total_timesteps": 9, "run_dir": "x", "algorithm": {"name": "sac"}},
            source="it",
        )
