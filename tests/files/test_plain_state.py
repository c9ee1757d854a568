import json
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from game_rl.files.plain_state import array_to_json, state_from_json, state_to_json

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


numbers = st.one_of(
    *(
        arrays(dtype, array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
        for dtype in (np.float32, np.float64, np.int64, np.uint8, np.bool_)
    )
)


@given(st.dictionaries(keys, numbers | st.floats(), max_size=3))
def test_arrays_and_all_floats_come_back_where_they_are_allowed(value: Any) -> None:
    copy = state_from_json(json.loads(json.dumps(state_to_json(value, "it", array_to_json))))
    assert list(copy) == list(value)
    for one, two in zip(copy.values(), value.values(), strict=True):
        assert type(one) is type(two)
        if isinstance(two, float):
            assert one == two or (math.isnan(one) and math.isnan(two))
        else:
            assert (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes())


@pytest.mark.parametrize("value", [{"!array": ["O", [0], ""]}, {"!tensor": ["int8", [0], ""]}])
def test_objects_and_tensors_are_refused_where_they_cannot_be(value: Any) -> None:
    with pytest.raises(ValueError, match="cannot be saved here"):
        state_from_json(value)
