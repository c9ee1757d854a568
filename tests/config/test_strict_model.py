"""Against the config that a file with the same values gives."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import MOST_PROBLEMS, Key, Problem, StrictModel, with_changed


class Range(StrictModel):
    low: float
    high: float

    def problems(self) -> Iterable[Problem]:
        if self.low > self.high:
            yield Problem(("low",), f"{self.low:g} is above high = {self.high:g}", (("high",),))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_number_is_infinite_or_nan(bad: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        Range(low=0, high=bad)


def test_a_section_with_a_problem_cannot_be_made() -> None:
    assert Range(low=1, high=1).low == 1
    with pytest.raises(ValidationError, match="low: 2 is above high = 1"):
        Range(low=2, high=1)


class Complaining(StrictModel):
    def problems(self) -> Iterable[Problem]:
        number = 0
        while True:
            number += 1
            yield Problem((f"key{number}",), "is wrong")


def test_a_check_is_asked_for_no_more_than_anyone_reads() -> None:
    with pytest.raises(ValidationError, match=f"key{MOST_PROBLEMS}: is wrong"):
        Complaining()


TEXT = "game: duel\ntotal_timesteps: 500_000\nrun_dir: runs/x\nalgorithm: {name: pqn}\n"
VALUES: dict[Key, st.SearchStrategy[object]] = {
    ("seed",): st.integers(0, 9),
    ("env", "n_envs"): st.sampled_from([4, 8]),
    ("env", "n_workers"): st.none() | st.integers(1, 2),
    ("env", "observation", "colour"): st.sampled_from(["grey", "rgb"]),
    ("algorithm", "n_steps"): st.sampled_from([64, 128]),
    ("algorithm", "exploration", "end"): st.sampled_from([0.0, 0.25]),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "run.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_values_are_set_as_set_on_the_command_line(file: Path, data: st.DataObject) -> None:
    keys = data.draw(st.sets(st.sampled_from(sorted(VALUES))))
    values = {key: data.draw(VALUES[key]) for key in sorted(keys)}
    config = load_config(file)
    overrides = [
        f"{'.'.join(key)}={'null' if value is None else value}" for key, value in values.items()
    ]
    assert with_changed(config, values) == load_config(file, overrides)
    assert config == load_config(file)


class Inner(StrictModel):
    number: int = 1
    other: int = 2


class Outer(StrictModel):
    inner: Inner | None = None


def test_a_section_that_is_null_becomes_one_of_defaults() -> None:
    changed = with_changed(Outer(), {("inner", "other"): 5})
    assert changed == Outer(inner=Inner(number=1, other=5))


@pytest.mark.parametrize(
    "values",
    [
        {("env", "n_env"): 3},
        {("env", "n_envs"): 0},
        {("env", "n_envs"): 2, ("env", "n_workers"): 3},
        {("nothing", "here"): 3},
    ],
)
def test_what_a_file_could_not_say_is_refused(file: Path, values: dict[Key, object]) -> None:
    config: RunConfig = load_config(file)
    with pytest.raises(ValidationError):
        with_changed(config, values)
