"""Links between pages, and names of pages in messages and docstrings, lead somewhere."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_NAMED_PAGE = re.compile(r"\bdocs/[\w/-]+\.(?:md|png|gif)\b")
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1`*$", re.DOTALL | re.MULTILINE)


def _tracked(*suffixes: str) -> list[Path]:
    names = [f"*{suffix}" for suffix in suffixes]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *names]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if found.returncode != 0:
        pytest.skip("not a git checkout")
    files = (ROOT / name for name in found.stdout.splitlines())
    return [file for file in files if file.is_file() and file.parent.parent != ROOT / "studies"]


def _anchors(page: Path) -> set[str]:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    slugs = (re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-") for title in titles)
    return set(slugs) | set(re.findall(r'<a id="([\w-]+)"></a>', text))


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    broken = []
    for page in _tracked(".md"):
        for target, anchor in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", target):
                continue
            there = (page.parent / target).resolve() if target else page
            if not there.exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
            elif anchor and there.suffix == ".md" and anchor not in _anchors(there):
                broken.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert broken == []


def test_every_page_that_code_names_exists() -> None:
    broken = []
    for file in _tracked(".py", ".yaml", ".md", ".toml", "Makefile"):
        if file == Path(__file__):
            continue
        named = _NAMED_PAGE.findall(file.read_text(encoding="utf-8"))
        broken += [
            f"{file.relative_to(ROOT)}: {name}" for name in named if not (ROOT / name).exists()
        ]
    assert broken == []


def test_files_that_the_pages_for_developers_name_exist() -> None:
    pages = [ROOT / "docs" / "explanation" / name for name in ("architecture.md", "extending.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = {name for name in re.findall(r"`([\w/]+(?:\.py|\.js))`", text) if "NAME" not in name}
    assert len(named) > 20
    assert not [n for n in named if not any((ROOT / up / n).is_file() for up in ("game_rl", "."))]
