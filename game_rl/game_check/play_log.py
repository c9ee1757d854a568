"""What check-game notes of play: ranges, sums and pictures; whether memory is as game.yaml says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from game_rl.emulator.emulator import Emulator
from game_rl.emulator.rom import Rom
from game_rl.envs.action_player import WAITED_FRAMES
from game_rl.envs.game_boy_env import GameBoyEnv
from game_rl.envs.observation import parts_seen
from game_rl.game_check.sheets import Moment
from game_rl.games.definition import Game
from game_rl.games.variables import (
    BitArray,
    MemoryVariable,
    Value,
    Values,
    Variable,
    as_tuple,
    switchable_banks,
)

_PICTURES_OF_PLAY = 8
_COMPARED_BYTES = 64  # of each variable, as a reading of every bank takes time


@dataclass
class _Watched:
    """A variable without a bank.

    Attributes:
        places: the numbers or bits of it that are in memory with banks.
        banks: the banks that there are.
        fitting: banks that held what was read, at every reading so far.
        in_no_bank: what was read at the first reading at which no bank held it, or None.
    """

    name: str
    places: tuple[Variable | BitArray, ...]
    banks: range
    fitting: set[int]
    in_no_bank: bytes | None = None

    def look(self, emulator: Emulator) -> None:
        addresses = [a for p in self.places for a in range(p.address, p.address + p.n_bytes)]
        addresses = addresses[:_COMPARED_BYTES]
        found = bytes(emulator.read(a) for a in addresses)
        fits = {
            bank
            for bank in self.banks
            if all(emulator.read(a, bank=bank) == found[i] for i, a in enumerate(addresses))
        }
        self.fitting &= fits
        if not fits and self.in_no_bank is None:
            self.in_no_bank = found

    @property
    def where(self) -> str:
        return (
            f"variables.{self.name}: 0x{self.places[0].address:04X} is in memory with the banks "
            f"{self.banks[0]} to {self.banks[-1]}, and no `bank` is named"
        )


class BankCheck:
    """Looks at the variables without a bank while a game is played."""

    def __init__(self, variables: Iterable[MemoryVariable], rom: Rom, *, is_colour: bool) -> None:
        self._watched: list[_Watched] = []
        for variable in variables:
            parts = (variable,) if isinstance(variable, BitArray) else variable.numbers
            banks = [
                (part, switchable_banks(part.address, rom=rom, is_colour=is_colour))
                for part in parts
                if part.bank is None
            ]
            places = tuple(part for part, several in banks if several)
            if places:
                several = next(several for _, several in banks if several)
                self._watched.append(_Watched(variable.name, places, several, set(several)))

    def look(self, emulator: Emulator) -> None:
        for watched in self._watched:
            watched.look(emulator)

    def warnings(self) -> Iterator[str]:
        """Yield what may be right, with the bank to name."""
        for one in self._watched:
            if len(one.fitting) == 1:
                (bank,) = one.fitting
                way_out = f"at every reading it was bank {bank}: write `bank: {bank}`"
            elif one.fitting:
                shown = ", ".join(map(str, sorted(one.fitting)))
                way_out = f"the banks {shown} fit what was read: name the right one"
            else:
                continue
            yield (
                f"{one.where}, so reads come from the bank that is mapped at that moment; {way_out}"
            )

    def errors(self) -> Iterator[str]:
        """Yield what cannot be right."""
        for one in self._watched:
            if one.in_no_bank is not None:
                yield (
                    f"{one.where}, and what was read ({one.in_no_bank[:4].hex(' ')}) is in none "
                    "of them, because the game disables this memory; name its `bank`"
                )
            elif not one.fitting:
                yield (
                    f"{one.where}; the game switches between them, so what was read is not one "
                    "variable; name its `bank`"
                )


class DecimalCheck:
    """Looks at the bytes of the bcd and digits variables while a game is played."""

    def __init__(self, variables: Iterable[MemoryVariable]) -> None:
        numbers = [number for variable in variables for number in variable.numbers]
        self._variables = tuple(v for v in numbers if v.type == "bcd")
        self._of_digits = tuple(v for v in numbers if v.type == "digits")
        self._no_digit: dict[str, tuple[int, int]] = {}  # a byte after a digit, and its zero
        self._no_decimal: dict[str, int] = {}  # a byte with a half above 9
        self._has_tens: set[str] = set()
        self._digits: dict[str, tuple[bytes, int]] = {}  # a reading of several single digits

    def look(self, emulator: Emulator) -> None:
        for variable in self._variables:
            name = variable.name
            found = variable.read_bytes(emulator)
            for byte in found:
                if byte & 0x0F > 9 or byte >> 4 > 9:
                    self._no_decimal.setdefault(name, byte)
            if any(byte >> 4 for byte in found):
                self._has_tens.add(name)
            elif sum(byte > 0 for byte in found) > 1:
                self._digits[name] = (found, variable.read(emulator))
        for variable in self._of_digits:
            has_begun = False  # blanks before a number are common
            for byte in variable.read_bytes(emulator):
                is_digit = variable.digit_in(byte) is not None
                if has_begun and not is_digit:
                    self._no_digit.setdefault(variable.name, (byte, variable.zero))
                has_begun = has_begun or is_digit

    def warnings(self) -> Iterator[str]:
        for name, byte in self._no_decimal.items():
            yield (
                f"variables.{name}: held 0x{byte:02X}, which is not two decimal digits, so it is "
                "not bcd; correct its type or its address"
            )
        for name, (found, value) in self._digits.items():
            if name not in self._has_tens:
                digits = "".join(f"{byte}" for byte in found)
                yield (
                    f"variables.{name}: no byte held more than one digit; bcd reads "
                    f"{found.hex(' ')} as {value:,}, and if the screen shows {digits}, the game "
                    "keeps one digit in a byte: write `type: digits`"
                )
        for name, (byte, zero) in self._no_digit.items():
            yield (
                f"variables.{name}: held 0x{byte:02X} after a digit, and the digits 0 to 9 are "
                f"0x{zero:02X} to 0x{zero + 9:02X}; correct its zero, bytes, endian or address"
            )


@dataclass(frozen=True)
class VariableRange:
    """The lowest and highest value of a variable, for an array those of its numbers."""

    name: str
    minimum: float
    maximum: float
    changes: int


@dataclass(frozen=True)
class TermSum:
    """The sum that a reward term earned over all episodes, and in how many timesteps."""

    name: str
    total: float
    times: int


@dataclass(frozen=True)
class PlaySums:
    """What a part of the play came to.

    Attributes:
        episodes: episodes begun.
        endings: how many of them each ending ended.
        reward_terms: the sums of this part alone.
    """

    timesteps: int
    episodes: int
    endings: dict[str, int]
    successes: int
    reward_terms: tuple[TermSum, ...]


class PlayLog:
    """The ranges, sums and pictures of everything played."""

    def __init__(self, game: Game, emulator: Emulator) -> None:
        self._emulator = emulator
        self._decimals = DecimalCheck(game.variables)
        self.banks = BankCheck(game.variables, game.rom, is_colour=game.is_colour)
        self.timesteps = self.episodes = self.ended = self.successes = 0
        self._minima: dict[str, float] = {}
        self._maxima: dict[str, float] = {}
        self._firsts: dict[str, Value] = {}
        self._vary: set[str] = set()
        self._changes: dict[str, int] = dict.fromkeys(game.definition.variables, 0)
        self._values: Values = {}
        self._sums: dict[str, float] = dict.fromkeys(game.definition.rewards, 0.0)
        self._times: dict[str, int] = dict.fromkeys(game.definition.rewards, 0)
        self._earned: dict[str, float] = {}
        self._waited: list[int] = []
        self._moments: list[Moment] = []
        self._every = 1
        self._endings: Counter[str] = Counter()
        self._begin_part()

    def take_part(self) -> PlaySums:
        """Return what came of the play since the last call, or since the beginning."""
        terms = (
            TermSum(
                name,
                total - self._part_sums.get(name, 0.0),
                self._times[name] - self._part_times.get(name, 0),
            )
            for name, total in self._sums.items()
        )
        found = PlaySums(
            timesteps=self.timesteps - self._part_begun[0],
            episodes=self.episodes - self._part_begun[1],
            endings=dict(self._endings),
            successes=self.successes - self._part_begun[2],
            reward_terms=tuple(terms),
        )
        self._begin_part()
        return found

    def _begin_part(self) -> None:
        self._part_begun = (self.timesteps, self.episodes, self.successes)
        self._part_sums = dict(self._sums)
        self._part_times = dict(self._times)
        self._endings.clear()

    def begin(self, env: GameBoyEnv) -> None:
        self.episodes += 1
        self._look(env.read_variables(), env.reward_terms)

    def add(self, env: GameBoyEnv, start_state: str, info: Mapping[str, Any]) -> None:
        self.timesteps += 1
        if "ending" in info:
            self.ended += 1
            self._endings[info["ending"]] += 1
        self.successes += bool(info.get("is_success"))
        self._waited.append(info.get(WAITED_FRAMES, 0))
        values = env.read_variables()
        earned = env.reward_terms
        for name, value in values.items():
            self._changes[name] += value != self._values[name]
        for name, total in earned.items():
            gain = total - self._earned.get(name, 0.0)
            self._sums[name] = self._sums.get(name, 0.0) + gain
            self._times[name] = self._times.get(name, 0) + (gain != 0)
        self._look(values, earned)
        # a picture of every n-th timestep is kept; n doubles whenever there are too many
        if self.timesteps % self._every == 0:
            label = f"{start_state}, timestep {self.timesteps}"
            self._moments.append(Moment(label, env.render(), parts_seen(env.observed)))
            if len(self._moments) == 2 * _PICTURES_OF_PLAY:
                self._moments = self._moments[1::2]
                self._every *= 2

    def _look(self, values: Mapping[str, Value], earned: dict[str, float]) -> None:
        self._values = values
        self._earned = earned
        self._decimals.look(self._emulator)
        self.banks.look(self._emulator)
        for name, value in values.items():
            if value != self._firsts.setdefault(name, value):
                self._vary.add(name)
            numbers = as_tuple(value)
            self._minima[name] = min(*numbers, self._minima.get(name, numbers[0]))
            self._maxima[name] = max(*numbers, self._maxima.get(name, numbers[0]))

    def some_moments(self) -> list[Moment]:
        """Return at most eight moments, spread evenly over the play."""
        kept = min(_PICTURES_OF_PLAY, len(self._moments))
        return [self._moments[i * len(self._moments) // kept] for i in range(kept)]

    def _step_warnings(self, game: Game) -> Iterator[str]:
        step = game.definition.step
        if step is None:
            return
        in_vain = self._waited.count(step.at_most_frames)
        if in_vain:
            yield (
                f"step: in {in_vain:,} of {self.timesteps:,} timesteps, `until` did not hold "
                f"within {step.at_most_frames:,} frames; check it, or raise `at_most_frames`"
            )
        elif not any(self._waited):
            yield (
                f"step: `until` held after the action of each of {self.timesteps:,} timesteps; "
                "check it, or play a recorded episode in which the game ignores the buttons"
            )

    def variable_ranges(self) -> tuple[VariableRange, ...]:
        return tuple(
            VariableRange(name, self._minima[name], self._maxima[name], changes)
            for name, changes in self._changes.items()
        )

    def term_sums(self) -> tuple[TermSum, ...]:
        return tuple(TermSum(name, self._sums[name], self._times[name]) for name in self._sums)

    def warnings(self, game: Game, *, has_endings: bool) -> Iterator[str]:
        step = game.definition.step
        awaited: frozenset[str] = frozenset()
        if step is not None and any(self._waited) and step.at_most_frames not in self._waited:
            # the variables for which `step` has waited, which are seen in one state only
            awaited = frozenset(name for _, name in step.until.references())
        for name, value in self._firsts.items():
            if name not in self._vary and name not in awaited:
                always = "" if isinstance(value, tuple) else f", it is always {value}"
                operation = game.definition.variables[name].operation
                what = "its address" if operation is None else f"`{operation}`"
                yield (
                    f"variables.{name}: never changes{always}; "
                    f"check {what}, or play a recorded episode in which it does"
                )
        yield from self._decimals.warnings()
        yield from self.banks.warnings()
        for name, times in self._times.items():
            if not times:
                yield (
                    f"rewards.{name}: earned nothing; check its variable, or play a recorded "
                    "episode that earns it"
                )
        yield from self._step_warnings(game)
        if not has_endings:
            yield "endings: there are none, so only env.max_episode_timesteps ends an episode"
        elif not self.ended:
            yield (
                f"endings: no episode ended in {self.timesteps:,} timesteps; check them, or play "
                "a recorded episode that ends"
            )
