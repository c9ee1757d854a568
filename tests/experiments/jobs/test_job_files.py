"""Request files: written below an experiment, read wherever the experiment is."""

import json
import shutil
from pathlib import Path

import pytest

from game_rl.errors import UsageError
from game_rl.experiments.jobs.job_files import (
    CompareActionsRequest,
    CopyRequest,
    FinishRequest,
    JobRequest,
    PlayRequest,
    StretchRequest,
    read_request,
    request_file,
    write_request,
)


def requests_below(root: Path) -> list[JobRequest]:
    run, result = root / "members" / "03", root / "generations" / "0007" / "03.json"
    return [
        StretchRequest(root=root, run=run, until=64, seed=5, result=result),
        PlayRequest(root=root, run=run, checkpoint=64, episodes=3, seed=5, result=result),
        CopyRequest(
            root=root,
            run=run,
            at=64,
            to=root / "members" / "03.g0007",
            values={"seed": 2**62, "algorithm.learning_rate": {"start": 0.1 + 0.2, "end": 1e-300}},
            fork={"counters": "new"},
            run_id="x",
            known_as="/elsewhere/members/03",
        ),
        CompareActionsRequest(
            root=root,
            members=root / "members",
            checkpoints={"01": 64, "00": 32},
            lake=root / "lake",
            observations=9,
            seed=5,
            result=result,
        ),
        FinishRequest(root=root, run=run, selection="last", episodes=3, seed=5, result=result),
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_request_names_the_same_below_the_experiment_wherever_that_is(
    tmp_path: Path, number: int
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    request = requests_below(here)[number]
    path = here / "generations" / "0007" / "03.request.json"
    path.parent.mkdir(parents=True)
    write_request(path, request)
    assert read_request(path) == request
    assert str(here) not in path.read_text(encoding="utf-8")
    shutil.move(here, there)
    assert read_request(there / path.relative_to(here)) == requests_below(there)[number]


def test_paths_are_as_they_were_where_the_experiment_is_named_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "x" / "generations" / "0007"
    place.mkdir(parents=True)
    for folder, root in ((tmp_path, "x"), (tmp_path / "x", "."), (place.parent, "../../x")):
        monkeypatch.chdir(folder)
        request = requests_below(Path(root))[0]
        path = Path(root, "generations", "0007", "03.request.json")
        write_request(path, request)
        assert read_request(path) == request
    monkeypatch.chdir(place)
    found = read_request(Path("03.request.json"))
    assert isinstance(found, StretchRequest)
    assert found.run == Path("../../members/03")


def test_a_request_stands_beside_its_result() -> None:
    assert request_file(Path("x/03.json")) == Path("x/03.request.json")
    assert request_file(Path("x/arm-0.5-7.json")) == Path("x/arm-0.5-7.request.json")


def test_what_is_no_request_is_said_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "03.request.json"
    with pytest.raises(UsageError, match=r"there is no .*03\.request\.json"):
        read_request(path)
    values = {"root": ".", "job": "stretch", "run": "a", "until": 0, "seed": 1, "result": "b"}
    for change, said in (
        ({}, r"03\.request\.json is not the request of a job: stretch\.until: .*greater"),
        ({"until": 9, "untill": 9}, "stretch.untill: Extra inputs"),
        ({"job": "strech"}, "expected tags"),
    ):
        path.write_text(json.dumps({**values, **change}), encoding="utf-8")
        with pytest.raises(UsageError, match=said):
            read_request(path)
