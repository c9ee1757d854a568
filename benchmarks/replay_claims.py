"""Sampling against SB3, and the Lake's costs as it grows: `benchmarks.replay --claims`.

A Lake of millions is made of one play: its segments are linked under the names of other streams.
So what is read is in the page cache more often than it would be.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.replay_measures import sample_s, stamps, with_peak
from benchmarks.replay_stores import PondStore, Sb3Store
from benchmarks.replay_trace import Trace
from game_rl.buffers.layout import pond_layout, total_bytes
from game_rl.lake.lake import Lake
from game_rl.lake.sampler import Sampler
from game_rl.lake.schema import LakeSchema
from game_rl.lake.segment import SEALED
from game_rl.lake.segment_names import SegmentName
from game_rl.lake.writer import LakeWriter
from game_rl.system.process_memory import resident_bytes

SIZES = (10_000, 100_000, 1_000_000)
LARGEST = 10_000_000
_NEW = 2_000  # transitions between two checkpoints
_MIB = 2**20


def print_claims(trace: Trace, folder: Path) -> None:
    pond_bytes = _pond_bytes(trace)
    raw = 2 * int(np.prod(trace.stack_shape))
    print(f"Pond: {pond_bytes:,.0f} bytes a transition, not compressed; raw stacks {raw:,}")
    base = Lake.create(folder / "lake", LakeSchema(trace.packing, frame_stack=trace.frame_stack))
    stalls = append_stalls(base, trace)
    each = base.n_bytes() / len(trace)
    print(
        f"Lake: {each:,.0f} bytes a transition; 1,000,000 would take {each:,.0f} MB "
        f"(extrapolated from {len(trace):,})"
    )
    p99, most = 1e3 * np.quantile(stalls, 0.99), 1e3 * max(stalls)
    print(f"append of {trace.n_envs} envs: p99 {p99:.2f} ms, most {most:.1f} ms (aim: p99 100 ms)")
    print(f"refill: {refill_speed(base):,.0f} frames/s into a ring (aim: 50,000)")
    for size in SIZES:
        large = linked(base, folder / f"lake-{size}", size)
        extra, written, new = checkpoint_cost(large, trace)
        print(
            f"checkpoint of {size:>9,}: {extra / _MIB:.1f} MiB extra memory (aim: 64), writes "
            f"{written / _MIB:.2f} MiB beside {new / _MIB:.2f} MiB of new transitions (aim: 1)"
        )
    print_opening(linked(base, folder / "largest", LARGEST))
    print_sampling(trace, folder)  # last: it leaves much memory behind


def print_sampling(trace: Trace, folder: Path, *, rounds: int = 7) -> None:
    """In one process and in turns, so that a slow moment of the machine hits both."""
    ours, theirs = PondStore(trace, folder), Sb3Store(trace, folder)
    for step in trace.vec_steps():
        ours.add(step)
        theirs.add(step)
    for size in (32, 256):
        pairs = [(sample_s(ours, size), sample_s(theirs, size)) for _ in range(rounds)]
        ratios = [b / a for a, b in pairs]
        mine, sb3 = (1e3 * median(times) for times in zip(*pairs, strict=True))
        print(
            f"Pond, batch {size}: {mine:.2f} ms, SB3's raw buffer {sb3:.2f} ms, "
            f"{median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f}) times as fast (aim: 1)"
        )


def _pond_bytes(trace: Trace) -> float:
    capacity = 1_000_000
    layout = pond_layout(
        capacity=capacity,
        n_envs=trace.n_envs,
        frame_bytes=trace.packing.nbytes,
        frame_stack=trace.frame_stack,
        n_actions=trace.n_actions,
    )
    return total_bytes(layout) / capacity


def append_stalls(lake: Lake, trace: Trace) -> list[float]:
    """Fill it as fast as it takes the play; seconds of each append."""
    with LakeWriter(lake, "base", n_envs=trace.n_envs) as writer:
        return list(_appended(writer, trace, trace.n_vec_steps))


def _appended(writer: LakeWriter, trace: Trace, n_vec_steps: int) -> Iterator[float]:
    channels = trace.packing.shape[0]
    idle = list(range(trace.n_envs))
    for _, step in zip(range(n_vec_steps), trace.vec_steps(), strict=False):
        began = time.perf_counter()
        if idle:
            writer.begin(step.observations[idle, -channels:], idle)
        writer.append(
            actions=step.actions,
            rewards=step.rewards,
            terminated=step.terminated,
            truncated=step.truncated,
            next_frames=step.next_observations[:, -channels:],
        )
        idle = np.flatnonzero(step.terminated | step.truncated).tolist()
        yield time.perf_counter() - began


def refill_speed(lake: Lake) -> float:
    """Frames a second, checked, decompressed and copied in order, in the median of three times."""
    view = lake.view()
    ring = np.zeros((4096, lake.schema.packing.nbytes), np.uint8)
    rounds = []
    for _ in range(3):
        n, place = 0, 0
        began = time.perf_counter()
        for block in map(view.block, range(len(view.heads))):
            rows = len(block.frames)
            place = place if place + rows <= len(ring) else 0
            ring[place : place + rows] = block.frames
            n, place = n + rows, place + rows
        rounds.append(n / (time.perf_counter() - began))
    return median(rounds)


def linked(base: Lake, path: Path, n_transitions: int) -> Lake:
    """A Lake with the base's segments under new stream names until it has so many."""
    lake = Lake.create(path, base.schema)
    view = base.view()
    for copy in range(max(1, round(n_transitions / len(view)))):
        for segment in view.segments:
            name = SegmentName.of(segment.path)
            new = SegmentName(f"copy{copy}", name.first, name.last).new(SEALED)
            os.link(segment.path, path / new)
    return lake


def checkpoint_cost(lake: Lake, trace: Trace) -> tuple[int, int, int]:
    """Extra memory, bytes written beside the new transitions, and bytes of those."""
    writer = LakeWriter(lake, "new", n_envs=trace.n_envs)
    lake.pin("before")
    before = stamps(lake.path)
    for _ in _appended(writer, trace, max(1, min(_NEW // trace.n_envs, trace.n_vec_steps))):
        pass

    def save() -> None:
        writer.seal()
        lake.pin("after")

    extra = with_peak(save)[1]
    written = {p: s for p, s in stamps(lake.path).items() if before.get(p) != s}
    new = sum(stamp[0] for path, stamp in written.items() if path.suffix == SEALED)
    writer.close()
    return extra, sum(stamp[0] for stamp in written.values()) - new, new


def print_opening(lake: Lake) -> None:
    before = resident_bytes(os.getpid())[0]
    began = time.perf_counter()
    view = Lake.open(lake.path).view()
    sampler = Sampler(view, gamma=0.99)
    opened = time.perf_counter() - began
    rng = np.random.default_rng(0)
    sampler.sample(rng, 32)
    memory = []
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(40):
            sampler.sample(rng, 32)
        seconds.append((time.perf_counter() - began) / 40)
        memory.append((resident_bytes(os.getpid())[0] - before) / _MIB)
    print(
        f"{len(view):,} transitions in {len(view.segments):,} segments: opened in {opened:.2f} s "
        f"(aim: 2), a batch of 32 in {1e3 * median(seconds):.1f} ms; memory over that before, MiB, "
        f"after each 1,280 samples: " + ", ".join(f"{m:.0f}" for m in memory)
    )
