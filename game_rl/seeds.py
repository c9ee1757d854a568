"""Named random streams, all derived from the one seed of a run."""

import zlib

import numpy as np


def seed_for(run_seed: int, name: str) -> int:
    """A seed below 2**31 for the stream `name` of the run.

    Two names give independent streams, and a new name never shifts the old ones
    (numpy.random.SeedSequence mixes its entropy; O'Neill 2015).
    """
    sequence = np.random.SeedSequence([run_seed, zlib.crc32(name.encode())])
    return int(sequence.generate_state(1)[0] >> 1)
