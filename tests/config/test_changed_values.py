"""Against the config that a file with the same values gives."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from game_rl.config.loader import load_config
from game_rl.config.schema import RunConfig
from game_rl.config.strict_model import Key, StrictModel, with_changed

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
