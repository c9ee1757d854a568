"""A machine with a GPU in at most eight minutes: where the time goes, memory, and speed.

    python -m benchmarks.gpu                                     # on a machine with a GPU
    python -m benchmarks.gpu --device cpu --n-envs 2 4 --n-steps 32 --updates 2   # to try it

Each line is a training of `duel` in processes of its own, with half-size grey pictures, rollouts of
`--n-steps` timesteps of each env, four batches a rollout, and four epochs. What is not begun when
`--minutes` are over is listed at the end, and a training that takes longer than what is left of
them is stopped. There are three tables:

1. Where a timestep's time goes, in microseconds of wall time: the emulators' vec steps (all workers
   together), the network that chooses actions, and the update. Packing is a part of the emulators'
   time, in microseconds of one core. DQN draws its batches from a Pond in RAM and one on the
   device.
2. RAM and, on a GPU, VRAM of whole runs against their forecast, as `benchmarks.preflight_accuracy`
   has it.
3. Timesteps/s of plain Stable-Baselines3, ours, sb3-contrib's RecurrentPPO if it is installed, and
   our memory, the latter two with an LSTM of 256 and one screen. Speed is that of
   `benchmarks.training`, of one round.
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import preflight_accuracy, recurrent, training
from benchmarks.preflight_cases import Case
from benchmarks.trainings.ours import CONFIG
from benchmarks.trainings.work import Work, set_words
from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.games.definition import load_game
from game_rl.measure.timed_training import TimedTraining
from game_rl.preflight.workload import training_arithmetic
from game_rl.system.machine import detect_machine, effective_cpus

_EPOCHS = 4
_BATCHES = 4  # of a rollout
_ROLLOUTS = 3
_FRAMES = 256  # packed at once
_DQN = CONFIG.parents[2] / "configs" / "duel_dqn.yaml"
_PARTS = "from benchmarks.gpu import print_parts; print_parts()"


@dataclass
class Clock:
    """The time that is left, and what it did not suffice for."""

    minutes: float
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + 60 * self.minutes

    def output_of(self, name: str, command: Sequence[str]) -> str | None:
        """Run a command and return what it prints; None if there is no time for it."""
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            self.left_out.append(name)
            return None
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as output,
            tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        ):
            process = subprocess.Popen(
                command, stdout=output, stderr=errors, start_new_session=True
            )
            try:
                process.wait(left_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # and its workers
                process.wait()
                self.left_out.append(f"{name} (stopped)")
                return None
            output.seek(0)
            errors.seek(0)
            if process.returncode:
                self.left_out.append(f"{name} (failed: {errors.read().strip().splitlines()[-1]})")
                return None
            return output.read()


# ---------------------------------------------------------------------- where the time goes


def print_parts() -> None:
    """Print the times of a training in this process as JSON; the arguments: FILE KEY=VALUE ..."""
    file, *overrides = sys.argv[1:]
    print(json.dumps(parts_of(load_config(Path(file), overrides))))


def parts_of(config: RunConfig) -> dict[str, float]:
    """Return microseconds for each timestep; see the module."""
    game = load_game(config.game)
    with TimedTraining(config, game) as timed:
        timed.warm_up()
        steps = []
        updates = []
        for _ in range(_ROLLOUTS):
            steps.append(timed.collect())
            updates.append(timed.update())
        gradient_steps = training_arithmetic(config).gradient_steps_per_update
    n_envs = config.env.n_envs
    return {
        "emulation": 1e6 * min(step.emulation_s for step in steps) / n_envs,
        "packing": packing_us(config),
        "network": 1e6 * min(step.inference_s for step in steps) / n_envs,
        "update": 1e6 * min(updates) * gradient_steps / config.rollout_timesteps,
    }


def packing_us(config: RunConfig) -> float:
    """Return the microseconds in which one core packs a frame of the four shades."""
    form = make_observation_format(config.env, load_game(config.game))
    assert form.screen is not None
    shape = form.screen.shape
    frames = np.zeros((_FRAMES, *shape), np.uint8)
    began = time.perf_counter()
    for _ in range(10):
        form.screen.pack(frames)
    return 1e6 * (time.perf_counter() - began) / (10 * _FRAMES)


def parts_rows(work: Work) -> Iterator[tuple[str, list[str]]]:
    """Yield the name, and the arguments of `print_parts`."""
    for precision in ("float32", "bf16"):
        words = [*work.overrides(), f"algorithm.precision={precision}"]
        yield f"ppo {precision}", [str(CONFIG), *words]
        yield f"ppo lstm {precision}", [str(CONFIG), *words, *memory_words(work)]
    for where in dict.fromkeys(("cpu", work.device)):  # once on a machine without a GPU
        settings = (f"env.n_envs={work.n_envs}", f"device={work.device}")
        replay = ("algorithm.replay.capacity=20_000", f"algorithm.replay.device={where}")
        yield f"dqn Pond on {where}", [str(_DQN), *settings, *replay]


def memory_words(work: Work) -> list[str]:
    memory = f"{{kind: lstm, size: 256, sequence: {min(64, work.n_steps)}}}"
    return ["env.frame_stack=1", f"algorithm.memory={memory}"]


def show_parts(work: Work, clock: Clock) -> None:
    print(f"\n{work.n_envs} envs, µs a timestep")
    heads = f"{'emulation':>9} {'(packing)':>9} {'network':>8} {'update':>8} {'timesteps/s':>11}"
    print(f"{'':<18} {heads}")
    for name, arguments in parts_rows(work):
        text = clock.output_of(name, [sys.executable, "-c", _PARTS, *arguments])
        if text is None:
            continue
        found = json.loads(text.splitlines()[-1])
        whole = found["emulation"] + found["network"] + found["update"]
        print(
            f"{name:<18} {found['emulation']:>9.1f} {found['packing']:>9.1f} "
            f"{found['network']:>8.1f} {found['update']:>8.1f} {1e6 / whole:>11,.0f}",
            flush=True,
        )


# ---------------------------------------------------------------------- memory


def memory_cases(work: Work) -> dict[str, Case]:
    """Return runs of three updates of one epoch each."""
    n, steps, batch = work.n_envs, work.n_steps, work.batch_size
    plain = Case(n, steps, "half", "grey", 4, batch, 1, "bf16", updates=3)
    remembers = Case(n, steps, "half", "grey", 1, batch, 1, "bf16", updates=3, memory="lstm")
    return {"ppo bf16": plain, "ppo lstm bf16": remembers}


def show_memory(work: Work, clock: Clock) -> None:
    print(f"\n{work.n_envs} envs, MB: measured, forecast, error")
    print(
        f"{'':<18} {'RAM':>8} {'forecast':>8} {'error':>6} {'VRAM':>8} {'forecast':>8} {'error':>6}"
    )
    for name, case in memory_cases(work).items():
        with tempfile.TemporaryDirectory() as folder:
            run_dir = Path(folder) / "run"
            words = case.overrides(run_dir, Path(folder), device=work.device)
            command = [sys.executable, str(preflight_accuracy._TRAIN), "--config", str(case.path)]
            if clock.output_of(f"memory of {name}", [*command, *words]) is None:
                continue
            text = (run_dir / "footprint.json").read_text(encoding="utf-8")
        footprint: dict[str, Any] = json.loads(text)
        cells = _memory_cells(footprint, "ram_peak_bytes")
        if work.device != "cpu":
            cells += " " + _memory_cells(footprint, "vram_reserved_bytes")
        print(f"{name:<18} {cells}", flush=True)


def _memory_cells(footprint: dict[str, Any], key: str) -> str:
    found = footprint.get(key)
    if not found:
        return f"{'':>8} {'':>8} {'':>6}"
    measured, predicted = found["measured"] / 1e6, found["predicted"] / 1e6
    return f"{measured:>8,.0f} {predicted:>8,.0f} {found['error']:>+6.1%}"


# ---------------------------------------------------------------------- speed


def speed_commands(work: Work) -> dict[str, list[str]]:
    """Return the command of each peer; sb3-contrib is left out where it is not installed."""
    start = [sys.executable]
    found = {
        peer: [*start, *training.PEERS[peer], *work.arguments()]
        for peer in ("plain", "ours-float32", "ours-bf16")
    }
    if importlib.util.find_spec("sb3_contrib") is not None:
        found["sb3-contrib lstm"] = recurrent.speed_command(recurrent.PEERS[0], work)
    ours = found["ours-float32"]
    for precision in ("float32", "bf16"):
        words = [*memory_words(work), f"algorithm.precision={precision}"]
        found[f"ours lstm {precision}"] = [*ours, *set_words(words)]
    return found


def show_speed(works: Sequence[Work], clock: Clock) -> None:
    print("\ntimesteps/s, and µs of rollout and of update a timestep")
    print(f"{'':<18} {'envs':>5} {'timesteps/s':>11} {'rollout':>8} {'update':>8}")
    for work in works:
        for peer, command in speed_commands(work).items():
            text = clock.output_of(f"{peer} with {work.n_envs} envs", command)
            if text is None:
                continue
            seconds = json.loads(text.splitlines()[-1])
            run = training.run_of(seconds, work.rollout_timesteps)
            print(
                f"{peer:<18} {work.n_envs:>5} {run.timesteps_per_s:>11,.0f} "
                f"{run.collect_us:>8.1f} {run.update_us:>8.1f}",
                flush=True,
            )


def works_of(options: argparse.Namespace) -> list[Work]:
    return [
        Work(
            n_envs=n,
            n_steps=options.n_steps,
            batch_size=n * options.n_steps // _BATCHES,
            n_epochs=_EPOCHS,
            device=options.device,
            updates=options.updates,
        )
        for n in options.n_envs
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="of the network: cuda or cpu")
    parser.add_argument("--n-envs", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--n-steps", type=int, default=64, help="timesteps of an env in a rollout")
    parser.add_argument("--updates", type=int, default=4, help="of a training whose speed is timed")
    parser.add_argument("--minutes", type=float, default=8.0)
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        raise SystemExit(
            "torch sees no GPU here; try the script with --device cpu --n-envs 2 4 --updates 2"
        )
    works = works_of(options)
    problem = next((w for w in works if w.batch_size % min(64, w.n_steps)), None)
    if problem is not None:
        raise SystemExit(
            f"a batch of {problem.batch_size} timesteps ({problem.n_envs} envs x "
            f"{problem.n_steps} / {_BATCHES}) has no whole sequences of "
            f"{min(64, problem.n_steps)}; use numbers of envs that {_BATCHES} divides"
        )
    machine = detect_machine(Path())
    gpus = ", ".join(f"{gpu.total_bytes / 1e9:.0f} GB" for gpu in machine.gpus) or "none"
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "stable-baselines3"))
    print(f"{effective_cpus():g} cores; GPUs: {gpus}; network on {options.device}; {packages}")
    clock = Clock(options.minutes)
    middle = works[len(works) // 2]
    show_parts(middle, clock)
    show_memory(middle, clock)
    show_speed(works, clock)
    for name in clock.left_out:
        print(f"left out: {name}")


if __name__ == "__main__":
    main()
