"""What is installed, and whether two checkouts are of one state."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from game_rl.system.packages import (
    code_difference,
    installed_versions,
    source_sha256,
    version_differences,
)

_PACKAGE = Path(__file__).parents[2] / "game_rl"


def digest_of(copy: Path) -> str:
    """As a process that has its package from there finds it."""
    code = "from game_rl.system.packages import source_sha256; print(source_sha256())"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout.strip()


def test_a_copy_has_the_same_digest_until_one_of_its_files_changes(tmp_path: Path) -> None:
    shutil.copytree(_PACKAGE, tmp_path / "game_rl")
    assert digest_of(tmp_path) == source_sha256()
    changed = tmp_path / "game_rl" / "returns.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    other = digest_of(tmp_path)
    assert other != source_sha256()
    changed.rename(changed.with_name("return_values.py"))
    assert digest_of(tmp_path) not in {other, source_sha256()}


def test_differences_are_named_item_by_item() -> None:
    now = installed_versions()
    assert version_differences(now, now) == ()
    then = {**now, "torch": "1.0", "gone": "2"}
    assert version_differences(then, now) == (
        f"torch was 1.0, is {now['torch']}",
        "gone was 2, is not there",
    )


def test_this_package_is_compared_by_its_source_and_not_by_its_version() -> None:
    now = installed_versions()
    older = {**now, "game_rl": "0.0.1"}
    assert version_differences(older, now) == ()
    assert code_difference(older, source_sha256()) == ""  # installed anew, with the same code
    other = code_difference(now, "ab" * 32)
    assert other == (
        f"game_rl was {now['game_rl']} (source abababababab), is {now['game_rl']} "
        f"(source {source_sha256()[:12]})"
    )


def test_a_record_without_a_digest_is_compared_by_its_version() -> None:
    now = installed_versions()
    assert code_difference(now, None) == ""
    assert code_difference({**now, "game_rl": "0.0.1"}, None).startswith(
        "game_rl was 0.0.1 (source not recorded), is "
    )
