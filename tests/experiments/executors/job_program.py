"""What jobs run in tests: `python -m tests.experiments.executors.job_program FILE`, with words.

environment   print what the process was given
sleep S       end after S seconds
save          wait; on SIGTERM print `saved` and exit as a training does
deaf          wait, whatever the signal
family        start a child that waits, in the same group, print its id, and wait
end CODE      exit so
raise         end with a traceback
process       print what the system and the interpreter know of this process
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from game_rl.system.processes import end_with_parent

SHOWN = (
    "GAME_RL_CPUS",
    "GAME_RL_CLAIM",
    "GAME_RL_EXPERIMENT",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
)


MODULE = "tests.experiments.executors.job_program"


def asking(folder: Path, *words: str) -> Path:
    """Write the request of a job."""
    path = folder / f"{'-'.join(words)}.request"
    path.write_text(" ".join(words), encoding="utf-8")
    return path


def main() -> int:
    end_with_parent()
    words = Path(sys.argv[1]).read_text(encoding="utf-8").split()
    what = words[0]
    if what == "environment":
        shown = {name: os.environ.get(name) for name in SHOWN}
        shown["cluster's"] = str([name for name in os.environ if name.startswith("RAY_")])
        shown["niceness"] = str(os.getpriority(os.PRIO_PROCESS, 0))
        shown["folder"] = os.getcwd()  # noqa: PTH109 - as the system says it
        print(json.dumps(shown))
        return 0
    if what == "process":
        print(json.dumps(_process()))
        return 0
    if what == "end":
        return int(words[1])
    if what == "raise":
        raise RuntimeError("on purpose")
    if what == "save":
        signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), os._exit(143)))
    if what == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if what == "family":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(child.pid, flush=True)
    print("ready", flush=True)
    time.sleep(float(words[1]) if what == "sleep" else 600)
    return 0


def _process() -> dict[str, object]:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines(keepends=True)
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    signals = {n.name: str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)}
    return {
        "arguments": sys.argv[1:],
        "package": __package__,
        "path": sys.path[0],
        "folder": os.getcwd(),  # noqa: PTH109 - as the system says it
        "leads a session": os.getsid(0) == os.getpid(),
        "leads a group": os.getpgid(0) == os.getpid(),
        "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3],  # noqa: PTH208
        "input": os.readlink("/proc/self/fd/0"),  # noqa: PTH115
        "threads": status["Threads"],
        "ignores": status["SigIgn"],
        "blocks": status["SigBlk"],
        "signals": signals,
        "environment": {
            k: v for k, v in os.environ.items() if k not in ("_", "KMP_DUPLICATE_LIB_OK")
        },
        "main": sys.modules["__main__"].__spec__.name,
    }


if __name__ == "__main__":
    sys.exit(main())
