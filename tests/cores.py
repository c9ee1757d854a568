"""Tests run in parallel, so a thread that waits for another one should leave its core to them.

torch reads these variables when it is imported, so this module comes first.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
