"""The live file: what is written is read, and never half of it."""

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from game_rl.config.schema import EnvConfig
from game_rl.envs.make_env import make_observation_format
from game_rl.files.run_dir import RunDir
from game_rl.games.definition import load_game
from game_rl.live.live_file import LiveLayout, LiveReader
from game_rl.live.live_writer import (
    LiveFile,
    SlotWriter,
    draw_next,
    make_live_layout,
    most_live_bytes,
    open_live_file,
    shown_step,
)
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game
from tests.live.live_writing import layout_of, numbered_step

N_ENVS = 3


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.fixture
def live(run_dir: RunDir) -> Iterator[LiveFile]:
    live = LiveFile(run_dir.live_frames, layout_of(N_ENVS), clock=Clock())
    yield live
    live.close()


def opened(run_dir: RunDir) -> LiveReader:
    reader = LiveReader.open(run_dir)
    assert reader is not None
    return reader


def writer_of(live: LiveFile, env: int) -> SlotWriter:
    return SlotWriter(open_live_file(live.path), live.layout, env)


def write(writer: SlotWriter, number: int) -> None:
    step, observation = numbered_step(number)
    writer.write(step, observation, action=number % 9, timestep=number)


def sequence_at(live: LiveFile, env: int) -> int:
    content = live.path.read_bytes()
    at = live.layout.slot_at(env)
    return int.from_bytes(content[at : at + 8], "little")


def test_what_is_written_is_read(live: LiveFile, run_dir: RunDir) -> None:
    assert opened(run_dir).read() == []
    writer = writer_of(live, 1)
    writer.episode = 4
    write(writer, 37)
    rows = np.arange(N_ENVS * 10, dtype=np.float32).reshape(N_ENVS, 10)
    live.write_values(37, rows)
    (screen,) = opened(run_dir).read()
    step, observation = numbered_step(37)
    assert (screen.env, screen.timestep, screen.episode, screen.action) == (1, 37, 4, 1)
    assert (screen.start_state, screen.episode_timestep) == ("level_2", 38)
    assert screen.reward_terms == step.reward_terms
    assert screen.episode_reward == sum(step.reward_terms.values())
    assert screen.variables == step.variables
    assert screen.place is None
    np.testing.assert_array_equal(screen.pixels, step.screen[:, :, 0])
    np.testing.assert_array_equal(screen.parts["screen"], observation)
    assert (screen.value, screen.action_values) == (10.0, list(range(11, 20)))


def test_values_of_another_timestep_are_not_taken_for_those_of_the_screen(
    live: LiveFile, run_dir: RunDir
) -> None:
    rows = np.zeros((N_ENVS, 10), np.float32)
    write(writer_of(live, 0), 5)
    reader = opened(run_dir)
    live.write_values(4, rows + 4)
    assert reader.read()[0].value is None
    live.write_values(5, rows + 5)
    assert reader.read()[0].value == 5
    live.write_values(6, rows + 6)  # the values of the timestep before are still there
    assert opened(run_dir).read()[0].value == 5


def test_a_slot_that_its_killed_writer_left_half_written_is_skipped(
    live: LiveFile, run_dir: RunDir
) -> None:
    write(writer_of(live, 0), 1)
    write(writer_of(live, 2), 1)
    reader = opened(run_dir)
    assert [screen.env for screen in reader.read()] == [0, 2]
    half = bytearray(live.path.read_bytes())
    at = live.layout.slot_at(2)
    half[at : at + 8] = (3).to_bytes(8, "little")
    half[at + 2_000 : at + 3_000] = bytes(1_000)
    live.path.write_bytes(half)  # in place
    began = time.monotonic()
    screens = reader.read()
    assert time.monotonic() - began < 2
    assert [screen.timestep for screen in screens] == [1, 1]  # its last whole screen
    np.testing.assert_array_equal(screens[1].pixels, numbered_step(1)[0].screen[:, :, 0])
    assert [screen.env for screen in opened(run_dir).read()] == [0]
    successor = writer_of(live, 2)
    assert successor.episode == 1  # another than the one that was cut short
    write(successor, 7)
    assert [screen.timestep for screen in reader.read()] == [1, 7]
    assert sequence_at(live, 2) % 2 == 0


def test_a_damaged_slot_is_not_shown(live: LiveFile, run_dir: RunDir) -> None:
    write(writer_of(live, 0), 1)
    damaged = bytearray(live.path.read_bytes())
    damaged[live.layout.slot_at(0) + 500] ^= 1
    live.path.write_bytes(damaged)
    assert opened(run_dir).read() == []


WRITING = """
import sys
from pathlib import Path
from game_rl.live.live_writer import SlotWriter, open_live_file
from tests.envs.example import FAKE_GAME_YAML, fake_env, fake_game
from tests.live.live_writing import layout_of, numbered_step

path, n_envs, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
writer = SlotWriter(open_live_file(path), layout_of(n_envs), 0)
steps = [numbered_step(number) for number in range(first, first + 50)]
print("writes", flush=True)
while True:
    for number, (step, observation) in enumerate(steps, first):
        writer.write(step, observation, action=number % 9, timestep=number)
"""


def writing_process(live: LiveFile, first: int) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", WRITING, str(live.path), str(N_ENVS), str(first)]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"writes"
    return process


def assert_whole(screen: Any) -> None:
    """All that is in a screen belongs to one timestep."""
    step, observation = numbered_step(screen.timestep)
    np.testing.assert_array_equal(screen.pixels, step.screen[:, :, 0])
    np.testing.assert_array_equal(screen.parts["screen"], observation)
    assert screen.variables == step.variables
    assert screen.reward_terms == step.reward_terms
    assert screen.action == screen.timestep % 9


@pytest.mark.slow
def test_screens_are_whole_while_a_process_writes_and_after_it_is_killed(
    live: LiveFile, run_dir: RunDir
) -> None:
    reader = opened(run_dir)
    for first in (0, 50):
        with writing_process(live, first) as process:
            seen: set[int] = set()
            until = time.monotonic() + 20
            while len(seen) < 25 and time.monotonic() < until:
                for screen in reader.read():
                    assert_whole(screen)
                    seen.add(screen.timestep)
            os.kill(process.pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
        assert len(seen) >= 25
        for screen in reader.read():
            assert_whole(screen)


def test_it_is_watched_for_ten_seconds_after_somebody_says_so(
    live: LiveFile, run_dir: RunDir
) -> None:
    clock = live._clock
    assert isinstance(clock, Clock)
    assert not live.is_watched()
    reader = opened(run_dir)
    assert reader.can_want
    reader.want()
    assert live.is_watched()
    clock.now = 9.9
    assert live.is_watched()
    reader.want()
    assert live.is_watched()
    clock.now = 19.8
    assert live.is_watched()
    clock.now = 20.0
    assert not live.is_watched()
    again = LiveFile(live.path, live.layout)  # of the next session
    assert not again.is_watched()
    again.close()


def test_a_reader_knows_that_the_session_has_ended(live: LiveFile, run_dir: RunDir) -> None:
    write(writer_of(live, 0), 1)
    with opened(run_dir) as reader:
        assert reader.is_current
        live.close()
        live.close()
        assert not live.path.exists()
        assert not reader.is_current
        again = LiveFile(live.path, live.layout)
        assert not reader.is_current
        assert opened(run_dir).read() == []
        again.close()
    assert LiveReader.open(run_dir) is None


@pytest.mark.parametrize("damage", ["no magic", "another version", "cut", "empty"])
def test_a_file_of_another_kind_has_no_reader(damage: str, live: LiveFile, run_dir: RunDir) -> None:
    content = live.path.read_bytes()
    live.path.write_bytes(
        {
            "no magic": b"x" + content[1:],
            "another version": content.replace(b'"version":1', b'"version":2'),
            "cut": content[:300],
            "empty": b"",
        }[damage]
    )
    assert LiveReader.open(run_dir) is None


def test_a_file_that_lost_its_end_shows_nothing(live: LiveFile, run_dir: RunDir) -> None:
    write(writer_of(live, 0), 1)
    reader = opened(run_dir)
    os.truncate(live.path, live.layout.slot_at(0) + 100)
    assert reader.read() == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_who_may_only_read_cannot_ask_for_screens(live: LiveFile, run_dir: RunDir) -> None:
    live.path.chmod(0o400)
    reader = opened(run_dir)
    assert not reader.can_want
    reader.want()
    assert not live.is_watched()


def test_the_terms_of_an_own_reward_class_are_written_as_far_as_there_is_room(
    run_dir: RunDir,
) -> None:
    layout = layout_of(1, has_own_reward=True)
    live = LiveFile(run_dir.live_frames, layout)
    step, observation = numbered_step(0)
    few = {"damage_dealt": 1.5, "lines": 2.0, "höhe": -1.0}
    writer_of(live, 0).write(step._replace(reward_terms=few), observation, action=0, timestep=1)
    (screen,) = opened(run_dir).read()
    assert screen.reward_terms.items() >= few.items()
    assert screen.episode_reward == 2.5
    many = {f"term_{n}": float(n) for n in range(500)}
    writer_of(live, 0).write(step._replace(reward_terms=many), observation, action=0, timestep=2)
    (screen,) = opened(run_dir).read()
    own = {name: earned for name, earned in screen.reward_terms.items() if name in many}
    assert 20 < len(own) < 500
    assert own.items() <= many.items()
    assert screen.episode_reward == sum(many.values())
    live.close()


def test_the_format_is_the_documented_one(live: LiveFile) -> None:
    """A reader that knows nothing but docs/reference/run-directory.md."""
    write(writer_of(live, 1), 6)
    content = live.path.read_bytes()
    assert content[:8] == b"GRLLIVE\x01"
    size = int.from_bytes(content[8:12], "little")
    layout: dict[str, Any] = json.loads(content[64 : 64 + size])
    start = -(-(64 + size) // 64) * 64 + 1 * layout["slot_bytes"]
    slot = content[start : start + layout["slot_bytes"]]
    fields = {field["name"]: field for field in layout["slot"]}

    def of(name: str) -> np.ndarray:
        field = fields[name]
        count = int(np.prod(field["shape"], dtype=int))
        return np.frombuffer(slot, field["dtype"], count, field["offset"]).reshape(field["shape"])

    assert of("sequence") == 2
    assert of("crc") == zlib.crc32(slot[12:])
    assert of("timestep") == 6
    packed = of("pixels")
    stretches = [packed >> shift & 3 for shift in (6, 4, 2, 0)]
    grey = np.array(layout["palette"])[np.concatenate(stretches)][:, 0].reshape(144, 160)
    np.testing.assert_array_equal(grey, numbered_step(6)[0].screen[:, :, 0])
    assert len(content) == start + 2 * layout["slot_bytes"] + 2 * layout["values_bytes"]


def test_arrays_places_and_parts_of_every_kind_are_shown(run_dir: RunDir) -> None:
    variables = FAKE_GAME_YAML["variables"] | {
        "flags": {"address": 0xC000, "type": "bits", "bytes": 2},
        "bytes": {"addresses": [0xC003, 0xC004]},
        "share": {"ratio": ["health", "x"]},
    }
    parts = {
        "numbers": {"vector": [{"variable": "x", "scale": 0.01}, {"variable": "flags"}]},
        "level": {"categories": "level", "of": 8},
        "tiles": {
            "tiles": {"area": {"width": 20, "height": 18}, "classes": {"low": list(range(40))}}
        },
        "places": {"visited": {"radius": 4}},
        "moves": {"actions": 3},
    }
    game = fake_game(variables=variables, parts=parts, place=["level", "x", "health"])
    with closing(fake_env(game, frame_format=None, parts=list(parts))) as env:
        layout = make_live_layout(
            game, env.packing, run_id="0" * 32, n_envs=1, fps=4, has_probabilities=False
        )
        live = LiveFile(run_dir.live_frames, layout)
        env.reset(seed=4)
        for action in (2, 2, 1):
            draw_next(env)
            observation, *_ = env.step(action)
        writer_of(live, 0).write(shown_step(env), observation, action=1, timestep=3)
        values = env.read_variables()
    (screen,) = opened(run_dir).read()
    live.close()
    assert screen.variables == {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    flags = values["flags"]
    assert isinstance(flags, tuple)
    assert len(flags) == 16
    assert screen.place == (values["level"], values["x"], values["health"])
    assert isinstance(observation, dict)
    assert list(screen.parts) == sorted(parts)
    for name, array in observation.items():
        assert screen.parts[name].dtype == array.dtype
        np.testing.assert_array_equal(screen.parts[name], array)
    labels = {part.name: part.labels for part in layout.parts}
    assert labels["numbers"] == ("x", *(f"flags[{bit}]" for bit in range(16)))
    assert labels["tiles"] == ("", "low")
    assert labels["places"] == ("", "visited")
    assert labels["moves"] == ("", "idle", "left", "right", "hurt")
    assert {part.name: part.kind for part in layout.parts}["level"] == "categories"


def test_a_beginning_that_is_no_start_state_has_no_name(live: LiveFile, run_dir: RunDir) -> None:
    step, observation = numbered_step(0)
    elsewhere = step._replace(start_state="elsewhere")
    writer_of(live, 0).write(elsewhere, observation, action=0, timestep=1)
    assert opened(run_dir).read()[0].start_state == ""


def test_a_file_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "live.frames").mkdir()
    with pytest.raises(OSError, match=r"live\.frames"):
        LiveFile(tmp_path / "live.frames", layout_of(1))
    assert [path.name for path in tmp_path.iterdir()] == ["live.frames"]


@pytest.mark.parametrize(
    ("name", "has_screen"),
    [("duel", True), ("seasons", True), ("beacon", True), ("duel", False), ("seasons", False)],
)
def test_the_file_is_not_larger_than_the_preflight_says(name: str, has_screen: bool) -> None:
    game = load_game(name)
    parts = tuple(game.definition.parts)
    env = EnvConfig(observation={"screen": has_screen, "parts": parts})  # type: ignore[arg-type]
    seen = make_observation_format(env, game)
    layout: LiveLayout = make_live_layout(
        game, seen, run_id="a" * 32, n_envs=16, fps=4, has_probabilities=True
    )
    most = most_live_bytes(
        seen, n_envs=16, n_actions=len(game.action_names), four_shades=not game.is_colour
    )
    assert layout.file_bytes <= most
