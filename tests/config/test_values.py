from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_rl.config.algorithms import TeacherConfig
from game_rl.config.values import run_at


@pytest.mark.parametrize(
    ("text", "folder", "timesteps"),
    [
        ("runs/a", "runs/a", None),
        ("runs/a@64", "runs/a", 64),
        ("runs/a@200_000", "runs/a", 200_000),
        ("runs/a@b@1,000", "runs/a@b", 1_000),
        ("runs/a@b", "runs/a@b", None),
        ("@64", "@64", None),
    ],
)
def test_what_follows_the_last_at_is_a_timestep_if_it_is_a_number(
    text: str, folder: str, timesteps: int | None
) -> None:
    assert run_at(text) == (Path(folder), timesteps)


@given(timesteps=st.integers(0, 10**12))
def test_a_run_is_found_from_any_folder(timesteps: int) -> None:
    for text in ("runs/a", f"runs/a@{timesteps}"):
        teacher = TeacherConfig(run=text)
        assert teacher.run == f"{Path.cwd()}/{text}"
        assert TeacherConfig(run=teacher.run) == teacher
