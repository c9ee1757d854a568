"""Start states of episodes, a button script from power-on or a state file, and the random seed."""

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field

from game_rl.config.strict_model import Key, Problem, StrictModel
from game_rl.emulator.battery import LARGEST_BATTERY_BYTES, battery_ram, put_battery_ram
from game_rl.emulator.emulator import Button, Emulator
from game_rl.emulator.rom import Rom
from game_rl.emulator.saved_state import unpack_state
from game_rl.errors import EmulatorError, GameFileError
from game_rl.files.durable_files import write_atomic
from game_rl.games.variable_spec import UNSIGNED, VariableSpec
from game_rl.games.variables import MemoryVariable, Variable

_Frames = Annotated[int, Field(gt=0, le=36_000)]  # ten minutes; more would be a typing error

_LONGEST_SCRIPT_FRAMES = 216_000


class ScriptStep(StrictModel):
    """`{wait: 90}` or `{hold: [start], frames: 4}`."""

    wait: _Frames | None = None
    hold: Annotated[tuple[Button, ...], Field(min_length=1)] | None = None
    frames: _Frames | None = None

    def problems(self) -> Iterable[Problem]:
        holds = self.hold is not None and self.frames is not None and self.wait is None
        waits = self.wait is not None and self.hold is None and self.frames is None
        if not holds and not waits:
            yield Problem((), "write `wait: 90` or `hold: [start], frames: 4`")


def _is_default(value: object) -> bool:
    return not value


# Left out of a dump where they say nothing, so that it is equal to one of an earlier version.
_Values = Annotated[dict[str, int], Field(exclude_if=_is_default)]


class StartStateSpec(StrictModel):
    """One entry of `start_states` in game.yaml."""

    script: Annotated[tuple[ScriptStep, ...], Field(min_length=1)] | None = None
    """Buttons to press from power-on."""
    file: Path | None = None
    """State file, relative to game.yaml, in place of a script."""
    accept_older: Annotated[bool, Field(exclude_if=_is_default)] = False
    """Whether the state may have an older format of PyBoy. It is then converted once, played for
    a moment in another process, and kept as NAME.converted next to the file."""
    battery: Annotated[Path | None, Field(exclude_if=_is_default)] = None
    """Battery file (.sav, .ram), relative to game.yaml: what the cartridge's RAM holds at power-on,
    before the script."""
    write: _Values = Field(default={})
    """Variables that get a value when an episode starts. This changes the game, and reports say
    so."""
    hold_values: _Values = Field(default={})
    """Variables that are set to a value when an episode starts and after each timestep, before
    rewards and endings read them. This changes the game, and reports say so."""

    def problems(self) -> Iterable[Problem]:
        for name in self.write.keys() & self.hold_values.keys():
            yield Problem(
                ("write", name), "hold_values already sets it from the start; remove this"
            )
        if self.script is None and self.file is None:
            yield Problem((), "does not say where episodes start; give it a `script` or a `file`")
        elif self.script is not None and self.file is not None:
            yield Problem((), "has a `script` and a `file`; remove one of the two")
        elif self.accept_older and self.file is None:
            yield Problem(
                ("accept_older",), "goes with `file`, and a script has no format; remove it"
            )
        elif self.battery is not None and self.file is not None:
            yield Problem(
                ("battery",), "a state file has the cartridge's RAM in it; remove `battery`"
            )
        frames = sum(step.wait or step.frames or 0 for step in self.script or ())
        if frames > _LONGEST_SCRIPT_FRAMES:
            yield Problem(
                ("script",),
                f"takes {frames:_} frames, but the limit is {_LONGEST_SCRIPT_FRAMES:_} (an hour); "
                "shorten it, or save a state there and name it as `file`",
            )

    @property
    def values(self) -> Iterator[tuple[Key, str, int]]:
        """Yield each variable that is set, with the key that says so and the value."""
        for section, values in (("write", self.write), ("hold_values", self.hold_values)):
            for name, value in values.items():
                yield (section, name), name, value

    @property
    def in_words(self) -> str:
        """How the start state changes the game; empty if it does not."""
        held, written = (
            ", ".join(f"{name} {verb} {value:,}" for name, value in values.items())
            for values, verb in ((self.hold_values, "is held at"), (self.write, "starts as"))
        )
        return ", ".join(filter(None, (written, held)))


def set_variable(emulator: Emulator, variable: Variable, value: int) -> None:
    """Let the variable read as `value`; the other bits of its bytes stay.

    Raises:
        ValueError: the variable cannot have this value.
    """
    before = int.from_bytes(variable.read_bytes(emulator), "big")
    variable.write(emulator, variable.encode(value, before))


def play_script(emulator: Emulator, script: tuple[ScriptStep, ...]) -> None:
    """Play `script`; the last frame is rendered, so the screen is valid at the end."""
    for step in script:
        frames = step.wait or step.frames
        assert frames is not None
        emulator.hold(step.hold or ())
        if frames > 1:
            emulator.tick(frames - 1, render=False)
        emulator.tick(1, render=True)
    emulator.hold(())


def make_start_state(
    emulator: Emulator, name: str, spec: StartStateSpec, *, rom: Rom, power_on: bytes, folder: Path
) -> bytes:
    """Bring the emulator to a start state and return its state, with a rendered screen.

    Args:
        emulator: emulator to use; it is left in the start state.
        name: name of the start state, for messages.
        spec: entry of the start state in game.yaml.
        rom: the cartridge in the emulator.
        power_on: the emulator's state when it was switched on.
        folder: folder of game.yaml; `file` and `battery` are relative to it.

    Raises:
        GameFileError: the state or battery file cannot be read or is not of this game.
    """
    if spec.script is not None:
        emulator.load_state(power_on)
        if spec.battery is not None:
            battery = folder / spec.battery
            if (problem := battery_problem(battery, rom)) is not None:
                raise GameFileError(f"start state {name}: {problem}")
            put_battery_ram(emulator, _read_battery(battery, rom))
        play_script(emulator, spec.script)
        return emulator.save_state()
    assert spec.file is not None
    path = folder / spec.file
    try:
        emulator.load_state(
            read_state(path, rom, colour=emulator.is_colour, accepts_older=spec.accept_older)
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GameFileError(
            f"start state {name}: {path} cannot be read ({reason}); save the state again"
        ) from None
    except EmulatorError as error:
        raise GameFileError(f"start state {name} ({path}): {error}") from error
    return emulator.save_state()


def battery_problem(path: Path, rom: Rom) -> str | None:
    """Return why the file at `path` cannot be the cartridge's battery file; None if it can."""
    try:
        _read_battery(path, rom)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror or error}); correct the path"
    except ValueError as error:
        return f"{path}: {error}"
    return None


def _read_battery(path: Path, rom: Rom) -> bytes:
    return battery_ram(read_limited(path, LARGEST_BATTERY_BYTES, "the RAM of any cartridge"), rom)


_IGNORED = {
    0xFF04: "the divider register, which becomes 0 whatever is written to it",
    0xFF44: "the number of the line that is drawn, which cannot be written",
}


def seed_problems(
    name: str | None,
    start_states: Mapping[str, StartStateSpec],
    variables: Mapping[str, VariableSpec],
) -> Iterator[Problem]:
    """Yield what is wrong with a seed variable, apart from an unknown name.

    Args:
        name: the value of `random_seed`.
    """
    for state_name, state in start_states.items():
        for key, variable, _ in state.values:
            if variable == name:
                yield Problem(
                    ("start_states", state_name, *key),
                    f"{variable} is the random_seed, which gets a random value; remove one of "
                    "the two",
                    reads=(("random_seed",),),
                )
    seed = variables.get(name or "")
    if seed is None or seed.is_whole_number:
        return
    is_type = seed.operation is None and seed.type not in UNSIGNED
    what = f"is of type {seed.type}" if is_type else "is not one whole number in memory"
    yield Problem(
        ("random_seed",),
        f"{name} {what}; a seed is one of {', '.join(UNSIGNED)}, without `mask`",
        reads=(("variables", str(name)),),
    )


def register_problems(seed: MemoryVariable) -> Iterator[Problem]:
    """Yield a problem for each byte of a seed that is a register which ignores what is written."""
    for place in seed.numbers:
        for register in range(place.address, place.address + place.n_bytes):
            if register in _IGNORED:
                yield Problem(
                    ("random_seed",),
                    f"{seed.name} is at 0x{register:04X}, {_IGNORED[register]}, so every seed "
                    "would be the same; name the variable in which the game keeps its random "
                    "numbers, or remove `random_seed`: env.max_idle_frames varies the start",
                    reads=(("variables", seed.name),),
                )


_LARGEST_STATE_BYTES = 4 * 2**20  # PyBoy's have up to 0.4 MB


def read_limited(path: Path, most_bytes: int, what: str) -> bytes:
    """Read a regular file; raise OSError or ValueError if there is none or it is too large."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is not a regular file")
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it is larger than {what}")
    return data


def read_state(path: Path, rom: Rom, *, colour: bool, accepts_older: bool) -> bytes:
    """Return what an emulator can load of a state file.

    A state of an older format is converted once. The result is kept beside it, as
    `NAME.converted`, where every later process finds it; if it cannot be written there, each
    process converts for itself. It is converted again when the file, the ROM or PyBoy's format is
    another one.

    Raises:
        OSError, ValueError: the file cannot be read.
        EmulatorError: PyBoy refuses the older state, hangs or crashes.
    """
    from game_rl.emulator import pyboy_emulator  # games are read without PyBoy, which is large

    data = read_limited(path, _LARGEST_STATE_BYTES, "any emulator state")
    if not (accepts_older and pyboy_emulator.is_older_state(data)):
        return data
    kept = path.with_name(f"{path.name}.converted")
    made_from = (
        f"{hashlib.sha256(data).hexdigest()} {rom.sha256} {colour} {pyboy_emulator.STATE_FORMAT}"
    )
    key = hashlib.sha256(made_from.encode()).digest()
    with suppress(OSError, ValueError, EmulatorError):
        found = read_limited(kept, _LARGEST_STATE_BYTES, "any emulator state")
        if found.startswith(key):
            state = found.removeprefix(key)
            unpack_state(state, rom_sha256=rom.sha256, is_colour=colour)
            return state
    state = pyboy_emulator.convert_older_state(rom, data, colour=colour)
    with suppress(OSError):
        write_atomic(kept, key + state)
    return state


def state_file_problem(path: Path, rom: Rom, *, colour: bool, accepts_older: bool) -> str | None:
    """Return why a state file is of the wrong format or cannot be converted; None otherwise.

    What is wrong with a file of today's format is found when it is loaded.
    """
    from game_rl.emulator.pyboy_emulator import state_problem

    try:
        state = read_state(path, rom, colour=colour, accepts_older=accepts_older)
    except EmulatorError as error:
        return f"{path}: {error}"
    except (OSError, ValueError):
        return None
    problem = state_problem(state)
    return None if problem is None else f"{path}: {problem}"
