"""Damage to a text that Hypothesis can draw and shrink."""

import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

_TOKEN = re.compile(r"[^\s:,\[\]{}\"]+")

NASTY_VALUES = (
    "", "~", "true", "no", "-1", "0", "1.5", "1e400", "-.inf", ".nan", "1_0", "0x", "1e", "''",
    "9" * 19, "9" * 400, "9" * 5_000, "0x" + "F" * 5_000, "0o" + "7" * 9_000, "1" + "_" * 300,
    "1." + "0" * 5_000, "1e" + "9" * 5_000, "[]", "{}", "[[[]]]", "{a: {b: {c: 1}}}", "[~, ~]",
    "[" * 40 + "]" * 40, "{a: " * 40 + "}" * 40, "[" * 3_000, "- " * 200, "? " * 100, "? a", ": a",
    "&x 1", "*x", "&x [*x]", "<<: *x", "{<<: {a: 1}}", "!!python/object/apply:os.abort []",
    "!!python/name:os.system", "!!binary aGk=", "!!set {a, b}", "!x y", "!!str", "!<tag:a> 1",
    "!!float .inf", "!!timestamp 2001-01-01", "2001-12-14t21:59:43.10-05:00", "1:30:00", "=",
    "|", ">-", "|9", "'", '"', '"\\x', '"\\ud800"', '"\\U00110000"', '"\\UFFFFFFFF"', '"\\0"', "%",
    "@", "`", "#", "---", "...", "--- a", "%YAML 9.9", "%TAG ! tag:x,2000:", "a: b: c", "a" * 3_000,
    "🕹", "\u202e", "\u2028", "\x85", "\ufeff", "\t", "../../../../etc/passwd", "/dev/zero", "/",
    "a/" * 3_000, "a" * 300, ".", "..", "~nobody/x", "~", "nul\\0", '"a\\0b"', '"a\\nb"',
    "{score: 1, score: 2}", "__class__", "{__class__: 1}", "on", "1" * 60 + ":" + "1" * 60,
)  # fmt: skip
_INSERTED: tuple[str, ...] = (
    "\t",
    "\0",
    "\x07",
    "\x85",
    "\u2028",
    "\ufeff",
    ":",
    ": ",
    "- ",
    "[",
    "]",
    "{",
    "}",
)
_INSERTED += ("&a ", "*a", "!", "|", ">", "'", '"', "#", "%", "@", ",", "\\", "\r", "\n", "\n ")
_BYTES = (b"\x00", b"\xff", b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5", b"\xef\xbb\xbf")


@st.composite
def damaged(draw: Callable[..., Any], text: str) -> bytes:
    """Return the text with one to four kinds of damage."""
    for _ in range(draw(st.integers(1, 4))):
        text = draw(st.sampled_from(_DAMAGES))(draw, text)
    content = text.encode("utf-8", errors="surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.sampled_from(_BYTES)) + content[at:]
    return content


def _other_value(draw: Callable[..., Any], text: str) -> str:
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    token = draw(st.sampled_from(tokens))
    values = st.sampled_from(NASTY_VALUES) | st.text(max_size=20) | st.integers().map(str)
    return text[: token.start()] + draw(values) + text[token.end() :]


def _swapped_values(draw: Callable[..., Any], text: str) -> str:
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    one, other = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
    return text[: one.start()] + other.group() + text[one.end() :]


def _inserted(draw: Callable[..., Any], text: str) -> str:
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(st.sampled_from(_INSERTED)) + text[at:]


def _removed(draw: Callable[..., Any], text: str) -> str:
    at = draw(st.integers(0, len(text)))
    return text[:at] + text[at + draw(st.integers(1, 30)) :]


def _moved_line(draw: Callable[..., Any], text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    line = draw(st.sampled_from(lines))
    lines.insert(draw(st.integers(0, len(lines))), " " * draw(st.integers(0, 5)) + line)
    return "".join(lines)


def _repeated(draw: Callable[..., Any], text: str) -> str:
    at = draw(st.integers(0, len(text)))
    return text[:at] + text[at : at + 20] * draw(st.sampled_from([2, 50, 2_000])) + text[at:]


def _cut(draw: Callable[..., Any], text: str) -> str:
    return text[: draw(st.integers(0, len(text)))]


_DAMAGES: tuple[Callable[..., str], ...] = (
    _other_value,
    _other_value,
    _other_value,
    _swapped_values,
    _inserted,
    _removed,
)
_DAMAGES += (_moved_line, _repeated, _cut)
