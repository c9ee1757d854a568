"""Output that cannot end a program, whatever its encoding and disk are."""

import io
import os
import sys
from pathlib import Path

import pytest

import game_rl
from game_rl.system.output import (
    as_printed,
    ascii_form,
    flush_or_silence,
    lasting_output,
    with_whole_words,
    write_every_character,
)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("ascii", "cafe: 1.5 +/- 0.5, 2 x 3 ... -> run \\xff ?"),
        ("iso-8859-1", "café: 1.5 ± 0.5, 2 × 3 ... -> run \\xff ?"),
        ("utf-8", "café: 1.5 ± 0.5, 2 × 3 … → run \\xff 犬"),
    ],
)
def test_characters_that_cannot_be_written_are_replaced(
    encoding: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    write_every_character()
    print("café: 1.5 ± 0.5, 2 × 3 … → run \udcff 犬", end="", flush=True)
    assert written.getvalue().decode(encoding) == expected


def test_a_table_is_as_wide_as_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert as_printed("1.5 ± 0.5") == "1.5 +/- 0.5"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert as_printed("1.5 ± 0.5") == "1.5 ± 0.5"


def test_every_character_that_we_print_has_a_form_in_ascii() -> None:
    files = Path(game_rl.__file__).parent.rglob("*.py")
    texts = (file.read_text(encoding="utf-8") for file in files)
    beyond = {character for text in texts for character in text if not character.isascii()}
    boxes = set("─│└├")  # of docstrings; rich draws its own with + and -
    assert {c for c in beyond - boxes if "?" in ascii_form(c)} == set()


@pytest.mark.parametrize("place", ["/dev/full", "a closed pipe"])
def test_lasting_output_goes_silent_at_the_first_error_and_tells_it_once(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[OSError] = []
    with opened(place) as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        with lasting_output(told.append):
            for _ in range(3):
                print("line", flush=True)
        assert sys.stdout is stream
    assert [type(error) for error in told] == [BrokenPipeError if "pipe" in place else OSError]


def test_what_cannot_be_flushed_is_discarded_for_good() -> None:
    stream = opened("/dev/full")
    stream.write("text")
    flush_or_silence(stream)
    stream.close()  # would raise


def opened(place: str) -> io.TextIOWrapper:
    if place != "a closed pipe":
        return Path(place).open("w", encoding="utf-8")
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_an_error_breaks_between_words_on_a_terminal_and_nowhere_in_a_file(columns: int) -> None:
    text = (
        "error: /home/configs/duel_ppo.yaml: 1 problem\n"
        "  --set algorithm=recurrent_ppo  algorithm: found recurrent_ppo; allowed: {name: ppo, ...}"
    )
    shown = with_whole_words(text, columns)
    assert shown.split() == text.split()
    assert all(len(line) <= columns for line in shown.splitlines())
    assert with_whole_words(text, None) == text
