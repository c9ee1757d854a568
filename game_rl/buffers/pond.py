"""The Pond: rings of single packed frames, from which stacks and n-step returns are drawn."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from game_rl.buffers.array_file import row_pieces
from game_rl.buffers.layout import Transitions, pond_layout
from game_rl.buffers.replay_store import (
    GOES_ON,
    LAST_FRAME,
    TERMINATED,
    TRUNCATED,
    ReplayBatch,
    Slots,
)
from game_rl.buffers.unpacking import Tensors, unpack_observations
from game_rl.envs.observation import Observation, ObservationFormat
from game_rl.errors import CheckpointError
from game_rl.returns import LearnedRewards, discounted_sums
from game_rl.vec_env.frame_stacks import each_part

_Numbers = NDArray[np.int64]


class Pond:
    """The newest timesteps of some envs, in RAM or in the memory of a GPU.

    Each env has a stream of its own, with N + 1 frames for an episode of N timesteps. So the frame
    after the last timestep is stored whether the game was over or the episode was cut off. Streams
    are rings: the slot of a frame is its number in the stream modulo the number of slots. An
    episode's last frame takes the place of one timestep of the `capacity`.

    Args:
        capacity: timesteps of all envs together, divided equally among the envs.
        observation_format: of the observations that are drawn.
        device: device of the frames; the small arrays are always in RAM.
        rng: draws the samples; its state is part of `state_dict`.

    Attributes:
        n_appended: timesteps of all envs together that were ever appended.
        mean_age: about how many timesteps of all envs came after those of the last sample, on
            average.
    """

    def __init__(
        self,
        *,
        capacity: int,
        n_envs: int,
        n_actions: int,
        observation_format: ObservationFormat,
        device: torch.device | str = "cpu",
        rng: np.random.Generator,
    ) -> None:
        self.observation_format = observation_format
        self._rng = rng
        self._frame_stack = observation_format.stack
        self._device = torch.device(device)
        self._per_env = capacity // n_envs
        if self._per_env < 2:
            raise ValueError(f"a capacity of {capacity} is less than 2 for each of {n_envs} envs")
        frames, *small = pond_layout(
            observation_format, capacity=capacity, n_envs=n_envs, n_actions=n_actions
        )
        self._n_slots = frames.shape[0]
        # np.zeros takes memory only when it is written to, torch.zeros at once
        self._frames = (
            torch.from_numpy(np.zeros(frames.shape, frames.dtype))
            if self._device.type == "cpu"
            else torch.zeros(frames.shape, dtype=torch.uint8, device=self._device)
        )
        self._small = {array.name: np.zeros(array.shape, array.dtype) for array in small}
        self._envs = np.arange(n_envs)
        self._heads = np.zeros(n_envs, np.int64)
        """Number of the frame that has no action yet, for each stream."""
        self._is_open = np.zeros(n_envs, np.bool_)
        """Whether that frame is already stored: the one that followed the last timestep."""
        self._was_loaded = False
        self.n_appended = 0
        self.mean_age = 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self._frames.nbytes + sum(array.nbytes for array in self._small.values())

    def __len__(self) -> int:
        """Timesteps that can be drawn."""
        return len(self.held()[0])

    def append(self, step: Transitions) -> None:
        """Store one vec step.

        Raises:
            ValueError: a frame has a value that the packing cannot hold.
        """
        observations, frames, actions, rewards, next_frames, terminated, truncated = step
        envs = self._envs
        if self._was_loaded:
            self._cut_where_it_does_not_go_on(frames)
        if not self._is_open.all():
            self._open(np.flatnonzero(~self._is_open), observations, frames)
        self._put("actions", envs, actions)
        self._put("rewards", envs, rewards)
        endings = np.where(terminated, TERMINATED, np.where(truncated, TRUNCATED, GOES_ON))
        self._put("endings", envs, endings)
        ages = np.minimum(self._at("ages", envs, self._heads) + 1, self._frame_stack - 1)
        self._heads += 1
        self._put_frames(envs, next_frames, ages)
        self._close(np.flatnonzero(endings))
        self.n_appended += len(envs)

    def sample(
        self,
        batch_size: int,
        *,
        n_step: int = 1,
        gamma: float,
        device: torch.device | str = "cpu",
        learned: LearnedRewards | None = None,
    ) -> ReplayBatch:
        """Draw stored timesteps uniformly, with replacement; see `batch`."""
        envs, numbers = self._draw(batch_size)
        self.mean_age = float((self._heads[envs] - numbers).mean() * len(self._envs))
        return self.batch(envs, numbers, n_step=n_step, gamma=gamma, device=device, learned=learned)

    def batch(
        self,
        envs: _Numbers,
        numbers: _Numbers,
        *,
        n_step: int,
        gamma: float,
        device: torch.device | str,
        learned: LearnedRewards | None = None,
    ) -> ReplayBatch:
        """Return the timesteps with these numbers in these envs' streams.

        An n-step return ends with its episode or with the stream. The formulas are those of SB3's
        NStepReplayBuffer, in float32.

        Args:
            learned: is applied to each timestep's reward, before they are summed.
        """
        rewards, steps, terminated = self._returns(
            envs, numbers, n_step=n_step, gamma=gamma, learned=learned
        )
        stacks, next_stacks = self._both_stacks(envs, numbers, steps, device)
        return ReplayBatch(
            stacks,
            column(self._at("actions", envs, numbers).astype(np.int64), device),
            column(rewards, device),
            next_stacks,
            column(terminated.astype(np.float32), device),
            column(gamma ** steps.astype(np.float32), device),
        )

    def _returns(
        self,
        envs: _Numbers,
        numbers: _Numbers,
        *,
        n_step: int,
        gamma: float,
        learned: LearnedRewards | None,
    ) -> tuple[NDArray[np.float32], _Numbers, NDArray[np.bool_]]:
        """Return discounted sums, their numbers of timesteps, and whether the game was over."""
        if n_step == 1:  # the same result as below, in a quarter of the time
            terminated = self._at("endings", envs, numbers) == TERMINATED
            rewards = self._at("rewards", envs, numbers)
            rewards = rewards if learned is None else learned(rewards)
            return rewards, np.ones_like(numbers), terminated
        walked = numbers[:, None] + np.arange(n_step)
        endings = self._at("endings", envs[:, None], walked)
        stops = (endings != GOES_ON) | (walked >= self._heads[envs][:, None] - 1)
        last = np.where(stops.any(axis=1), stops.argmax(axis=1), n_step - 1)
        rewards = self._at("rewards", envs[:, None], walked)
        rewards = rewards if learned is None else learned(rewards)
        terminated = endings[np.arange(len(last)), last] == TERMINATED
        return discounted_sums(rewards, last + 1, gamma=gamma), last + 1, terminated

    def held(self) -> tuple[_Numbers, _Numbers]:
        """Return (envs, numbers) of all timesteps that can be drawn, for tests and for counting."""
        oldest = self._oldest()
        envs = np.repeat(self._envs, self._heads - oldest)
        numbers = np.concatenate([*map(np.arange, oldest, self._heads)])
        is_timestep = self._at("endings", envs, numbers) != LAST_FRAME
        return envs[is_timestep], numbers[is_timestep]

    def state_dict(self) -> dict[str, NDArray[Any] | torch.Tensor]:
        """Return the whole state, with the random generator and without unused slots.

        The arrays belong to the Pond: write them to disk before the next `append`.
        """
        used = int(min(self._n_slots, self._heads.max(initial=0) + 1))
        rng = json.dumps(self._rng.bit_generator.state).encode()
        return {
            "frames": self._frames[:used],
            **{name: array[:used] for name, array in self._small.items()},
            "heads": self._heads,
            "is_open": self._is_open,
            "n_slots": np.array(self._n_slots),
            "n_appended": np.array(self.n_appended),
            "rng": np.frombuffer(rng, np.uint8),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Become the Pond that `state` was taken from; StoredArrays are read a piece at a time.

        The next `append` need not continue that Pond's episodes. Those that it does not continue
        are truncated there.

        Raises:
            CheckpointError: `state` is of a Pond of another shape.
            ValueError: `state` is not that of a Pond.
        """
        frames = state["frames"]
        small = {name: np.asarray(array) for name, array in state.items() if name != "frames"}
        ours = (self._n_slots, tuple(self._frames.shape[1:]))
        theirs = (int(small["n_slots"]), tuple(frames.shape[1:]))
        if ours != theirs:
            raise CheckpointError(
                f"the saved replay has {theirs[0]:,} slots for {theirs[1][0]} envs and frames of "
                f"{theirs[1][1]:,} bytes, but this run's has {ours[0]:,}, {ours[1][0]} and "
                f"{ours[1][1]:,}; set algorithm.replay.capacity, env.n_envs, env.frame_stack and "
                "env.observation as they were when it was saved"
            )
        used = len(frames)
        if used > self._n_slots:
            raise ValueError(f"it has {used:,} slots, more than the {self._n_slots:,} of this run")
        for rows in row_pieces(frames):
            self._frames[rows] = torch.as_tensor(frames[rows])
        for name, array in self._small.items():
            array[:used] = small[name]
        self._heads[:] = small["heads"]
        self._is_open[:] = small["is_open"]
        self._rng.bit_generator.state = json.loads(small["rng"].tobytes())
        self.n_appended = int(small["n_appended"])
        self._was_loaded = True

    # ------------------------------------------------------------------ filled from elsewhere

    @property
    def n_slots(self) -> int:
        """Slots of each env."""
        return self._n_slots

    def position(self) -> dict[str, Any]:
        """Return all state but the slots, as plain data that survives a round trip through JSON."""
        return {
            "n_slots": self._n_slots,
            "heads": self._heads.tolist(),
            "n_appended": self.n_appended,
            "n_held": len(self) if self._heads.any() else 0,
            "rng": json.dumps(self._rng.bit_generator.state),
        }

    def load_position(self, position: Mapping[str, Any]) -> None:
        """Become the Pond of that `position`, without its slots; add those with `put`.

        Raises:
            CheckpointError: `position` is of a Pond of another shape.
        """
        ours = (self._n_slots, len(self._envs))
        theirs = (position["n_slots"], len(position["heads"]))
        if ours != theirs:
            raise CheckpointError(
                f"the saved replay had {theirs[0]:,} slots for {theirs[1]} envs, but this run's "
                f"has {ours[0]:,} for {ours[1]}; set algorithm.replay.capacity, env.n_envs and "
                "env.frame_stack as they were when it was saved"
            )
        self._heads[:] = position["heads"]
        self._is_open[:] = False
        self._small["endings"][:] = LAST_FRAME
        self._rng.bit_generator.state = json.loads(position["rng"])
        self.n_appended = int(position["n_appended"])
        self._was_loaded = True

    def clear(self) -> None:
        """Remove all timesteps, as if nothing had ever been appended."""
        self._heads[:] = self.n_appended = 0
        self._is_open[:] = False

    def put(self, env: int, slots: Slots, *, is_open: bool) -> None:
        """Write the newest slots of an env, up to its head; older ones cannot be drawn.

        Args:
            is_open: whether the last slot is the frame after the last timestep, without an action.
        """
        numbers = self._heads[env] + is_open - np.arange(len(slots.frames), 0, -1)
        kept = numbers >= max(0, self._heads[env] - self._n_slots + 1)
        rows = numbers[kept] % self._n_slots
        frames = torch.from_numpy(slots.frames[kept]).to(self._device)
        self._frames[torch.from_numpy(rows).to(self._device), env] = frames
        for name, array in self._small.items():
            array[rows, env] = getattr(slots, name)[kept]
        self._is_open[env] = is_open

    def _draw(self, batch_size: int) -> tuple[_Numbers, _Numbers]:
        """Draw slots of all envs, and draw again for those that hold no timestep."""
        if not self._heads.any():
            raise ValueError("nothing to draw from: no timestep was appended yet")
        oldest = self._oldest()
        found = 0
        envs = np.empty(batch_size, np.int64)
        numbers = np.empty(batch_size, np.int64)
        longest = int((self._heads - oldest).max())
        while found < batch_size:
            env = self._rng.integers(len(self._envs), size=batch_size - found)
            number = oldest[env] + self._rng.integers(longest, size=batch_size - found)
            good = number < self._heads[env]
            good &= self._at("endings", env, number) != LAST_FRAME
            end = found + int(np.count_nonzero(good))
            envs[found:end] = env[good]
            numbers[found:end] = number[good]
            found = end
        return envs, numbers

    def _oldest(self) -> _Numbers:
        """Number of the oldest frame within the capacity, for each stream."""
        return np.maximum(self._heads - self._per_env, 0)

    def _both_stacks(
        self, envs: _Numbers, numbers: _Numbers, steps: _Numbers, device: torch.device | str
    ) -> tuple[Tensors, Tensors]:
        """Return the observations at `numbers` and those `steps` timesteps later."""
        k = self._frame_stack
        n = len(envs)
        if steps.max() == 1:  # the two share all frames but one
            frames = self._unpacked(envs, numbers, k + 1, device)
            shapes = self.observation_format.frame_shapes
            if isinstance(frames, torch.Tensor):
                first: Any = self.observation_format.frame_shape[0]
            else:
                first = {name: shapes[name][0] for name in frames}
            stacks = each_part(lambda tensor, one: tensor[:, :-one], frames, first)
            return stacks, each_part(lambda tensor, one: tensor[:, one:], frames, first)
        both = np.concatenate((numbers, numbers + steps))
        all_stacks = self._unpacked(np.concatenate((envs, envs)), both, k, device)
        stacks = each_part(lambda tensor: tensor[:n], all_stacks)
        return stacks, each_part(lambda tensor: tensor[n:], all_stacks)

    def _unpacked(
        self, envs: _Numbers, newest: _Numbers, n_frames: int, device: torch.device | str
    ) -> Tensors:
        """Return `n_frames` frames of each sample, uint8 [batch, n_frames * C, H, W].

        They begin with the oldest frame of the stack at `newest`, and continue after that stack if
        `n_frames` is larger than it. Frames before an episode's first are zeros. Of each part there
        are as many more arrays as there are more frames than a stack has.
        """
        back = self._frame_stack - 1 - np.arange(n_frames)  # the oldest first
        slots = (newest[:, None] - back) % self._n_slots
        return unpack_observations(
            self._frames.view(-1, self._frames.shape[-1]),
            slots * len(self._envs) + envs[:, None],
            back > self._at("ages", envs, newest)[:, None],
            observation_format=self.observation_format,
            device=device,
        )

    def _open(self, envs: _Numbers, observations: Observation, newest: NDArray[np.uint8]) -> None:
        """Start to write episodes of `envs`, with the frames before if they are under way."""
        late, histories = self.observation_format.pack_underway(observations, envs)
        for env, rows in zip(late, histories[:, :-1], strict=True):
            for frame in rows:
                self._put_frames(np.array([env]), frame[None], 0)
                self._put("endings", np.array([env]), LAST_FRAME)
                self._heads[env] += 1
        ages = np.where(np.isin(envs, late), self._frame_stack - 1, 0)
        self._put_frames(envs, newest[envs], ages)
        self._is_open[envs] = True

    def _close(self, envs: _Numbers) -> None:
        """Mark the newest frames of `envs` as the last ones of their episodes."""
        self._put("endings", envs, LAST_FRAME)
        self._heads[envs] += 1
        self._is_open[envs] = False

    def _cut_where_it_does_not_go_on(self, newest: NDArray[np.uint8]) -> None:
        self._was_loaded = False
        ours = self._frames[self._heads % self._n_slots, self._envs].cpu().numpy()
        cut = np.flatnonzero(self._is_open & (newest != ours).any(axis=1))
        before = self._at("endings", cut, self._heads[cut] - 1)
        slots = (self._heads[cut] - 1) % self._n_slots
        self._small["endings"][slots, cut] = np.where(before == GOES_ON, TRUNCATED, before)
        self._close(cut)

    def _at(self, name: str, envs: Any, numbers: Any) -> NDArray[Any]:  # noqa: ANN401
        rows = numbers % self._n_slots * len(self._envs) + envs
        return self._small[name].ravel().take(rows)  # type: ignore[no-any-return]

    def _put(self, name: str, envs: _Numbers, values: Any) -> None:  # noqa: ANN401
        self._small[name][self._heads[envs] % self._n_slots, envs] = values

    def _put_frames(self, envs: _Numbers, frames: NDArray[np.uint8], ages: Any) -> None:  # noqa: ANN401
        """Write packed frames at the heads of these streams."""
        packed = torch.from_numpy(frames).to(self._device)
        rows = self._heads[envs] % self._n_slots, envs
        self._frames[tuple(torch.from_numpy(row).to(self._device) for row in rows)] = packed
        self._put("ages", envs, ages)


def column(values: NDArray[Any], device: torch.device | str) -> torch.Tensor:
    return torch.from_numpy(values.reshape(-1, 1)).to(device)
