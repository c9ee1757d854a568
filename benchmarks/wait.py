"""A job that only waits: `python -m benchmarks.wait SECONDS`."""

import sys
import time

if __name__ == "__main__":
    time.sleep(float(sys.argv[1]))
