"""A key of a run's config has one role, or the config does not import."""

from typing import Annotated

import pytest

from game_rl.config.strict_model import Role, RunSection, StrictModel, roles_of


class Inner(RunSection):
    size: Annotated[int, Role.SEEN] = 1


class Line(StrictModel):
    start: float


def test_a_key_without_a_role_does_not_import() -> None:
    with pytest.raises(TypeError, match=r"Section\.speed has 0 roles; write one, .*GAME, SEEN"):

        class Section(RunSection):
            speed: int = 1


def test_a_key_with_two_roles_does_not_import() -> None:
    with pytest.raises(TypeError, match=r"Section\.speed has 2 roles"):

        class Section(RunSection):
            speed: Annotated[int, Role.SPEED, Role.OUTPUT] = 1


@pytest.mark.parametrize("annotation", [Inner | None, Line, Inner | Line, list[Inner]])
def test_only_what_is_always_a_section_needs_no_role(annotation: object) -> None:
    with pytest.raises(TypeError, match="has 0 roles"):
        type("Section", (RunSection,), {"__annotations__": {"inner": annotation}})
    type("Section", (RunSection,), {"__annotations__": {"inner": Inner}})


def test_the_keys_of_a_section_are_found_below_it() -> None:
    class Section(RunSection):
        inner: Inner = Inner()
        other: Annotated[Inner | None, Role.OUTPUT] = None
        rate: Annotated[float | Line, Role.LEARNING] = 1.0

    assert dict(roles_of(Section)) == {
        "inner.size": Role.SEEN,
        "other": Role.OUTPUT,
        "other.size": Role.SEEN,
        "rate": Role.LEARNING,
    }
