"""The contenders of `benchmarks.vec_env`, each a program that measures on request.

    python -c "from benchmarks.vec_env_contenders import main; main()" ours duel 8

The program first prints a line with its workers' memory. For each line on stdin, a number of
seconds, it plays random actions for that long. It then prints its timesteps per second and the
microseconds of CPU that its own process, without workers, takes for a vec step. (It is not run with
`python -m`, because worker processes would import this module again, and torch with it.)
"""

import functools
import hashlib
import io
import itertools
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from game_rl.config.schema import EnvConfig
from game_rl.emulator.emulator import Button
from game_rl.emulator.saved_state import unpack_state
from game_rl.envs.make_env import make_emulator, make_env, make_observation_format
from game_rl.games.definition import Game, load_game
from game_rl.games.start_state import make_start_state
from game_rl.system.machine import effective_cpus
from game_rl.system.process_memory import process_tree_memory, resident_bytes
from tests.emulator.roms import make_rom

_CONFIG = EnvConfig()
_ROLLOUT_VEC_STEPS = 32
_ACTIONS = 10_000  # drawn in advance, then repeated
_RAW_EPISODE_TIMESTEPS = 250  # about as long as a fight with random buttons

# Its program never halts the processor, which makes emulation as slow as it can be.
_BUSY_GAME = """\
title: Busy
rom: {{path: busy.gb, sha256: {sha256}}}
hardware: dmg
start_states: {{beginning: {{script: [{{wait: 90}}]}}}}
actions: {{idle: [], left: [left], right: [right], a: [a], b: [b]}}
variables: {{counter: {{address: 0xC000}}}}
rewards: {{counted: {{variable: counter, on: increase, weight: 0.001}}}}
"""


def game_called(name: str, folder: Path) -> Game:
    if name != "busy":
        return load_game(name)
    rom = make_rom(title=b"BUSY")
    (folder / "busy.gb").write_bytes(rom)
    sha256 = hashlib.sha256(rom).hexdigest()
    (folder / "game.yaml").write_text(_BUSY_GAME.format(sha256=sha256), encoding="utf-8")
    return load_game(str(folder / "game.yaml"))


@dataclass(frozen=True)
class Contender:
    """A contender: `play(seconds)` returns timesteps per second; `workers` are process ids."""

    play: Callable[[float], float]
    close: Callable[[], None]
    workers: tuple[int, ...]


def ours(game: Game, n_envs: int) -> Contender:
    from game_rl.vec_env.make_vec_env import make_vec_env
    from game_rl.vec_env.vec_env import SharedMemoryVecEnv

    vec_env = make_vec_env(_CONFIG, game, n_envs=n_envs, seed=0)
    vec_env.reset()
    assert isinstance(vec_env.unwrapped, SharedMemoryVecEnv)
    workers = tuple(process.pid or 0 for process in vec_env.unwrapped.processes)
    return Contender(_player(vec_env.step, vec_env.action_space, n_envs), vec_env.close, workers)


def stored(game: Game, n_envs: int) -> Contender:
    """Ours in a rollout without a network: in halves, and each vec step goes into the buffer."""
    import torch

    from game_rl.algorithms.rollout import Decision, vec_steps
    from game_rl.buffers.rollout_buffer import PackedRolloutBuffer
    from game_rl.vec_env.halved_vec_env import HalvedVecEnv
    from game_rl.vec_env.make_vec_env import make_training_env

    config = _CONFIG.model_copy(update={"n_envs": n_envs})
    vec_env = make_training_env(config, game, seed=0)
    assert isinstance(vec_env, HalvedVecEnv)
    observation_format = make_observation_format(config, game)
    buffer = PackedRolloutBuffer(
        _ROLLOUT_VEC_STEPS,
        vec_env.observation_space,
        vec_env.action_space,
        "cpu",
        n_envs=n_envs,
        observation_format=observation_format,
    )
    rng, n_actions = np.random.default_rng(0), len(game.definition.actions)
    seen: list[Any] = [vec_env.reset()]
    zeros = np.zeros(n_envs, np.float32)

    def decide(observations: np.ndarray, *_: object) -> Decision:
        n = len(observations)
        return Decision(rng.integers(n_actions, size=n), torch.zeros(n), torch.zeros(n))

    def play(seconds: float) -> float:
        started, vec_steps_made = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            buffer.reset()
            steps = vec_steps(
                vec_env,
                seen[0],
                decide,
                _ROLLOUT_VEC_STEPS,
                begins=zeros.astype(np.bool_),
                observation_format=observation_format,
            )
            for step in steps:
                actions, values, log_probs = step.decision
                row = (seen[0], actions, zeros, zeros, values, log_probs)
                buffer.add(*row, frames=step.frames)
                seen[0] = step.outcome[0]
            vec_steps_made += _ROLLOUT_VEC_STEPS
        return vec_steps_made * n_envs / elapsed

    workers = tuple(process.pid or 0 for process in vec_env.processes)
    return Contender(play, vec_env.close, workers)


def sb3(game: Game, n_envs: int) -> Contender:
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecMonitor

    multiprocessing.set_forkserver_preload(["stable_baselines3.common.vec_env"])  # starts faster
    subproc = SubprocVecEnv([functools.partial(make_env, _CONFIG, game)] * n_envs)
    vec_env = VecFrameStack(VecMonitor(subproc), _CONFIG.frame_stack, channels_order="first")
    vec_env.seed(0)
    vec_env.reset()
    workers = tuple(process.pid or 0 for process in subproc.processes)
    return Contender(_player(vec_env.step, vec_env.action_space, n_envs), vec_env.close, workers)


def gymnasium(game: Game, n_envs: int) -> Contender:
    """Gymnasium's AsyncVectorEnv, whose workers stack frames with Gymnasium's own wrapper."""

    def stacked() -> gym.Env[Any, Any]:
        env = make_env(_CONFIG, game)
        return gym.wrappers.FrameStackObservation(env, _CONFIG.frame_stack, padding_type="zero")

    vec_env = gym.vector.AsyncVectorEnv([stacked] * n_envs, shared_memory=True)
    vec_env.reset(seed=0)
    workers = tuple(process.pid or 0 for process in vec_env.processes)
    space = vec_env.single_action_space
    return Contender(_player(vec_env.step, space, n_envs), vec_env.close, workers)


def raw(game: Game, n_envs: int, *, count_loads: bool = False) -> Contender:
    """The upper limit: `PyBoy.tick` alone, on all cores, with as many emulators as envs."""
    return _on_each_core(functools.partial(_tick_raw, count_loads=count_loads), game, n_envs)


def bare_envs(game: Game, n_envs: int) -> Contender:
    """Our envs without a vec env: no core waits for another, and observations go nowhere."""
    return _on_each_core(_step_envs, game, n_envs)


def lockstep(game: Game, n_envs: int) -> Contender:
    """Like `bare_envs`, but a vec step begins when all cores have finished the one before."""
    meeting = _Meeting(effective_cpus())
    return _on_each_core(functools.partial(_step_envs, meeting=meeting), game, n_envs)


def _on_each_core(
    target: Callable[[Connection, Game, int, int], None], game: Game, n_envs: int
) -> Contender:
    """A contender of one process for each core, whose speeds are added."""
    cores = effective_cpus()
    pipes = [multiprocessing.Pipe() for _ in range(cores)]
    processes = []
    for core, (_, theirs) in enumerate(pipes):
        process = multiprocessing.Process(
            target=target, args=(theirs, game, max(1, n_envs // cores), core), daemon=True
        )
        process.start()
        processes.append(process)

    def play(seconds: float) -> float:
        for ours, _ in pipes:
            ours.send(seconds)
        return float(sum(ours.recv() for ours, _ in pipes))

    def close() -> None:
        for process in processes:
            process.kill()

    return Contender(play, close, tuple(process.pid or 0 for process in processes))


CONTENDERS: dict[str, Callable[[Game, int], Contender]] = {
    "raw": raw,
    "raw+loads": functools.partial(raw, count_loads=True),
    "envs": bare_envs,
    "lockstep": lockstep,
    "ours": ours,
    "stored": stored,
    "sb3": sb3,
    "gymnasium": gymnasium,
}


def _player(
    step: Callable[[Any], object], action_space: gym.Space[Any], n_envs: int
) -> Callable[[float], float]:
    n_actions = int(getattr(action_space, "n"))  # noqa: B009 - Discrete, to mypy any space
    drawn = np.random.default_rng(0).integers(n_actions, size=(_ACTIONS, n_envs))
    actions = itertools.cycle(drawn)

    def play(seconds: float) -> float:
        started, vec_steps = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            step(next(actions))
            vec_steps += 1
        return vec_steps * n_envs / elapsed

    return play


class _Meeting:
    """A barrier of processes that wait in a busy loop, as nothing is faster."""

    def __init__(self, n_processes: int) -> None:
        self._n_met = multiprocessing.RawArray("q", n_processes)  # vec steps, of each
        self._n_wanted = multiprocessing.RawValue("q", 0)

    def is_last(self, process: int, *, is_over: bool) -> bool:
        """Wait for all processes; return whether the first one has said that it is over."""
        n = self._n_met[process] + 1
        if process == 0:
            self._n_wanted.value = n if is_over else n + 1
        self._n_met[process] = n
        while min(self._n_met) < n:
            pass
        return bool(self._n_wanted.value == n)


def _step_envs(
    connection: Connection, game: Game, n_envs: int, core: int, *, meeting: _Meeting | None = None
) -> None:
    """Play in one process for the seconds in each message; reply with timesteps per second."""
    envs = [make_env(_CONFIG, game) for _ in range(n_envs)]
    n_actions = len(game.definition.actions)
    drawn = np.random.default_rng(core).integers(n_actions, size=(_ACTIONS, n_envs)).tolist()
    next_actions = itertools.cycle(drawn).__next__
    for number, env in enumerate(envs):
        env.reset(seed=core * n_envs + number)
    while True:
        seconds, n_timesteps, is_over = connection.recv(), 0, False
        started = time.perf_counter()
        while not is_over:
            for env, action in zip(envs, next_actions(), strict=True):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
            n_timesteps += n_envs
            is_over = time.perf_counter() - started >= seconds
            if meeting is not None:
                is_over = meeting.is_last(core, is_over=is_over)
        connection.send(n_timesteps / (time.perf_counter() - started))


def _tick_raw(
    connection: Connection, game: Game, n_emulators: int, seed: int, *, count_loads: bool
) -> None:
    """Tick in one process for the seconds in each message; reply with ticks per second."""
    start_state = _raw_start_state(game)
    emulators = [_RawEmulator(game) for _ in range(n_emulators)]
    actions = tuple(frozenset(buttons) for buttons in game.definition.actions.values())
    drawn = np.random.default_rng(seed).integers(len(actions), size=_ACTIONS).tolist()
    next_action = itertools.cycle(drawn).__next__
    age = _RAW_EPISODE_TIMESTEPS
    while True:
        seconds = connection.recv()
        measured_s, n_ticks = 0.0, 0
        while measured_s < seconds:
            if age == _RAW_EPISODE_TIMESTEPS:
                started, age = time.perf_counter(), 0
                for emulator in emulators:
                    emulator.load(start_state)
                measured_s += count_loads * (time.perf_counter() - started)
            started = time.perf_counter()
            for emulator in emulators:
                emulator.tick(actions[next_action()])
            measured_s += time.perf_counter() - started
            age += 1
            n_ticks += n_emulators
        connection.send(n_ticks / measured_s)


class _RawEmulator:
    def __init__(self, game: Game) -> None:
        from pyboy import PyBoy  # imported here, as it warns unless game_rl has imported it before

        rom = io.BytesIO(game.rom.data)
        self._pyboy = PyBoy(
            rom, window="null", sound_emulated=False, no_input=True, cgb=False, log_level=5
        )
        self._held: frozenset[Button] = frozenset()

    def load(self, state: bytes) -> None:
        self._pyboy.load_state(io.BytesIO(state))

    def tick(self, buttons: frozenset[Button]) -> None:
        for button in buttons - self._held:
            self._pyboy.button_press(button)
        for button in self._held - buttons:
            self._pyboy.button_release(button)
        self._held = buttons
        self._pyboy.tick(_CONFIG.frame_skip, True, False)


def _raw_start_state(game: Game) -> bytes:
    """Return the game's first start state in PyBoy's own format."""
    name, spec = next(iter(game.definition.start_states.items()))
    with closing(make_emulator(game)) as emulator:
        packed = make_start_state(
            emulator,
            name,
            spec,
            rom=game.rom,
            power_on=emulator.save_state(),
            folder=game.folder,
        )
    return unpack_state(packed, rom_sha256=game.rom.sha256, is_colour=False)


def main() -> None:
    name, game_name, n_envs = sys.argv[1:]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        contender = CONTENDERS[name](game_called(game_name, folder), int(n_envs))
        stack.callback(contender.close)
        contender.play(0.3)  # warm up
        memory = [(process_tree_memory(p)[0], resident_bytes(p)[0]) for p in contender.workers]
        print(json.dumps(memory), flush=True)
        for line in sys.stdin:
            began_s, began_cpu_s = time.perf_counter(), time.process_time()
            speed = contender.play(float(line))
            vec_steps = speed / int(n_envs) * (time.perf_counter() - began_s)
            print(speed, (time.process_time() - began_cpu_s) / vec_steps * 1e6, flush=True)
