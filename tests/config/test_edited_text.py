"""Edits of YAML text against the same change of the parsed data."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.proposal import with_values

N_ENVS, N_WORKERS, N_STEPS = ("env", "n_envs"), ("env", "n_workers"), ("algorithm", "n_steps")

COMMENTED = """\
# a run
game: duel  # the bundled one
env:
  # emulators
  n_envs: 8   # as many as envs
  frame_skip: 4
algorithm: {name: ppo, n_steps: 1_024}

total_timesteps: 400_000
"""


def test_a_value_is_replaced_and_everything_else_stays() -> None:
    edited = with_values(COMMENTED, {N_ENVS: 16})
    assert edited == COMMENTED.replace("n_envs: 8 ", "n_envs: 16 ")


def test_a_number_is_written_as_its_neighbour_was() -> None:
    assert "n_steps: 2_048}" in with_values(COMMENTED, {N_STEPS: 2048})
    assert "n_envs: 2048 " in with_values(COMMENTED, {N_ENVS: 2048})
    assert "n_envs: null " in with_values(COMMENTED, {N_ENVS: None})


@pytest.mark.parametrize(
    ("text", "edited"),
    [
        ("env:\n  n_envs: 8\n  x: 4\n", "env:\n  n_envs: 8\n  n_workers: 2\n  x: 4\n"),
        ("env:\n    n_envs: 8", "env:\n    n_envs: 8\n    n_workers: 2\n"),
        ("env:\r\n  n_envs: 8\r\n", "env:\r\n  n_envs: 8\r\n  n_workers: 2\r\n"),
        ("env:\n  x: {a: 1}\n", "env:\n  n_workers: 2\n  x: {a: 1}\n"),
        ("env: {n_envs: 8}\n", "env: {n_workers: 2, n_envs: 8}\n"),
        ("env: {}\n", "env: {n_workers: 2}\n"),
        ("env:\n  n_workers:\n", "env:\n  n_workers: 2\n"),
        ("game: duel\n", "game: duel\nenv:\n  n_workers: 2\n"),
        ("game: duel", "game: duel\nenv:\n  n_workers: 2\n"),
        ("{game: duel}\n", "{env: {n_workers: 2}, game: duel}\n"),
    ],
)  # fmt: skip
def test_a_missing_key_finds_its_place(text: str, edited: str) -> None:
    assert with_values(text, {N_WORKERS: 2}) == edited


@pytest.mark.parametrize("text", ["env: 3\n", "env: [1, 2]\n", "just text\n", "", "env:\n"])
def test_what_is_no_section_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="section"):
        with_values(text, {N_WORKERS: 2})


names = st.sampled_from(["game", "env", "algorithm", "n_envs", "n_workers", "n_steps", "x"])
trees = st.dictionaries(
    names, st.one_of(st.integers(0, 99), st.dictionaries(names, st.integers(0, 99))), min_size=1
)


@given(
    tree=trees,
    flow=st.sampled_from([True, False, None]),
    indent=st.sampled_from([2, 4]),
    sort=st.booleans(),
    values=st.dictionaries(
        st.sampled_from([N_ENVS, N_WORKERS, N_STEPS]), st.none() | st.integers(1, 99), min_size=1
    ),
)
def test_the_edited_text_says_what_the_edited_data_is(
    tree: dict[str, Any],
    flow: bool | None,
    indent: int,
    sort: bool,
    values: dict[tuple[str, ...], int | None],
) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, indent=indent, sort_keys=sort)
    if any(not isinstance(tree.get(section, {}), dict) for section, _ in values):
        with pytest.raises(ValueError, match="section"):
            with_values(text, values)
        return
    for (section, name), value in values.items():
        tree.setdefault(section, {})[name] = value
    assert yaml.safe_load(with_values(text, values)) == tree
