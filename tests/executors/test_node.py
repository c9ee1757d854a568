"""A node must have the controller's files and programs before a member runs there."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from game_rl.executors.node_checks import (
    NodeFacts,
    NodeNeeds,
    answer_of,
    introduce,
    marked,
    warnings_of,
)

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
        ({"mark": Path("/nowhere/mark")}, "/nowhere is not the same folder here"),
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
