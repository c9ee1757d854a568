"""The network in a run's config: its forms, its defaults, and what is said of wrong ones."""

from pathlib import Path
from typing import Any

import pytest

from game_rl.config.custom_part import PartError
from game_rl.config.loader import dump_config, load_config
from game_rl.config.migration import saved_config
from game_rl.config.network import NATURE, Network, NetworkConfig, hidden_layers, own_network
from game_rl.config.schema import RunConfig, check_image_size
from game_rl.errors import ConfigError

HEAD = "game: duel\ntotal_timesteps: 100_000\nrun_dir: runs/x\n"


def loaded(folder: Path, network: str, algorithm: str = "ppo") -> RunConfig:
    file = folder / "run.yaml"
    file.write_text(f"{HEAD}algorithm: {{name: {algorithm}, network: {network}}}\n", "utf-8")
    return load_config(file, [])


@pytest.mark.parametrize("algorithm", ["ppo", "dqn", "pqn"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", NATURE),
        ("{screen: impala}", NetworkConfig(screen="impala")),
        ("{hidden: [256, 64], features: 100}", NetworkConfig(hidden=(256, 64), features=100)),
        ("{hidden: []}", NetworkConfig(hidden=())),
    ],
)
def test_a_section_is_a_network_that_is_saved_as_it_is(
    tmp_path: Path, algorithm: str, text: str, expected: NetworkConfig
) -> None:
    config = loaded(tmp_path, text, algorithm)
    assert config.algorithm.network == expected
    (tmp_path / "saved.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(tmp_path / "saved.yaml", []) == config


def test_a_config_of_before_has_the_network_of_before() -> None:
    config = RunConfig.model_validate(
        {"game": "duel", "total_timesteps": 100_000, "run_dir": "runs/x"}
    )
    document: dict[str, Any] = config.model_dump(mode="json")
    document["algorithm"].pop("network")
    assert saved_config(document, source="it").model_dump() == config.model_dump()


@pytest.mark.parametrize(
    ("network", "alone", "with_parts"),
    [
        (NATURE, (), (64, 64)),
        (NetworkConfig(hidden=(7,)), (7,), (7,)),
        (NetworkConfig(hidden=()), (), ()),
        ("my_net:Mine", (64, 64), (64, 64)),
    ],
)
def test_hidden_layers_are_sb3s_where_nothing_is_said(
    network: Network, alone: tuple[int, ...], with_parts: tuple[int, ...]
) -> None:
    assert hidden_layers(network, has_parts=False) == alone
    assert hidden_layers(network, has_parts=True) == with_parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("impala", "algorithm.network: found impala; write network: {screen: impala}"),
        ("{screen: impla}", "did you mean impala?"),
        ("{hiden: [64]}", "did you mean hidden?"),
        ("{hidden: [0]}", "algorithm.network.hidden"),
        ("my_nets.Mine", "did you mean my_nets:Mine?"),
        ("my_nets:Mine", "there is no module my_nets"),
    ],
)
def test_a_wrong_network_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)
    assert message in str(caught.value)


OWN = """\
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

class Mine(BaseFeaturesExtractor):
    def __init__(self, observation_space, size=3):
        super().__init__(observation_space, size)

class Other:
    pass
"""


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("my_nets:Other", "is not a features extractor of Stable-Baselines3"),
        ({"my_nets:Mine": {"sise": 3}}, "did you mean size?"),
    ],
)
def test_a_class_that_is_no_features_extractor_is_refused(
    tmp_path: Path, network: Network, message: str
) -> None:
    (tmp_path / "my_nets.py").write_text(OWN, encoding="utf-8")
    (part,) = own_network(network)
    with pytest.raises(PartError, match=r"^algorithm\.network: ") as caught:
        part.load_features_extractor(tmp_path)
    assert message in str(caught.value)


def test_each_network_has_its_smallest_pictures() -> None:
    with pytest.raises(
        ConfigError, match=r"at least 36x36; use algorithm.network: {screen: small}"
    ):
        check_image_size(20, 18, channels=4)
    for screen in ("impala", "small"):
        check_image_size(20, 18, channels=4, network=NetworkConfig(screen=screen))
        with pytest.raises(ConfigError, match="at least 4x4"):
            check_image_size(3, 18, channels=1, network=NetworkConfig(screen=screen))
    check_image_size(3, 3, channels=1, network="my_nets:Mine")  # which knows itself
