"""Global random generators of a training: Python's, NumPy's and torch's."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from stable_baselines3.common.utils import set_random_seed

from game_rl.checkpoints.checkpoint_state import NumpyRandom, PythonRandom, RandomNumbers


def save_random_numbers() -> RandomNumbers:
    version, words, gauss_next = random.getstate()
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - what SB3 draws from
    assert isinstance(state, dict)
    return RandomNumbers(
        python=PythonRandom(version=version, words=words, gauss_next=gauss_next),
        numpy=NumpyRandom(
            words=tuple(state["state"]["key"].tolist()),
            position=int(state["state"]["pos"]),
            has_gauss=int(state["has_gauss"]),
            cached_gaussian=float(state["gauss"]),
        ),
        torch=torch.get_rng_state().numpy().tobytes(),
        cuda=tuple(state.numpy().tobytes() for state in torch.cuda.get_rng_state_all()),
    )


def restore_random_numbers(saved: RandomNumbers | None, *, otherwise: int | None = None) -> None:
    """Restore all generators; of the GPUs, only those that both machines have.

    Args:
        saved: the states, or None to seed all generators anew.
        otherwise: seed for that; None counts as 0.
    """
    if saved is None:
        set_random_seed(otherwise or 0, using_cuda=torch.cuda.is_available())
        return
    python, numpy = saved.python, saved.numpy
    random.setstate((python.version, python.words, python.gauss_next))
    words = np.array(numpy.words, np.uint32)
    state = ("MT19937", words, numpy.position, numpy.has_gauss, numpy.cached_gaussian)
    np.random.set_state(state)  # noqa: NPY002
    torch.set_rng_state(_bytes(saved.torch))
    for index, blob in enumerate(saved.cuda[: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(_bytes(blob), index)


@contextmanager
def drawing_from(seed: int) -> Iterator[None]:
    """Seed torch's generator inside the block; restore all generators afterwards."""
    saved = save_random_numbers()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        restore_random_numbers(saved)


def _bytes(blob: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(blob), dtype=torch.uint8)
