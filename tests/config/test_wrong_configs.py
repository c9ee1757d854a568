from pathlib import Path

import pytest

from game_rl.config.loader import load_config
from game_rl.errors import ConfigError
from tests.config.wrong_configs.every import WRONG_CONFIGS
from tests.config.wrong_configs.wrong_config import WrongConfig


@pytest.fixture(params=WRONG_CONFIGS, ids=lambda wrong: wrong.name)
def wrong(request: pytest.FixtureRequest) -> WrongConfig:
    return request.param


def test_every_wrong_config_is_told_its_place_cause_and_fix(
    wrong: WrongConfig, tmp_path: Path
) -> None:
    path = tmp_path / "run.yaml"
    content = wrong.content if isinstance(wrong.content, bytes) else wrong.content.encode()
    path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        load_config(path, wrong.overrides)
    assert raised.value.exit_code == 2
    head, *lines = str(raised.value).splitlines()
    assert head.startswith(f"{path}: ")
    assert any(all(part in line for part in wrong.told) for line in lines), str(raised.value)


def test_the_table_is_as_long_as_promised() -> None:
    names = [wrong.name for wrong in WRONG_CONFIGS]
    assert len(names) == len(set(names)) >= 40
