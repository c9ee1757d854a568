"""What jobs of tests run: `python -m tests.executors.job_program WHAT`.

environment   print what the process was given
sleep S       end after S seconds
save          wait; on SIGTERM print `saved` and exit as a training does
deaf          wait, whatever the signal
family        start a child that waits, in the same group, print its id, and wait
"""

import json
import os
import signal
import subprocess
import sys
import time

from game_rl.system.parent_death import end_with_parent

SHOWN = ("GAME_RL_CPUS", "GAME_RL_CLAIM", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")


def main() -> int:
    end_with_parent()
    what = sys.argv[1]
    if what == "environment":
        shown = {name: os.environ.get(name) for name in SHOWN}
        shown["cluster's"] = str([name for name in os.environ if name.startswith("RAY_")])
        shown["niceness"] = str(os.getpriority(os.PRIO_PROCESS, 0))
        shown["folder"] = os.getcwd()  # noqa: PTH109 - as the system says it
        print(json.dumps(shown))
        return 0
    if what == "save":
        signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), os._exit(143)))
    if what == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if what == "family":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, flush=True)
    print("ready", flush=True)
    time.sleep(float(sys.argv[2]) if what == "sleep" else 600)
    return 0


if __name__ == "__main__":
    sys.exit(main())
