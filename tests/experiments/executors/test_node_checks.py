"""A node must have the controller's files and programs before a member runs there."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.experiments.executors.node_checks import (
    GameNeeds,
    NodeFacts,
    NodeNeeds,
    StorageNeeds,
    answer_of,
    game_needs,
    introduce,
    marked,
    marked_storage,
    warnings_of,
)
from game_rl.storage.object_store import ObjectStore
from tests.storage.conftest import address as address  # fixtures
from tests.storage.conftest import disk_address as disk_address
from tests.storage.conftest import s3_address as s3_address
from tests.storage.conftest import s3_endpoint as s3_endpoint
from tests.storage.server import SECRET

OWN_NICENESS = os.getpriority(os.PRIO_PROCESS, 0)


def test_this_machine_has_what_this_machine_needs(tmp_path: Path) -> None:
    with marked(tmp_path) as needs:
        assert needs.problem() is None
        facts = introduce(needs, "n1")
        assert facts.problem is None
        assert answer_of(needs, "n1").read_text(encoding="utf-8") == needs.content
    assert not needs.mark.exists()


def test_what_a_killed_controller_has_left_is_deleted(tmp_path: Path) -> None:
    with marked(tmp_path) as first:
        introduce(first, "n1")
        (tmp_path / "state.json").write_text("{}", encoding="utf-8")
        with marked(tmp_path) as second:
            introduce(second, "n1")
            assert not first.mark.exists()
            assert not answer_of(first, "n1").exists()
            assert second.problem() is None
    assert (tmp_path / "state.json").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"content": "another"}, "is not the same folder here"),
        ({"root": Path("/nowhere")}, "/nowhere is not the same folder here"),
        ({"folder": Path("/nowhere/else")}, "/nowhere/else is not the same folder here"),
        ({"versions": {"torch": "1.0"}}, "torch was 1.0, is 2."),
        ({"source": "0"}, "the source code of game_rl differs"),
    ],
)
def test_a_node_says_what_it_lacks_and_leaves_no_answer(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with marked(tmp_path) as needs:
        other: NodeNeeds = replace(needs, **change)  # type: ignore[arg-type]
        problem = introduce(other, "n1").problem
        assert problem is not None
        assert said in problem
        assert not answer_of(needs, "n1").exists()


def test_processors_of_several_models_are_named() -> None:
    nodes = [NodeFacts(f"n{i}", name, OWN_NICENESS, None) for i, name in enumerate(["A", "A", "B"])]
    assert list(warnings_of(nodes[:2])) == []
    (warning,) = warnings_of(nodes)
    assert "n1 has A" in warning
    assert "n2 has B" in warning


def test_nodes_where_members_would_give_way_are_named() -> None:
    nodes = [NodeFacts("n1", "A", OWN_NICENESS, None), NodeFacts("n2", "A", OWN_NICENESS + 1, None)]
    (warning,) = warnings_of(nodes)
    assert "on n2;" in warning


_GAMES = Path(__file__).parents[3] / "game_rl" / "games"


@pytest.fixture
def needs(address: str) -> Iterator[StorageNeeds]:
    with marked_storage(ObjectStore.below(address, "x"), GameNeeds(), 1) as found:
        yield found


def test_this_machine_has_what_this_machine_needs_and_answers(needs: StorageNeeds) -> None:
    assert introduce(needs, "n1").problem is None
    assert needs.lost_answer("n1") is None
    lost = needs.lost_answer("n1")  # it was taken, as if it had never come
    assert lost is not None
    assert "does not arrive here" in lost


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"content": "another"}, "is not the same place there"),
        ({"versions": {"torch": "1.0"}}, "torch was 1.0, is 2."),
        ({"source": "0"}, "the source code of game_rl differs"),
        ({"disk_bytes": 10**18}, "start Ray there with TMPDIR on a larger disk"),
        ({"address": "file:///nowhere/else"}, "is not there; create the bucket or the folder"),
    ],
)
def test_a_node_says_what_it_lacks(disk_address: str, change: dict[str, object], said: str) -> None:
    with marked_storage(ObjectStore.below(disk_address, "x"), GameNeeds(), 1) as needs:
        problem = introduce(replace(needs, **change), "n1").problem  # type: ignore[arg-type]
    assert problem is not None
    assert said in problem


def test_a_node_without_credentials_says_so_and_repeats_none(
    s3_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        marked_storage(ObjectStore.below(s3_address, "x"), GameNeeds(), 1) as needs,
        monkeypatch.context() as other,
    ):
        other.setattr("game_rl.experiments.executors.node_checks._PATIENCE_S", 0.0)
        other.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        problem = introduce(needs, "n1").problem
    assert problem is not None
    assert "uses the credentials that `ray start` had" in problem
    assert SECRET not in problem


def test_a_game_of_the_users_own_must_be_there_with_its_rom(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(_GAMES / "duel", folder)
    needs = game_needs(str(folder / "game.yaml"))
    assert needs.problem() is None
    rom = Path(str(needs.rom))
    rom.rename(tmp_path / "hidden")
    problem = needs.problem()
    assert problem is not None
    assert f"the ROM {rom} is not there" in problem
    assert "copy its folder, with the ROM, to the same path" in problem
    rom.write_bytes(b"another game")
    assert "has different content there" in str(needs.problem())
    shutil.rmtree(folder)
    assert needs.problem() is not None


def test_a_rom_without_a_path_must_be_in_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, roms = tmp_path / "mine", tmp_path / "roms"
    shutil.copytree(_GAMES / "duel", folder)
    roms.mkdir()
    rom = (folder / "duel.gb").read_bytes()[:-1] + b"\x01"  # not the one that comes with game_rl
    (roms / "any.gb").write_bytes(rom)
    (folder / "duel.gb").unlink()
    text = (folder / "game.yaml").read_text(encoding="utf-8")
    by_hash = f'{{sha256: "{hashlib.sha256(rom).hexdigest()}"}}'
    text = re.sub("^rom: .*", f"rom: {by_hash}", text, flags=re.MULTILINE)
    (folder / "game.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GAME_RL_ROMS", raising=False)
    needs = game_needs(str(folder / "game.yaml"))
    assert str(folder / "game.yaml") in needs.files
    problem = needs.problem()
    assert problem is not None, "a member's current folder has no roms"
    assert "set GAME_RL_ROMS to the folder that has it" in problem
    monkeypatch.setenv("GAME_RL_ROMS", str(roms))
    assert needs.problem() is None


def test_a_bundled_game_is_everywhere() -> None:
    assert game_needs("duel") == GameNeeds()
