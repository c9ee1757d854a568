"""What README and pages claim is so: measured figures, packages, commands, defaults."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from game_rl.cli.parser import COMMANDS, make_parser
from game_rl.config.experiments.mixture_config import MixtureConfig
from game_rl.config.experiments.population_config import PopulationConfig
from game_rl.config.experiments.study_config import StudyConfig
from game_rl.config.schema import RunConfig
from game_rl.games.definition import GameDefinition

ROOT = Path(__file__).parents[2]
FIGURES: dict[str, dict[str, Any]] = yaml.safe_load(
    (ROOT / "docs" / "figures.yaml").read_text(encoding="utf-8")
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^ *(`{3,}).*?^ *\1$", re.DOTALL | re.MULTILINE)
_NUMBER = r"(?:\d[\d,.]*|one|two|three|four|five|six|seven|eight|nine|ten)"
_UNIT = r"(?:times|minutes|min|seconds|hours|s|µs|[kKMGT]i?B|of \d+)"
_MEASURED = re.compile(rf"\b{_NUMBER} ?\b{_UNIT}\b|\b{_NUMBER} ?%|\b(?:half|twentieth) of")
_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}


def texts(figure: dict[str, Any]) -> list[str]:
    text = figure["text"]
    return text if isinstance(text, list) else [text]


def words(page: Path) -> str:
    """Return a page's own prose on one line: without code, comments and generated parts."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"<!-- generated.*?<!-- end -->", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split())


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_on_its_pages_and_says_where_it_comes_from(name: str) -> None:
    figure = FIGURES[name]
    assert set(figure) == {"text", "value", "command", "machine", "date", "pages"}
    assert re.fullmatch(r"20\d\d-\d\d", str(figure["date"]))
    for page in figure["pages"]:
        shown = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        for text in texts(figure):
            assert text in shown, f"{page} does not say {text!r}"


def test_the_command_of_each_figure_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for figure in FIGURES.values():
        program, *rest = figure["command"].split()
        match program:
            case "make":
                assert re.search(rf"^{rest[0]}:", makefile, re.MULTILINE)
            case "python":
                assert importlib.util.find_spec(rest[1]) is not None
            case "game-rl":
                assert rest[0] in COMMANDS
            case _:
                pytest.fail(f"{figure['command']} is no command of the project")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/quickstart.md"])
def test_a_page_has_no_measured_figure_beside_those_of_the_file(page: str) -> None:
    rest = words(ROOT / page)
    for figure in FIGURES.values():
        for text in texts(figure):
            rest = rest.replace(text, "")
    assert _MEASURED.findall(rest) == []


def test_the_number_of_packages_is_that_of_the_lock() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"\w", line)]
    needed = [one for one in locked if one.marker is None or one.marker.evaluate(_LINUX)]
    claimed = [
        int(number)
        for page in PAGES
        for number in re.findall(r"needs (\d+) packages", page.read_text(encoding="utf-8"))
    ]
    assert claimed
    assert set(claimed) == {len(needed) + 1}  # and torch, which has a file of its own


def commands_of(text: str) -> Iterator[list[str]]:
    """Yield the words of each `game-rl …` in code, up to where a shell ends the command."""
    code = [one[0] for one in _FENCE.finditer(text)]
    code += re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    for block in code:
        for line in block.replace("\\\n", " ").splitlines():
            for found in re.findall(r"\bgame-rl ([a-z-]+(?: [^#;|)]*)?)", line):
                yield found.split()


def test_every_command_and_option_that_a_page_names_exists() -> None:
    _, parsers = make_parser(list(COMMANDS))
    options = {
        name: {option for action in parser._actions for option in action.option_strings}
        for name, parser in parsers.items()
    }
    unknown = []
    for page in PAGES:
        if "_build" in page.parts or "changelog" in page.parts:  # which names what is gone
            continue
        for name, *rest in commands_of(page.read_text(encoding="utf-8")):
            if name in {"trian", "--help", "--version"}:  # the first: a mistake that a page shows
                continue
            if name not in parsers:
                unknown.append(f"{page.name}: game-rl {name}")
                continue
            if name in {"study", "replay", "remote"}:
                continue
            named = {word.partition("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
            unknown += [f"{page.name}: game-rl {name} {one}" for one in named - options[name]]
    assert unknown == []


def defaults(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the default of each key of a JSON Schema, wherever it stands."""
    if isinstance(schema, dict):
        for name, own in (schema.get("properties") or {}).items():
            if isinstance(own, dict) and "default" in own:
                yield name, own["default"]
        for inner in schema.values():
            yield from defaults(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from defaults(inner)


def test_a_default_that_a_page_names_is_the_default() -> None:
    known: dict[str, list[Any]] = {}
    for model in (RunConfig, GameDefinition, PopulationConfig, MixtureConfig, StudyConfig):
        for name, value in defaults(model.model_json_schema()):
            known.setdefault(name, []).append(value)
    found = 0
    for page in PAGES:
        if "_build" in page.parts:
            continue
        for key, value in re.findall(r"`([a-z_.]+): ([^`]+)`, (?:\w+'s|the) default", words(page)):
            found += 1
            assert yaml.safe_load(value) in known[key.rsplit(".", 1)[-1]], f"{page}: {key}: {value}"
    assert found >= 3
