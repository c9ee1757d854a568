"""Standard output and error that cannot end a program, whatever their encoding and disk are."""

import codecs
import io
import os
import re
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TextIO, cast

from game_rl.errors import GameRLError, Interrupted, UsageError, system_fault, unencodable

ASCII_FORMS = {
    "→": "->",
    "±": "+/-",
    "×": "x",
    "−": "-",
    "–": "-",
    "—": "-",
    "“": '"',
    "”": '"',
    "’": "'",
    "✓": "+",
    "⏳": "~",
    "█": "#",
    "░": ".",
    "━": "#",
    "─": "-",
    **{chr(dots): "*" for dots in range(0x2800, 0x2900)},  # a spinner
}
_ERRORS = "game_rl.ascii_forms"
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that tell a terminal something, such as ESC, or change the direction of text."""
_LEAST_COLUMNS = 20


def ascii_form(character: str) -> str:
    r"""Return text in ASCII that stands for a character, `?` if there is none.

    A byte of a file name that is not valid text is shown as `\xff`.
    """
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return ASCII_FORMS.get(character) or plain or "?"


def valid_text(text: str) -> str:
    r"""Return the text as it can be written as UTF-8.

    A byte of a file name that is not valid text becomes `\xff`, another half of a pair `?`.
    """
    return text.encode("utf-8", _ERRORS).decode("utf-8")


def visible(text: str) -> str:
    r"""Return the text with codes such as `\x1b` for the characters that command a terminal.

    Names of files may have any character, and what a run says may come from a stranger.
    """
    return _UNSEEN.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def as_printed(text: str) -> str:
    """Return the text with the characters that standard output will have, for a table's widths."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return visible(text).encode(encoding, _ERRORS).decode(encoding)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(ascii_form, error.object[error.start : error.end])), error.end


codecs.register_error(_ERRORS, _replace)


def write_every_character() -> None:
    """Let characters that standard output or error cannot encode be written in their ASCII form."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


@contextmanager
def lasting_output(tell: Callable[[OSError], None] = lambda _: None) -> Iterator[None]:
    """Let standard output and error in the block go silent, instead of raising, once writing fails.

    Args:
        tell: is called with the first error of standard output.
    """
    before = sys.stdout, sys.stderr
    sys.stderr = _lasting(sys.stderr, lambda _: None)
    sys.stdout = _lasting(sys.stdout, tell)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def keep_output_harmless() -> None:
    """Do both for the rest of this process, as for a worker, whose envs may print."""
    write_every_character()
    sys.stdout, sys.stderr = (_lasting(s, lambda _: None) for s in (sys.stdout, sys.stderr))


def exit_code_of(command: Callable[[], int], *, trains: bool = False) -> int:
    """Run a program's command, print why it failed, and return the exit code.

    Args:
        trains: whether the command continues if its output can no longer be written.
    """
    try:
        with lasting_output(_tell_of_lost_output) if trains else nullcontext():
            code = command()
        if sys.stdout:
            sys.stdout.flush()
        return code
    except GameRLError as error:
        _complain(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted")
        return Interrupted("interrupted").exit_code
    except BrokenPipeError:  # `game-rl schema | head`
        return 0
    except UnicodeEncodeError as error:  # a name of a file, in an old locale
        _complain(f"error: {unencodable(error)}")
        return UsageError.exit_code
    except OSError as error:  # a fault of the machine, not a bug: a full disk, no permission
        _complain(f"error: {system_fault(error)}")
        return GameRLError.exit_code
    finally:
        flush_or_silence(sys.stdout)  # else the interpreter's end would fail


def _tell_of_lost_output(error: OSError) -> None:
    _complain(
        f"the output can no longer be written ({error.strerror}); the training continues, and "
        "events.jsonl in its directory records what happens"
    )


def _complain(text: str) -> None:
    with suppress(OSError):  # the exit code still says that it failed
        if sys.stderr:
            shown = with_whole_words(visible(text), _columns(sys.stderr))
            sys.stderr.write(f"{shown}\n")


def with_whole_words(text: str, columns: int | None) -> str:
    """Return the text with lines that break between words, each a little further in than its first.

    Args:
        columns: width of the terminal; None for a file, whose lines stay as they are.
    """
    if columns is None or columns < _LEAST_COLUMNS:
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(
            line,
            columns,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines)


def _columns(stream: TextIO) -> int | None:
    with suppress(OSError, ValueError):
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns
    return None


def flush_or_silence(stream: TextIO | None) -> None:
    """Write what a stream still holds, or discard it if that fails."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        _silence(stream)


def _silence(stream: TextIO) -> None:
    """Discard what a stream holds and gets from now on, so that not even its end can fail."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


def _lasting(stream: TextIO | None, tell: Callable[[OSError], None]) -> TextIO:
    # a program without a terminal has no streams at all, and prints nothing
    return cast("TextIO", stream and _LastingStream(stream, tell))


class _LastingStream:
    """A text stream that is silenced by the first error in writing it."""

    def __init__(self, stream: TextIO, tell: Callable[[OSError], None]) -> None:
        self._stream = stream
        self._tell = tell
        self._is_lost = False

    def write(self, text: str) -> int:
        with self._silenced_by_errors():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._silenced_by_errors():
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    @contextmanager
    def _silenced_by_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _silence(self._stream)
            if not self._is_lost:
                self._is_lost = True
                self._tell(error)
