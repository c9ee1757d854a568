"""Variables that are computed from others, compared with a plain recursion over the file."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.envs.game_boy_env import EnvState, GameBoyEnv
from game_rl.errors import GameFileError
from game_rl.games.definition import load_game
from game_rl.games.symbol_files import Location
from game_rl.games.variable_spec import VariableSpec
from game_rl.games.variables import MemoryVariable, VariableReader, place_array, place_variable
from tests.emulator import fake_emulator as fake
from tests.emulator.fake_emulator import FakeEmulator
from tests.envs.example import FAKE_GAME_YAML, FAKE_ROM, fake_env, fake_game, with_folder
from tests.games.example import VALID_GAME, write_game

START = 0xC100
IN_MEMORY: dict[str, dict[str, Any]] = {
    "a": {"address": START},
    "b": {"address": START + 1, "type": "s8"},
    "flags": {"address": START + 2, "type": "bits", "bytes": 2},
    "levels": {"addresses": [START, START + 3, START + 1]},
}


def placed(variables: dict[str, dict[str, Any]]) -> VariableReader:
    specs = {name: VariableSpec.model_validate(entry) for name, entry in variables.items()}
    found: list[MemoryVariable] = []
    for name, spec in specs.items():
        if spec.addresses is not None:
            found.append(place_array(name, spec, spec.addresses, rom=FAKE_ROM, is_colour=False))
        elif spec.address is not None:
            location = Location(spec.address, None)
            found.append(place_variable(name, spec, location, rom=FAKE_ROM, is_colour=False))
    return VariableReader(found, specs)


def emulator_with(memory: bytes) -> FakeEmulator:
    emulator = FakeEmulator()
    for offset, byte in enumerate(memory):
        emulator.write(START + offset, byte)
    return emulator


def plainly(name: str, variables: dict[str, dict[str, Any]], memory: bytes) -> Any:
    """The value, computed again for each variable that needs it."""
    if name == "a":
        return memory[0]
    if name == "b":
        return memory[1] - 256 if memory[1] > 127 else memory[1]
    if name == "flags":
        return [int(c) for c in f"{memory[2]:08b}"[::-1] + f"{memory[3]:08b}"[::-1]]
    if name == "levels":
        return [memory[0], memory[3], memory[1]]
    ((operation, names),) = variables[name].items()
    if operation == "bit_of":
        found = plainly(names["variable"], variables, memory)
        bits = found if isinstance(found, list) else [found // 2**n % 2 for n in range(8)]
        return bits[names["index"]]
    names = [names] if isinstance(names, str) else names
    values = [plainly(other, variables, memory) for other in names]
    if operation == "ratio":
        return 0 if values[1] == 0 else values[0] / values[1]
    if operation == "difference":
        return values[0] - values[1]
    flat = [n for v in values for n in (v if isinstance(v, list) else [v])]
    if operation == "count":
        return sum(bin(number).count("1") for number in flat)
    return {"sum": sum, "minimum": min, "maximum": max}[operation](flat)


@st.composite
def games(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Variables in memory and computed ones, in any order."""
    variables, numbers = dict(IN_MEMORY), ["a", "b"]
    for index in range(draw(st.integers(1, 8))):
        operation = draw(
            st.sampled_from(["count", "sum", "minimum", "maximum", "ratio", "difference", "bit_of"])
        )
        number = st.sampled_from(numbers)
        entry: Any
        if operation == "count":
            entry = draw(st.sampled_from(["a", "flags", "levels"]))
        elif operation == "bit_of":
            entry = {
                "variable": draw(st.sampled_from(["a", "flags"])),
                "index": draw(st.integers(0, 7)),
            }
        elif operation in ("ratio", "difference"):
            entry = [draw(number), draw(number)]
        else:
            entry = draw(
                st.sampled_from(["flags", "levels"])
                | st.lists(number | st.sampled_from(["flags", "levels"]), min_size=1, max_size=4)
            )
        variables[f"n{index}"] = {operation: entry}
        numbers.append(f"n{index}")
    return {name: variables[name] for name in draw(st.permutations(list(variables)))}


@given(games(), st.binary(min_size=4, max_size=4))
def test_each_is_what_a_plain_recursion_computes(
    variables: dict[str, dict[str, Any]], memory: bytes
) -> None:
    values = placed(variables).read(emulator_with(memory))
    assert set(values) == set(variables)
    for name, value in values.items():
        expected = plainly(name, variables, memory)
        found = list(value) if isinstance(value, tuple) else value
        assert found == expected, name


@given(games(), st.data())
def test_only_what_is_needed_is_read(
    variables: dict[str, dict[str, Any]], data: st.DataObject
) -> None:
    names = data.draw(st.sets(st.sampled_from(sorted(variables)), max_size=3))
    every = placed(variables)
    specs = {name: VariableSpec.model_validate(entry) for name, entry in variables.items()}
    some = VariableReader(every._memory, specs, names)
    emulator = emulator_with(b"\x05\x80\x0f\x01")
    values = some.read(emulator)
    needed, todo = set[str](), list(names)
    while todo:
        name = todo.pop()
        needed.add(name)
        todo += specs[name].sources
    assert set(values) == needed
    assert values == {name: every.read(emulator)[name] for name in values}


def test_a_divisor_of_0_makes_a_ratio_of_0() -> None:
    reader = placed({**IN_MEMORY, "share": {"ratio": ["a", "b"]}})
    assert reader.read(emulator_with(b"\x05\x00\x00\x00"))["share"] == 0.0
    assert reader.read(emulator_with(b"\x05\x02\x00\x00"))["share"] == 2.5


WITH = """
  levels: {{addresses: [0xC040, 0xC041]}}
  events: {{address: 0xC050, type: bits, bytes: 4}}
  signed: {{address: 0xC060, type: s8}}
  {entry}
"""


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("it: {sum: it}", ("variables.it.sum", "from itself (it from it)")),
        (
            "it: {sum: [b, c]}\n  b: {ratio: [c, lives]}\n  c: {maximum: [lives, it]}",
            ("variables.it.sum", "(it from c from it)"),
        ),
        ("it: {sum: [live]}", ("variables.it.sum", "did you mean lives?")),
        ("it: {count: event}", ("variables.it.count", "did you mean events?")),
        ("it: {ratio: [levels, lives]}", ("variables.it.ratio", "levels is an array")),
        ("it: {difference: [lives, events]}", ("variables.it.difference", "events is an array")),
        ("it: {ratio: [lives]}", ("variables.it.ratio", "a list [...] of 2")),
        ("it: {ratio: [lives, lives, lives]}", ("variables.it.ratio", "a list [...] of 2")),
        ("it: {count: signed}", ("variables.it.count", "signed is of type s8")),
        ("it: {count: all}\n  all: {sum: levels}", ("it.count", "all is computed by `sum`")),
        ("it: {bit_of: {variable: lives, index: 8}}", ("it.bit_of", "has no bit 8", "0 to 7")),
        ("it: {bit_of: {variable: events, index: 32}}", ("it.bit_of", "has no bit 32", "0 to 31")),
        ("it: {bit_of: {variable: levels, index: 1}}", ("it.bit_of", "array of numbers")),
        ("it: {bit_of: {variable: events}}", ("variables.it.bit_of.index", "missing")),
        ("it: {sum: []}", ("variables.it.sum", "at least 1")),
        ("it: {sum: levels, count: events}", ("it.sum", "does not go with `count`")),
        ("it: {sum: levels, address: 0xC000}", ("it.address", "does not go with `sum`")),
        ("it: {sum: levels, type: u16}", ("it.type", "does not go with `sum`")),
        ("it: {total: levels}", ("variables.it.total", "unknown key")),
    ],
)
def test_a_wrong_operation_is_refused_with_its_place(
    tmp_path: Path, entry: str, says: tuple[str, ...]
) -> None:
    lines = WITH.format(entry=entry)
    path = write_game(tmp_path, VALID_GAME.replace("\nrewards:", f"{lines}\nrewards:"))
    with pytest.raises(GameFileError) as caught:
        load_game(str(path))
    for part in (str(path), *says):
        assert part in str(caught.value)
    if "total" not in entry:
        assert "1 problem" in str(caught.value), "one cause, one problem"


def test_two_rings_are_both_found_at_once(tmp_path: Path) -> None:
    lines = WITH.format(entry="a: {sum: b}\n  b: {sum: a}\n  c: {sum: d}\n  d: {sum: [c, a]}")
    path = write_game(tmp_path, VALID_GAME.replace("\nrewards:", f"{lines}\nrewards:"))
    with pytest.raises(GameFileError, match=r"(?s)variables\.a\.sum.*variables\.c\.sum"):
        load_game(str(path))


def test_a_chain_of_a_thousand_variables_is_read_in_order() -> None:
    chain = {f"n{i}": {"sum": [f"n{i + 1}", "a"]} for i in range(1_000)}
    reader = placed({**chain, "n1000": {"sum": "a"}, **IN_MEMORY})
    assert reader.read(emulator_with(b"\x03\x00\x00\x00"))["n0"] == 3 * 1_001


def test_a_seed_cannot_be_computed(tmp_path: Path) -> None:
    text = VALID_GAME.replace("seed: {symbol: _seed, type: u8}", "seed: {sum: [lives]}")
    with pytest.raises(GameFileError, match="random_seed: seed is not one whole number in memory"):
        load_game(str(write_game(tmp_path, text)))


def arcade(folder: Path) -> GameBoyEnv:
    """A game with arrays and computed variables, rewarded by terms and by a class."""
    (folder / "arrays.py").write_text(
        "class Arrays:\n"
        "    def reset(self, variables): self.first = variables['both']\n"
        "    def step(self, variables): return variables['both'][0] - self.first[0]\n",
        encoding="utf-8",
    )
    variables = FAKE_GAME_YAML["variables"] | {
        "fitness": {"ratio": ["health", "full"]},
        "full": {"maximum": ["health", "level"]},
        "both": {"addresses": [fake.X, fake.HEALTH]},
        "held": {"address": fake.HELD, "type": "bits", "bytes": 1},
        "n_held": {"count": "held"},
    }
    rewards = {"held": {"variable": "n_held", "on": "value", "weight": 0.5}}
    endings = {"tired": {"variable": "fitness", "at_most": 0.5}}
    game = fake_game(variables=variables, rewards=rewards, endings=endings, reward="arrays:Arrays")
    return fake_env(with_folder(game, folder))


def test_an_env_rewards_ends_and_reports_by_them(tmp_path: Path) -> None:
    env = arcade(tmp_path)
    env.reset(seed=1, options={"start_state": "level_1"})
    assert env.read_variables()["both"] == (80, 8)
    _, reward, *_ = env.step(2)  # right
    assert reward == 0.5 * 1 + 4, "one button is held, and x is 4 above its first value"
    state = EnvState.model_validate(json.loads(env.save_state().model_dump_json()))
    rest = [env.step(3) for _ in range(4)]
    again = arcade(tmp_path)
    again.reset(seed=9)
    again.load_state(state)
    assert [step[1:] for step in rest] == [again.step(3)[1:] for _ in range(4)]
    while not (last := env.step(3))[2]:
        pass
    assert last[4]["game"]["fitness"] == last[4]["game"]["health"] / last[4]["game"]["full"] <= 0.5
    assert set(last[4]["game"]) == {*FAKE_GAME_YAML["variables"], "fitness", "full", "n_held"}
