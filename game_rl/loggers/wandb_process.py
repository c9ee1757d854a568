"""The process that sends a run's curves, config and clips to Weights & Biases.

It follows the journal `wandb.jsonl`, which the training appends to and never waits for. Line k of
the journal is step 2k of the run, and a clip after it is step 2k + 1, so a step says which line it
is. A resumed training plays the stretch after its checkpoint again; its lines were sent already and
are not sent twice. If it plays that stretch in another way, a new run begins, which gets all lines.

Input: the settings, then lines `clip TIMESTEPS PATH`, `summary JSON` and `finish`. The end of the
input without `finish` says that the training was killed. Output: `connected`, or a line that warns.
"""

import json
import queue
import shutil
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import wandb

from game_rl.errors import UsageError
from game_rl.files.durable_files import write_saved
from game_rl.files.json_lines import located_lines
from game_rl.files.run_dir import RunDir
from game_rl.files.saved import read_saved
from game_rl.loggers.wandb_settings import SentRows, WandbSettings, sent_file
from game_rl.system.processes import ignore_signals, yield_to_others

_Mode = Literal["online", "offline"]

CONNECTED = "connected"
_LOOK_EVERY_S = 1.0
_INIT_TIMEOUT_S = 15.0
_FIRST_PAUSE_S = 10.0
_LONGEST_PAUSE_S = 300.0


def main(what: str) -> int:
    """Run the process; `check` only says whether somebody is logged in, by the exit code."""
    if what == "check":
        try:
            wandb.login(verify=False, timeout=1)
        except Exception:  # noqa: BLE001 - of many kinds; each says that nobody is logged in
            return 1
        return 0
    ignore_signals("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
    yield_to_others()
    settings = WandbSettings.model_validate_json(sys.stdin.readline())
    try:
        _Sender(settings).follow(_heard())
    except Exception as error:  # noqa: BLE001 - whatever it is, the training must hear of it
        _say(f"Weights & Biases: {_text(error)}; the curves stay in wandb.jsonl")
        return 1
    return 0


class _Sender:
    """Follows one run's journal.

    Attributes:
        run: run of Weights & Biases; None until there is a connection.
    """

    def __init__(self, settings: WandbSettings) -> None:
        self._settings = settings
        self._run_dir = RunDir(settings.run_dir)
        self._read_bytes = 0  # of the journal
        self._read_rows = 0
        self._sent = self._first_sent()
        self._later: list[str] = []
        self._pause_s = _FIRST_PAUSE_S
        self._try_at_s = 0.0
        self.run: Any = None

    def follow(self, heard: "queue.Queue[str | None]") -> None:
        """Send until the training has ended or was killed, and then the rest."""
        while True:
            self._connect(self._settings.mode)
            self._send_rows()
            with suppress(queue.Empty):
                line = heard.get(timeout=_LOOK_EVERY_S)
                if line is None or line == "finish":
                    break
                self._later.append(line)
        self._finish()

    def _finish(self) -> None:
        """Send the rest, to a file for later if there was never a connection."""
        if self.run is None:
            self._try_at_s = 0.0
            self._connect("offline")
            if self.run is not None and self._settings.mode == "online":
                folder = Path(self.run.dir).parent
                _say(
                    "Weights & Biases could not be reached; the curves are in a file: "
                    f"`wandb sync {quote(str(folder))}` sends them"
                )
        self._send_rows()
        wandb.finish()

    def _first_sent(self) -> SentRows:
        """Return what was sent; to a new run if lines differ from those that were sent."""
        found = read_saved(
            SentRows,
            sent_file(self._settings.run_dir),
            error=UsageError,
            fault="does not say what was sent to Weights & Biases",
            way_out="delete it, and the run is sent again",
        )
        sent = found or SentRows()
        if sent.rows > self._settings.rows and not self._settings.is_exact:
            sent = SentRows(attempt=sent.attempt + 1)
        write_saved(sent_file(self._settings.run_dir), sent)
        return sent

    def _connect(self, mode: _Mode) -> None:
        """Begin or continue the run, unless an attempt has just failed."""
        if self.run is not None or time.monotonic() < self._try_at_s:
            return
        folders = self._folders()
        try:
            self.run = self._begun(mode)
        except Exception as error:
            if mode == "offline":
                raise
            wandb.teardown()  # or the next attempt finds the run in use
            for folder in self._folders() - folders:
                shutil.rmtree(folder, ignore_errors=True)
            if self._pause_s == _FIRST_PAUSE_S:
                _say(
                    f"Weights & Biases cannot be reached: {_text(error)}; the training continues, "
                    "and the curves are sent once it answers"
                )
            self._try_at_s = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            return
        if mode == "online":  # the service knows what it has
            self._sent = self._sent.model_copy(update={"rows": (self.run.step + 1) // 2})
        _say(CONNECTED)

    def _folders(self) -> set[Path]:
        """Return the folders of wandb's sessions; a failed attempt leaves an empty one."""
        return set((self._settings.run_dir / "wandb").glob("run-*"))

    def _begun(self, mode: _Mode) -> Any:  # noqa: ANN401 - a run of wandb
        attempt = self._sent.attempt
        settings = self._settings
        run = wandb.init(
            project=settings.project,
            entity=settings.entity,
            group=settings.group,
            id=settings.run if attempt == 1 else f"{settings.run}-{attempt}",
            name=settings.name if attempt == 1 else f"{settings.name} ({attempt})",
            config=settings.config,
            dir=str(settings.run_dir),
            mode=mode,
            resume="allow",
            settings=wandb.Settings(
                console="off",
                silent=True,
                disable_git=True,
                symlink=False,  # copies of a run directory would follow them
                disable_code=True,
                x_disable_stats=True,  # events and curves have them
                init_timeout=_INIT_TIMEOUT_S,
            ),
        )
        run.define_metric("timesteps")
        run.define_metric("*", step_metric="timesteps")
        return run

    def _send_rows(self) -> None:
        if self.run is None:
            return
        before = self._sent.rows
        for offset, line in located_lines(self._run_dir.wandb_rows, start=self._read_bytes):
            number = self._read_rows
            self._read_rows += 1
            self._read_bytes = offset + len(line)
            if number >= before:
                row = json.loads(line)
                self.run.log({"timesteps": row["timesteps"], **row["values"]}, step=2 * number)
                self._sent = self._sent.model_copy(update={"rows": number + 1})
        if self._sent.rows > before:
            write_saved(sent_file(self._settings.run_dir), self._sent)
        while self._later:
            self._send_other(*self._later.pop(0).split(" ", 1))

    def _send_other(self, word: str, rest: str) -> None:
        if word == "summary":
            self.run.summary.update(json.loads(rest))
            return
        timesteps, _, path = rest.partition(" ")
        if Path(path).exists():
            clip = wandb.Video(path, format="mp4" if path.endswith(".mp4") else "gif")
            row = {"timesteps": int(timesteps), "clip": clip}
            self.run.log(row, step=max(0, 2 * self._sent.rows - 1))


def _heard() -> "queue.Queue[str | None]":
    """Return a queue of the lines that the training writes; None at the end of the input."""
    lines: queue.Queue[str | None] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    return lines


def _text(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # the training has ended
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
