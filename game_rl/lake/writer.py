"""The writer with which a training appends to a Lake: timesteps to blocks, in a thread."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from game_rl.envs.observation import Observation, rows_of
from game_rl.errors import LakeError
from game_rl.lake.block import FIRST, JUMP, TERMINATED, TRANSITION, TRUNCATED, Block, Columns
from game_rl.lake.lake import Lake
from game_rl.lake.lake_schema import LakeSchema
from game_rl.lake.sampler import observation_format_of
from game_rl.lake.segment_sink import OnFull, SegmentSink

Frames = NDArray[np.uint8]


class LakeWriter(AbstractContextManager["LakeWriter"]):
    """The writer of one stream: packs frames, and compresses and writes them in a thread.

    Readers see sealed data: whole blocks every `segment_bytes` or `segment_transitions`, and
    everything after `seal`. At most two blocks an env wait for the thread: then `append` blocks. No
    other writer may write this stream.

    Args:
        seal_every_transitions: transitions of all envs after which the thread seals, while `append`
            does not wait.
        tell: is called from the thread with a sentence when the disk is full and when it no longer
            is.
        close_timeout_s: seconds after which `close` gives up on the thread.
        firsts: number of the first transition of each env in a new stream; 0 for envs without an
            entry.

    Raises:
        LakeError: from any method, for an error in the thread. Data that was sealed is safe.
    """

    def __init__(
        self,
        lake: Lake,
        stream: str,
        *,
        n_envs: int,
        segment_bytes: int = 32 << 20,
        segment_transitions: int | None = None,
        seal_every_transitions: int | None = None,
        on_full: OnFull = "pause",
        tell: Callable[[str], None] = lambda _: None,
        close_timeout_s: float = 60,
        firsts: Mapping[int, int] | None = None,
    ) -> None:
        _check_that_frames_fit(lake)
        self._format = observation_format_of(lake.schema)
        self._stream = stream
        self._seal_every_transitions = seal_every_transitions or 2**62
        self._n_unsealed = 0
        self._close_timeout_s = close_timeout_s
        self._sink = SegmentSink(
            lake,
            stream,
            segment_bytes=segment_bytes,
            segment_transitions=segment_transitions,
            on_full=on_full,
            tell=tell,
        )
        try:
            self._builders = _new_builders(lake, stream, n_envs, firsts or {})
        except BaseException:
            self._sink.close()
            raise
        self._waiting: queue.Queue[Block | _Order] = queue.Queue(2 * n_envs)
        self._error: BaseException | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=f"lake {stream}", daemon=True)
        self._thread.start()

    def append(
        self,
        *,
        frames: Observation,
        actions: NDArray[np.generic],
        rewards: NDArray[np.generic],
        next_frames: Observation,
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        observations: Observation | None = None,
        version: int = 0,
        jumps: NDArray[np.bool_] | bool = False,
    ) -> None:
        """Append one timestep of every env, and begin the episodes that are not under way.

        Args as in `Transitions`, but:
            frames, next_frames: rows, uint8 [n_envs, row_bytes], or frames as the format's `pack`
                takes them.
            actions: [n_envs, *action_shape].
            observations: an episode that began before, without the writer, goes on from its stack.
                If None, there is no such episode.
            version: version of the policy that acted, counted in updates.
            jumps: where an episode ended and its last observation is not known; samples give the
                next episode's first one instead.

        Raises:
            ValueError: a frame has a value that the packing cannot hold; nothing is stored.
        """
        self._check()
        packed = self._packed(next_frames)
        self._begin(frames, observations)
        endings = TERMINATED * terminated | TRUNCATED * truncated | JUMP * jumps
        steps = zip(self._builders, actions, rewards, endings.tolist(), packed, strict=True)
        for builder, action, reward, ending, frame in steps:
            step = builder.add(
                action, float(reward), ending=ending, next_frame=frame, version=version
            )
            self._put(step)
        self._seal_in_time()

    def leave_gap(self) -> None:
        """Record that the next rows of every env do not follow from what the stream has.

        Episodes that did not end are abandoned, and no n-step return crosses that point.
        """
        self._check()
        for builder in self._builders:
            self._put(builder.leave_gap())

    # ------------------------------------------------------------------ state

    @property
    def next_transitions(self) -> list[int]:
        """Number of each env's next transition."""
        return [builder.next_transition for builder in self._builders]

    @property
    def is_paused(self) -> bool:
        """Whether transitions are being dropped because the disk is full."""
        return self._sink.is_paused

    @property
    def n_dropped(self) -> int:
        """Number of transitions that were dropped because the disk was full."""
        return self._sink.n_dropped

    def seal(self) -> bool:
        """Make everything appended durable and visible to readers; False if the disk is full."""
        self._check()
        order = self._order_seal()
        order.done.wait()
        self._check()
        return order.result

    def close(self) -> None:
        """Seal and end the thread; returns or raises after `close_timeout_s` at the latest."""
        if self._is_closed:
            return
        self._is_closed = True
        deadline = time.monotonic() + self._close_timeout_s
        items = [builder.cut() for builder in self._builders]
        try:
            for item in (*items, _Order(self._sink.close, is_last=True)):
                if item is not None:
                    self._waiting.put(item, timeout=max(0, deadline - time.monotonic()))
        except queue.Full:
            raise self._hangs() from None
        self._thread.join(max(0, deadline - time.monotonic()))
        if self._thread.is_alive():
            raise self._hangs()
        self._raise_error()

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        """Take everything from the queue, even after an error, so that no caller waits forever."""
        is_last = False
        while not is_last:
            item = self._waiting.get()
            is_last = isinstance(item, _Order) and item.is_last
            try:
                if self._error is None or is_last:
                    item.run() if isinstance(item, _Order) else self._sink.put(item)
            except BaseException as error:  # noqa: BLE001 - raised at the next call
                self._error = self._error or error
            finally:
                self._waiting.task_done()
                if isinstance(item, _Order):
                    item.done.set()

    def _begin(self, frames: Observation, observations: Observation | None) -> None:
        """Begin the episodes that are not under way, first those that have frames before."""
        idle = [env for env, builder in enumerate(self._builders) if not builder.is_underway]
        if not idle:
            return
        late: list[int] = []
        if observations is not None:
            found, stacks = self._format.pack_underway(observations, np.array(idle))
            late = found.tolist()
            for env, stack in zip(late, stacks, strict=True):
                self._put(self._builders[env].begin(stack, 0))
        fresh = [env for env in idle if env not in late]
        if fresh:
            for env, frame in zip(fresh, self._packed(rows_of(frames, fresh)), strict=True):
                self._put(self._builders[env].begin(frame[None], FIRST))

    def _seal_in_time(self) -> None:
        """After a vec step, order a seal if it is due."""
        self._n_unsealed += len(self._builders)
        if self._n_unsealed >= self._seal_every_transitions:
            self._order_seal()

    def _order_seal(self) -> "_Order":
        self._n_unsealed = 0
        for builder in self._builders:
            self._put(builder.cut())
        order = _Order(self._sink.seal)
        self._put(order)
        return order

    def _put(self, item: "Block | _Order | None") -> None:
        if item is not None:
            self._waiting.put(item)

    def _hangs(self) -> LakeError:
        return LakeError(
            f"the Lake's writer {self._stream} did not finish in {self._close_timeout_s:g} s: the "
            "disk does not respond; data that was not sealed is recovered at the next start"
        )

    def _packed(self, frames: Observation) -> Frames:
        if isinstance(frames, Mapping) or frames.ndim != 2:
            return self._format.pack(frames)
        return frames

    def _check(self) -> None:
        if self._is_closed:
            raise LakeError(f"the Lake's writer {self._stream} is closed; make a new one")
        self._raise_error()

    def _raise_error(self) -> None:
        if isinstance(self._error, Exception):
            raise LakeError(
                f"the Lake's writer {self._stream} failed: {self._error}; what was sealed is safe"
            ) from self._error
        if self._error is not None:
            raise self._error


def _check_that_frames_fit(lake: Lake) -> None:
    if lake.schema.arrays is not None:
        raise LakeError(
            f"{lake.path} has {lake.schema.description}, to which no frames can be appended; "
            "name another folder"
        )


class _BlockBuilder:
    """Collects the rows of an env until a block is full; the module `block` explains rows.

    Attributes:
        is_underway: whether an episode has begun and not ended.
    """

    def __init__(self, schema: LakeSchema, *, env: int, first: int) -> None:
        self._schema = schema
        self._env = env
        self._first = first
        self.is_underway = False
        self._restart()

    @property
    def next_transition(self) -> int:
        """Number of the transition that comes next."""
        return self._first + self._n_transitions

    @property
    def _n_transitions(self) -> int:
        return int(np.count_nonzero(self._flags[: self._n] & TRANSITION))

    def begin(self, frames: Frames, flags: int) -> Block | None:
        """Begin an episode with its first frame, or go on with its newest stack.

        Args:
            frames: packed, the oldest first.
            flags: FIRST for a first frame, 0 for a stack.

        Returns:
            The block before, if this needs a new one.
        """
        is_full = self._n + 2 > self._schema.block_frames
        block = None if flags & FIRST and not is_full else self.cut()
        for frame in frames:
            self._add_row(frame, flags)
        self.is_underway = True
        return block

    def leave_gap(self) -> Block | None:
        """Abandon an episode that did not end; returns the started block if it has a transition."""
        block = self.cut()
        self.is_underway = False
        self._restart()
        self._first += 1  # a gap: the next transition does not follow from the last one
        return block

    def add(
        self,
        action: NDArray[np.generic],
        reward: float,
        *,
        ending: int,
        next_frame: Frames,
        version: int,
    ) -> Block | None:
        """Add a timestep and the frame that it led to; returns the block if it is full now.

        Args:
            ending: the flags TERMINATED, TRUNCATED and JUMP, or 0.
        """
        row = self._n - 1
        self._flags[row] |= TRANSITION | ending
        self._actions[row] = action
        self._rewards[row] = reward
        self._versions[row] = version
        self.is_underway = not ending & (TERMINATED | TRUNCATED)
        self._add_row(next_frame, 0)
        return self.cut() if self._n == self._schema.block_frames else None

    def cut(self) -> Block | None:
        """Return the rows so far as a block if they have a transition; the episode goes on."""
        n = self._n
        n_transitions = self._n_transitions
        if n_transitions == 0:
            return None
        columns = Columns(self._flags[:n], self._actions[:n], self._rewards[:n], self._versions[:n])
        block = Block(env=self._env, first=self._first, columns=columns, frames=self._frames[:n])
        context = self._context()
        self._first += n_transitions
        self._restart()
        for frame in context:
            self._add_row(frame, 0)
        return block

    def _context(self) -> Frames:
        """Return the newest frame and those that its stack needs."""
        if not self.is_underway:
            return self._frames[:0]
        firsts = np.flatnonzero(self._flags[: self._n] & FIRST)
        episode = int(firsts[-1]) if len(firsts) else 0
        return self._frames[max(episode, self._n - self._schema.context_rows) : self._n]

    def _restart(self) -> None:
        """Allocate new arrays, because the old ones belong to the block that was cut."""
        schema = self._schema
        n = self._schema.block_frames
        self._n = 0
        self._frames = np.empty((n, schema.packing.nbytes), np.uint8)
        self._flags = np.zeros(n, np.uint8)
        self._actions = np.zeros((n, *schema.action_shape), schema.action_dtype)
        self._rewards = np.zeros(n, np.float32)
        self._versions = np.zeros(n, np.uint32)

    def _add_row(self, frame: Frames, flags: int) -> None:
        self._frames[self._n] = frame
        self._flags[self._n] = flags
        self._n += 1


def _new_builders(
    lake: Lake, stream: str, n_envs: int, firsts: Mapping[int, int]
) -> list[_BlockBuilder]:
    """Make a builder for each env that continues the numbers of the stream."""
    ends = lake.view().sequences
    return [
        _BlockBuilder(lake.schema, env=env, first=ends.get(f"{stream}/{env}", firsts.get(env, 0)))
        for env in range(n_envs)
    ]


class _Order:
    """A task for the thread to do between blocks."""

    def __init__(self, run: Callable[[], bool], *, is_last: bool = False) -> None:
        self._run = run
        self.is_last = is_last
        self.done = threading.Event()
        self.result = False

    def run(self) -> None:
        self.result = self._run()
