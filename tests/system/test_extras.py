"""Packages of extras: where one is missing, its extra is named before any work is done."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from game_rl.cli.main import main
from game_rl.errors import UsageError
from game_rl.system.packages import EXTRAS, check_extra
from tests.faults.population_faults import write_population

ROOT = Path(__file__).parents[2]
_WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None  # what `import` finds where it is not installed
from game_rl.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def without(names: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _WITHOUT.format(names=names), *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
    )


def test_each_is_an_extra_of_the_package_and_no_dependency_of_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package, extra in EXTRAS.items():
        assert any(line.startswith(package) for line in project["optional-dependencies"][extra])
        assert not any(line.startswith(package) for line in project["dependencies"])


def test_a_package_that_is_there_is_not_imported_to_find_it() -> None:
    before = set(sys.modules)
    for package in EXTRAS:
        check_extra(package, "a test")
    assert not (set(sys.modules) - before) & set(EXTRAS)


def test_the_message_names_who_needs_it_the_extra_and_another_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UsageError) as refused:
        check_extra("av", "recording.format: mp4", way_out="set recording.format=gif")
    assert str(refused.value) == (
        "recording.format: mp4 needs the package av, which is not installed: "
        "pip install 'game_rl[video]', or set recording.format=gif"
    )


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["train", "duel_ppo", "recording.format=mp4"], "video"),
        (["train", "duel_ppo", "recording.format=mp4", "--smoke"], "video"),
        (["preflight", "duel_ppo", "recording.format=mp4"], "video"),
        (["train", "duel_ppo", "upload={to: file:///tmp}"], "upload"),
        (["preflight", "duel_ppo", "upload={to: file:///tmp}"], "upload"),
        (["preflight", "duel_population", "upload={to: file:///tmp}"], "upload"),
        (["train", "duel_population", "executor={kind: ray}"], "ray"),
        (["remote", "verify", "file:///tmp"], "upload"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_without_it_a_command_ends_with_2_and_writes_nothing(
    arguments: list[str],
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in EXTRAS:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert f"pip install 'game_rl[{extra}]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["--help", "runs .", "configs", "completion bash"])
def test_without_any_of_them_the_rest_works(arguments: str, tmp_path: Path) -> None:
    ended = without(list(EXTRAS), *arguments.split(), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_without_any_of_them_a_run_trains_evaluates_and_records_a_gif(tmp_path: Path) -> None:
    ended = without(list(EXTRAS), "train", "duel_ppo", "--smoke", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "a clip" in ended.stdout


@pytest.mark.slow
def test_a_population_of_local_members_needs_none_of_them(tmp_path: Path) -> None:
    file = write_population(tmp_path, tmp_path / "x")
    ended = without(list(EXTRAS), "preflight", str(file), cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
