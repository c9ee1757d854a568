"""The policy's network as numbers: parameters, and the bytes of one gradient step."""

from dataclasses import dataclass

_FLOAT, _BF16 = 4, 2
_FEATURES = 512  # NatureCNN's output (SB3, torch_layers.py)


def _conv(size: int, kernel: int, stride: int) -> int:
    return (size - kernel) // stride + 1


@dataclass(frozen=True, kw_only=True)
class NatureCnn:
    """Three convolutions and a linear layer, shared by the policy and the value head.

    Attributes:
        channels: of the stacked observation.
    """

    channels: int
    height: int
    width: int
    n_actions: int

    @property
    def observation(self) -> int:
        """Numbers in an observation, which are its bytes as uint8."""
        return self.channels * self.height * self.width

    @property
    def activations(self) -> tuple[int, int, int]:
        """Numbers that each convolution gives for one observation."""
        h1, w1 = _conv(self.height, 8, 4), _conv(self.width, 8, 4)
        h2, w2 = _conv(h1, 4, 2), _conv(w1, 4, 2)
        return 32 * h1 * w1, 64 * h2 * w2, 64 * _conv(h2, 3, 1) * _conv(w2, 3, 1)

    @property
    def parameters(self) -> int:
        convolutions = (64 * self.channels * 32 + 32) + (16 * 32 * 64 + 64) + (9 * 64 * 64 + 64)
        heads = (_FEATURES * self.n_actions + self.n_actions) + (_FEATURES + 1)
        return convolutions + self.largest_parameter + _FEATURES + heads

    @property
    def largest_parameter(self) -> int:
        """Numbers in the linear layer's weight."""
        return self.activations[2] * _FEATURES

    @property
    def weights_bytes(self) -> int:
        return _FLOAT * self.parameters

    @property
    def training_bytes(self) -> int:
        """Weights, gradients and Adam's two moments."""
        return 4 * self.weights_bytes

    def step_blocks(self, batch_size: int, *, bf16: bool) -> dict[str, list[int]]:
        """Blocks of memory that are alive together in each part of a gradient step.

        Without weights, their gradients and the optimiser's moments, but with the copies of the
        weights and gradients that bfloat16 works with. As torch's profiler tells of LeanNatureCNN:
        the bytes are moved into the order of blocks, then become numbers; a ReLU works in place;
        flattening copies out of channels_last; going back, a ReLU holds its output and both
        gradients. The bytes stay all along: whoever asked for the step has them.
        """
        number = _BF16 if bf16 else _FLOAT
        pixels = self.observation * batch_size
        x = number * self._whole_blocks * batch_size
        a1, a2, a3 = (number * size * batch_size for size in self.activations)
        always = [pixels, _BF16 * self.parameters] if bf16 else [pixels]
        gradient = [_BF16 * self.largest_parameter] if bf16 else []
        bytes_in_blocks = [self._whole_blocks * batch_size] * (1 if self._is_whole else 2)
        return {
            "to blocks": [*always, *bytes_in_blocks, x],
            "forward": [*always, x, a1, a2, a3, a3],
            "backward linear": [*always, x, a1, a2, a3, a3, a3, *gradient],
            "backward 2": [*always, x, a1, a2, a2, a2],
            "backward 1": [*always, x, a1, a1, a1],
        }

    def step_bytes(self, batch_size: int, *, bf16: bool) -> int:
        """The most that is alive at once in a gradient step; see `step_blocks`."""
        return max(map(sum, self.step_blocks(batch_size, bf16=bf16).values()))

    @property
    def _whole_blocks(self) -> int:
        """Numbers in the 4 x 4 blocks of an observation; what is left over is not looked at."""
        return self.channels * (self.height // 4 * 4) * (self.width // 4 * 4)

    @property
    def _is_whole(self) -> bool:
        return self._whole_blocks == self.observation
