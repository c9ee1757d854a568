"""Comparison of a live mixture that was killed with one that was not.

Members do not depend on the learner, so they are bit for bit the same in both. The learner's
weights depend on timing, but its accounts must be right.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from game_rl.checkpoints.checkpoint import Checkpoint
from game_rl.experiments.experiment_dir import ExperimentDir
from game_rl.experiments.records import GenerationRecord, read_record
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from tests.faults.mixture_files import LIVE_BATCH, LIVE_OWN, LIVE_TIMESTEPS


def live_differences(folder: Path, whole: Path) -> list[str]:
    """Return what was lost, counted twice, or drawn in a wrong proportion."""
    here, there = ExperimentDir(folder), ExperimentDir(whole)
    return [*_of_members(here, there), *_of_rows(here, there), *wrong_books(here)]


def _of_members(here: ExperimentDir, there: ExperimentDir) -> Iterator[str]:
    ours, theirs = (read_record(d.generation(1).record, GenerationRecord) for d in (here, there))
    assert ours is not None
    assert theirs is not None
    for mine, other in zip(ours.members[:-1], theirs.members[:-1], strict=True):
        if mine != other:
            yield f"member {mine.folder} is not the one that was left alone"


def _of_rows(here: ExperimentDir, there: ExperimentDir) -> Iterator[str]:
    ours, theirs = (_rows(Lake.open(d.lake)) for d in (here, there))
    for name, values in theirs.items():
        if not np.array_equal(ours[name], values):
            yield f"the Lake's {name} are not those that were played without a kill"


def _rows(lake: Lake) -> dict[str, Any]:
    """Return every row, in the order of members, envs and numbers, for comparison."""
    view = lake.view()
    batch = Sampler(view, n_step=1, gamma=1.0).take(np.arange(len(view)))
    return {
        "streams": batch.streams,
        "envs": batch.envs,
        "numbers": batch.numbers,
        "actions": batch.actions,
        "rewards": batch.rewards,
        "frames": batch.stacks,
        "ends": list(view.sequences.values()),
    }


def wrong_books(here: ExperimentDir) -> Iterator[str]:
    """Yield the claims in the learner's accounts that cannot be true."""
    run_dir, lake = here.member("learner"), Lake.open(here.lake)
    checkpoint = Checkpoint(run_dir.checkpoints_newest_first()[0])
    books: Any = checkpoint.play().algorithm["learn_from"]
    if checkpoint.state.num_timesteps != LIVE_TIMESTEPS:
        yield f"the learner has played {checkpoint.state.num_timesteps} timesteps"
    steps = checkpoint.state.n_updates
    drawn = books["n_own"], sum(books["n_of_streams"].values())
    asked = steps * LIVE_OWN, steps * (LIVE_BATCH - LIVE_OWN)
    if drawn != asked:
        yield f"{drawn} rows were drawn, own and others', and {asked} were asked for"
    ends = lake.view().sequences
    beyond = [name for name, end in books["followed"].items() if end > ends.get(name, 0)]
    if beyond or not books["followed"]:
        yield f"the learner followed rows that nobody has played: {beyond}"
    if left := list(lake.path.glob("pins/*.following.json")):
        yield f"left behind: {left}"
