"""Uploads: their speed and memory, and how much they slow a training.

    python -m benchmarks.upload [--gb 1] [--pairs 7] [--skip-throughput] [--skip-training]

An S3 server (moto's) runs on the same machine. The uploader's process uploads a Lake and, in turns,
plain obstore uploads the same files. The Lake is then uploaded again, when it is already there.
After that a training runs with and without uploads in turns, with a checkpoint every few seconds.
Its wall time includes the last upload, and its CPU time is that of its own process.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from game_rl.files.run_dir import RunDir
from game_rl.storage.upload_settings import UploadSettings
from tests.storage.lakes import add_lake_checkpoint
from tests.storage.runs import make_run, settings_of
from tests.storage.server import BUCKET, s3_environment, s3_server

_SEGMENT_BYTES = 32 << 20  # as a Lake seals them
_PEAK = """
def peak_kib():  # ru_maxrss would be the parent's
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0])
"""
_PLAIN = """
import sys, time, pathlib
import obstore
from obstore.store import from_url
store = from_url(sys.argv[1], client_options={"allow_http": True})
files = sorted(pathlib.Path(sys.argv[2]).glob("*.segment"))
began = time.monotonic()
for file in files:
    obstore.put(store, file.name, file, max_concurrency=4)
print(time.monotonic() - began)
"""
_OURS = f"""{_PEAK}
import sys, types, time
package = types.ModuleType("game_rl"); package.__path__ = [sys.argv[2]]
sys.modules["game_rl"] = package
from game_rl.events import Uploaded
from game_rl.storage.upload_settings import UploadSettings
from game_rl.storage.upload_process import push
sent = []
def hear(event):
    if isinstance(event, Uploaded):
        sent.append(event.sent_bytes)
began = time.monotonic()
push(UploadSettings.model_validate_json(sys.argv[1]), hear, most_failures=3)
elapsed = time.monotonic() - began
print(elapsed, peak_kib(), sum(sent))
"""
_TRAINING = """\
game: duel
total_timesteps: 40_960
run_dir: {run_dir}
device: cpu
env: {{n_envs: 8}}
algorithm: {{n_steps: 128, batch_size: 256, n_epochs: 2}}
evaluation: {{every_timesteps: 40_960, episodes: 2, final_episodes: 2}}
checkpoints: {{every_timesteps: 10_240}}
recording: {{episodes: 0}}
upload: {upload}
"""


def make_lake_run(folder: Path, n_bytes: int) -> tuple[RunDir, Path]:
    """Make a run whose only checkpoint needs a Lake of `n_bytes` bytes."""
    run_dir = make_run(folder / "run")
    lake = run_dir.lake
    add_lake_checkpoint(run_dir, 100, segment_bytes=_SEGMENT_BYTES, n_bytes=n_bytes)
    return run_dir, lake


def _numbers(code: str, *arguments: str) -> list[float]:
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    return [float(word) for word in ended.stdout.split()]


def compare_throughput(folder: Path, n_bytes: int, turns: int) -> None:
    run_dir, lake = make_lake_run(folder, n_bytes)
    package = Path(__file__).parents[1] / "game_rl"
    plain, ours, again, memory = [], [], [], []
    sent_again = 0.0
    for turn in range(turns):
        with s3_server() as endpoint:  # a new server each time, as it keeps the uploads
            os.environ.update(s3_environment(endpoint))
            _numbers(_PLAIN, f"s3://{BUCKET}/warm", str(lake))  # warms up all caches
            plain.append(_numbers(_PLAIN, f"s3://{BUCKET}/plain", str(lake))[0])
            settings = _with_lake(run_dir, f"s3://{BUCKET}/ours", lake)
            seconds, peak_kib, _ = _numbers(_OURS, settings.model_dump_json(), str(package))
            ours.append(seconds)
            memory.append(peak_kib)
            run_dir.upload_journal.unlink()
            settings = settings.model_copy(update={"take_over": True})
            seconds, _, sent_again = _numbers(_OURS, settings.model_dump_json(), str(package))
            again.append(seconds)
            run_dir.upload_journal.unlink()
            mb_s = n_bytes / 1e6
            print(
                f"turn {turn}: plain obstore {mb_s / plain[-1]:.0f} MB/s, ours "
                f"{mb_s / ours[-1]:.0f} MB/s, peak {memory[-1] / 1024:.1f} MiB",
                flush=True,
            )
    ratio = median(a / b for a, b in zip(plain, ours, strict=True))
    print(f"throughput of plain obstore on the same bytes: {ratio:.2f} (at least 0.8)")
    print(f"peak memory of the uploader: {max(memory) / 1024:.1f} MiB (at most 60 MB)")
    share = sent_again / n_bytes
    print(f"a second upload sends {share:.3%} of the bytes (below 1 %), in {median(again):.1f} s")


def _with_lake(run_dir: RunDir, address: str, lake: Path) -> UploadSettings:
    return settings_of(run_dir, address).model_copy(update={"lake": lake})


def compare_training(folder: Path, pairs: int) -> None:
    """Compare wall and CPU time of a training with uploads and without.

    CPU is that of the training's own process, without the uploader's.
    """
    ratios: dict[str, list[float]] = {"wall": [], "CPU": []}
    with s3_server(niceness=19) as endpoint:  # it stands in for another machine
        os.environ.update(s3_environment(endpoint))
        for pair in range(pairs):
            found = {}
            order = (True, False) if pair % 2 else (False, True)
            for is_uploaded in order:
                to = f"{{to: 's3://{BUCKET}/training-{pair}'}}" if is_uploaded else "null"
                found[is_uploaded] = _train(folder / f"training-{pair}-{is_uploaded}", to)
            for number, name in enumerate(ratios):
                ratios[name].append(found[True][number] / found[False][number])
            wall, cpu = (ratios[name][-1] for name in ("wall", "CPU"))
            print(f"pair {pair}: wall {wall:.3f}, CPU {cpu:.3f}", flush=True)
    for name, limit in (("wall", 1.07), ("CPU", 1.02)):
        low, high = min(ratios[name]), max(ratios[name])
        print(
            f"{name} with uploads / without: {median(ratios[name]):.3f} "
            f"({low:.3f} - {high:.3f}; at most {limit})"
        )


_MEASURED = """
import os, sys, time, resource
from game_rl.cli.main import main
began = time.monotonic()
code = main(["train", "--config", sys.argv[1]])
own = resource.getrusage(resource.RUSAGE_SELF)
print("measured", time.monotonic() - began, own.ru_utime + own.ru_stime, code)
"""


def _train(run_dir: Path, upload: str) -> tuple[float, float]:
    """Train; return the wall and CPU seconds of the training process."""
    config = run_dir.with_suffix(".yaml")
    config.write_text(_TRAINING.format(run_dir=run_dir, upload=upload), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(config)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    words = ended.stdout.splitlines()[-1].split()
    shutil.rmtree(run_dir)
    assert words[0] == "measured"
    assert words[3] == "0", ended.stdout
    return float(words[1]), float(words[2])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upload")
    parser.add_argument("--gb", type=float, default=1.0, help="size of the Lake, in 10^9 bytes")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--skip-throughput", action="store_true")
    parser.add_argument("--skip-training", action="store_true")
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="game_rl_upload_") as name:
        if not arguments.skip_throughput:
            compare_throughput(Path(name), round(arguments.gb * 1e9), arguments.turns)
        if not arguments.skip_training:
            compare_training(Path(name), arguments.pairs)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = children.ru_utime + children.ru_stime
    print(f"{time.monotonic() - began:.0f} s, {cpu_s:.0f} s of CPU")


if __name__ == "__main__":
    main()
