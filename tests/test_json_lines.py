"""Files of JSON lines, also torn ones, compared with a plain split of their bytes."""

import json
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from game_rl.event_log import JsonLines, located_lines, parsed

_texts = st.lists(st.text(max_size=8).map(json.dumps), max_size=8)


@given(_texts, _texts, st.integers(0, 60))
def test_whole_lines_stay_and_new_ones_are_lines_of_their_own(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str], lost: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    with JsonLines(path) as file:
        for text in before:
            file.append(text)
    content = path.read_bytes()
    content = content[: max(0, len(content) - lost)]
    path.write_bytes(content)
    whole = content.count(b"\n")
    assert [line for _, line in located_lines(path)] == [f"{t}\n".encode() for t in before[:whole]]
    with JsonLines(path) as file:
        for text in after:
            file.append(text)
        assert file.n_bytes() == path.stat().st_size
    found = [line.decode().rstrip("\n") for _, line in located_lines(path)]
    assert found[:whole] == before[:whole]
    assert found[len(found) - len(after) :] == after
    for offset, line in located_lines(path):
        assert path.read_bytes()[offset : offset + len(line)] == line


def test_a_line_that_the_disk_did_not_take_whole_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with JsonLines(path) as file:
        file.append('"one"')
        resource.setrlimit(resource.RLIMIT_FSIZE, (9, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                file.append('"two"')
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.append('"three"')
    texts = TypeAdapter(str)
    found = [parsed(texts, line) for _, line in located_lines(path)]
    assert found == ["one", None, "three"]


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert not list(located_lines(tmp_path / "x.jsonl"))
