"""What holds for every test: no time limit on an example, one torch thread a process."""

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the tests run side by side

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
