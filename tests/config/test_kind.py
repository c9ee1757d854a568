"""What kind of thing a config file describes, before the rest of it is looked at."""

from pathlib import Path

import pytest

from game_rl.config.loader import KINDS, config_kind
from game_rl.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "x.yaml"


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_of_the_kind_that_it_names(kind: str, file: Path) -> None:
    file.write_text(f"kind: {kind}\n", encoding="utf-8")
    assert config_kind(file) == kind


def test_a_file_without_kind_is_a_run(file: Path) -> None:
    file.write_text("game: duel\n", encoding="utf-8")
    assert config_kind(file) is None


def test_an_unknown_kind_is_refused(file: Path) -> None:
    file.write_text("kind: population\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"found popular; allowed: population"):
        config_kind(file, ["kind=popular"])
