import re

import pytest

from game_rl.config.key_hints import KEY_HINTS
from game_rl.config.schema import RunConfig
from game_rl.config.schema_guide import schema_guide

GUIDE = schema_guide(RunConfig)


@pytest.mark.parametrize("name", KEY_HINTS)
def test_no_hint_hides_a_key_that_exists(name: str) -> None:
    assert name == name.lower()
    assert GUIDE.places_of(name) == []


@pytest.mark.parametrize("hint", dict.fromkeys(KEY_HINTS.values()))
def test_every_key_that_a_hint_names_exists(hint: str) -> None:
    named = re.findall(r"(?:env|algorithm|evaluation|checkpoints)(?:\.[a-z_]+)+", hint)
    missing = [key for key in named if key.rsplit(".", 1)[-1] not in GUIDE.keys(section_of(key))]
    assert missing == []


def section_of(key: str) -> tuple[str, ...]:
    return tuple(key.split("."))[:-1]
