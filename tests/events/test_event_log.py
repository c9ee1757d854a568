"""The event log of a run, also after torn writes and resumes."""

import json
import resource
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from game_rl.events import (
    Begun,
    CheckpointSaved,
    Ended,
    Evaluated,
    Event,
    ExperimentEvent,
    LakesFollowed,
    Progress,
    Resumed,
    RolloutEnded,
    Warned,
)
from game_rl.events.event_log import (
    EventFile,
    EventLog,
    read_events,
    read_experiment_events,
)
from game_rl.events.run_view import read_tail
from game_rl.files.json_lines import JsonLines, located_lines, parsed
from game_rl.files.run_dir import RunDir


def begun() -> Begun:
    return Begun(run="r", algorithm="ppo", total_timesteps=100, device="cpu", precision="float32")


def resumed(timesteps: int, end: int) -> Resumed:
    return Resumed(
        timesteps=timesteps,
        run="r",
        checkpoint=f"{timesteps:012d}",
        total_timesteps=100,
        device="cpu",
        precision="float32",
        superseded_from_bytes=end,
        restored=(),
    )


def saved(timesteps: int) -> CheckpointSaved:
    name = f"{timesteps:012d}"
    return CheckpointSaved(
        timesteps=timesteps, checkpoint=name, n_bytes=1, seconds=0.1, contents=("policy",)
    )


def rollout(timesteps: int) -> RolloutEnded:
    return RolloutEnded(timesteps=timesteps, timesteps_per_s=1.0)


def written(folder: Path, *events: Event) -> RunDir:
    with EventFile(RunDir(folder).events) as file:
        for event in events:
            file.add(event)
    return RunDir(folder)


def test_a_listener_of_a_block_hears_nothing_after_it() -> None:
    always: list[Event] = []
    inside: list[Event] = []
    log = EventLog(listeners=[always.append])
    events = [Warned(timesteps=0, text=text) for text in ("before", "inside", "after")]
    log.emit(events[0])
    with suppress(ZeroDivisionError), log.heard_by(inside.append):
        log.emit(events[1])
        raise ZeroDivisionError
    log.emit(events[2])
    assert (always, inside) == (events, events[1:2])


def test_what_was_written_is_read_in_order(tmp_path: Path) -> None:
    events: list[Event] = [
        begun(),
        rollout(10),
        Warned(text="a “quoted” ü"),
        Ended(reason="completed", exit_code=0),
    ]
    assert read_events(written(tmp_path, *events)) == events


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and those in it."""
    yield model
    for field in model.model_fields.values():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _models(kind)


@pytest.mark.parametrize("kind", [*get_args(Event), *get_args(ExperimentEvent)])
def test_what_may_be_none_may_be_missing_because_it_is_not_written(kind: type[BaseModel]) -> None:
    for model in _models(kind):
        for name, field in model.model_fields.items():
            may_be_none = type(None) in get_args(field.annotation)
            assert not (may_be_none and field.is_required()), f"{model.__name__}.{name}"


def test_an_evaluation_of_a_game_without_success_is_read(tmp_path: Path) -> None:
    event = Evaluated(
        policy_timesteps=1,
        episodes=2,
        mean_reward=0.5,
        std_reward=0,
        success_rate=None,
        mean_length=2,
        seconds=1,
    )
    assert read_events(written(tmp_path, event)) == [event]


def test_a_run_without_an_account_has_an_empty_one(tmp_path: Path) -> None:
    assert read_events(RunDir(tmp_path)) == []


@given(st.data())
def test_what_a_resume_supersedes_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Compare with a list that is cut by hand."""
    folder = tmp_path_factory.mktemp("run")
    expected: list[Event] = []
    marks: list[tuple[int, int]] = []  # bytes of the file and length of the list
    timesteps = 0
    with EventFile(RunDir(folder).events) as file:
        log = EventLog(file)
        for _ in range(data.draw(st.integers(1, 12))):
            kind = data.draw(st.sampled_from(["rollout", "save", "resume", "begin"]))
            if kind == "resume" and marks:
                end, length = data.draw(st.sampled_from(marks))
                event: Event = resumed(1, end)
                expected = expected[:length]
                marks = [mark for mark in marks if mark[0] <= end]
            elif kind == "begin":
                event, expected, marks = begun(), [], []
            else:
                timesteps += 10
                event = rollout(timesteps)
            log.emit(event)
            expected.append(event)
            if kind == "save":
                marks.append((log.n_bytes(), len(expected)))
    assert read_events(RunDir(folder)) == expected


def test_a_checkpoint_is_saved_before_it_is_told_and_stays_in_the_account(tmp_path: Path) -> None:
    with EventFile(tmp_path / "events.jsonl") as file:
        log = EventLog(file)
        log.emit(begun())
        end = log.n_bytes()
        for event in (saved(10), rollout(20), saved(20), resumed(10, end)):
            log.emit(event)
    kept = [(event.event, event.timesteps) for event in read_events(RunDir(tmp_path))]
    assert kept == [("begun", 0), ("checkpoint_saved", 10), ("resumed", 10)]


@pytest.mark.parametrize("lost", [1, 2, 30])
def test_a_torn_last_line_is_left_out_and_later_ones_are_not(tmp_path: Path, lost: int) -> None:
    run_dir = written(tmp_path, begun(), rollout(10), rollout(20))
    run_dir.events.write_bytes(run_dir.events.read_bytes()[:-lost])
    assert [event.timesteps for event in read_events(run_dir)] == [0, 10]
    written(tmp_path, rollout(30))
    wanted = [0, 10, 30] if lost > 1 else [0, 10, 20, 30]
    assert [event.timesteps for event in read_events(run_dir)] == wanted


def test_events_of_a_newer_version_are_left_out(tmp_path: Path) -> None:
    run_dir = written(tmp_path, begun())
    with run_dir.events.open("a", encoding="utf-8") as file:
        file.write('{"event": "danced", "timesteps": 3}\n')
        file.write(json.dumps(json.loads(rollout(10).model_dump_json()) | {"mood": "good"}) + "\n")
    written(tmp_path, rollout(20))
    assert [event.timesteps for event in read_events(run_dir)] == [0, 10, 20]


ROLLOUT = '{"event": "rollout_ended", "timesteps_per_s": 1.0, "timesteps": 7'


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        f'{ROLLOUT}, "time": "2026-01-01T00:00:00"}}',
        f'{ROLLOUT}, "time": "9999-12-31T23:59:59+00:00"}}',
        f'{ROLLOUT}, "time": "0001-01-01T00:00:00+00:00"}}',
        f'{ROLLOUT}, "mean_reward": NaN}}',
        f'{ROLLOUT}, "mean_reward": 1e999}}',
        f'{ROLLOUT}, "mean_reward": -1e308}}',
        ROLLOUT.replace("7", "9" * 30) + "}",
        ROLLOUT.replace("7", "9" * 5_000) + "}",
        ROLLOUT.replace("7", "-7") + "}",
        ROLLOUT.replace("7", "[7]") + "}",
        '"text"',
        "null",
        "",
        "\udcff\udcfe",
    ],
)
def test_a_line_that_no_version_writes_is_left_out(line: str, tmp_path: Path) -> None:
    run_dir = written(tmp_path, begun())
    with run_dir.events.open("ab") as file:
        file.write(line.encode(errors="surrogateescape") + b"\n")
    written(tmp_path, rollout(20))
    assert [event.timesteps for event in read_events(run_dir)] == [0, 20]
    (tmp_path / "experiment").write_bytes(run_dir.events.read_bytes())
    assert read_experiment_events(tmp_path / "experiment") == []
    assert read_tail(run_dir).timesteps == 20


def test_what_is_for_watchers_only_is_not_written(tmp_path: Path) -> None:
    told: list[Event] = []
    with EventFile(tmp_path / "events.jsonl") as file:
        EventLog(file, [told.append]).emit(Progress(timesteps=5, timesteps_per_s=1.0))
    assert len(told) == 1
    assert (tmp_path / "events.jsonl").read_bytes() == b""


def test_events_of_many_threads_are_whole_lines(tmp_path: Path) -> None:
    with EventFile(tmp_path / "events.jsonl") as file:
        log = EventLog(file)

        def warn(text: str) -> None:
            for _ in range(50):
                log.warn(text)

        threads = [threading.Thread(target=warn, args=(f"{n} " * 50,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    texts = [event.text for event in read_events(RunDir(tmp_path)) if isinstance(event, Warned)]
    assert sorted(texts) == sorted(f"{n} " * 50 for n in range(4) for _ in range(50))


_texts = st.lists(st.text(max_size=8).map(json.dumps), max_size=8)


@given(_texts, _texts, st.integers(0, 60))
def test_whole_lines_stay_and_new_ones_are_lines_of_their_own(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str], lost: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    with JsonLines(path) as file:
        for text in before:
            file.append(text)
    content = path.read_bytes()
    content = content[: max(0, len(content) - lost)]
    path.write_bytes(content)
    whole = content.count(b"\n")
    assert [line for _, line in located_lines(path)] == [f"{t}\n".encode() for t in before[:whole]]
    with JsonLines(path) as file:
        for text in after:
            file.append(text)
        assert file.n_bytes() == path.stat().st_size
    found = [line.decode().rstrip("\n") for _, line in located_lines(path)]
    assert found[:whole] == before[:whole]
    assert found[len(found) - len(after) :] == after
    for offset, line in located_lines(path):
        assert path.read_bytes()[offset : offset + len(line)] == line


def test_a_line_that_the_disk_did_not_take_whole_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with JsonLines(path) as file:
        file.append('"one"')
        resource.setrlimit(resource.RLIMIT_FSIZE, (9, limits[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                file.append('"two"')
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.append('"three"')
    texts = TypeAdapter(str)
    found = [parsed(texts, line) for _, line in located_lines(path)]
    assert found == ["one", None, "three"]


def test_no_file_has_no_lines(tmp_path: Path) -> None:
    assert not list(located_lines(tmp_path / "x.jsonl"))


@pytest.mark.parametrize("age_s", [None, 1.5])
def test_a_run_that_has_not_drawn_yet_follows_lakes(tmp_path: Path, age_s: float | None) -> None:
    event = LakesFollowed(timesteps=8, rows=3, newest_age_s=age_s, own_drawn=0, drawn=0)
    (found,) = read_events(written(tmp_path, event))
    assert isinstance(found, LakesFollowed)
    assert (found.newest_age_s, found.rows) == (age_s, 3)
