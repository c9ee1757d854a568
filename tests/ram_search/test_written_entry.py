"""Entries that are written into a game.yaml, which keeps all else as it was."""

from pathlib import Path

import pytest
import yaml

from game_rl.errors import GameFileError
from game_rl.ram_search.written_entry import suggestions, with_entry, write_entry
from tests.ram_search.test_moments import game_in

TEXT = """\
# mine
title: A  # aligned   so
variables:
  score: {address: 0xC000, type: u8}   # a guess
  # lives: {address: 0xC0A1}

# Rewards follow.
rewards: {}
"""


def test_an_entry_more_leaves_every_other_line_as_it_was() -> None:
    after = with_entry(TEXT, "hp", "hp: {address: 0xC0A5}", ("a hint",))
    lines = after.splitlines()
    added = ["  hp: {address: 0xC0A5}", "  # a hint"]
    assert [line for line in lines if line not in added] == TEXT.splitlines()
    assert list(yaml.safe_load(after)["variables"]) == ["score", "hp"]


def test_an_entry_of_the_same_name_becomes_a_comment() -> None:
    after = with_entry(TEXT, "score", "score: {address: 0xC0A5}")
    assert yaml.safe_load(after)["variables"] == {"score": {"address": 0xC0A5}}
    assert "  # before: score: {address: 0xC000, type: u8}   # a guess\n" in after


@pytest.mark.parametrize("text", [TEXT.replace("\n", "\r\n"), TEXT[: TEXT.index("\n\n#")]])
def test_line_breaks_and_the_end_of_the_file_are_kept(text: str) -> None:
    after = with_entry(text, "hp", "hp: {address: 0xC0A5}")
    assert yaml.safe_load(after)["variables"]["hp"] == {"address": 0xC0A5}
    assert ("\r\n" in after) == ("\r\n" in text)
    assert after.replace("  hp: {address: 0xC0A5}\r\n", "").startswith(text[:40])


def test_a_long_entry_of_several_lines_becomes_a_comment() -> None:
    text = "variables:\n  a:\n    address: 0xC000\n    type: u8\n  b: {address: 0xC001}\n"
    after = with_entry(text, "a", "a: {address: 0xC0A5}")
    found = yaml.safe_load(after)["variables"]
    assert found == {"a": {"address": 0xC0A5}, "b": {"address": 0xC001}}


def test_a_file_that_would_not_be_valid_stays_as_it_was(tmp_path: Path) -> None:
    file = game_in(tmp_path)
    before = file.read_bytes()
    with pytest.raises(GameFileError, match="is unchanged, because"):
        write_entry(file, "hp", "hp: {address: 0xE000, type: u8}")
    assert file.read_bytes() == before
    write_entry(file, "hp", "hp: {address: 0xC0A5, type: u8}")
    assert b"  hp: {address: 0xC0A5, type: u8}\n" in file.read_bytes()
    file.write_text("variables: {a: {address: 0xC000}}\n", encoding="utf-8")
    with pytest.raises(GameFileError, match="by hand"):
        write_entry(file, "hp", "hp: {address: 0xC0A5}")


def test_suggestions_follow_from_the_name_and_the_numbers() -> None:
    assert "equals: 0" in suggestions("lives", [3, 2])[1]
    assert "on: increase" in suggestions("score", [0, 10, 20])[0]
    assert suggestions("x", [3, 1, 2]) == []
