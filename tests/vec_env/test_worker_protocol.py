"""What the arrays take against what they are said to take."""

import os
from contextlib import closing

import numpy as np
import pytest
from gymnasium import spaces

from game_rl.envs.observation import ObservationFormat
from game_rl.envs.packing import FramePacking
from game_rl.system.shared_memory import NamedMemory, NamelessMemory
from game_rl.vec_env.worker_protocol import Attachment, SharedArrays, Spaces, shared_bytes


@pytest.mark.parametrize("n_envs", [1, 5])
@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize("kind", [NamelessMemory, NamedMemory])
def test_the_forecast_is_what_is_shared(
    n_envs: int, bits: int, kind: type[NamelessMemory | NamedMemory]
) -> None:
    packing = ObservationFormat(FramePacking((3, 36, 40), bits=bits), 4)  # type: ignore[arg-type]
    picture = spaces.Box(0, 255, packing.frame_shape, np.uint8)
    attachment = Attachment(n_envs, (5,), Spaces(picture, spaces.Discrete(4)), packing)
    with closing(kind()) as memory:
        arrays = SharedArrays(memory, attachment)
        forecast = shared_bytes(packing, n_envs=n_envs)
        descriptor = memory.descriptor
        size = len(memory.mapped(1)) if descriptor is None else os.fstat(descriptor).st_size
        assert size == forecast
        assert arrays.packed.nbytes == 2 * n_envs * packing.row_bytes
