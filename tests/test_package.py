"""What is around the code: the built package, the locks, and files that other programs read."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from game_rl.system.packages import EXTRAS

ROOT = Path(__file__).parents[1]
TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = TABLES["project"]
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


COMPILED = {".so", ".pyd"}
NOT_IN_A_WHEEL = {".pyc", ".pyx", *COMPILED}  # compiled modules are added by `build_ext`


def copy_of_the_sources(folder: Path) -> Path:
    not_sources = shutil.ignore_patterns("*.pyc", "*.so", "*.pyd")
    shutil.copytree(ROOT / "game_rl", folder / "game_rl", ignore=not_sources)
    shutil.copytree(ROOT / "configs", folder / "configs")
    shutil.copytree(ROOT / "pretrained", folder / "pretrained", ignore=not_sources)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def run_setup(copy: Path, *words: str, **environment: str) -> None:
    command = [sys.executable, "-W", "ignore", "setup.py", "-q", *words]
    variables = os.environ | environment
    ended = subprocess.run(
        command, cwd=copy, env=variables, capture_output=True, encoding="utf-8", check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of packages that a wheel has, built from a copy of the sources."""
    copy = copy_of_the_sources(tmp_path_factory.mktemp("sources"))
    stale = copy / "lib" / "game_rl" / "configs" / "gone.yaml"
    stale.parent.mkdir(parents=True)
    stale.touch()
    run_setup(copy, "build_py", "--build-lib", "lib")
    return copy / "lib"


def test_a_wheel_has_every_file_of_the_package_the_configs_and_the_agents(built: Path) -> None:
    def files(folder: Path) -> dict[str, bytes]:
        paths = [path for path in folder.rglob("[!.]*") if path.is_file()]
        sources = (path for path in paths if path.suffix not in NOT_IN_A_WHEEL)
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sources}

    configs = {f"configs/{name}": data for name, data in files(ROOT / "configs").items()}
    agents = {
        f"pretrained/{name}": data
        for name, data in files(ROOT / "pretrained").items()
        if not name.endswith(".py")
    }
    assert files(built / "game_rl") == files(ROOT / "game_rl") | configs | agents


@pytest.mark.slow
def test_a_built_package_finds_its_configs_from_anywhere(built: Path, tmp_path: Path) -> None:
    for words in (["configs", "--json"], ["preflight", "duel_erl", "--json"]):
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "game_rl", *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(built)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        found = json.loads(ended.stdout)
        if words[0] == "configs":
            assert {Path(row["file"]).parent for row in found} == {built / "game_rl" / "configs"}


def wheel_of(folder: Path, **environment: str) -> Path:
    copy = copy_of_the_sources(folder / "sources")
    run_setup(copy, "bdist_wheel", **environment)
    (wheel,) = copy.glob("dist/*.whl")
    return wheel


def compiled_modules(wheel: Path) -> list[str]:
    names = zipfile.ZipFile(wheel).namelist()
    return [name for name in names if Path(name).suffix in COMPILED]


def can_compile() -> bool:
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return shutil.which("cc") is not None and headers.is_file() and find_spec("Cython") is not None


@pytest.mark.slow
@pytest.mark.skipif(not can_compile(), reason="it needs Cython, a C compiler and Python's headers")
def test_a_wheel_has_the_compiled_module_for_the_installed_pyboy(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path)
    (name,) = compiled_modules(wheel)
    assert name.startswith("game_rl/emulator/fast_states.")
    assert not wheel.name.endswith("-none-any.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    program = "from game_rl.emulator import fast_states; print(fast_states.COMPILED_FOR)"
    printed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'installed'}"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert printed.split() == [version("pyboy")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", [{"CC": "false"}, {"GAME_RL_PURE": "1"}], ids=["no compiler", "not wanted"]
)
def test_a_wheel_is_built_without_the_compiled_module(
    environment: dict[str, str], tmp_path: Path
) -> None:
    wheel = wheel_of(tmp_path, **environment)
    assert compiled_modules(wheel) == []
    assert "game_rl/emulator/pyboy_emulator.py" in zipfile.ZipFile(wheel).namelist()
    assert wheel.name.endswith("-py3-none-any.whl") or "GAME_RL_PURE" not in environment


def test_the_module_is_compiled_for_the_locked_pyboy() -> None:
    needs = {Requirement(line).name: line for line in TABLES["build-system"]["requires"]}
    assert needs["pyboy"] == f"pyboy=={pins('requirements.lock')['pyboy']}"
    assert needs["cython"] in PROJECT["optional-dependencies"]["dev"]


def pins(lock: str) -> dict[str, str]:
    found = _PIN.findall((ROOT / lock).read_text(encoding="utf-8"))
    versions = {str(canonicalize_name(name)): number for name, number in found}
    assert len(found) == len(versions), f"{lock} has a package twice"
    return versions


def test_every_locked_package_has_hashes_and_torch_has_a_lock_of_its_own() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        blocks = re.split(r"\n(?=[A-Za-z])", (ROOT / lock).read_text(encoding="utf-8"))[1:]
        assert len(blocks) == len(pins(lock))
        assert all("--hash=sha256:" in block for block in blocks)
        assert not {name for name in pins(lock) if name.startswith(("torch", "nvidia", "cuda"))}
    assert list(pins("requirements-torch.lock")) == ["torch"]


def test_the_lock_of_a_run_is_a_part_of_the_one_for_development() -> None:
    run, dev = pins("requirements.lock"), pins("requirements-dev.lock")
    assert run.items() <= dev.items()
    extras = {name.replace("_", "-") for name in EXTRAS}  # of modules, not of packages
    assert not extras & set(run)
    assert extras <= set(dev)


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_the_locks_have_what_the_project_asks_for(lock: str) -> None:
    found = pins(lock) | pins("requirements-torch.lock")
    asked = list(PROJECT["dependencies"])
    if lock == "requirements-dev.lock":
        asked += [line for name in ("dev", *EXTRAS.values()) for line in _extra(name)]
    for line in asked:
        requirement = Requirement(line)
        version = found[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{line}, but {version} is locked"


def _extra(name: str) -> list[str]:
    lines: list[str] = PROJECT["optional-dependencies"][name]
    return [line for line in lines if not line.startswith("game_rl[")]


def test_a_citation_names_the_newest_release() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d+\.\d+\.\d+)", changelog, re.MULTILINE)
    assert newest is not None
    assert citation["version"] == newest[1] == TABLES["tool"]["setuptools_scm"]["fallback_version"]
    assert citation["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def github(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github" / name).read_text(encoding="utf-8"))


in_repository = pytest.mark.skipif(
    not (ROOT / ".github").is_dir(), reason="an sdist that was made without git has no .github"
)


@in_repository
@pytest.mark.parametrize("form", ["bug.yml", "idea.yml"])
def test_the_forms_of_issues_have_what_github_requires(form: str) -> None:
    found = github(f"ISSUE_TEMPLATE/{form}")
    assert {"name", "description", "body"} <= set(found)
    identifiers = [field["id"] for field in found["body"]]
    assert len(identifiers) == len(set(identifiers))
    for field in found["body"]:
        assert field["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert field["attributes"]["label"]


@in_repository
def test_the_workflow_tests_every_python_that_the_package_names() -> None:
    jobs = github("workflows/tests.yml")["jobs"]
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert jobs["locked"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    for job in jobs.values():
        assert job["runs-on"]
        assert all("run" in step or "uses" in step for step in job["steps"])
