import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from game_rl.plain_state import state_from_json, state_to_json

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
scalars |= st.text(max_size=5) | st.sampled_from(["!tuple", "!dict", "!Counter", "!defaultdict"])
keys = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=3).map(lambda items: defaultdict(list, items))
        | st.dictionaries(keys, st.integers(), max_size=3).map(Counter)
    ),
    max_leaves=10,
)


@given(plain)
def test_plain_data_comes_back_from_json_with_its_types_and_its_order(value: Any) -> None:
    text = json.dumps(state_to_json(value), allow_nan=False)
    assert repr(state_from_json(json.loads(text))) == repr(value)


@settings(max_examples=30)
@given(
    st.recursive(scalars, lambda inner: st.dictionaries(st.text("abc"), inner) | st.lists(inner))
)
def test_what_json_can_represent_stays_as_it_is(value: Any) -> None:
    assert state_to_json(value) == value


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"seen": {1, 2}}, r"it\['seen'\] is of type set"),
        ({(1, 2): [object()]}, r"it\[\(1, 2\)\]\[0\] is of type object"),
        ({frozenset(): 1}, "a key of it is of type frozenset"),
        ([float("nan")], r"it\[0\] is nan"),
        (defaultdict(lambda: 0), "it is a defaultdict of <function"),
    ],
)
def test_what_is_no_plain_data_is_named(value: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        state_to_json(value)
