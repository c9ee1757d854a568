"""The fixtures of the callbacks."""

from tests.callbacks.conftest import make_model as make_model
from tests.callbacks.conftest import run_dir as run_dir
