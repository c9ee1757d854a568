"""Bad game files, run configs, overrides, episodes and symbol files; the same in every run."""

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from game_rl.config.loader import load_config
from game_rl.games.definition import load_game
from game_rl.games.starter import write_starter
from tests import file_names
from tests.bad_input.case import Case
from tests.bad_input.documents import DOCUMENTS, VALID_RUN, Document
from tests.bad_input.mutations import NASTY_VALUES
from tests.emulator.roms import make_rom

_TOKEN = re.compile(r"[^\s:,\[\]{}\"]+")
_REPLACED = 400
_BYTES_CHANGED = 200
_FIFTY_MB = 50 * 10**6
_KEYS: tuple[str, ...] = (
    "seed",
    "env.n_envs",
    "env",
    "run_dir",
    "game",
    "algorithm.learning_rate.end",
)
_KEYS += ("env.start_states.0", "env.start_states.7", "no.such", "a", "env.n_envs.x", "", ".", "..")


def _laughs(levels: int, width: int) -> str:
    lines = ["l0: &l0 [ha, ha, ha, ha]"]
    for level in range(1, levels):
        aliases = ", ".join([f"*l{level - 1}"] * width)
        lines.append(f"l{level}: &l{level} [{aliases}]")
    return "\n".join(lines) + "\n"


_TEXTS: dict[str, Callable[[Document], str | bytes]] = {
    "billion laughs": lambda _: _laughs(10, 10),
    "billion laughs in mappings": lambda _: _laughs(30, 2).replace("[", "{a: ").replace("]", "}"),
    "a long text a thousand times": lambda _: (
        f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1_000)}]\n"
    ),
    "an alias to itself": lambda _: "a: &a [*a]\n",
    "lists 100,000 deep": lambda _: "[" * 100_000,
    "mappings 50,000 deep": lambda _: "{a: " * 50_000,
    "dashes 50,000 deep": lambda _: "- " * 50_000,
    "indented 400 deep": lambda _: "".join(f"{' ' * n}a:\n" for n in range(400)),
    "question marks": lambda _: "? " * 50_000,
    "100,000 keys": lambda _: "".join(f"k{n}: 1\n" for n in range(20_000)),
    "the same key 10,000 times": lambda d: d.text + "title: a\n" * 10_000,
    "20,000 unknown keys in one line": lambda _: "{" + "a, " * 20_000 + "}",
    "every value wrong": lambda d: _TOKEN.sub("[]", d.text),
    "every value a mapping": lambda d: _TOKEN.sub("{a: 1}", d.text),
    "a scalar of 250 kB": lambda _: "title: " + "x" * 250_000,
    "a number of 250,000 digits": lambda _: "seed: " + "9" * 250_000,
    "a key of 250 kB": lambda _: "x" * 250_000 + ": 1",
    "only quotes": lambda _: '"' * 100_000,
    "only anchors": lambda _: "&a " * 50_000,
    "only tags": lambda _: "!a " * 50_000,
    "only documents": lambda _: "---\n" * 50_000,
    "only line breaks": lambda _: "\n" * 250_000,
    "only colons": lambda _: ": " * 100_000,
    "only tabs": lambda _: "\t" * 100_000,
    "only comments": lambda _: "#\n" * 100_000,
    "only NUL": lambda _: bytes(10_000),
    "50 MB of lines": lambda d: d.text * (_FIFTY_MB // len(d.text)),
    "50 MB in one line": lambda _: "x" * _FIFTY_MB,
    "50 MB of line breaks": lambda _: "\n" * _FIFTY_MB,
    "50 MB of NUL": lambda _: bytes(_FIFTY_MB),
    "15 MB of lines": lambda d: d.text * (15 * 10**6 // len(d.text)),
    "15 MB in one line": lambda _: "x" * 15 * 10**6,
    "15 MB of line breaks": lambda _: "\n" * 15 * 10**6,
    "empty": lambda _: "",
    "UTF-16": lambda d: d.text.encode("utf-16"),
    "UTF-32": lambda d: d.text.encode("utf-32"),
    "a BOM": lambda d: b"\xef\xbb\xbf" + d.text.encode(),
    "two BOMs": lambda d: b"\xef\xbb\xbf" * 2 + d.text.encode(),
    "Latin-1": lambda d: d.text.replace("a", "ä").encode("latin-1"),
    "an overlong UTF-8": lambda d: d.text.encode() + b"\xc0\xaf",
    "a surrogate in UTF-8": lambda d: d.text.encode() + b"\xed\xa0\x80",
    "CR for line breaks": lambda d: d.text.replace("\n", "\r"),
    "CRLF for line breaks": lambda d: d.text.replace("\n", "\r\n"),
    "tabs for blanks": lambda d: d.text.replace("  ", "\t"),
    "upper case": lambda d: d.text.upper(),
    "backwards": lambda d: d.text[::-1],
    "twice": lambda d: d.text * 2,
    "as two documents": lambda d: d.text + "---\n" + d.text,
    "a Python object": lambda d: d.text + "x: !!python/object/apply:os.abort []\n",
    "a merge key": lambda d: d.text + "x: &x {a: 1}\ny: {<<: *x}\n",
    "a directive": lambda d: "%YAML 9.9\n---\n" + d.text,
    "JSON": lambda _: '{"a": [1, 2, {"b": null}]}',
    "a program": lambda _: b"\x7fELF" + bytes(range(256)) * 40,
    "a ROM": lambda _: make_rom(),
}


def _texts() -> Iterator[Case]:
    for document in DOCUMENTS:
        for name, text in _TEXTS.items():
            yield _changed(f"{document.kind}: odd texts", name, document, text)


def _changed(kind: str, name: str, document: Document, text: Callable[..., str | bytes]) -> Case:
    def attempt(folder: Path) -> None:
        content = text(document)
        if isinstance(content, str):
            content = content.encode("utf-8", errors="surrogatepass")
        document.load_changed(content, folder)

    return Case(kind, f"{kind}: {name}", attempt)


def _values() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for document in DOCUMENTS:
        tokens = list(_TOKEN.finditer(document.text))
        for number in range(_REPLACED):
            token = tokens[rng.integers(len(tokens))]
            value = NASTY_VALUES[number % len(NASTY_VALUES)]
            text = document.text[: token.start()] + value + document.text[token.end() :]
            name = f"{number}, {token.group()[:20]}"
            yield _changed(f"{document.kind}: values", name, document, lambda _, t=text: t)


def _bytes() -> Iterator[Case]:
    for document in DOCUMENTS:
        for seed in range(_BYTES_CHANGED):
            kind = f"{document.kind}: bytes changed or cut"
            yield _changed(
                kind, f"seed {seed}", document, lambda d, s=seed: _with_other_bytes(d, s)
            )


def _with_other_bytes(document: Document, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    content = bytearray(document.text.encode())
    for _ in range(int(rng.integers(1, 5))):
        content[rng.integers(len(content))] = rng.integers(256)
    return bytes(content if seed % 3 else content[: rng.integers(len(content))])


def _overrides() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    special: tuple[str, ...] = (
        "",
        "=",
        "a",
        "a=",
        "=1",
        ".=1",
        "a..b=1",
        "a." * 5_000 + "b=1",
        "seed=" + "[" * 9_999,
    )
    special += (
        "seed=" + "9" * 10**6,
        "seed=\0",
        "seed=\udcff",
        "\udcff=1",
        "env={",
        "env=",
        "env=~",
    )
    special += (
        "seed=&a [*a]",
        "seed=" + _laughs(9, 9),
        "a" * 10**6 + "=1",
        "--set",
        "env.n_envs:8",
    )
    for number, text in enumerate(special):
        yield _override(f"special {number}", [text])
    for number in range(_REPLACED):
        key = _KEYS[rng.integers(len(_KEYS))]
        yield _override(f"{number}, {key}", [f"{key}={NASTY_VALUES[number % len(NASTY_VALUES)]}"])
    yield _override("10,000 of them", ["seed=1"] * 10_000)


def _override(name: str, overrides: list[str]) -> Case:
    def attempt(folder: Path) -> None:
        path = folder / "run.yaml"
        path.write_text(VALID_RUN, encoding="utf-8")
        load_config(path, overrides)

    return Case("--set", f"--set: {name}", attempt)


def _special_files() -> Iterator[Case]:
    for document in DOCUMENTS:
        for name, make in {
            "missing": lambda _: None,
            "a folder": Path.mkdir,
            "a pipe": os.mkfifo,
            "a link to itself": lambda path: path.symlink_to(path),
            "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
            "/proc/self/mem": lambda path: path.symlink_to("/proc/self/mem"),
            "4 GiB sparse": _make_sparse,
        }.items():
            kind = f"{document.kind}: no such file, or of another kind"
            if document.kind != "game.yaml":  # whose `load` reads the file first
                yield Case(kind, f"{kind}: {name}", _with_file(document, make))
            else:
                yield Case(kind, f"{kind}: {name}", _with_game_file(make))


def _with_file(document: Document, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def attempt(folder: Path) -> None:
        make(folder / document.file_name)
        document.load(folder)

    return attempt


def _with_game_file(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def attempt(folder: Path) -> None:
        make(folder / "game.yaml")
        load_game(str(folder / "game.yaml"))

    return attempt


def _make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(4 * 2**30)


_ROM_NAMES: tuple[str, ...] = (
    "a\nb",
    "a\tb",
    'a"b',
    "a\\b",
    "a b",
    "{a}",
    "#",
    "ä",
    "🕹",
    "\udcff",
    "\x1b[31m",
    "%s",
)
_ROM_NAMES += ("\x7f", "\x85", "\u2028", "\u202e", "-", "'", ": ", "a" * 120)


def _starters() -> Iterator[Case]:
    kind = "new-game for odd file names"
    for name in filter(file_names.is_possible, _ROM_NAMES):
        yield Case(kind, f"{kind}: {name!r}", partial(_start, name=name))


def _start(folder: Path, name: str) -> None:
    """What is written can be read back."""
    (folder / name).mkdir()
    rom = folder / name / f"{name}.gb"
    rom.write_bytes(make_rom(title=b""))
    load_game(str(write_starter(rom, folder / name)))


CASES: tuple[Case, ...] = (
    *_special_files(),
    *_texts(),
    *_overrides(),
    *_starters(),
    *_values(),
    *_bytes(),
)
