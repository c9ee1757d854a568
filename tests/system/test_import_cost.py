import subprocess
from pathlib import Path

import pytest

from game_rl.system import import_cost as module
from game_rl.system.import_cost import USUAL_IMPORT_COST, ImportCost, import_cost
from game_rl.system.units import MIB


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "game_rl" / "import_cost.json"


@pytest.mark.slow
def test_importing_is_measured_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = import_cost()
    assert cache.is_file()
    assert 100 * MIB < first.bytes < 4_000 * MIB
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("measured again"))
    assert import_cost() == first


def test_another_installation_is_measured_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = [ImportCost(1, None), ImportCost(2, "13.0")]
    monkeypatch.setattr(module, "_measure", lambda: measured.pop(0))
    assert import_cost().bytes == 1
    monkeypatch.setattr(module, "version", lambda _: "another")
    assert import_cost() == ImportCost(2, "13.0")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parents[1]))
    assert import_cost().bytes == 1


@pytest.mark.parametrize("content", ["", "[]", '{"x": {"bytes": 1}}', '{"x": 3}'])
def test_a_damaged_file_is_measured_anew(
    content: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir()
    cache.write_text(content, encoding="utf-8")
    monkeypatch.setattr(module, "_measure", lambda: ImportCost(7, None))
    assert import_cost().bytes == 7


def test_a_home_that_cannot_be_written_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    monkeypatch.setattr(module, "_measure", lambda: ImportCost(7, None))
    assert import_cost().bytes == 7


def test_where_nothing_can_be_measured_the_usual_cost_counts(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHILD", "import no_such_library")
    assert import_cost() == USUAL_IMPORT_COST
    assert not cache.exists()
