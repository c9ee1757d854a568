import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from game_rl.config.loader import load_config
from game_rl.errors import ConfigError, GameRLError
from tests.bad_input.documents import DOCUMENTS, VALID_RUN, Document
from tests.bad_input.mutations import NASTY_VALUES, damaged
from tests.examples import examples

MOST_BYTES = 64 * 2**20  # peak of Python objects while a file of a few kB is read
LONGEST_MESSAGE = 60_000  # fifty problems, each with the allowed values
EXAMPLES = 150
OVERRIDDEN: tuple[str, ...] = (
    "seed",
    "env.n_envs",
    "env",
    "algorithm.learning_rate",
    "algorithm.learning_rate.end",
)
OVERRIDDEN += ("env.start_states.0", "run_dir", "game", "no.such.key", ".", "a" * 300, "a." * 2_000)


def refused(load: Callable[[], object]) -> GameRLError | None:
    """Return the user's error, if any; other errors and too much memory fail the test."""
    tracemalloc.start()
    caught: GameRLError | None = None
    try:
        load()
    except GameRLError as error:
        caught = error
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MOST_BYTES
    assert len(str(caught)) < LONGEST_MESSAGE
    return caught


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.kind)
def test_the_documents_are_good_before_they_are_damaged(document: Document, tmp_path: Path) -> None:
    document.load_changed(document.text.encode(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.kind)
@settings(max_examples=examples(EXAMPLES), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_document_is_loaded_or_refused(document: Document, data: st.DataObject) -> None:
    content = data.draw(damaged(document.text))
    with tempfile.TemporaryDirectory() as folder:
        refused(lambda: document.load_changed(content, Path(folder)))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.kind)
@settings(max_examples=examples(EXAMPLES), suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=2_000) | st.text(max_size=500).map(lambda t: t.encode()))
def test_noise_is_loaded_or_refused(document: Document, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        refused(lambda: document.load_changed(content, Path(folder)))


keys = st.sampled_from(OVERRIDDEN) | st.text(max_size=30)
values = st.sampled_from(NASTY_VALUES) | st.text(max_size=30)


@settings(max_examples=examples(EXAMPLES), suppress_health_check=list(HealthCheck))
@given(st.lists(st.builds("{}={}".format, keys, values) | st.text(), min_size=1, max_size=4))
def test_a_bad_override_is_taken_or_refused(overrides: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.yaml"
        path.write_text(VALID_RUN, encoding="utf-8")
        error = refused(lambda: load_config(path, overrides))
        assert error is None or isinstance(error, ConfigError)
