"""What a fork takes: of its own what it plays, and of its parent's files each once."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.errors import UsageError
from game_rl.preflight.facts import ForkFacts, fork_facts
from game_rl.preflight.footprint import estimate
from game_rl.preflight.workload import training_arithmetic
from tests.preflight.conftest import FACTS, make_config


def parent(root: Path) -> Path:
    checkpoint = root / "checkpoints" / f"{4096:012d}"
    checkpoint.mkdir(parents=True)
    (checkpoint / "policy.safetensors").write_bytes(bytes(1_000))
    (checkpoint / "manifest.json").write_bytes(bytes(10))
    (root / "tensorboard").mkdir()
    (root / "tensorboard" / "events.out.tfevents.1").write_bytes(bytes(300))
    (root / "eval.csv").write_bytes(bytes(40))
    return root


def test_files_that_are_linked_are_counted_once_and_copies_are_counted(tmp_path: Path) -> None:
    root = parent(tmp_path / "parent")
    config = make_config(run_dir=tmp_path / "fork", fork={"run": f"{root}@4096"})
    found = fork_facts(config)
    assert found == ForkFacts(began_at=4096, copied_bytes=340, shared_bytes=1_010, is_linked=True)
    for is_linked, shared in ((True, 0), (False, 1_010)):
        facts = replace(FACTS, fork=replace(found, is_linked=is_linked))
        parts = estimate(config, facts).disk.parts
        assert [part.bytes for part in parts[-2:]] == [340, shared]


def test_a_fork_that_counts_anew_takes_no_curves_and_plays_all_of_it(tmp_path: Path) -> None:
    root = parent(tmp_path / "parent")
    config = make_config(run_dir=tmp_path / "fork", fork={"run": str(root), "counters": "new"})
    found = fork_facts(config)
    assert found is not None
    assert (found.began_at, found.copied_bytes) == (0, 0)


def test_a_checkpoint_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    root = parent(tmp_path / "parent")
    with pytest.raises(UsageError, match="at timestep 7; it has: 4,096"):
        fork_facts(make_config(fork={"run": f"{root}@7"}))


@given(st.integers(0, 30), st.integers(1, 40), st.integers(1, 9_000))
def test_a_fork_does_what_its_parent_would_have_done_from_there(
    before: int, own: int, every: int
) -> None:
    """Against a loop that takes one update after the other."""
    rollout = make_config().rollout_timesteps
    every = max(every, rollout)
    total = (before + own) * rollout
    config = make_config(total_timesteps=total, checkpoints={"every_timesteps": every})
    found = training_arithmetic(config, began_at=before * rollout)
    at = [n * rollout for n in range(before + 1, before + own + 1)]
    saved = {n for n in at if n // every > (n - rollout) // every} | {at[-1]}
    assert (found.updates, found.checkpoints) == (own, len(saved))
    assert found.played_timesteps == own * rollout
    assert found.frames == own * rollout * config.env.frame_skip
