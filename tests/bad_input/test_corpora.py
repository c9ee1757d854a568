"""Every bad input is loaded or refused; `python -m tests.bad_input` counts the outcomes."""

from collections.abc import Sequence

import pytest

from tests.bad_input import document_corpus, mishaps, rom_corpus, state_corpus
from tests.bad_input.case import Case
from tests.bad_input.trials import Trials

CORPORA: dict[str, Sequence[Case]] = {
    "rom_corpus": rom_corpus.CASES,
    "state_corpus": state_corpus.CASES,
    "document_corpus": document_corpus.CASES,
}
SPECIAL = "no such file, or of another kind"


def check(corpus: str, numbers: Sequence[int]) -> None:
    with Trials(corpus, CORPORA[corpus]) as trials:
        assert [found for found in trials.outcomes(numbers) if not found.is_good] == []


# Strides that have no factor in common with the numbers of bits, flags and codes in a corpus.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "stride"),
    [
        ("rom_corpus", 199),
        ("state_corpus", 859),
        ("document_corpus", 29),
        pytest.param("rom_corpus", 23, marks=pytest.mark.slow),
        pytest.param("state_corpus", 107, marks=pytest.mark.slow),
        pytest.param("document_corpus", 7, marks=pytest.mark.slow),
        pytest.param("rom_corpus", 11, marks=pytest.mark.soak),
        pytest.param("state_corpus", 53, marks=pytest.mark.soak),
        pytest.param("document_corpus", 3, marks=pytest.mark.soak),
    ],
)
def test_some_of_every_corpus_are_loaded_or_refused(corpus: str, stride: int) -> None:
    cases = CORPORA[corpus]
    special = [number for number, case in enumerate(cases) if SPECIAL in case.kind]
    check(corpus, sorted({*special, *range(0, len(cases), stride)}))


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_case_has_a_name_of_its_own(corpus: str) -> None:
    names = {case.name for case in CORPORA[corpus]}
    assert len(names) == len(CORPORA[corpus]) >= 400


def test_a_crash_a_hang_too_much_memory_and_prints_are_seen() -> None:
    """Check the trials themselves; without this, the tests above might be unable to fail."""
    with Trials("mishaps", mishaps.CASES) as trials:
        ends = {found.name: found.end for found in trials.outcomes(range(len(mishaps.CASES)))}
    assert ends == {
        "nothing": "loaded",
        "a user's error": "refused",
        "another error": "raised",
        "much memory": "raised",
        "a print": "printed",
        "a print in C": "printed",
        "an exit": "died",
        "a crash": "died",
        "an endless loop": "hung",
        "nothing again": "loaded",
    }
