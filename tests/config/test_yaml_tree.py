import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.yaml_tree import DocumentError, Node, Place, parse_document, resolve_plain


def plain(text: str) -> object:
    node, problems = parse_document(text)
    assert problems == []
    return node.plain()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("-3", -3),
        ("010", 10),
        ("10_000_000", 10_000_000),
        ("1e6", 1_000_000),
        ("1E+3", 1_000),
        ("8.0", 8),
        ("2.5e-4", 0.00025),
        (".5", 0.5),
        ("1_000.5", 1000.5),
        ("0xFF_00", 0xFF00),
        ("0o17", 15),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("1e400", math.inf),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2_and_whole_numbers_are_integers(
    text: str, value: object
) -> None:
    found = resolve_plain(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text", ["yes", "no", "on", "off", "y", "N", "1:30", "2024-01-01", "1e", "_1", "0b1", "=", "."]
)
def test_what_only_yaml_1_1_reads_as_something_else_is_text(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize("text", ["0x" + "F" * 5_000, "0o" + "7" * 9_000])
def test_a_number_that_python_would_not_write_is_text(text: str) -> None:
    assert resolve_plain(text) == text


def test_a_number_of_many_digits_is_not_finite() -> None:
    assert resolve_plain("9" * 5_000) == math.inf


def test_nan_is_a_number() -> None:
    found = resolve_plain(".nan")
    assert isinstance(found, float)
    assert math.isnan(found)


@given(st.floats(allow_nan=False))
def test_every_float_is_read_back_from_its_repr(number: float) -> None:
    found = resolve_plain(repr(number).replace("inf", ".inf"))
    assert found == number


def test_quotes_make_text_of_anything() -> None:
    assert plain("{a: '8', b: \"true\"}") == {"a": "8", "b": "true"}


def test_keys_are_the_text_that_was_written() -> None:
    assert plain("on: 1\n8: 2\n'null': 3\n") == {"on": 1, "8": 2, "null": 3}


def test_each_value_knows_the_line_of_its_key_or_item() -> None:
    node, _ = parse_document("a: 1\nb:\n  c:\n    - x\n    - y\n  d: {e: 2}\n")
    keys = [("a",), ("b",), ("b", "c"), ("b", "c", "1"), ("b", "d", "e")]
    assert [node.nearest(key).place.order for key in keys] == [1, 2, 3, 5, 6]


def test_nearest_is_the_innermost_node_that_exists() -> None:
    node, _ = parse_document("a:\n  b: 1\n")
    assert node.nearest(("a", "x", "y")).place == Place.line(1)
    assert node.has(("a", "b"))
    assert not node.has(("a", "b", "c"))


def test_an_alias_has_the_value_of_its_anchor_and_a_line_of_its_own() -> None:
    node, problems = parse_document("a: &x {b: 1}\nc: *x\n")
    assert problems == []
    assert node.plain() == {"a": {"b": 1}, "c": {"b": 1}}
    assert node.nearest(("c",)).place.order == 2


def test_every_problem_of_the_text_is_found_at_once() -> None:
    _, problems = parse_document("a: 1\na: !!int 2\nb: {c: 1, c: 2}\nd: '\\x'\ne: \"\\ud800\"\n")
    assert [(problem.place.order, problem.key) for problem in problems] == [
        (2, ("a",)),
        (2, ("a",)),
        (3, ("b", "c")),
        (5, ("e",)),
    ]


def test_a_long_text_counts_as_several_values() -> None:
    node, _ = parse_document(f"a: {'x' * 2_500}\n{'k' * 1_000}: 1\n")
    assert node.nearest(("a",)).size == 3
    assert node.size == 1 + 3 + (1 + 1)


def test_a_changed_tree_leaves_the_old_one_alone() -> None:
    node, _ = parse_document("a: &x {b: 1}\nc: *x\n")
    new = node.with_value(("c", "b"), Node(2, Place.line(9)))
    assert new.plain() == {"a": {"b": 1}, "c": {"b": 2}}
    assert new.without(("a", "b")).plain() == {"a": {}, "c": {"b": 2}}
    assert new.without(("x", "y")) is new
    assert node.plain() == {"a": {"b": 1}, "c": {"b": 1}}


def test_missing_sections_are_made_on_the_way_to_a_value() -> None:
    node, _ = parse_document("a:\n")
    assert node.with_value(("a", "b", "c"), Node(1, Place.line(1))).plain() == {
        "a": {"b": {"c": 1}}
    }


def test_items_of_a_list_are_replaced_and_taken_out_by_number() -> None:
    node, _ = parse_document("a: [x, y, z]\n")
    assert node.with_value(("a", "1"), Node(5, Place.line(1))).plain() == {"a": ["x", 5, "z"]}
    assert node.without(("a", "0")).plain() == {"a": ["y", "z"]}


@given(st.text() | st.text(alphabet="ab:-[]{}&*!|>'\"#%@`, \n\t\\uxU0?<=~.1e_\ud800"))
def test_any_text_is_a_tree_or_a_document_error(text: str) -> None:
    try:
        node, _ = parse_document(text)
    except DocumentError:
        return
    assert isinstance(node.plain(), dict | list | str | int | float | bool | None)
