"""The reference that is made from the code has every key, command, event and error."""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from game_rl import errors, events
from game_rl.cli.parser import COMMANDS, make_parser

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    path = DOCS / "reference_text.py"
    spec = importlib.util.spec_from_file_location("reference_text", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_of_keys(schema: Any) -> Iterator[str]:
    """Yield the last part of each key of a JSON Schema, wherever it stands."""
    if isinstance(schema, dict):
        if isinstance(properties := schema.get("properties"), dict):
            yield from properties
        for inner in schema.values():
            yield from names_of_keys(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from names_of_keys(inner)


@pytest.mark.parametrize("name", ["run", "game", "population", "mixture", "study"])
def test_every_key_of_a_config_has_an_entry(reference: ModuleType, name: str) -> None:
    model: type[BaseModel] = reference.MODELS[name]
    text = reference.TEXTS[f"{name} keys"]()
    entries = re.findall(r"^- .*?\*\*`([\w.]+)`\*\*: ", text, re.MULTILINE)
    described = {entry.rsplit(".", 1)[-1] for entry in entries}
    assert set(names_of_keys(model.model_json_schema())) <= described
    assert set(model.model_fields) <= set(entries)


def test_the_entry_of_a_key_has_its_type_bounds_default_and_meaning(reference: ModuleType) -> None:
    text = reference.TEXTS["run keys"]()
    entry = text.partition("**`env.frame_skip`**")[2].partition("\n- ")[0]
    assert "whole number from 1 to 600; default `4`" in entry
    assert "Number of emulator frames in one timestep" in entry


@pytest.mark.parametrize("name", ["run", "game", "population", "mixture", "study"])
def test_every_key_has_one_anchor_its_own_or_that_of_its_heading(
    reference: ModuleType, name: str
) -> None:
    text = reference.TEXTS[f"{name} keys"]()
    anchors = re.findall(r'^- <a id="([^"]*)"></a>', text, re.MULTILINE)
    assert len(set(anchors)) == len(anchors)
    for key in re.findall(r"^- \*\*`([\w.]+)`\*\*", text, re.MULTILINE):
        assert f"\n## `{key}`\n" in text
    if name == "run":
        assert {"env-n-envs", "total-timesteps", "algorithm-n-steps-ppo"} <= set(anchors)


def test_the_generated_parts_of_all_pages_are_current(reference: ModuleType) -> None:
    pages = reference.pages()
    assert len(pages) >= 9
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert reference.current(text) == text, f"{page.name} is not current; run `make reference`"


def test_every_command_and_option_has_an_entry(reference: ModuleType) -> None:
    text = reference.TEXTS["commands"]()
    _, parsers = make_parser(list(COMMANDS))
    for name, parser in parsers.items():
        assert f"### `game-rl {name}`" in text
        options = {option for action in parser._actions for option in action.option_strings}
        for option in options - {"-h", "--help", "-q", "--quiet", "-v", "--verbose"}:
            assert option in text


def test_every_event_of_the_file_has_an_entry(reference: ModuleType) -> None:
    text = reference.TEXTS["events"]()
    for model in (*get_args(events.Event), *get_args(events.ExperimentEvent)):
        heading = f"### `{model.model_fields['event'].default}`\n"
        assert (heading in text) == model.is_kept


def test_every_error_has_its_exit_code(reference: ModuleType) -> None:
    text = reference.TEXTS["exit codes"]()
    for name, error in vars(errors).items():
        if isinstance(error, type) and error not in {errors.GameRLError, errors.Interrupted}:
            assert issubclass(error, errors.GameRLError)
            assert f"| {error.exit_code} | `{name}` |" in text


def test_every_page_has_a_plain_link_in_its_index() -> None:
    for folder in (".", "tutorials", "how-to", "games", "reference", "explanation", "research"):
        index = (DOCS / folder / "index.md").read_text(encoding="utf-8")
        pages = {page.name for page in (DOCS / folder).glob("*.md")} - {"index.md"}
        assert pages <= set(re.findall(r"\]\(([^)#]+)", index))


def test_no_page_needs_sphinx_to_be_read() -> None:
    for page in DOCS.rglob("*.md"):
        if "_build" not in page.parts:
            text = page.read_text(encoding="utf-8")
            assert "\n```{" not in text, page.name
            assert re.search(r"^\([\w-]+\)=$", text, re.MULTILINE) is None, page.name


@pytest.mark.slow
def test_the_site_builds_and_its_search_finds_a_key_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="without the extra `docs`, which `make docs` installs")
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", str(DOCS), str(tmp_path)]
    subprocess.run(command, check=True, timeout=300)
    text = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip(";\n").removesuffix(")"))
    page, kind, priority, anchor, name = next(
        entry for entry in index["objects"]["env"] if entry[4] == "n_envs"
    )
    assert index["docnames"][page] == "reference/run"
    assert index["objnames"][str(kind)][2] == "key of a run"
    assert (priority, anchor, name) == (0, "env-n-envs", "n_envs")
    html = (tmp_path / "reference" / "run.html").read_text(encoding="utf-8")
    assert 'id="env-n-envs"' in html
