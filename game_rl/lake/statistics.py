"""Statistics of a Lake's contents."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from game_rl.lake.lake import Lake
from game_rl.lake.schema import LakeSchema
from game_rl.lake.segment import OPEN, SEALED, SHELVED
from game_rl.lake.view import LakeView


@dataclass(frozen=True)
class StreamStatistics:
    """Statistics of one stream.

    Attributes:
        versions: lowest and highest version of the policies that acted.
        n_episodes: episodes that the Lake has from their first frame to their end. The means are
            over these, and None if there are none.
    """

    stream: str
    n_envs: int
    n_transitions: int
    versions: tuple[int, int]
    n_episodes: int
    mean_return: float | None
    mean_length: float | None


@dataclass(frozen=True)
class LakeStatistics:
    """Statistics of a whole Lake.

    Attributes:
        observation: description of an observation for people.
        n_bytes: size of all segments on disk.
        bytes_per_transition: of the sealed segments; None if they are empty.
        raw_bytes_per_transition: size in SB3's ReplayBuffer, with stacks and next stacks.
        ratio: raw_bytes_per_transition divided by bytes_per_transition.
    """

    observation: str
    n_transitions: int
    n_bytes: int
    bytes_per_transition: float | None
    raw_bytes_per_transition: int
    ratio: float | None
    n_segments: int
    n_shelved: int
    n_open: int
    pins: list[str]
    streams: list[StreamStatistics]


def raw_bytes(schema: LakeSchema) -> int:
    """Return the bytes that SB3's ReplayBuffer takes for a transition.

    It stores two stacks, an action, a reward, a done and a timeout.
    """
    action = max(1, prod(schema.action_shape))
    is_kept_as_is = schema.arrays is not None or schema.action_dtype == "float32"
    kind = np.dtype(schema.action_dtype if is_kept_as_is else np.int64)
    return 2 * prod(schema.observation_shape) + action * kind.itemsize + 3 * 4


def statistics(lake: Lake) -> LakeStatistics:
    """Return the statistics of a Lake, for which the columns of every sealed block are read.

    Raises:
        LakeError: a segment is damaged.
    """
    view = lake.view()
    sealed = sum(segment.n_bytes for segment in view.segments)
    each = sealed / len(view) if len(view) else None
    raw = raw_bytes(lake.schema)
    return LakeStatistics(
        observation=lake.schema.description,
        n_transitions=len(view),
        n_bytes=lake.n_bytes(),
        bytes_per_transition=each,
        raw_bytes_per_transition=raw,
        ratio=raw / each if each else None,
        n_segments=len(lake.files(SEALED)),
        n_shelved=len(lake.files(SHELVED)),
        n_open=len(lake.files(OPEN)),
        pins=sorted(pin.stem for pin in (lake.path / "pins").glob("*.json")),
        streams=_streams(view),
    )


def _streams(view: LakeView) -> list[StreamStatistics]:
    streams = view.block_sequences >> 32
    return [
        _stream(view, name, np.flatnonzero(streams == rank))
        for rank, name in enumerate(view.streams)
    ]


def _stream(view: LakeView, name: str, numbers: Any) -> StreamStatistics:  # noqa: ANN401
    heads = view.heads[numbers]
    returns, lengths = _episodes(view, numbers.tolist())
    return StreamStatistics(
        stream=name,
        n_envs=len(np.unique(heads["env"])),
        n_transitions=int(view.n_transitions[numbers].sum()),
        versions=(int(heads["first_version"].min()), int(heads["last_version"].max())),
        n_episodes=len(returns),
        mean_return=float(np.mean(returns)) if returns else None,
        mean_length=float(np.mean(lengths)) if lengths else None,
    )


def _episodes(view: LakeView, numbers: list[int]) -> tuple[list[float], list[int]]:
    """Returns and lengths of the episodes that are whole in these blocks of a stream."""
    returns: list[float] = []
    lengths: list[int] = []
    total, length, is_whole = 0.0, 0, False
    for number in numbers:
        columns = view.columns(number)
        if number == 0 or not view.continued[number - 1]:
            is_whole = False
        for row in columns.rows.tolist():
            if columns.is_first[row]:
                total, length, is_whole = 0.0, 0, True
            total += float(columns.rewards[row])
            length += 1
            if columns.ended[row] and is_whole:
                returns.append(total)
                lengths.append(length)
    return returns, lengths
