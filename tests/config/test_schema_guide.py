from typing import Annotated, Literal

import pytest
from pydantic import Field

from game_rl.config.schema import RunConfig
from game_rl.config.schema_guide import closest, schema_guide
from game_rl.config.strict_model import StrictModel


class Cat(StrictModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)] = 9


class Dog(StrictModel):
    kind: Literal["dog"]
    name: str


class Zoo(StrictModel):
    boss: Annotated[Cat | Dog, Field(discriminator="kind")]
    cages: dict[str, Cat]
    pair: tuple[int, str] = (1, "x")
    many: tuple[Cat, ...] = ()


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("boss", "{kind: cat, ...} or {kind: dog, ...}"),
        ("boss.kind", "cat or dog"),
        ("boss.name", "text"),
        ("cages", "a section of `name: value` lines"),
        ("cages.mine.lives", "a whole number from 1 to 9"),
        ("pair.1", "text"),
        ("many", "a list [...], each {kind: cat, ...}"),
        ("many.3.lives", "a whole number from 1 to 9"),
        ("no.such", ""),
    ],
)
def test_what_is_allowed_is_said_in_words(key: str, allowed: str) -> None:
    assert schema_guide(Zoo).allowed(tuple(key.split("."))) == allowed


def test_the_keys_of_a_union_are_those_of_all_its_members() -> None:
    assert schema_guide(Zoo).keys(("boss",)) == ["kind", "lives", "name"]


def test_a_name_is_found_wherever_it_belongs() -> None:
    assert schema_guide(RunConfig).places_of("n_envs") == ["env.n_envs", "evaluation.n_envs"]


def test_defaults_and_examples_are_those_of_the_fields() -> None:
    guide = schema_guide(RunConfig)
    assert guide.default(("env", "n_envs")) == 8
    assert guide.default(("game",)) is None
    assert guide.example(("game",)) == "duel"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("num_envs", "n_envs"),
        ("N-ENVS", "n_envs"),
        ("enviroment", "env"),
        ("algo", "algorithm"),
        ("x" * 100_000, None),
        ("", None),
    ],
)
def test_a_slip_finds_what_was_meant(word: str, meant: str | None) -> None:
    assert closest(word, ["n_envs", "env", "algorithm"]) == meant


def test_the_beginning_of_one_name_means_that_name() -> None:
    names = ["duel_dqn", "duel_ppo", "duel_pqn", "duel_population", "duel_variables_ppo"]
    assert closest("duel_pop", names) == "duel_population"
    assert closest("duel_var", names) == "duel_variables_ppo"
    assert closest("duel_pp", names) == "duel_ppo"


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"boss": {"kind": "cat"}}, ["kind", "lives"]),
        ({"boss": {"kind": "dog", "lives": 3}}, ["kind", "name"]),
        ({"boss": {"kind": "cow"}}, ["kind", "lives", "name"]),
        ({"boss": {}}, ["kind", "lives", "name"]),
        ({"boss": 3}, ["kind", "lives", "name"]),
        ([], ["kind", "lives", "name"]),
    ],
)
def test_a_document_chooses_the_members_of_its_unions(document: object, keys: list[str]) -> None:
    assert schema_guide(Zoo).chosen_by(document).keys(("boss",)) == keys
    assert schema_guide(Zoo).keys(("boss",)) == ["kind", "lives", "name"]


@pytest.mark.parametrize(
    ("document", "known", "unknown"),
    [
        ({}, "gae_lambda", "q_lambda"),
        ({"algorithm": {}}, "n_steps", "replay"),
        ({"algorithm": {"name": "dqn"}}, "replay", "n_steps"),
        ({"algorithm": {"name": "pqn"}}, "layer_norm", "target_kl"),
    ],
)
def test_the_algorithm_is_ppo_unless_the_document_says_another(
    document: object, known: str, unknown: str
) -> None:
    keys = schema_guide(RunConfig).chosen_by(document).keys(("algorithm",))
    assert known in keys
    assert unknown not in keys


def test_a_key_knows_the_members_that_have_it() -> None:
    guide = schema_guide(RunConfig)
    assert guide.kinds_with(("algorithm", "exploration")) == ["name: dqn", "name: pqn"]
    assert guide.kinds_with(("algorithm", "no_such")) == []
    assert guide.kinds_with(("env", "n_envs")) == []
