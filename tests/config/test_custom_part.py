"""Parts of a person's own in a config: their forms, and what is reported where."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from game_rl.config.custom_class import load_class
from game_rl.config.custom_part import PartError, PartItem, callback_problems, parts_of
from game_rl.config.loader import dump_config, load_config
from game_rl.config.schema import EnvConfig, RunConfig
from game_rl.errors import ConfigError

CONFIG = "game: duel\ntotal_timesteps: 400_000\nrun_dir: runs/test\n"
CALLBACKS = """\
raise RuntimeError("no check of a config runs this")
class Lives:
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a module in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_callbacks.py").write_text(CALLBACKS, encoding="utf-8")
    return tmp_path


Load = Callable[[str], RunConfig]


@pytest.fixture
def load(folder: Path) -> Load:
    def make(lines: str) -> RunConfig:
        (folder / "run.yaml").write_text(CONFIG + lines, encoding="utf-8")
        return load_config(folder / "run.yaml")

    return make


def test_without_parts_a_config_is_as_before(load: Load) -> None:
    config = load("")
    assert config.callbacks == config.env.wrappers == config.custom_parts == ()


@pytest.mark.parametrize(
    ("item", "arguments"),
    [
        ("my_callbacks:Lives", {}),
        ("{my_callbacks:Lives: }", {}),
        ("{my_callbacks:Lives: {}}", {}),
        ("{my_callbacks:Lives: {n: 3, deep: {a: [1, x]}}}", {"n": 3, "deep": {"a": [1, "x"]}}),
    ],
)
def test_a_part_is_a_class_or_a_class_with_arguments_and_reads_back_equal(
    load: Load, folder: Path, item: str, arguments: dict[str, object]
) -> None:
    config = load(f"callbacks: [{item}]\n")
    (part,) = config.custom_callbacks
    assert (part.name, part.arguments) == ("callbacks.0, my_callbacks:Lives", arguments)
    (folder / "run.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(folder / "run.yaml") == config
    assert RunConfig.model_validate_json(config.model_dump_json()) == config


def test_wrappers_are_parts_of_env_and_come_first(load: Load) -> None:
    config = load(
        "callbacks: [my_callbacks:Lives]\nenv:\n  wrappers:\n    - gymnasium.wrappers:Autoreset\n"
    )
    assert [part.name for part in config.custom_parts] == [
        "env.wrappers.0, gymnasium.wrappers:Autoreset",
        "callbacks.0, my_callbacks:Lives",
    ]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("callbacks: my_callbacks:Lives", "callbacks: found my_callbacks:Lives; allowed: a list"),
        ("callbacks: [3]", "callbacks.0: found 3; write module:Class"),
        (
            "callbacks: [my_callbacks.Lives]",
            "callbacks.0: found my_callbacks.Lives, which is not module:Class; did you mean "
            "my_callbacks:Lives?",
        ),
        (
            "callbacks: [{my_callbacks:Lives: {}, n: 3}]",
            "callbacks.0: found a section of my_callbacks:Lives, n; write module:Class",
        ),
        (
            "callbacks: [{my_callbacks:Lives: 3}]",
            "callbacks.0: found 3 for the arguments of my_callbacks:Lives",
        ),
        (
            "callbacks: [my_calbacks:Lives]",
            "my_calbacks.py nor an installed one; did you mean my_callbacks?",
        ),
        ("callbacks: [json:Lives, my_callbacks:Livs]", "callbacks.1: "),
        ("callbacks: [my_callbacks:Livs]", "has no class Livs; it has: Lives; did you mean Lives?"),
        ("callback: x", "callback: unknown key; write callbacks: [module:Class]"),
        ("wrappers: [my_callbacks:Lives]", "wrappers: unknown key; did you mean env.wrappers?"),
        ("env: {callbacks: []}", "env.callbacks: unknown key; write callbacks: [module:Class]"),
    ],
)
def test_a_wrong_part_is_reported_with_its_line_without_running_it(
    load: Load, lines: str, told: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load(lines + "\n")
    assert raised.value.exit_code == 2
    assert "line 4" in str(raised.value)
    assert told in str(raised.value)


def test_the_folder_that_was_searched_is_named(load: Load, folder: Path) -> None:
    with pytest.raises(ConfigError, match=str(folder / "other.py")):
        load("callbacks: [other:Lives]\n")
    with pytest.raises(ConfigError, match=str(folder / "other" / "parts.py")):
        load("callbacks: [other.parts:Lives]\n")


def test_a_saved_config_is_read_where_its_modules_are_not(
    load: Load,
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = load("callbacks: [my_callbacks:Lives]\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    (folder / "my_callbacks.py").unlink()
    assert load_config(folder / "run.yaml", is_saved=True).callbacks == config.callbacks


def test_a_config_that_was_saved_before_there_were_parts_reads_as_one_without() -> None:
    saved = json.loads(EnvConfig().model_dump_json())
    del saved["wrappers"]
    assert EnvConfig.model_validate(saved) == EnvConfig()


@pytest.mark.parametrize(
    ("code", "arguments", "told"),
    [
        ("class Own: ...", {}, "is not a callback of Stable-Baselines3: let it inherit from"),
        (
            "class Own(BaseCallback):\n    def __init__(self, every, *, scale=1.0): ...",
            {"evry": 3},
            "the arguments of parts:Own are (every, *, scale=1.0); did you mean every?",
        ),
        ("class Own(BaseCallback):\n    def __init__(self, every): ...", {}, "missing a required"),
        ("import no_such_package", {}, "parts needs the module no_such_package; install it"),
        ("1 / 0", {}, "importing parts failed with ZeroDivisionError: division by zero in"),
        ("Own = 3", {}, "has no class Own"),
    ],
)
def test_what_only_importing_shows_is_reported_by_key(
    tmp_path: Path, code: str, arguments: dict[str, JsonValue], told: str
) -> None:
    head = "from stable_baselines3.common.callbacks import BaseCallback\n"
    (tmp_path / "parts.py").write_text(head + code + "\n", encoding="utf-8")
    item: PartItem = {"parts:Own": arguments} if arguments else "parts:Own"
    (problem,) = callback_problems(parts_of((item,), "callbacks"), tmp_path)
    assert problem.key == ("callbacks", "0")
    assert told in problem.message


def test_a_module_may_import_its_neighbours_and_a_package_may_be_in_the_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "neighbour_of_parts.py").write_text(
        "from stable_baselines3.common.callbacks import BaseCallback as Base\n", encoding="utf-8"
    )
    package = tmp_path / "own_package_of_parts"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import Own\n", encoding="utf-8")
    code = "from neighbour_of_parts import Base\nclass Own(Base): ...\n"
    for file in (tmp_path / "parts.py", package / "inner.py"):
        file.write_text(code, encoding="utf-8")
    for reference in ("parts:Own", "own_package_of_parts:Own", "own_package_of_parts.inner:Own"):
        (part,) = parts_of((reference,), "callbacks")
        assert part.load_callback(tmp_path).__name__ == "Own"
    (part,) = parts_of(("parts:Other",), "callbacks")
    with pytest.raises(PartError, match=r"callbacks\.0: .* has no class Other"):
        part.load_callback(tmp_path)


NAMED = """\
callbacks: [my_callbacks:Lives, {my_callbacks:Lives: {n: 3}}]
env: {wrappers: [my_callbacks:Lives, "gymnasium.wrappers:Autoreset"]}
algorithm: {network: "my_callbacks:Lives"}
"""


def sources(config: RunConfig) -> list[str]:
    return [part.source(Path.cwd()) for part in config.custom_parts]


def test_a_module_is_looked_up_beside_the_config_then_here_then_among_what_is_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, here = folder / "project", folder
    project.mkdir()
    file = project / "run.yaml"
    file.write_text(CONFIG + NAMED, encoding="utf-8")
    installed = "the module gymnasium.wrappers"
    in_current = load_config(file)
    assert in_current.callbacks == ("my_callbacks:Lives", {"my_callbacks:Lives": {"n": 3}})
    of_current = str(here / "my_callbacks.py")
    assert sources(in_current) == [of_current, installed, *[of_current] * 3]

    beside = project / "my_callbacks.py"
    beside.write_text(CALLBACKS, encoding="utf-8")
    config = load_config(file)
    assert [part.reference for part in config.custom_parts] == [
        "my_callbacks:Lives", "gymnasium.wrappers:Autoreset", *["my_callbacks:Lives"] * 3
    ]  # fmt: skip
    assert [part.arguments for part in config.custom_callbacks] == [{}, {"n": 3}]
    assert sources(config) == [str(beside), installed, *[str(beside)] * 3]

    (elsewhere := folder / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    (elsewhere / "config.yaml").write_text(dump_config(config), encoding="utf-8")  # as a run has it
    saved = load_config(elsewhere / "config.yaml", is_saved=True)
    assert saved == config
    assert sources(saved) == sources(config)

    beside.rename(elsewhere / "my_callbacks.py")  # the project was moved: the current folder counts
    assert sources(saved)[0] == str(elsewhere / "my_callbacks.py")


def test_a_missing_module_is_told_with_the_places_where_it_was_looked_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "run.yaml").write_text(f"{CONFIG}callbacks: [mine:Lives]\n", encoding="utf-8")
    (elsewhere := folder / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    sought = f"neither {folder / 'mine.py'} nor {elsewhere / 'mine.py'} nor an installed one"
    with pytest.raises(ConfigError, match=re.escape(sought)):
        load_config(folder / "run.yaml")


def test_a_module_of_the_folder_takes_the_place_of_no_other(folder: Path) -> None:
    (folder / "random.py").write_text("import json, own_json\nclass Lives: pass\n", "utf-8")
    (folder / "json.py").write_text("raise RuntimeError('not ours')\n", encoding="utf-8")
    (folder / "own_json.py").write_text("", encoding="utf-8")
    before, path = sys.modules["random"], list(sys.path)
    found, module = load_class("random:Lives", (folder,), error=ConfigError)
    assert (found.__name__, module.__file__) == ("Lives", str(folder / "random.py"))
    assert found.__module__ == module.__name__ != "random"
    assert sys.modules["random"] is before
    assert sys.path == path
    del sys.modules["own_json"]
