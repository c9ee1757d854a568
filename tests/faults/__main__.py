"""`python -m tests.faults`: see `training_faults`."""

import sys

from tests.faults.training_faults import main

if __name__ == "__main__":
    sys.exit(main())
