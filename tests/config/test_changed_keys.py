"""The keys that differ from their defaults are all that a config needs, and no more."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from game_rl.config.bundled_configs import bundled_configs
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import changed_keys
from game_rl.errors import ConfigError
from tests.tiny_run import MakeConfig

PQN = "algorithm={name: pqn, n_steps: 16, batch_size: 32}"
_EXPERIMENTS = ("kind:", "arms:")
RUNS = [
    file
    for file in bundled_configs().values()
    if not any(f"\n{word}" in file.read_text(encoding="utf-8") for word in _EXPERIMENTS)
]


def rebuilt(path: Path, changed: dict[str, tuple[object, object]]) -> RunConfig:
    """Return the config of a file that has these keys alone."""
    tree: dict[str, Any] = {}
    for key, (_, value) in changed.items():
        *above, last = key.split(".")
        section = tree
        for name in above:
            section = section.setdefault(name, {})
        section[last] = value
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return load_config(path)


@pytest.mark.parametrize("file", RUNS, ids=lambda file: file.stem)
def test_a_file_of_the_changed_keys_is_the_same_config(file: Path, tmp_path: Path) -> None:
    config = load_config(file)
    changed = changed_keys(config)
    assert rebuilt(tmp_path / "again.yaml", changed) == config
    for key, (default, value) in changed.items():
        assert default != value, key


def test_without_any_of_them_it_is_another_config_or_none(
    tmp_path: Path, make_config: MakeConfig
) -> None:
    config = make_config(
        "run", "lake={capacity_gb: 1}", "algorithm={name: pqn, n_steps: 16, batch_size: 32}"
    )
    changed = changed_keys(config)
    assert {"algorithm.name", "algorithm.n_steps", "lake.capacity_gb"} <= changed.keys()
    for key in changed:
        others = {name: pair for name, pair in changed.items() if name != key}
        try:
            assert rebuilt(tmp_path / "again.yaml", others) != config, key
        except ConfigError:
            continue


def test_a_section_that_is_on_with_its_defaults_is_told(make_config: MakeConfig) -> None:
    config = make_config("run", "lake={}", PQN)
    assert changed_keys(config)["lake"] == (None, {})
