from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from game_rl.config.loader import load_config, load_yaml_model
from game_rl.config.strict_model import Problem, StrictModel
from game_rl.errors import ConfigError, GameFileError

VALID = "game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/test\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problem_lines(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides)
    return str(raised.value).splitlines()[1:]


def test_problems_of_every_kind_are_told_together_in_the_order_of_lines(tmp_path: Path) -> None:
    text = (
        "game: duel\nrun_dir: runs/test\ntotal_steps: 1e6\nseed: -1\nseed: -2\n"
        "env:\n  n_env: 8\n  max_episode_timesteps: null\n"
        "algorithm:\n  n_steps: 256\n  batch_size: 300\n  learning_rate: {end: 0}\n"
    )
    lines = problem_lines(write(tmp_path, text), "env.frame_skip=0")
    assert [line.split(":")[0].split()[-1] for line in lines] == [
        "total_steps",
        "seed",
        "seed",
        "env.n_env",
        "env.max_episode_timesteps",
        "algorithm.batch_size",
        "algorithm.learning_rate.start",
        "env.frame_skip",
    ]


def test_a_check_that_reads_a_wrong_value_is_not_believed(tmp_path: Path) -> None:
    text = VALID + "env: {n_envs: many}\nalgorithm: {n_steps: 256, batch_size: 300}\n"
    (line,) = problem_lines(write(tmp_path, text))
    assert "env.n_envs: found many" in line


def test_a_slip_still_counts_with_its_value_in_other_checks(tmp_path: Path) -> None:
    text = VALID + "env: {num_envs: 3}\nalgorithm: {n_steps: 100, batch_size: 100, n_epoch: -1}\n"
    told = "\n".join(problem_lines(write(tmp_path, text)))
    assert "does not divide" not in told
    assert "algorithm.n_epochs: found -1" in told


def test_a_default_that_disagrees_points_to_the_section_it_would_be_in(tmp_path: Path) -> None:
    text = VALID.replace("400_000", "1e6") + "evaluation:\n  episodes: 3\n"
    lines = problem_lines(write(tmp_path, text), "algorithm.n_steps=16_384")
    assert lines[0].startswith("  line 1  checkpoints.every_timesteps: 100,000 is less")
    assert lines[1].startswith("  line 4  evaluation.every_timesteps: 50,000 is less")


def test_thousands_of_problems_are_cut_short(tmp_path: Path) -> None:
    lines = problem_lines(write(tmp_path, "\n".join(f"key_{n}: {n}" for n in range(5_000))))
    assert len(lines) == 51
    assert "and more" in lines[-1]


# ---- other models --------------------------------------------------------------------------------


class Cell(StrictModel):
    address: Annotated[int, Field(ge=0, le=0xFFFF)]
    kind: Literal["u8", "u16"] = "u8"
    expected: int | None = Field(default=None, alias="is")

    def problems(self) -> Iterable[Problem]:
        if self.kind == "u16" and self.address == 0xFFFF:
            yield Problem(("address",), "a u16 ends beyond the memory; use at most 65534")


class Memory(StrictModel):
    title: str
    cells: dict[str, Cell]
    score: str

    def problems(self) -> Iterable[Problem]:
        if self.score not in self.cells:
            yield Problem(("score",), f"no cell is called {self.score}", (("cells",),))


class Zoo(StrictModel):
    boss: "Annotated[Cat | Dog, Field(discriminator='species')]"
    guest: "Cat | int | None" = None


class Cat(StrictModel):
    species: Literal["cat"] = "cat"
    lives: int = 9


class Dog(StrictModel):
    species: Literal["dog"]
    name: str


def game_file_problems(path: Path, model: type[BaseModel]) -> list[str]:
    with pytest.raises(GameFileError) as raised:
        load_yaml_model(path, model, error=GameFileError)
    return [line.strip() for line in str(raised.value).splitlines()[1:]]


def test_names_that_the_user_chose_are_part_of_the_key(tmp_path: Path) -> None:
    text = "title: x\nscore: a\ncells:\n  a: {address: 0x1_0000}\n  on: {adress: 3, kind: u9}\n"
    assert game_file_problems(write(tmp_path, text), Memory) == [
        "line 4  cells.a.address: found 0x1_0000; allowed: a whole number from 0 to 65_535",
        "line 5  cells.on.adress: unknown key; did you mean address? "
        "(allowed in cells.on: address, kind, is)",
        "line 5  cells.on.kind: found u9; allowed: one of u8, u16",
    ]


def test_checks_of_inner_and_outer_sections_are_told_together(tmp_path: Path) -> None:
    text = "title: x\nscore: b\ncells:\n  a:\n    address: 0xFFFF\n    kind: u16\n"
    assert game_file_problems(write(tmp_path, text), Memory) == [
        "line 5  cells.a.address: a u16 ends beyond the memory; use at most 65534"
    ]
    text = text.replace("u16", "u8")
    assert game_file_problems(write(tmp_path, text), Memory) == [
        "line 2  score: no cell is called b"
    ]


def test_members_of_a_union_do_not_complain_each_by_itself(tmp_path: Path) -> None:
    text = "boss: {species: dog}\nguest: {lives: many}\n"
    assert game_file_problems(write(tmp_path, text), Zoo) == [
        "line 1  boss.name: missing; add it",
        "line 2  guest.lives: found many; allowed: a whole number",
    ]
    assert game_file_problems(write(tmp_path, "boss: {species: cow}\n"), Zoo) == [
        "line 1  boss.species: found cow; allowed: cat or dog"
    ]
    assert game_file_problems(write(tmp_path, "boss: {name: Rex}\n"), Zoo) == [
        "line 1  boss.species: missing; add it (allowed: cat or dog)"
    ]
