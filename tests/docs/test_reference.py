"""The reference that is made from the code has every key, command, event and error."""

import importlib.util
import re
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
    path = DOCS / "_ext" / "reference_text.py"
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
    entries = re.findall(r"^`([\w.]+)`\n: ", reference.TEXTS[f"{name} keys"](), re.MULTILINE)
    described = {entry.rsplit(".", 1)[-1] for entry in entries}
    assert set(names_of_keys(model.model_json_schema())) <= described
    assert set(model.model_fields) <= set(entries)


def test_the_entry_of_a_key_has_its_type_bounds_default_and_meaning(reference: ModuleType) -> None:
    text = reference.TEXTS["run keys"]()
    entry = text.partition("`env.frame_skip`\n")[2].partition("\n`")[0]
    assert "whole number from 1 to 600; default `4`" in entry
    assert "Number of emulator frames in one timestep" in entry


def test_links_between_sections_lead_to_a_section(reference: ModuleType) -> None:
    for make_text in reference.TEXTS.values():
        text = make_text()
        assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(
            re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
        )


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
            assert f"| {error.exit_code} | `{name}` |" in text


def test_every_page_is_in_an_index() -> None:
    for folder in (".", "tutorials", "how-to", "reference", "explanation", "research"):
        index = (DOCS / folder / "index.md").read_text(encoding="utf-8")
        pages = {page.stem for page in (DOCS / folder).glob("*.md")} - {"index"}
        assert pages <= set(index.splitlines())
