"""Proposed diffs, applied by a patcher that knows nothing of how they were made."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.loader import load_config
from game_rl.config.proposal import propose, with_values
from game_rl.config.schema import RunConfig

Values = dict[tuple[str, ...], int | None]

CONFIGS = Path(__file__).parents[2] / "configs"
VALUES: Values = {("env", "n_envs"): 32, ("algorithm", "n_steps"): 32}


def patched(text: str, diff: list[str]) -> str:
    """What `patch` makes of the text: hunk by hunk, checking each line that it takes away."""
    old, new, at = text.split("\n"), [], 0
    for line in diff[2:]:
        if hunk := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            start = int(hunk[1]) - (hunk[2] != "0")
            new += old[at:start]
            at = start
        elif line.startswith(("-", " ")):
            assert old[at].rstrip("\r") == line[1:]
            new += [old[at]] if line.startswith(" ") else []
            at += 1
        elif line.startswith("+"):
            new.append(line[1:])
    return "\n".join(new + old[at:])


def changed(config: RunConfig, n_envs: int, n_workers: int | None, n_steps: int) -> RunConfig:
    env = config.env.model_copy(update={"n_envs": n_envs, "n_workers": n_workers})
    algorithm = config.algorithm.model_copy(update={"n_steps": n_steps})
    return config.model_copy(update={"env": env, "algorithm": algorithm})


def test_the_diff_of_our_own_config_changes_its_two_lines() -> None:
    path = CONFIGS / "duel_ppo.yaml"
    diff = propose(path, VALUES, changed(load_config(path), 32, None, 32))
    assert diff is not None
    assert diff[:2] == [f"--- {path}", f"+++ {path}"]
    signed = [line for line in diff[2:] if line.startswith(("+", "-"))]
    assert signed[:2] == ["-  n_envs: 16", "+  n_envs: 32"]
    steps = [line.partition("  #")[0] for line in signed[2:]]
    assert steps == ["-  n_steps: 64", "+  n_steps: 32"]


heads = st.sampled_from(
    ["game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/x\n", "# mine\n\ngame: 'duel'\n"
     "run_dir: runs/x  # here\ntotal_timesteps: 400000\n"]
)  # fmt: skip
sections = st.lists(
    st.sampled_from(
        [
            "env: {n_envs: 8}",
            "env:\n  n_envs: 8  # eight",
            "env:\n    frame_skip: 4\n    # how many\n    n_envs: 8\n",
            "env:\n  observation:\n    size: half\n  n_workers: 1",
            "env: {}",
            "algorithm:\n  n_steps: 256\n  batch_size: 64",
            "algorithm: {name: ppo, n_steps: 0x100, batch_size: 64}",
            "algorithm:\n  batch_size: 64",
            "evaluation: {episodes: 3}",
        ]
    ),
    unique_by=lambda section: section.partition(":")[0],
)


@given(
    head=heads, sections=sections, end=st.sampled_from(["", "\n"]), n_workers=st.none() | st.just(2)
)
def test_a_patched_file_is_the_proposed_config(
    head: str,
    sections: list[str],
    end: str,
    n_workers: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("config") / "run.yaml"
    path.write_text(head + "\n".join(sections) + end, encoding="utf-8")
    config = load_config(path)
    wanted = changed(config, config.env.n_envs * 2, n_workers, config.algorithm.n_steps // 2)
    values: Values = {
        ("env", "n_envs"): wanted.env.n_envs,
        ("env", "n_workers"): n_workers,
        ("algorithm", "n_steps"): wanted.algorithm.n_steps,
    }
    diff = propose(path, values, wanted)
    assert diff is not None
    path.write_text(patched(path.read_text(encoding="utf-8"), diff), encoding="utf-8")
    assert load_config(path) == wanted


def test_overrides_of_other_keys_apply_to_the_changed_file_too(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        "game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/x\nenv: {n_envs: 8}\n",
        encoding="utf-8",
    )
    overrides = ["algorithm.batch_size=128", "env.n_envs=4"]
    wanted = changed(load_config(path, overrides), 16, None, 2048)
    diff = propose(path, {("env", "n_envs"): 16}, wanted, overrides)
    assert diff is not None
    assert "+env: {n_envs: 16}" in diff


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ("env: {n_envs: &n 8}\nevaluation: {n_envs: *n}\n", []),
        ("env: {n_envs: 8}\n", ["env={n_envs: 4}"]),
        ("env: {n_envs: 8}\n...\n", []),
    ],
    ids=["an alias of the value", "an override of the section", "an end of the document"],
)
def test_what_cannot_be_changed_in_place_has_no_diff(
    text: str, overrides: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        f"game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/x\n{text}", encoding="utf-8"
    )
    wanted = changed(load_config(path, overrides), 16, None, 1024)
    values: Values = {("env", "n_envs"): 16, ("algorithm", "n_steps"): 1024}
    assert propose(path, values, wanted, overrides) is None


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
