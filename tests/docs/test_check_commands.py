"""The script that runs the commands of the docs does what the comments of a page ask for."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check() -> Any:
    path = ROOT / "docs" / "check_commands.py"
    spec = importlib.util.spec_from_file_location("check_commands", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def script_of(check: Any, page: str, folder: Path) -> list[str]:
    path = folder / "page.md"
    path.write_text(page, encoding="utf-8")
    check.ROOT = folder
    return [line for line in check.read(path).script if not line.startswith("echo")]


def test_commands_are_blocks_of_bash_and_lines_after_a_dollar(check: Any, tmp_path: Path) -> None:
    page = (
        "```bash\none\n```\n```text\nno\n```\n1. x\n\n   ```console\n   $ two\n   output\n   ```\n"
    )
    assert script_of(check, page, tmp_path) == ["one", "two"]


def test_runs_get_keys_and_words_are_replaced(check: Any, tmp_path: Path) -> None:
    page = (
        "<!-- setup: first -->\n<!-- with seed=1 -->\n<!-- replace A with B -->\n\n"
        "```bash\ngame-rl train A.yaml  # note\ngame-rl train --resume A\n```\n"
    )
    assert script_of(check, page, tmp_path) == [
        "first",
        "game-rl train B.yaml seed=1  # note",
        "game-rl train --resume B",
    ]


def test_a_block_may_be_left_out_or_take_another_form(check: Any, tmp_path: Path) -> None:
    page = (
        "<!-- not run: needs a cluster -->\n\n```bash\nno\n```\n"
        "<!-- instead: other -->\n\n```bash\nlong\n```\n<!-- exit 2 -->\n\n```bash\nwrong\n```\n"
    )
    assert script_of(check, page, tmp_path) == [
        "other",
        "code=0; wrong || code=$?; [ $code = 2 ]",
    ]


def test_files_of_a_page_are_written_and_their_sections_replaced(
    check: Any, tmp_path: Path
) -> None:
    page = (
        "<!-- writes new/game.yaml -->\n\n```yaml\none:\n  a: 1\n\n# two\ntwo: 2\n```\n"
        "<!-- puts new/game.yaml -->\n\n```yaml\none: {a: 3}\n```\n"
    )
    script = "\n".join([check._PRELUDE, *script_of(check, page, tmp_path)])
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, check=True)
    text = (tmp_path / "new" / "game.yaml").read_text(encoding="utf-8")
    assert text.lstrip() == "# two\ntwo: 2\n\none: {a: 3}\n"


def test_at_most_a_tenth_of_the_blocks_of_the_docs_is_left_out(check: Any) -> None:
    check.ROOT = ROOT
    found = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    pages = [check.read(path) for path in found]
    left_out = sum(len(page.left_out) for page in pages)
    assert left_out <= check.MOST_LEFT_OUT * sum(page.blocks for page in pages)


def test_a_page_alone_may_leave_out_more_and_one_without_blocks_is_run(
    check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README.md").write_text("no commands\n", encoding="utf-8")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "left_out.md").write_text("<!-- not run: x -->\n\n```bash\nno\n```\n", encoding="utf-8")
    (docs / "setup.md").write_text("<!-- setup: python cell.py -->\n", encoding="utf-8")
    ran: list[str] = []
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "run", lambda page, *_: ran.append(page.path.name))
    code = {}
    for chosen in ([], [str(docs / "left_out.md")]):
        monkeypatch.setattr(sys, "argv", ["check_commands.py", "--scratch", "x", *chosen])
        code[len(chosen)] = check.main()
    assert code == {0: 1, 1: 0}
    assert ran == ["left_out.md", "setup.md", "left_out.md"]
