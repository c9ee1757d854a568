"""`progress.csv`: every row in every format, cut back exactly to any moment."""

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.logger import CSVOutputFormat

from game_rl.loggers.log_files import TableSize, cut_table, table_size
from game_rl.loggers.make_logger import ProgressTable

Row = dict[str, float | str]
NAMES = st.sampled_from(["a", "b", "game/x", "train/loss", "time/fps"])
VALUES = st.one_of(
    st.integers(-1000, 1000), st.floats(allow_nan=False), st.sampled_from(["", 'say "x"', "a,b\nc"])
)
ROWS = st.lists(st.dictionaries(NAMES, VALUES, min_size=1), min_size=1, max_size=12)


def write(table: CSVOutputFormat, row: Row, step: int = 0) -> None:
    table.write(row, dict.fromkeys(row, ()), step)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_it_has_what_sb3s_own_table_has(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    folder = tmp_path_factory.mktemp("table")
    ours, theirs = ProgressTable(folder / "ours.csv"), CSVOutputFormat(str(folder / "theirs.csv"))
    for row in rows:
        write(ours, row)
        write(theirs, row)
    ours.close()
    theirs.close()
    if not any("\n" in str(value) for row in rows for value in row.values()):
        assert read(folder / "ours.csv") == read(folder / "theirs.csv")
    assert len(read(folder / "ours.csv")) == len(rows)


@settings(max_examples=80, deadline=None)
@given(rows=ROWS, kept=st.integers(0, 12), reopened=st.integers(0, 12))
def test_a_table_that_is_cut_and_continued_is_the_table_without_the_break(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], kept: int, reopened: int
) -> None:
    folder = tmp_path_factory.mktemp("table")
    whole, broken = folder / "whole.csv", folder / "broken.csv"
    table = ProgressTable(whole)
    for row in rows:
        write(table, row)
    table.close()
    table, size = ProgressTable(broken), None
    for number, row in enumerate(rows):
        if number == kept:
            size = table.size
        if number == reopened:
            table.close()
            table = ProgressTable(broken)
        write(table, row)
    size = table.size if kept >= len(rows) else size
    table.close()
    assert kept < len(rows) or size == table_size(whole)
    cut_table(broken, size)
    table = ProgressTable(broken)
    for row in rows[kept:]:
        write(table, row)
    table.close()
    assert broken.read_bytes() == whole.read_bytes()


def test_a_torn_last_row_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_bytes(b"a,b\n1,2\n3")
    cut_table(path, TableSize(lines=2, columns=2))
    assert path.read_bytes() == b"a,b\n1,2\n"


def test_without_a_checkpoint_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_bytes(b"a\n1\n")
    cut_table(path, None)
    assert not path.exists()
    cut_table(path, TableSize(lines=3, columns=1))  # nor is a lost table an error
    assert table_size(path) is None


def test_a_kill_while_the_header_grows_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.csv"
    table = ProgressTable(path)
    write(table, {"a": 1})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("game_rl.loggers.make_logger.write_atomic", killed)
    with pytest.raises(KeyboardInterrupt):
        write(table, {"a": 2, "b": 3})
    assert path.read_bytes() == b"a\n1\n"
