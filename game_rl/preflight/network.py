"""SB3's CnnPolicy as numbers: parameters, and the bytes of one gradient step."""

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
        """Blocks of memory that are alive together in each part of a gradient step on the CPU.

        Follows torch's own order for weights in channels_last: SB3's preprocessing keeps
        `obs.float()` while it divides; each convolution converts its input to channels_last; a
        ReLU keeps its output; going back, a ReLU holds its output and both gradients, and a
        convolution converts its saved input once more. In bf16 the activations take half, and
        the observation is there in bf16 too, converted and reordered at once; going back, only so.
        """
        pixels = self.observation * batch_size
        x = _FLOAT * pixels
        number = _BF16 if bf16 else _FLOAT
        a1, a2, a3 = (number * size * batch_size for size in self.activations)
        seen = [pixels, x, number * pixels] if bf16 else [pixels, x]
        kept = [pixels, number * pixels]
        return {
            "minibatch": [pixels] * 3,  # this one as an array and as a tensor, and the last one
            "to float": [pixels, x, x],
            "forward 1": [*seen, a1] if bf16 else [*seen, x, a1],
            "forward 2": [*seen, a1, a2, a2],
            "forward 3": [*seen, a1, a2, a3, a3, a3],
            "backward 3": [*kept, a1, a2, a2, a3, a3, a3],
            "backward 2": [*kept, a1, a1, a2, a2],
            "backward ReLU 1": [*kept, a1, a1, a1],
            "backward 1": [*kept, number * pixels, a1],
            "optimiser": [pixels, *[_FLOAT * self.largest_parameter] * 2],
        }

    def gpu_step_bytes(self, batch_size: int) -> int:
        """Peak of tensors of a gradient step, without weights; facts of SB3 2.9 and torch 2.13.

        9 bytes a number while uint8 becomes float and is divided; going back, the observation as
        uint8 and float, and three times the first activations.
        """
        to_float = 9 * self.observation * batch_size
        backward = (5 * self.observation + 3 * _FLOAT * self.activations[0]) * batch_size
        optimiser = self.observation * batch_size + self.weights_bytes
        return max(to_float, backward, optimiser)
