"""`faulty_run` in a process that was forked, whose streams were opened on another file."""

import sys

from tests.faults.faulty_run import main

if __name__ == "__main__":
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.exit(main())
