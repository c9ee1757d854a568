"""Curiosity without torch: what its networks get, what is saved of it, and what it costs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from game_rl.envs.observation import ObservationFormat
from game_rl.features.feature import Feature, Part, PlannedRun
from game_rl.files.saved import Blob, CheckpointFile, Natural, Saved
from game_rl.games.parts.part_format import PartFormat

BATCH_SIZE = 512
"""Timesteps that go through the networks together, and those of a gradient step."""
N_CODES = 64
"""Numbers that the networks make of an observation, one of which predicts the other's."""
N_UNITS = 256
"""Units of a hidden layer."""
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of each, as in NatureCNN."""

_MOST_SIDE = 84
_LEAST_SIDE = 36  # below it, nothing is left for the last convolution
_MOST_ONE_HOT = 256
_FLOAT_BYTES = 4
_BASE64_FACTOR = 4 / 3
_SAVED_BYTES = 8_000  # names, and the state of the random numbers


class SavedCuriosity(Saved):
    """Networks, optimiser and running statistics of random network distillation."""

    tensors: dict[str, Blob]
    """float32, by name."""
    optimiser_steps: Natural
    seen: Natural
    """Observations in the running statistics."""
    rewarded: Natural
    """Discounted sums in the running statistics."""
    generator: Blob
    """State of the random numbers that choose the batches."""


CURIOSITY_FILE = CheckpointFile(
    name="curiosity.json",
    words="curiosity",
    model=SavedCuriosity,
    fork="unless its counters are new",
)


def is_one_hot(part: PartFormat) -> bool:
    """Whether the networks get a part's values as one of N, and not as numbers."""
    return part.kind == "categories" and part.n_values <= _MOST_ONE_HOT


def n_numbers(part: PartFormat, stack: int) -> int:
    """Return the numbers that the networks get of a part; a category is one of N."""
    n = math.prod(part.stacked_shape(stack))
    return n * part.n_values if is_one_hot(part) else n


@dataclass(frozen=True)
class CuriosityInputs:
    """What the networks get of an observation: the newest screen, then the numbers of all parts.

    Attributes:
        screen: shape (C, H, W) of the newest screen once it is reduced; None without one.
        reduction: pixels of the screen whose mean is one of these, in each direction.
        n_numbers: numbers of the other parts.
    """

    screen: tuple[int, int, int] | None
    reduction: int
    n_numbers: int

    @classmethod
    def of(cls, form: ObservationFormat) -> "CuriosityInputs":
        numbers = sum(n_numbers(part, form.stack) for _, part in form.parts)
        if form.screen is None:
            return cls(None, 1, numbers)
        channels, height, width = form.frame_shape
        reduction = 1
        while max(height, width) // reduction > _MOST_SIDE:
            reduction *= 2
        return cls((channels, height // reduction, width // reduction), reduction, numbers)

    @property
    def n_pixels(self) -> int:
        if self.screen is None:
            return 0
        return math.prod(self.screen)

    @property
    def n_inputs(self) -> int:
        return self.n_pixels + self.n_numbers

    @property
    def convolved(self) -> tuple[tuple[int, int, int], ...]:
        """Shape of the output of each convolution; none without a screen, or for a tiny one."""
        if self.screen is None or min(self.screen[1:]) < _LEAST_SIDE:
            return ()
        _, height, width = self.screen
        shapes = []
        for channels, kernel, stride in CONVOLUTIONS:
            height = (height - kernel) // stride + 1
            width = (width - kernel) // stride + 1
            shapes.append((channels, height, width))
        return tuple(shapes)

    @property
    def n_features(self) -> int:
        """Numbers that the first hidden layer gets."""
        if not self.convolved:
            return self.n_inputs
        return math.prod(self.convolved[-1]) + self.n_numbers

    def n_parameters(self, n_outputs: int) -> int:
        """Return the weights of a network."""
        found = 0
        if self.convolved:
            assert self.screen is not None
            before = self.screen[0]
            for channels, kernel, _ in CONVOLUTIONS:
                found += channels * (before * kernel**2 + 1)
                before = channels
        for inputs, outputs in (
            (self.n_features, N_UNITS),
            (N_UNITS, N_UNITS),
            (N_UNITS, n_outputs),
        ):
            found += (inputs + 1) * outputs
        return found

    def saved_floats(self, n_envs: int) -> int:
        """Return how many numbers `SavedCuriosity.tensors` has."""
        learned = self.n_parameters(N_CODES) + self.n_parameters(1)
        statistics = 2 * self.n_inputs + 2 + n_envs
        return self.n_parameters(N_CODES) + 3 * learned + statistics

    @property
    def batch_floats(self) -> int:
        """Return how many numbers one timestep of a batch takes while its gradient is computed.

        Each layer keeps its output before and after the ReLU, and each has a gradient, of the value
        network and of a quarter of the batch of the one that predicts.
        """
        of_screen = sum(map(math.prod, self.convolved))
        return 4 * self.n_inputs + 5 * (of_screen + 2 * N_UNITS)


def fits(saved: SavedCuriosity, sizes: Mapping[str, int]) -> bool:
    """Whether the saved tensors are those of networks of these sizes, in numbers by name."""
    found = {name: len(values) // _FLOAT_BYTES for name, values in saved.tensors.items()}
    return found == dict(sizes)


class CuriosityFeature(Feature):
    """`algorithm.curiosity`."""

    file = CURIOSITY_FILE

    def memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of errors, values, rewards and advantages of a rollout."""
        algorithm = run.config.algorithm
        if algorithm.curiosity is not None:
            timesteps = run.config.env.n_envs * algorithm.vec_steps_per_update
            yield Part("curiosity's rollout", 8 * _FLOAT_BYTES * timesteps)

    def network_memory(self, run: PlannedRun) -> Iterable[Part]:
        """Return the memory of its networks, their gradients and moments, and a gradient step."""
        if run.config.algorithm.curiosity is not None:
            inputs = CuriosityInputs.of(run.observation_format)
            learned = inputs.n_parameters(N_CODES) + inputs.n_parameters(1)
            weights = inputs.n_parameters(N_CODES) + 4 * learned + 2 * inputs.n_inputs
            step = BATCH_SIZE * (
                _FLOAT_BYTES * inputs.batch_floats + 2 * run.observation_format.nbytes
            )
            yield Part("curiosity", _FLOAT_BYTES * weights + step)

    def checkpoint_bytes(self, run: PlannedRun, timesteps: int) -> int:  # noqa: ARG002
        if run.config.algorithm.curiosity is None:
            return 0
        inputs = CuriosityInputs.of(run.observation_format)
        floats = inputs.saved_floats(run.config.env.n_envs)
        return round(_BASE64_FACTOR * _FLOAT_BYTES * floats) + _SAVED_BYTES
